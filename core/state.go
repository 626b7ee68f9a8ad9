package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// The recurrences that keep a state for each head of a sequence, f32[heads, key, value], have this in common. Heads are
// the axes of v but row and value, in v's order.

// StateRows is the rows of one sequence, its state before them, nil for zeros, and where the one after them is written.
type StateRows struct {
	Rows     int
	From, To *Tensor
}

var rowList, keyList, valueList = axisList("row"), axisList("key"), axisList("value")

// headsOf is the axes of the heads.
func headsOf(v *Tensor) *axis.List { return v.axes.Without(rowList).Without(valueList) }

// MakeState is room for a state for k and v, with undefined contents, outside of every scope.
func MakeState(env *Env, k, v *Tensor) *Tensor {
	axes, sizes := headsOf(v).Append(keyList).Append(valueList), []int{}
	for _, name := range axes.Names() {
		if name == "key" {
			sizes = append(sizes, k.Size(name))
		} else {
			sizes = append(sizes, v.Size(name))
		}
	}
	t := newTensor(env, dtype.F32, axes)
	copy(t.sizes, sizes)
	t.allocate(false)
	return t
}

// statesFit insists on as many rows as v has, and on states of the right shape.
func statesFit(s *Sizes, parts []StateRows, k, v *Tensor) {
	rows := 0
	for _, part := range parts {
		rows += part.Rows
		want := headsOf(v).Append(keyList).Append(valueList)
		for _, t := range []*Tensor{part.From, part.To} {
			if t == nil {
				continue
			}
			fits := t.axes == want && t.dtype == dtype.F32 && t.dense()
			for _, name := range want.Names() {
				like := v
				if name == "key" {
					like = k
				}
				fits = fits && t.Size(name) == like.Size(name)
			}
			if !fits {
				s.Fail(fmt.Sprintf("%s does not fit the state, %s", s.Describe(v), t.Shape()), "")
			}
		}
	}
	if n := v.Size("row"); rows != n || n == 0 {
		s.Fail(fmt.Sprintf("%s has %d rows, the batch has %d", s.Describe(v), n, rows),
			"layers keep the rows that embed was given")
	}
}

// headOf is an operand by rows and heads.
type headOf struct {
	data    []float32
	row     int   // from one row to the next; 0 where the operand has none
	strides []int // of the heads; 0 where the operand lacks one
	sizes   []int // of all heads
}

// at is the elements from the given row and head on.
func (h *headOf) at(row, head int) []float32 {
	offset := row * h.row
	for k := len(h.sizes) - 1; k >= 0; k-- {
		offset += head % h.sizes[k] * h.strides[k]
		head /= h.sizes[k]
	}
	return h.data[offset:]
}

// byHead is t by rows and the heads of v.
func byHead(t, v *Tensor) headOf {
	stride := func(name string) int {
		if i := t.axes.Index(name); i >= 0 {
			return t.strides[i]
		}
		return 0
	}
	h := headOf{data: slice[float32](t), row: stride("row")}
	for _, name := range headsOf(v).Names() {
		h.strides, h.sizes = append(h.strides, stride(name)), append(h.sizes, v.Size(name))
	}
	return h
}

// stateOf is the state of one head of a sequence, as it is before the sequence's rows, and these.
type stateOf struct {
	state          []float32
	head, from, to int
}

// eachState splits the heads of all sequences among the workers. run does those from lo to hi, which next makes ready.
func eachState(c *Ctx, parts []StateRows, size, heads int, run func(lo, hi int, next func(i int) stateOf)) {
	most, firsts := 0, make([]int, len(parts)+1)
	for j, part := range parts {
		most, firsts[j+1] = max(most, part.Rows), firsts[j]+part.Rows
	}
	next := func(i int) stateOf {
		part, head := &parts[i/heads], i%heads
		state := elementsOf[float32](part.To)[head*size:][:size]
		if part.From != nil {
			copy(state, elementsOf[float32](part.From)[head*size:])
		} else {
			clear(state)
		}
		return stateOf{state, head, firsts[i/heads], firsts[i/heads+1]}
	}
	c.Split(len(parts)*heads, max(1, 4*pointGrain/max(1, most*size)), func(lo, hi int) { run(lo, hi, next) })
}
