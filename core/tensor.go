package core

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/mem"
	"github.com/fucina-go/fucina/core/quant"
	"github.com/fucina-go/fucina/kernels/qdot"
)

// Tensor is an array of numbers whose axes have names. It is a handle: views and detached copies
// share the bytes of the tensor they come from. A Tensor belongs to the Env that made it, or to
// nobody (weights, frozen values), in which case any Env may read it.
type Tensor struct { // what most operations look at comes first: between two products it is no longer in a cache
	buf     *mem.Buffer
	data    unsafe.Pointer // the first element; nil for a tensor without data
	axes    *axis.List
	sizes   []int
	end     *ending
	owner   *Scope // that ends it; nil for nobody
	env     *Env
	node    *Node  // what made it, if a gradient flows through it; see node.go
	kept    *kept  // what a product it comes from kept as batches; for messages
	slot    int32  // which output of node
	version uint32 // of buf, when node was set or a gradient saved the tensor
	panels  int    // elements of a row, if the bytes lie in panels of rows; see pack.go
	dtype   dtype.Type
	weak    bool  // a script's number, which takes its operand's dtype
	number  bool  // a script's number, settled or not
	meta    bool  // sizes without data, in shape-only mode
	view    bool  // made by an operation that shares its operand's bytes
	strides []int // in elements; 0 along a repeated axis
	dims    [8]int
	room    *mem.Buffer // for buf, if the tensor is to have bytes of its own
	made    Site
}

// Site is a place in a script.
type Site struct {
	File      string
	Line, Col int32
}

func (s Site) String() string {
	if s.Line == 0 {
		return "outside of a script"
	}
	return fmt.Sprintf("%s:%d:%d", s.File, s.Line, s.Col)
}

// ending tells why a tensor may not be used any more.
type ending struct {
	how string // "free()", "the end of its scope"
	at  Site
}

// text is what happened to t.
func (e *ending) text(t *Tensor) string {
	return fmt.Sprintf("was ended by %s at %s (it was made at %s)", e.how, e.at, t.made)
}

// hint is what to do about a tensor called name.
func (e *ending) hint(name string) string {
	if e.how == freed {
		return fmt.Sprintf("free it after its last use: %s.free()", name)
	}
	return fmt.Sprintf("return it, or keep it where it was made: keep(%s)", name)
}

// freed is how Free ends a tensor.
const freed = "free()"

// roomy is a tensor and the buffer of its bytes in one piece of memory.
type roomy struct {
	Tensor
	buffer mem.Buffer
}

// newTensor is a handle with room for sizes and strides and no bytes yet.
func newTensor(env *Env, dt dtype.Type, axes *axis.List) *Tensor {
	t := env.handle(dt, axes)
	t.made = env.where()
	return t
}

// where is the place in the script that is being executed.
func (e *Env) where() Site {
	if e == nil || e.Where == nil {
		return Site{}
	}
	return e.Where()
}

// origin is where, for a result: it is not asked in a private scope, whose tensors no message can speak of but as of
// operands that are there, unless they are recorded.
func (e *Env) origin() Site {
	if n := len(e.scopes); n > 0 && e.scopes[n-1].private && e.noRecord {
		return Site{}
	}
	return e.where()
}

// handle is newTensor for a tensor that no script sees.
func (e *Env) handle(dt dtype.Type, axes *axis.List) *Tensor {
	var r *roomy
	if e != nil && len(e.idle) > 0 {
		last := len(e.idle) - 1
		r, e.idle[last] = e.idle[last], nil // or the list would keep it reachable
		e.idle = e.idle[:last]
	} else {
		r = new(roomy)
	}
	t := &r.Tensor
	t.env, t.dtype, t.axes, t.room = e, dt, axes, &r.buffer
	rank := axes.Len()
	if 2*rank <= len(t.dims) {
		t.sizes, t.strides = t.dims[:rank:rank], t.dims[rank:2*rank:2*rank]
	} else {
		both := make([]int, 2*rank)
		t.sizes, t.strides = both[:rank:rank], both[rank:]
	}
	return t
}

