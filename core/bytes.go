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
		for rest := t.bytes(); len(rest) > 0; {
			n := min(len(rest), byteChunk)
			if _, err := w.Write(rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		return nil
	}
	size := t.dtype.Size()
	buf := make([]byte, 0, min(t.Len()*size, byteChunk))
	var err error
	t.each(func(offset int) {
		buf = append(buf, unsafe.Slice((*byte)(unsafe.Add(t.data, offset*size)), size)...)
		if len(buf)+size > cap(buf) && err == nil {
			_, err = w.Write(buf)
			buf = buf[:0]
		}
	})
	if err != nil {
		return err
	}
	_, err = w.Write(buf)
	return err
}

// bytes is the memory of a dense tensor.
func (t *Tensor) bytes() []byte { return unsafe.Slice((*byte)(t.data), byteCount(t.dtype, t.Len())) }
