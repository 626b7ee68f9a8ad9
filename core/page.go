package core

import (
	"slices"
	"unsafe"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/quant"
	"github.com/fucina-go/fucina/kernels/attn"
	"github.com/fucina-go/fucina/kernels/gemm"
	"github.com/fucina-go/fucina/kernels/half"
	"github.com/fucina-go/fucina/kernels/qdot"
)

// PageLen is how many positions of a sequence a Page holds: as many as attention weighs at once.
const PageLen = attn.Block

// Page is the keys and values of PageLen positions of one sequence in one layer, of f32, f16 or q8_0.
//
// In f32 and f16 they lie as the product kernels read them, in panels of 16: K[kv_head, key_panel, head_dim, key_lane]
// has 16 keys side by side, element by element; V[kv_head, value_panel, key_seq, value_lane] has 16 elements of a value
// side by side, key by key, the last panel padded with zeros.
//
// In q8_0 they are rows, K[kv_head, key_seq, head_dim] and V[kv_head, key_seq, value], padded with zeros to whole
// blocks. So are, in every dtype, the keys of a page without V, where a value is the beginning of its key.
type Page struct{ K, V *Tensor }

var (
	keyRows, valueRows     = axisList("kv_head", "key_seq", "head_dim"), axisList("kv_head", "key_seq", "value")
	keyPanels, valuePanels = axisList("kv_head", "key_panel", "head_dim", "key_lane"),
		axisList("kv_head", "value_panel", "key_seq", "value_lane")
)

// pageShape is what pages have in common.
type pageShape struct {
	dtype          dtype.Type
	k, v           *axis.List // of K and V; without values there is no V
	kSizes, vSizes [4]int
}

// shapeOfPages is the shape of pages for keys and values of the given widths.
func shapeOfPages(dt dtype.Type, kvHeads, width, value int) pageShape {
	s := pageShape{dtype: dt, k: keyRows, kSizes: [4]int{kvHeads, PageLen, paddedTo(dt, width)}}
	switch {
	case value == 0:
	case dt.Quantized():
		s.v, s.vSizes = valueRows, [4]int{kvHeads, PageLen, paddedTo(dt, value)}
	default:
		s.k, s.kSizes = keyPanels, [4]int{kvHeads, PageLen / gemm.Width, width, gemm.Width}
		s.v, s.vSizes = valuePanels, [4]int{kvHeads, ceilDiv(value, gemm.Width), PageLen, gemm.Width}
	}
	return s
}

// of tells whether p has the shape.
func (s *pageShape) of(p *Page) bool {
	return s.k == p.K.axes && s.dtype == p.K.dtype && slices.Equal(p.K.sizes, s.kSizes[:len(p.K.sizes)]) &&
		(p.V == nil) == (s.v == nil) &&
		(s.v == nil || s.v == p.V.axes && s.dtype == p.V.dtype && slices.Equal(p.V.sizes, s.vSizes[:len(p.V.sizes)]))
}

// NewPage is a page of zeros, outside of every scope, for keys and values of the given widths; a value of width 0 is
// the beginning of its key. It panics with an *Error when the budget does not allow it.
func NewPage(env *Env, dt dtype.Type, kvHeads, width, value int) Page {
	s := shapeOfPages(dt, kvHeads, width, value)
	p := Page{K: env.Tensor(dt, s.k, s.kSizes[:s.k.Len()]...)}
	if s.v != nil {
		defer func() {
			if p.V == nil { // the budget does not allow it
				p.K.Free()
			}
		}()
		p.V = env.Tensor(dt, s.v, s.vSizes[:s.v.Len()]...)
	}
	return p
}

