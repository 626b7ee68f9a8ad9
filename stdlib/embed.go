// Package stdlib holds the Starlark modules that scripts load as @stdlib//name.star. It holds no Go code
// beyond their embedding and what they say of themselves: what a module needs from the engine it gets from the
// interpreter's names.
package stdlib

import (
	"embed"
	"strings"
)

// FS has one file for each module.
//
//go:embed *.star
var FS embed.FS

// About is the text at the beginning of the module called name; "" if there is none of that name.
func About(name string) string {
	src, err := FS.ReadFile(name + ".star")
	if err != nil {
		return ""
	}
	_, about, _ := strings.Cut(string(src), `"""`)
	about, _, _ = strings.Cut(about, `"""`)
	return about
}
