// Package stdlib holds the Starlark modules that scripts load as @stdlib//name.star. It holds no Go code
// beyond their embedding: what a module needs from the engine it gets from the interpreter's names.
package stdlib

import "embed"

// FS has one file for each module.
//
//go:embed *.star
var FS embed.FS