// PageAxes is the axes of the K and the V of pages; those without V have other ones.
func PageAxes(dt dtype.Type, hasV bool) (k, v *axis.List) {
	value := 0
	if hasV {
		value = 1
	}
	s := shapeOfPages(dt, 1, 1, value)
	return s.k, s.v
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

// fetchLines asks for all memory of x at once: it comes faster than line by line as it is needed.
func fetchLines[T any](x []T) {
	qdot.Fetch(uintptr(unsafe.Pointer(unsafe.SliceData(x))), ceilDiv(len(x)*int(unsafe.Sizeof(x[0])), qdot.Line))
}

// put stores the key and, if the page has a V, the value of a head at a place of the page. The error is that of a
// number that the dtype cannot hold.
func (p *Page) put(head, at int, key, value []float32) error {
	if p.K.axes == keyRows {
		if err := putRow(p.K, head, at, key); err != nil || p.V == nil {
			return err
		}
		return putRow(p.V, head, at, value)
	}
	panel := at / gemm.Width * gemm.Width * len(key)
	first := panel + at%gemm.Width // of the key's elements, each of which lies in a line of its own
	if p.K.dtype == dtype.F32 {
		k, v := ofHead[float32](p.K, head), ofHead[float32](p.V, head)
		fetchLines(k[panel:][:gemm.Width*len(key)])
		for i, x := range key {
			k[first+i*gemm.Width] = x
		}
		for j := 0; j < len(value); j += gemm.Width {
			copy(v[j*PageLen+at*gemm.Width:][:gemm.Width], value[j:])
		}
		return nil
	}
	k, v := ofHead[uint16](p.K, head), ofHead[uint16](p.V, head)
	fetchLines(k[panel:][:gemm.Width*len(key)])
	for j := 0; j < len(key); j += gemm.Width {
		var few [gemm.Width]uint16
		part := key[j:min(j+gemm.Width, len(key))]
		half.ToF16(few[:], part)
		for i := range part {
			k[first+(j+i)*gemm.Width] = few[i]
		}
	}
	for j := 0; j < len(value); j += gemm.Width {
		half.ToF16(v[j*PageLen+at*gemm.Width:], value[j:min(j+gemm.Width, len(value))])
	}
	return nil
}

// pagePlace is a head's part of a page.
type pagePlace struct {
	Page
	head int
}

// ahead is how many bytes lie between the beginnings of a head's parts of two pages' K or V, 0 if there is no second
// one.
func ahead(from *Tensor, head int, to *Tensor, toHead int) int {
	if to == nil {
		return 0
	}
	each := len(to.bytes()) / to.sizes[0]
	between := int(uintptr(unsafe.Pointer(&to.bytes()[0])) - uintptr(unsafe.Pointer(&from.bytes()[0])))
	return between + (toHead-head)*each
}

// putPanel stores the keys and values of a head in as many rows as a panel has keys, if the page is panels of f32.
func (p *Page) putPanel(head, at int, k, v *Tensor, row int) bool {
	if p.K.axes != keyPanels || p.K.dtype != dtype.F32 {
		return false
	}
	width, step := k.sizes[2], k.strides[0]
	keys := slice[float32](k)[row*step+head*k.strides[1]:]
	gemm.PackNT(ofHead[float32](p.K, head)[at*width:], keys, gemm.Width, width, step, width*gemm.Width)
	values := ofHead[float32](p.V, head)[at*gemm.Width:]
	for i := range gemm.Width {
		value := rowAt(v, row+i, head)
		for j := 0; j < len(value); j += gemm.Width {
			copy(values[j*PageLen+i*gemm.Width:][:gemm.Width], value[j:])
		}
	}
	return true
}

// ofHead is a head's part of a page's K or V.
func ofHead[E any](t *Tensor, head int) []E {
	each := t.Len() / t.sizes[0]
	return elementsOf[E](t)[head*each:][:each]
}

// putRow stores a row of a head at a place of a page's K or V that is rows.
func putRow(t *Tensor, head, at int, row []float32) error {
	width := t.sizes[2]
	from := at * width
	switch t.dtype {
	case dtype.F32:
		copy(ofHead[float32](t, head)[from:], row)
	case dtype.F16:
		half.ToF16(ofHead[uint16](t, head)[from:], row)
	default:
		f, _ := quant.Of(t.dtype)
		if len(row) < width {
			row = append(row[:len(row):len(row)], make([]float32, width-len(row))...)
		}
		from += head * PageLen * width
		return f.Encode(t.bytes()[f.Size(from):f.Size(from+width)], row, nil)
	}
	return nil
}

// block is the keys and the values of a head, of which those of the places from from to to are to be read: as they lie,
// or decoded in room. In a page without V the keys are the values. then is what will be read next, empty if there is
// nothing.
func (p *Page) block(head, from, to int, then pagePlace, room *pagedRoom) (k, v attn.Matrix[float32]) {
	if p.K.axes == keyRows {
		k.Rows = headRows(p.K, head, from, to, ahead(p.K, head, then.K, then.head), &room.k)
		if v = k; p.V != nil {
			v.Rows = headRows(p.V, head, from, to, ahead(p.V, head, then.V, then.head), &room.v)
		}
		return k, v
	}
	k.Panels.Next, v.Panels.Next = p.K.sizes[2]*gemm.Width, PageLen*gemm.Width
	if p.K.dtype == dtype.F32 {
		k.Panels.At, v.Panels.At = ofHead[float32](p.K, head), ofHead[float32](p.V, head)
	} else {
		k.Panels.Half, v.Panels.Half = ofHead[uint16](p.K, head), ofHead[uint16](p.V, head)
	}
	k.Panels.Ahead = ahead(p.K, head, then.K, then.head)
	v.Panels.Ahead = ahead(p.V, head, then.V, then.head)
	return k, v
}

// headRows is the rows of a head in a page's K or V, of which those from from to to are to be read: as they lie, or in
// room, which grows. What lies ahead bytes behind those of q8_0 is fetched meanwhile.
func headRows(t *Tensor, head, from, to, ahead int, room *[]float32) []float32 {
	width := t.sizes[2]
	if t.dtype == dtype.F32 {
		return ofHead[float32](t, head)
	}
	if len(*room) < PageLen*width {
		*room = make([]float32, PageLen*width)
	}
	part := (*room)[from*width : to*width]
	if t.dtype == dtype.F16 {
		half.FromF16(part, ofHead[uint16](t, head)[from*width:to*width])
		return *room
	}
	f, _ := quant.Of(t.dtype) // of whole blocks, of q8_0
	at := head * PageLen * width
	half.FromQ8(part, t.bytes()[f.Size(at+from*width):f.Size(at+to*width)], ahead)
	return *room
}

// PageTypes is the dtypes that a page may have.
func PageTypes() []dtype.Type {
	q8, _ := dtype.Parse("q8_0")
	return []dtype.Type{dtype.F32, dtype.F16, q8}
}
