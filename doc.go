// Package fucina is the root of the Fucina module: tensors with named axes, scripted in Starlark and
// run by compiled Go kernels.
//
// This package is the place for what a Go program needs to embed the interpreter; it holds no engine
// code. The engine is in core, grad and kernels, the interpreter in bindings/starlark, the interactive
// front end in repl and cmd/fucina-repl. The tests here keep the rules that hold for the whole tree:
// who may import whom (deps_test.go) and the shape of files, functions and documents (repo_test.go).
package fucina
