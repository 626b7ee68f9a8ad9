package gguf

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"

	"github.com/fucina-go/fucina/core/quant"
)

const maxDims = 4

// minTensor is the least a tensor's description takes: an empty name, no dims, a type, an offset.
const minTensor = 8 + 4 + 4 + 8

// Tensor is one tensor of a file.
type Tensor struct {
	Name string
	Type Type
	Dims []int // sizes in ggml's order: Dims[0] varies fastest in memory; none for a scalar

	data []byte
	file *File // whose mapping the data is in, not to be collected; nil if it is in none
}

// Bytes returns the tensor's data, which aliases the file: it must not be written to, nor read after File.Close or when
// neither the tensor nor its file can be reached. Its length is that of Elements() elements of Type.
func (t *Tensor) Bytes() []byte { return t.data }

// Forget tells the system that part of a tensor's data will not be read soon, so that its memory can be used for
// something else; reading it brings it back from the file.
func (f *File) Forget(part []byte) {
	for _, m := range f.mappings {
		m.Forget(part)
	}
	runtime.KeepAlive(f)
}

// Import returns the tensor, or, of one of the type I2S, the same weights as tq2_0. Errors: those of quant.ImportI2S.
func (t *Tensor) Import() (Tensor, error) {
	if t.Type != I2S {
		return *t, nil
	}
	data, err := quant.ImportI2S(t.data, t.Elements())
	runtime.KeepAlive(t.file)
	f, _ := quant.ByName("tq2_0")
	return Tensor{Name: t.Name, Type: Type(f.ID), Dims: t.Dims, data: data}, err
}

// Elements returns the number of elements, the product of Dims.
func (t *Tensor) Elements() int {
	n := 1
	for _, d := range t.Dims {
		n *= d
	}
	return n
}

// placement is where a file says a tensor's data is, relative to the data section.
type placement struct {
	tensor        int
	offset, bytes uint64
}

// readTensors reads the descriptions of n tensors and finds their data, which starts after the last
// description at the next multiple of alignment.
func (r *reader) readTensors(n, alignment int) ([]Tensor, error) {
	tensors := make([]Tensor, 0, min(n, maxPrealloc))
	places := make([]placement, 0, min(n, maxPrealloc))
	for i := range n {
		t := Tensor{}
		var err error
		if t.Name, err = r.name("the name"); err != nil {
			return nil, fmt.Errorf("tensor %d of %d: %w", i, n, err)
		}
		p := placement{tensor: i}
		if p.offset, p.bytes, err = r.tensor(&t); err != nil {
			return nil, fmt.Errorf("tensor %s: %w", label(t.Name), err)
		}
		tensors = append(tensors, t)
		places = append(places, p)
	}
	base := (uint64(r.pos) + uint64(alignment) - 1) &^ (uint64(alignment) - 1)
	for _, p := range places {
		t := &tensors[p.tensor]
		var err error
		if t.data, err = r.place(p, base, uint64(alignment)); err != nil {
			return nil, fmt.Errorf("tensor %s: %w", label(t.Name), err)
		}
	}
	return tensors, checkOverlap(tensors, places)
}

// tensor reads what follows a tensor's name.
func (r *reader) tensor(t *Tensor) (offset, bytes uint64, err error) {
	n, err := r.u32("the number of dims")
	if err != nil {
		return 0, 0, err
	}
	if n > maxDims {
		return 0, 0, fmt.Errorf("has %d dims, the most is %d", n, maxDims)
	}
	t.Dims = make([]int, n)
	for i := range t.Dims {
		d, err := r.u64("a dim")
		if err != nil {
			return 0, 0, err
		}
		if d > math.MaxInt {
			return 0, 0, fmt.Errorf("dim %d is %d, more than an int holds", i, d)
		}
		t.Dims[i] = int(d)
	}
	id, err := r.u32("the type")
	if err != nil {
		return 0, 0, err
	}
	t.Type = Type(id)
	if bytes, err = t.Type.bytes(t.Dims); err != nil {
		return 0, 0, err
	}
	offset, err = r.u64("the offset")
	return offset, bytes, err
}

// bytes returns the bytes of a tensor of that type, fewer than 2⁶³.
func (t Type) bytes(dims []int) (uint64, error) {
	elements, size := t.Block()
	if t == I2S { // as what it becomes
		f, _ := quant.ByName("tq2_0")
		elements, size = f.Block, f.Bytes
	}
	if elements == 0 {
		if _, ok := removed[t]; ok {
			return 0, fmt.Errorf("type %d (%s) was removed from ggml; quantize the model again", uint32(t), t)
		}
		last := quant.Formats()[len(quant.Formats())-1]
		return 0, fmt.Errorf("type %d is unknown, types go to %d (%s)", uint32(t), last.ID, last.Name)
	}
	row := 1
	if len(dims) > 0 {
		row = dims[0]
	}
	if row%elements != 0 {
		return 0, fmt.Errorf("a row of %d elements is no multiple of the %d of a %s block", row, elements, t)
	}
	total := uint64(1)
	for _, d := range dims {
		var over uint64
		if over, total = bits.Mul64(total, uint64(d)); over != 0 || total > math.MaxInt {
			return 0, fmt.Errorf("dims %v: more elements than an int holds", dims)
		}
	}
	if t == I2S {
		return uint64(quant.I2SSize(int(total))), nil
	}
	over, total := bits.Mul64(total/uint64(elements), uint64(size))
	if over != 0 || total > math.MaxInt64 {
		return 0, fmt.Errorf("dims %v of %s: more bytes than an int64 holds", dims, t)
	}
	return total, nil
}

// place returns the bytes at p in the data section, which starts at byte base of the file.
func (r *reader) place(p placement, base, alignment uint64) ([]byte, error) {
	size := uint64(len(r.data))
	if p.offset%alignment != 0 {
		return nil, fmt.Errorf("offset %d is not a multiple of the alignment, %d", p.offset, alignment)
	}
	if p.offset > math.MaxInt64-base {
		return nil, fmt.Errorf("offset %d is outside the file of %d bytes", p.offset, size)
	}
	start := base + p.offset
	if end := start + p.bytes; end > size && p.bytes > 0 {
		return nil, fmt.Errorf("data ends at byte %d, the file has %d bytes (truncated?)", end, size)
	}
	if p.bytes == 0 {
		return nil, nil
	}
	return r.data[start : start+p.bytes : start+p.bytes], nil
}

// checkOverlap refuses tensors that share bytes: no writer makes them, and whoever changes the one does
// not expect to change the other.
func checkOverlap(tensors []Tensor, places []placement) error {
	places = slices.DeleteFunc(places, func(p placement) bool { return p.bytes == 0 })
	slices.SortFunc(places, func(a, b placement) int { return cmp.Compare(a.offset, b.offset) })
	for i := 1; i < len(places); i++ {
		a, b := places[i-1], places[i]
		if a.offset+a.bytes > b.offset {
			return fmt.Errorf("tensor %s: data at offset %d overlaps that of tensor %s, which ends at offset %d",
				label(tensors[b.tensor].Name), b.offset, label(tensors[a.tensor].Name), a.offset+a.bytes)
		}
	}
	return nil
}
