// Package idx reads IDX files, the arrays in which the MNIST family of data sets comes.
//
// The header, the element types and the byte order live here. Tensors do not, and compression neither: elements pass
// through as bytes, little-endian, in one of the dtypes of package dtype. Files are not trusted: every count is
// compared with what the file can hold before anything is made of it.
//
// The format: http://yann.lecun.com/exdb/mnist: two zeros, the element type, the number of axes, the sizes as 32 bits
// each, big-endian, and the elements, big-endian, the last axis fastest.
package idx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/fucina-go/fucina/core/dtype"
)

// Array is an array in a file: what its header says, and its elements, to be read once.
type Array struct {
	DType dtype.Type
	Shape []int // the last axis is the fastest

	r     io.Reader
	left  int64  // bytes of elements not yet taken from r
	ready []byte // taken, not yet read
}

// types is the element types by their code.
var types = map[byte]dtype.Type{
	0x08: dtype.U8, 0x09: dtype.I8, 0x0b: dtype.I16, 0x0c: dtype.I32, 0x0d: dtype.F32, 0x0e: dtype.F64,
}

var errTruncated = errors.New("the file is shorter than its header says")

// New reads the header of a file that has at most so many bytes. The elements are then read from the array.
func New(r io.Reader, most int64) (*Array, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil || head[0] != 0 || head[1] != 0 {
		return nil, errors.New("this is no IDX file: it does not begin with two zeros")
	}
	a := &Array{r: r}
	var ok bool
	if a.DType, ok = types[head[2]]; !ok {
		return nil, fmt.Errorf("this is no IDX file: the element type %#02x is unknown", head[2])
	}
	sizes := make([]byte, 4*int(head[3]))
	if _, err := io.ReadFull(r, sizes); err != nil {
		return nil, errTruncated
	}
	n, empty := int64(a.DType.Size()), false
	for len(sizes) > 0 {
		size := int64(binary.BigEndian.Uint32(sizes))
		sizes = sizes[4:]
		a.Shape = append(a.Shape, int(size))
		switch {
		case size == 0:
			empty = true
		case n > most/size:
			return nil, fmt.Errorf("the header says %s of sizes beginning with %v, more than the file can hold",
				a.DType, a.Shape)
		default:
			n *= size
		}
	}
	if a.left = n; empty {
		a.left = 0
	}
	return a, nil
}

// Read gives elements as bytes: of DType, little-endian. At the end it insists that the file ends, too.
func (a *Array) Read(p []byte) (int, error) {
	if len(a.ready) == 0 {
		if a.left == 0 {
			if n, err := a.r.Read(make([]byte, 1)); n > 0 {
				return 0, errors.New("the file is longer than its header says")
			} else if err != nil && !errors.Is(err, io.EOF) {
				return 0, err
			}
			return 0, io.EOF
		}
		const block = 1 << 15 // a multiple of every element's size
		a.ready = make([]byte, min(block, a.left))
		if _, err := io.ReadFull(a.r, a.ready); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = errTruncated
			}
			return 0, err
		}
		a.left -= int64(len(a.ready))
		size := a.DType.Size()
		for i := 0; size > 1 && i < len(a.ready); i += size {
			slices.Reverse(a.ready[i : i+size])
		}
	}
	n := copy(p, a.ready)
	a.ready = a.ready[n:]
	return n, nil
}
