// Package optim holds the optimizers, the schedules of their learning rates, clipping of gradients and averages of
// weights. An optimizer is one file: a struct with its hyperparameters, whose comment is its documentation, and the
// rule for one parameter. A schedule likewise.
//
// What does not live here: gradients (grad), the loops over elements (kernels/update), walking a script's lists and
// structs for parameters (bindings/starlark), files with state in them.
package optim