// reuse lets the next handle be t, which nobody may be able to reach any more, unless a view holds its bytes.
func (e *Env) reuse(t *Tensor) {
	if t.room == nil || t.room.Holders() > 0 || t.node != nil || len(e.idle) == mostIdle {
		return
	}
	r := (*roomy)(unsafe.Pointer(t)) // whose first field it is
	*r = roomy{}
	e.idle = append(e.idle, r)
}

// mostIdle is up to how many tensors are kept for reuse.
const mostIdle = 1024

// pack sets the strides of a dense tensor, the last axis fastest.
func (t *Tensor) pack() {
	stride := 1
	for i := len(t.sizes) - 1; i >= 0; i-- {
		t.strides[i] = stride
		stride *= t.sizes[i]
	}
}

// allocate gives a dense tensor its bytes; zeroed if asked.
func (t *Tensor) allocate(zero bool) {
	t.pack()
	n, ok := elements(t.sizes)
	bytes := t.byteCount(n)
	if !ok {
		panic(&Error{Op: t.env.opName(), Msg: fmt.Sprintf("%s%s has more elements than memory can hold",
			t.dtype, shapeText(t.axes, t.sizes))})
	}
	if len(t.sizes) == 0 { // a scalar has no sizes in dims
		t.buf = t.room
		t.buf.Embed(unsafe.Pointer(&t.dims), bytes)
	} else {
		t.buf = t.env.fill(t.room, bytes)
	}
	t.data = t.buf.Data()
	if zero && bytes > mem.SmallBytes {
		clear(unsafe.Slice((*byte)(t.data), bytes))
	}
}

// byteCount is the memory that n elements of t take.
func (t *Tensor) byteCount(n int) int {
	if t.panels == 0 {
		return byteCount(t.dtype, n)
	}
	return ceilDiv(n/t.panels, qdot.Rows) * panelSize(formatOf(t.dtype), t.panels)
}

// byteCount is the memory that n elements take which lie one after another. Those of a quantized dtype are whole
// blocks.
func byteCount(dt dtype.Type, n int) int {
	if f, ok := quant.Of(dt); ok {
		return f.Size(n)
	}
	return n * dt.Size()
}

// manyElements is more than any memory holds; products of sizes stop there.
const manyElements = 1 << 40

// shapeAs gives t sizes from outside, one for each axis, and lays it out dense.
func (t *Tensor) shapeAs(op string, sizes []int) {
	if len(sizes) != len(t.sizes) {
		panic(&Error{Op: op, Msg: fmt.Sprintf("got %d sizes for the axes %q", len(sizes), t.axes)})
	}
	copy(t.sizes, sizes)
	n, ok := elements(sizes)
	for _, size := range sizes {
		ok = ok && size >= 0 && (n > 0 || size <= longestEmpty)
	}
	if !ok {
		panic(&Error{Op: op, Msg: t.dtype.String() + shapeText(t.axes, sizes) + " cannot be in memory"})
	}
	t.pack()
}

// elements is the product of the sizes; ok tells whether it is a number of elements that memory could hold.
func elements(sizes []int) (n int, ok bool) {
	n, ok = 1, true
	empty := false
	for _, s := range sizes {
		if s == 0 {
			empty = true
			continue
		}
		if n > manyElements/s {
			ok = false
			continue
		}
		n *= s
	}
	if empty {
		return 0, true
	}
	return n, ok
}

// Axes is the list of axis names, outermost first.
func (t *Tensor) Axes() *axis.List { return t.axes }

// DType is the element type.
func (t *Tensor) DType() dtype.Type { return t.dtype }

// Rank is the number of axes.
func (t *Tensor) Rank() int { return len(t.sizes) }

// Size is the length of the named axis, in elements; -1 if there is no such axis.
func (t *Tensor) Size(name string) int {
	if i := t.axes.Index(name); i >= 0 {
		return t.sizes[i]
	}
	return -1
}

