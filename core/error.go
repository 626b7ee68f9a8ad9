package core

import (
	"fmt"
	"strings"

	"github.com/fucina-go/fucina/core/axis"
)

// Error is a misuse of an operation: it says what was asked, what was found and what would be
// right. Operations panic with it; the doors of the program recover it.
type Error struct {
	Op   string // the operation, as a script spells it
	Msg  string // what is wrong, with axis names and sizes
	Hint string // how to put it right; may be empty
}

func (e *Error) Error() string {
	s := e.Op + ": " + e.Msg
	if e.Hint != "" {
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

// unknownAxis words the lack of an axis: the nearest name if it is close, and what there is.
func unknownAxis(name, operand string, axes *axis.List, sizes []int) (msg, hint string) {
	msg = fmt.Sprintf("no axis %q in %s%s", name, operand, shapeText(axes, sizes))
	if near := axes.Nearest(name); near != "" {
		return msg, fmt.Sprintf("did you mean %q?", near)
	}
	if axes.Len() == 0 {
		return msg, "it is a scalar"
	}
	return msg, "axes: " + strings.Join(axes.Names(), ", ")
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
