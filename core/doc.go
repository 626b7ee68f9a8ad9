// Package core is the engine: tensors with named axes, the environment they live in, and the
// operations, one file each. Run is the one room every operation passes: plan the axes, settle
// the sizes, take outputs from the pool, evaluate, record if a gradient is wanted.
//
// What does not live here: loops over numbers that know no shapes (kernels/*), the backward walk
// (grad), model runtimes (models/*) and anything that knows Starlark (bindings/starlark).
package core
