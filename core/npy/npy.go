// Package npy reads and writes NumPy's array files (.npy) and archives of them (.npz).
//
// Headers, element types, byte order and archives live here. Tensors do not: elements pass through as bytes,
// little-endian, in one of the dtypes of package dtype. Files are not trusted: every count is compared with the
// size of the file before anything is made of it.
//
// The format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/fucina-go/fucina/core/dtype"
)

const magic = "\x93NUMPY"

// Bounds on what a header may say.
const (
	maxHeader   = 1 << 20 // bytes
	maxRank     = 64
	maxElements = 1 << 46
)

// Array is an array in a file: what its header says, and its elements, to be read once.
type Array struct {
	DType   dtype.Type // of the elements as Read gives them
	Shape   []int      // the first axis is the slowest one, unless Fortran is set
	Fortran bool

	as     element
	r      io.Reader
	stored []byte // elements as the file has them, not yet converted
	ready  []byte // converted elements, not yet read
	left   int    // elements not yet taken from r
}

// element is how a file stores an element.
type element struct {
	descr string
	size  int // bytes
	dt    dtype.Type
	big   bool // big-endian
	put   func(dst, src []byte) error
}

// New reads the header of an array file of size bytes. The elements are then read from the array.
func New(r io.Reader, size int64) (*Array, error) {
	head, err := readHeader(r, size)
	if err != nil {
		return nil, err
	}
	a := &Array{r: r}
	descr, err := a.parse(string(head.dict))
	if err != nil {
		return nil, err
	}
	if a.as, err = elementOf(descr); err != nil {
		return nil, err
	}
	a.DType = a.as.dt
	n, err := a.count()
	if err != nil {
		return nil, err
	}
	if have := (size - head.size) / int64(a.as.size); int64(n) > have {
		return nil, fmt.Errorf("the header says %d elements of %d bytes, but the file has %d bytes for them",
			n, a.as.size, size-head.size)
	}
	a.left = n
	return a, nil
}

// Len is the number of elements.
func (a *Array) Len() int {
	n, _ := a.count()
	return n
}

func (a *Array) count() (int, error) {
	if len(a.Shape) > maxRank {
		return 0, fmt.Errorf("the array has %d axes, at most %d are possible", len(a.Shape), maxRank)
	}
	n, empty := 1, false
	for _, size := range a.Shape {
		switch {
		case size == 0:
			empty = true
		case size < 0 || size > maxElements/n:
			return 0, fmt.Errorf("the shape %v has too many elements", a.Shape)
		default:
			n *= size
		}
	}
	if empty {
		return 0, nil
	}
	return n, nil
}

type header struct {
	dict []byte
	size int64 // with magic, version and length
}

func readHeader(r io.Reader, size int64) (h header, err error) {
	start := make([]byte, 10)
	if _, err := io.ReadFull(r, start); err != nil || string(start[:6]) != magic {
		if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("this is no .npy file")
			if string(start[:4]) == "PK\x03\x04" {
				err = errors.New("this is no .npy file but an archive of some, as .npz is")
			}
		}
		return h, err
	}
	length := int64(binary.LittleEndian.Uint16(start[8:]))
	h.size = 10 + length
	switch version := start[6]; version {
	case 1:
	case 2, 3:
		rest := make([]byte, 2)
		if _, err := io.ReadFull(r, rest); err != nil {
			return h, errTruncated
		}
		length |= int64(binary.LittleEndian.Uint16(rest)) << 16
		h.size = 12 + length
	default:
		return h, fmt.Errorf("version %d.%d of the format is unknown", version, start[7])
	}
	if length > maxHeader || h.size > size {
		return h, fmt.Errorf("the header claims %d bytes, more than the file or the bound of %d allow", length,
			maxHeader)
	}
	h.dict = make([]byte, length)
	if _, err := io.ReadFull(r, h.dict); err != nil {
		return h, errTruncated
	}
	return h, nil
}

var errTruncated = errors.New("the file is shorter than its header says")

// Read gives elements as bytes: of DType, little-endian, a bool being 0 or 1.
func (a *Array) Read(p []byte) (int, error) {
	for len(a.ready) == 0 {
		if a.left == 0 { // in an archive, the end is where the checksum is compared
			if _, err := a.r.Read(make([]byte, 1)); err != nil {
				return 0, err
			}
			return 0, io.EOF
		}
		const block = 4096
		n := min(block, a.left)
		a.stored = slices.Grow(a.stored[:0], n*a.as.size)[:n*a.as.size]
		if _, err := io.ReadFull(a.r, a.stored); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = errTruncated
			}
			return 0, err
		}
		a.left -= n
		var err error
		if a.ready, err = a.as.convert(a.stored, n); err != nil {
			return 0, err
		}
	}
	n := copy(p, a.ready)
	a.ready = a.ready[n:]
	return n, nil
}

