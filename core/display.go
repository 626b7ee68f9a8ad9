package core

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fucina-go/fucina/core/dtype"
)

// How much of a tensor String shows: all of it up to displayWhole elements, else displayEdge
// places at each end of every axis.
const (
	displayWhole = 200
	displayEdge  = 3
)

// String is the shape and the values, long axes elided in the middle; a tensor that was ended says
// what ended it, and a quantized one, instead of its values, how much memory they take.
func (t *Tensor) String() string {
	switch end := t.ending(); {
	case end != nil:
		return t.Shape() + " " + end.text(t)
	case t.meta:
		return t.Shape() + " without data"
	case t.stored():
		f := formatOf(t.dtype)
		return fmt.Sprintf("%s of %.4g bytes per element", t.Shape(), float64(f.Bytes)/float64(f.Block))
	case t.Len() == 0:
		return t.Shape() + " []"
	case t.Rank() == 0:
		return t.Shape() + " " + t.format(0, displayDigits)
	}
	d := display{t: t, edge: displayEdge}
	if t.Len() <= displayWhole {
		d.edge = 1 << 30
	}
	d.measure(0, 0)
	d.write(0, 0, " ")
	sep := " "
	if t.Rank() > 1 {
		sep = "\n "
	}
	return t.Shape() + sep + d.text.String()
}

// displayDigits is the significant digits shown of a float.
const displayDigits = 5

// format is the element at offset as text.
func (t *Tensor) format(offset, digits int) string {
	switch v := t.element(offset).(type) {
	case float64:
		bits := 32
		if t.dtype == dtype.F64 {
			bits = 64
		}
		short := strconv.FormatFloat(v, 'g', -1, bits)
		if len(short) <= digits+2 {
			return short
		}
		return strconv.FormatFloat(v, 'g', digits, bits)
	case bool:
		if v {
			return "True"
		}
		return "False"
	default:
		return fmt.Sprint(v)
	}
}

type display struct {
	t     *Tensor
	edge  int
	width int
	text  strings.Builder
}

// places calls f for each place shown along axis k, with -1 for the gap.
func (d *display) places(k int, f func(i int)) {
	n := d.t.sizes[k]
	for i := 0; i < n; i++ {
		if i == d.edge && n > 2*d.edge {
			f(-1)
			i = n - d.edge
		}
		f(i)
	}
}

func (d *display) measure(k, offset int) {
	d.places(k, func(i int) {
		switch {
		case i < 0:
		case k == d.t.Rank()-1:
			d.width = max(d.width, len(d.t.format(offset+i*d.t.strides[k], displayDigits)))
		default:
			d.measure(k+1, offset+i*d.t.strides[k])
		}
	})
}

func (d *display) write(k, offset int, indent string) {
	d.text.WriteByte('[')
	first := true
	last := k == d.t.Rank()-1
	d.places(k, func(i int) {
		switch {
		case first:
		case last:
			d.text.WriteString(", ")
		default:
			d.text.WriteString(",\n " + indent)
		}
		first = false
		switch {
		case i < 0:
			d.text.WriteString("…")
		case last:
			v := d.t.format(offset+i*d.t.strides[k], displayDigits)
			d.text.WriteString(strings.Repeat(" ", d.width-len(v)) + v)
		default:
			d.write(k+1, offset+i*d.t.strides[k], indent+" ")
		}
	})
	d.text.WriteByte(']')
}
