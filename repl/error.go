package repl

import (
	"io"
	"strings"

	"github.com/fatih/color"
)

// PrintError writes an error of a script as the interpreter renders it; in colour, its first line and its
// caret are red. It writes nothing if there is no error.
func PrintError(w io.Writer, err error, colored bool) {
	if err == nil {
		return
	}
	text := strings.TrimRight(err.Error(), "\n") + "\n"
	if !colored {
		_, _ = io.WriteString(w, text)
		return
	}
	red := color.New(color.FgRed, color.Bold)
	red.EnableColor() // the caller has decided; the package's own guess is about standard output
	first := true
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if first || strings.Trim(line, " \t") == "^" {
			line = red.Sprint(line)
		}
		first = false
		_, _ = io.WriteString(w, line+"\n")
	}
}