// convert makes n elements little-endian ones of the dtype, in place if their size stays.
func (e *element) convert(stored []byte, n int) ([]byte, error) {
	if e.big {
		for i := range n {
			slices.Reverse(stored[i*e.size:][:e.size])
		}
	}
	if e.put == nil {
		return stored, nil
	}
	size := e.dt.Size()
	out := make([]byte, n*size)
	for i := range n {
		if err := e.put(out[i*size:][:size], stored[i*e.size:][:e.size]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// kinds is the element types by kind and size, as in "f4".
var kinds = map[string]struct {
	dt  dtype.Type
	put func(dst, src []byte) error
}{
	"b1": {dtype.Bool, truth}, "i1": {dtype.I8, nil}, "i2": {dtype.I16, nil}, "i4": {dtype.I32, nil},
	"i8": {dtype.I64, nil},
	"u1": {dtype.U8, nil}, "u2": {dtype.I32, widen}, "u4": {dtype.I64, widen}, "u8": {dtype.I64, positive},
	"f2": {dtype.F16, nil}, "f4": {dtype.F32, nil}, "f8": {dtype.F64, nil},
}

// truth makes every byte but 0 a 1.
func truth(dst, src []byte) error {
	dst[0] = 0
	if src[0] != 0 {
		dst[0] = 1
	}
	return nil
}

// widen puts zeros above an unsigned integer.
func widen(dst, src []byte) error {
	copy(dst, src) // dst is fresh, and longer
	return nil
}

// positive refuses integers that i64 cannot hold.
func positive(dst, src []byte) error {
	if v := binary.LittleEndian.Uint64(src); v > math.MaxInt64 {
		return fmt.Errorf("the element %d is greater than what i64 holds", v)
	}
	return widen(dst, src)
}

// elementOf reads an element type such as "<f4".
func elementOf(descr string) (element, error) {
	if len(descr) > 1 {
		order, kind := descr[0], descr[1:]
		k, ok := kinds[kind]
		size := 0
		if ok {
			size = int(kind[1] - '0')
		}
		if ok && (order == '<' || order == '>' || order == '|' && size == 1) {
			return element{descr: descr, size: size, dt: k.dt, big: order == '>' && size > 1, put: k.put}, nil
		}
	}
	hint := ""
	switch {
	case strings.HasPrefix(descr, "["):
		hint = ": fields have no counterpart; save one array for each"
	case strings.HasPrefix(strings.TrimLeft(descr, "<>|="), "c"):
		hint = ": save the real and the imaginary part"
	case strings.Contains(descr, "O"):
		hint = ": objects are not read; save numbers"
	}
	return element{}, fmt.Errorf("elements of type %q cannot be read%s", clip(descr), hint)
}

// descriptions is the inverse of kinds, for files that are written.
var descriptions = map[dtype.Type]string{
	dtype.F64: "<f8", dtype.F32: "<f4", dtype.F16: "<f2", dtype.I64: "<i8", dtype.I32: "<i4", dtype.I16: "<i2",
	dtype.I8: "|i1", dtype.U8: "|u1", dtype.Bool: "|b1",
}

// Header is the beginning of an array file of version 1.0, which the elements follow: little-endian, the last axis
// fastest. NumPy has no bf16.
func Header(dt dtype.Type, shape []int) ([]byte, error) {
	descr, ok := descriptions[dt]
	if !ok {
		return nil, fmt.Errorf("NumPy has no %s", dt)
	}
	var sizes strings.Builder
	for i, n := range shape {
		if i > 0 {
			sizes.WriteByte(' ')
		}
		fmt.Fprintf(&sizes, "%d,", n)
	}
	tuple := sizes.String()
	if len(shape) > 1 {
		tuple = strings.TrimSuffix(tuple, ",") // as Python writes tuples
	}
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, tuple)
	const align = 64 // of the first element
	pad := align - (len(magic)+4+len(dict)+1)%align
	dict += strings.Repeat(" ", pad%align) + "\n"
	if len(dict) > math.MaxUint16 {
		return nil, fmt.Errorf("an array of %d axes is too much for the format", len(shape))
	}
	head := append([]byte(magic), 1, 0)
	head = binary.LittleEndian.AppendUint16(head, uint16(len(dict)))
	return append(head, dict...), nil
}

func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}