// Sizes is the length of every axis, in the order of Axes.
func (t *Tensor) Sizes() []int { return append([]int(nil), t.sizes...) }

// Len is the number of elements.
func (t *Tensor) Len() int {
	n := 1
	for _, s := range t.sizes {
		n *= s
	}
	return n
}

// Env is the environment the tensor belongs to, or nil if it is shared.
func (t *Tensor) Env() *Env { return t.env }

// Closed tells whether the tensor was freed or its scope has ended.
func (t *Tensor) Closed() bool { return t.ending() != nil }

// Ended is what to do about a tensor that was freed or whose scope has ended, with the name it goes by; "" if it may
// be used.
func (t *Tensor) Ended(name string) (hint string) {
	if end := t.ending(); end != nil {
		return end.hint(name)
	}
	return ""
}

// Shape is dtype and axes as text: "f32[batch=8, seq=128]".
func (t *Tensor) Shape() string {
	if len(t.sizes) == 0 {
		return t.dtype.String()
	}
	return t.dtype.String() + shapeText(t.axes, t.sizes)
}

// dense tells whether the elements lie one after another in the order of the axes.
func (t *Tensor) dense() bool {
	want := 1
	for i := len(t.sizes) - 1; i >= 0; i-- {
		if t.sizes[i] != 1 && t.strides[i] != want {
			return false
		}
		want *= t.sizes[i]
	}
	return true
}

// overlaps is an axis along which elements may lie where others do, as in an expanded tensor or in windows; "" if
// every element has memory of its own.
func (t *Tensor) overlaps() string {
	order := make([]int, 0, len(t.sizes))
	for k, n := range t.sizes {
		if n == 0 {
			return ""
		}
		if n > 1 {
			order = append(order, k)
		}
	}
	step := func(k int) int { return max(t.strides[k], -t.strides[k]) }
	slices.SortStableFunc(order, func(i, j int) int { return step(i) - step(j) })
	span := 0 // of the axes before
	for _, k := range order {
		if step(k) <= span {
			return t.axes.At(k)
		}
		span += (t.sizes[k] - 1) * step(k)
	}
	return ""
}

// Free ends the tensor: its bytes go back to the pool unless a view or a recorded operation
// still needs them. Using it afterwards is an error that says so. A second Free does nothing.
func (t *Tensor) Free() {
	if t.ending() != nil {
		return
	}
	t.close(&ending{how: freed, at: t.env.where()})
}

// Recycle is Free of a tensor that nobody can reach any more: its handle is used again. A shared tensor stays.
func (t *Tensor) Recycle() {
	if t.env == nil {
		return
	}
	t.close(recycled)
	t.env.reuse(t)
}

// recycled is why a tensor ended that nobody can reach.
var recycled = &ending{how: freed}

// close lets go of what the tensor holds.
func (t *Tensor) close(why *ending) {
	t.end = why
	if t.node != nil {
		t.node.release()
	}
	if t.buf != nil {
		t.buf.Release()
	}
	t.buf, t.data, t.node = nil, nil, nil
}

// Share takes the tensor out of its Env: it may then be read from any Env, is never closed by a
// scope and keeps its bytes until nobody can reach it. No gradient flows through it any more.
func (t *Tensor) Share() *Tensor {
	if t.node != nil {
		t.node.release()
		t.node = nil
	}
	t.env, t.owner = nil, nil
	return t
}

// slice views the bytes as elements of T, from the first element to the last one reachable.
func slice[T any](t *Tensor) []T {
	span := 1
	for i, s := range t.sizes {
		if s == 0 {
			return nil
		}
		if t.strides[i] > 0 {
			span += (s - 1) * t.strides[i]
		}
	}
	return unsafe.Slice((*T)(t.data), span)
}

// lowest is how many elements before data the lowest element lies (negative strides).
func (t *Tensor) lowest() int {
	n := 0
	for i, s := range t.sizes {
		if t.strides[i] < 0 {
			n -= (s - 1) * t.strides[i]
		}
	}
	return n
}
