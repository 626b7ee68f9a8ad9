// Package grad computes gradients. It walks back from results along the operations that core recorded, gives
// each of them the gradient with respect to its outputs and passes on what its VJP answers. It knows no
// particular operation.
//
// What does not live here: recording, and the VJPs, which are part of the operations (core); optimizers,
// evolution strategies and adapters (grad/optim, grad/es, grad/lora).
package grad
