package core

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/fucina-go/fucina/core/dtype"
)

// byteChunk is how many bytes of a tensor are read or written at once.
const byteChunk = 1 << 20

// ReadTensor is a tensor in this Env with the elements that r gives: little-endian, in the order of the axes, a bool
// being one byte, of which any but 0 is true. In shape-only mode nothing is read and the tensor has no data. An error
// of r, or an end too early, is returned.
func (e *Env) ReadTensor(r io.Reader, dt dtype.Type, axes Axes, sizes ...int) (*Tensor, error) {
	if axes.Len() > maxRank {
		return nil, fmt.Errorf("a tensor has at most %d axes, got %d", maxRank, axes.Len())
	}
	t := newTensor(e, dt, axes)
	copy(t.sizes, sizes)
	for k, n := range sizes { // of an empty tensor, whose axes are walked nevertheless
		if n > longestEmpty && t.Len() == 0 {
			return nil, fmt.Errorf("axis %q of an empty tensor is %d long, at most %d are possible", axes.At(k), n,
				longestEmpty)
		}
	}
	if e.shapeOnly {
		t.pack()
		t.meta = true
		return t, nil
	}
	t.allocate(false)
	for rest := t.bytes(); len(rest) > 0; {
		chunk := rest[:min(len(rest), byteChunk)]
		if _, err := io.ReadFull(r, chunk); err != nil {
			t.Free()
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = fmt.Errorf("the elements of %s end too early", t.Shape())
			}
			return nil, err
		}
		if e.Control.Stopped() {
			t.Free()
			panic(&Canceled{Op: "read"})
		}
		rest = rest[len(chunk):]
	}
	if dt == dtype.Bool {
		for i, b := range t.bytes() {
			if b > 1 {
				t.bytes()[i] = 1
			}
		}
	}
	e.Own(t)
	return t, nil
}

// WriteElements writes the elements as ReadTensor reads them.
func (t *Tensor) WriteElements(w io.Writer) error {
	t.mustHaveData("write")
	if t.dense() {
		return writeAll(w, t.bytes())
	}
	size := t.dtype.Size()
	buf := make([]byte, 0, min(t.Len()*size, byteChunk))
	for offset := range t.each {
		buf = append(buf, unsafe.Slice((*byte)(unsafe.Add(t.data, offset*size)), size)...)
		if len(buf)+size > cap(buf) {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	_, err := w.Write(buf)
	return err
}

// WriteBlocks writes a quantized tensor as ggml stores it, row after row of blocks; of any other, the elements.
func (t *Tensor) WriteBlocks(w io.Writer) error {
	if !t.stored() {
		return t.WriteElements(w)
	}
	t.mustBeThere("write")
	if !t.dense() {
		panic(&Error{Op: "write", Msg: t.Shape() + " does not lie as its axes say", Hint: "x.dequantize()"})
	}
	if t.panels == 0 {
		return writeAll(w, t.bytes())
	}
	f := formatOf(t.dtype)
	buf := make([]byte, f.Size(t.panels))
	for r := range t.Len() / t.panels {
		if _, err := w.Write(t.rowBytes(buf, f, r, t.panels)); err != nil {
			return err
		}
	}
	return nil
}

// writeAll writes b piece by piece, so that w can stop in between.
func writeAll(w io.Writer, b []byte) error {
	for len(b) > 0 {
		n := min(len(b), byteChunk)
		if _, err := w.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// Fixed says why the elements of t may not be changed; it is empty if they may.
func (t *Tensor) Fixed() string {
	switch {
	case t.ending() != nil:
		return t.String()
	case t.env == nil || t.buf != nil && t.buf.Borrowed():
		return t.Shape() + " is shared and may not be changed"
	case t.overlaps() != "":
		return fmt.Sprintf("%s repeats the same memory along %q and may not be changed", t.Shape(), t.overlaps())
	}
	return ""
}

// Assign gives t, in place, the elements of v, which has t's dtype, axes and sizes. Unlike the set operation it is not
// interrupted half-way, records nothing, and changes variables too: it is for state that is put back.
//
// Errors: t is shared, or repeats along an axis; v is of another shape, or in panels.
func (t *Tensor) Assign(v *Tensor) {
	t.mustBeThere("assign")
	v.mustBeThere("assign")
	switch why := t.Fixed(); {
	case why != "":
		panic(&Error{Op: "assign", Msg: why, Hint: "change a copy: x.copy()"})
	case t.Shape() != v.Shape():
		panic(&Error{Op: "assign", Msg: fmt.Sprintf("x is %s, but the new values are %s", t.Shape(), v.Shape())})
	case v.panels > 0:
		panic(&Error{Op: "assign", Msg: "the new values, " + v.Shape() + ", lie in panels", Hint: "v.copy()"})
	}
	if t.dense() && v.dense() {
		copy(t.bytes(), v.bytes())
	} else {
		var from []int
		for offset := range v.each {
			from = append(from, offset)
		}
		size, i := t.dtype.Size(), 0
		for offset := range t.each {
			copy(unsafe.Slice((*byte)(unsafe.Add(t.data, offset*size)), size),
				unsafe.Slice((*byte)(unsafe.Add(v.data, from[i]*size)), size))
			i++
		}
	}
	t.buf.Touch()
	t.version = t.buf.Version()
}

// bytes is the memory of a dense tensor.
func (t *Tensor) bytes() []byte { return unsafe.Slice((*byte)(t.data), t.byteCount(t.Len())) }
