package core

import (
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/quant"
	"github.com/fucina-go/fucina/kernels/attn"
	"github.com/fucina-go/fucina/kernels/half"
)

// PageLen is how many positions of a sequence a Page holds: as many as attention weighs at once.
const PageLen = attn.Block

// Page is the keys and values of PageLen positions of one sequence in one layer, as paged attention reads them:
// K[kv_head, key_seq, head_dim] and V[kv_head, key_seq, value], of f32, f16 or q8_0. The rows of q8_0 are padded with
// zeros to whole blocks. Without V, a value is the beginning of its key.
type Page struct{ K, V *Tensor }

var keyAxes, valueAxes = axisList("kv_head", "key_seq", "head_dim"), axisList("kv_head", "key_seq", "value")

// NewPage is a page of zeros, outside of every scope, for keys and values of the given widths; a value of width 0 is
// the beginning of its key. It panics with an *Error when the budget does not allow it.
func NewPage(env *Env, dt dtype.Type, kvHeads, width, value int) Page {
	p := Page{K: env.Tensor(dt, keyAxes, kvHeads, PageLen, paddedTo(dt, width))}
	if value > 0 {
		defer func() {
			if p.V == nil { // the budget does not allow it
				p.K.Free()
			}
		}()
		p.V = env.Tensor(dt, valueAxes, kvHeads, PageLen, paddedTo(dt, value))
	}
	return p
}

// paddedTo is n, up to whole blocks of the dtype.
func paddedTo(dt dtype.Type, n int) int {
	if f, ok := quant.Of(dt); ok {
		return ceilDiv(n, f.Block) * f.Block
	}
	return n
}

// Copy is another page with the same contents.
func (p Page) Copy() Page {
	twin := func(t *Tensor) *Tensor {
		if t == nil {
			return nil
		}
		y := t.env.Tensor(t.dtype, t.axes, t.sizes...)
		copy(y.bytes(), t.bytes())
		return y
	}
	return Page{twin(p.K), twin(p.V)}
}

// Free gives the memory back.
func (p Page) Free() {
	p.K.Free()
	if p.V != nil {
		p.V.Free()
	}
}

// Bytes is the memory that the page takes.
func (p Page) Bytes() int {
	n := byteCount(p.K.dtype, p.K.Len())
	if p.V != nil {
		n += byteCount(p.V.dtype, p.V.Len())
	}
	return n
}

// putRow stores a row of a head at a place of a page's K or V. The error is that of a number that its dtype cannot
// hold.
func putRow(t *Tensor, head, at int, row []float32) error {
	width := t.sizes[2]
	from := (head*PageLen + at) * width
	switch t.dtype {
	case dtype.F32:
		copy(elementsOf[float32](t)[from:], row)
	case dtype.F16:
		half.ToF16(elementsOf[uint16](t)[from:], row)
	default:
		f, _ := quant.Of(t.dtype)
		if len(row) < width {
			row = append(row[:len(row):len(row)], make([]float32, width-len(row))...)
		}
		return f.Encode(t.bytes()[f.Size(from):f.Size(from+width)], row, nil)
	}
	return nil
}

// headRows is the rows of a head in a page's K or V, of which those from from to to are to be read: as they lie, or in
// room.
func headRows(t *Tensor, head, from, to int, room []float32) []float32 {
	width := t.sizes[2]
	at, end := (head*PageLen+from)*width, (head*PageLen+to)*width
	part := room[min(len(room), from*width):min(len(room), to*width)]
	switch t.dtype {
	case dtype.F32:
		return elementsOf[float32](t)[head*PageLen*width : end]
	case dtype.F16:
		half.FromF16(part, elementsOf[uint16](t)[at:end])
	default:
		f, _ := quant.Of(t.dtype)
		if err := f.Decode(part, t.bytes()[f.Size(at):f.Size(end)]); err != nil {
			panic(err) // whole blocks, which putRow made
		}
	}
	return room
}

// PageTypes is the dtypes that a page may have.
func PageTypes() []dtype.Type {
	q8, _ := dtype.Parse("q8_0")
	return []dtype.Type{dtype.F32, dtype.F16, q8}
}
