package core

import (
	"fmt"
	"math"
	"strings"

	"github.com/fucina-go/fucina/core/dtype"
)

// Anomaly runs f with the search for the first NaN on or off. Where it is on, an operation that makes a NaN of
// operands that have none panics with an *Error, and so does a backward pass in which a gradient becomes NaN.
func (e *Env) Anomaly(on bool, f func()) {
	was := e.anomaly
	e.anomaly = on
	defer func() { e.anomaly = was }()
	f()
}

// SeeksNaN tells whether the search for the first NaN is on.
func (e *Env) SeeksNaN() bool { return e.anomaly }

// checkNaN fails if the operation in progress made a NaN of operands that have none.
func (c *call) checkNaN() {
	for _, out := range c.outs {
		place, is := out.FindNaN()
		if !is {
			continue
		}
		if len(c.in) == 0 {
			return // it was asked for
		}
		for _, t := range c.in {
			if t == nil || t == out {
				continue
			}
			if _, had := t.FindNaN(); had {
				return
			}
		}
		top := c.env.busy[0] // the operation that the script called
		var operands []string
		for _, t := range top.in {
			if t != nil {
				operands = append(operands, top.describe(t))
			}
		}
		msg := fmt.Sprintf("made a NaN%s of %s, which has none", place, strings.Join(operands, " and "))
		if len(operands) > 1 {
			msg = strings.Replace(msg, "which has", "which have", 1)
		}
		top.fail(msg, fmt.Sprintf("look at what it was given: print(%s)", top.param(top.in[0])))
	}
}

// FindNaN tells whether an element is NaN, and where the first such is: " at row=3, col=1", "" for a scalar.
func (t *Tensor) FindNaN() (place string, is bool) {
	if t.meta || !t.dtype.IsFloat() || t.Len() == 0 {
		return "", false
	}
	at := -1
	switch {
	case t.dense() && t.dtype == dtype.F32:
		at = firstNaN(elementsOf[float32](t))
	case t.dense() && t.dtype == dtype.F64:
		at = firstNaN(elementsOf[float64](t))
	default:
		n := 0
		for offset := range t.each {
			if math.IsNaN(t.element(offset).(float64)) {
				at = n
				break
			}
			n++
		}
	}
	if at < 0 {
		return "", false
	}
	var parts []string
	for k := len(t.sizes) - 1; k >= 0; k-- {
		parts = append([]string{fmt.Sprintf("%s=%d", t.axes.At(k), at%t.sizes[k])}, parts...)
		at /= t.sizes[k]
	}
	if len(parts) > 0 {
		place = " at " + strings.Join(parts, ", ")
	}
	return place, true
}

// firstNaN is the place of the first NaN, -1 if there is none.
func firstNaN[T float32 | float64](values []T) int {
	for i, v := range values {
		if v != v {
			return i
		}
	}
	return -1
}
