package core

import (
	"fmt"
	"strings"

	"github.com/fucina-go/fucina/core/axis"
)

// Error is a misuse of an operation: it says what was asked, what was found and what would be
// right. Operations panic with it; the doors of the program recover it.
//
// Hint ends with a fix, a piece of script to paste: "use FIX", "did you mean FIX?" or a few words,
// ": " and FIX. A fix that calls the operation itself takes the place of the call; any other takes the
// place of the operand that it begins with.
type Error struct {
	Op   string // the operation, as a script spells it
	Msg  string // what is wrong, with axis names and sizes
	Hint string // how to put it right
}

// longestHint is the most bytes of a hint that anybody reads: a call with ten thousand names is not repeated.
const longestHint = 2000

func (e *Error) Error() string {
	s := e.Op + ": " + e.Msg
	if e.Hint != "" && len(e.Hint) <= longestHint {
		s += "; " + e.Hint
	}
	return s
}

// Canceled is the panic and error of work that was stopped from outside.
type Canceled struct{ Op string }

func (e *Canceled) Error() string { return e.Op + ": interrupted" }

// Recover turns a panic with an *Error, *Canceled or other error of the engine's into *err. It is
// for the doors only, in a deferred call; any other panic goes on.
func Recover(err *error) {
	switch p := recover().(type) {
	case nil:
	case *Error:
		*err = p
	case *Canceled:
		*err = p
	default:
		panic(p)
	}
}

// shapeText is "[batch=8, seq=128]".
func shapeText(axes *axis.List, sizes []int) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, name := range axes.Names() {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s=%d", name, sizes[i])
	}
	b.WriteByte(']')
	return b.String()
}
