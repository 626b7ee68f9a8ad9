package core

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// Plan is what follows from an operation's axis names, dtypes and switches alone: the axes and
// dtype of each output and which sizes must agree. It is made once by the operation's Names and
// found again by the interned lists of the operands; so Names decides nothing by which tensors
// they are: two may be one.
type Plan struct {
	key  planKey
	outs []output
	same []sizePair // sizes that must agree before anything is computed
	data any        // what Names wants to hand to Eval: Ctx.Data

	batches []*axis.List // of a product: the axes kept from both operands, by output
	c       *call        // only while Names runs
}

type output struct {
	axes  *axis.List
	dtype dtype.Type
	from  []sizeRef // where each axis finds its size; operand -1: the operation's Sizes says it
}

type sizeRef struct{ operand, axis int32 }

type sizePair struct{ a, b sizeRef }

// planRoom is a plan and its lists in one piece of memory.
type planRoom struct {
	Plan
	lists  [4]*axis.List
	dtypes [8]dtype.Type
	words  [2]string
	outs   [3]output
	from   [9]sizeRef
	same   [8]sizePair
}

// together is p with such of its lists beside it as there is room for: between two products it is in no cache.
func (p *Plan) together() *Plan {
	r := &planRoom{Plan: *p}
	r.key.lists = append(r.lists[:0:len(r.lists)], p.key.lists...)
	r.key.dtypes = append(r.dtypes[:0:len(r.dtypes)], p.key.dtypes...)
	r.key.words = append(r.words[:0:len(r.words)], p.key.words...)
	r.Plan.outs = append(r.outs[:0:len(r.outs)], p.outs...)
	r.Plan.same = append(r.same[:0:len(r.same)], p.same...)
	from := r.from[:0]
	for i := range r.Plan.outs {
		if o := &r.Plan.outs[i]; len(from)+len(o.from) <= cap(from) {
			at := len(from)
			from = append(from, o.from...)
			o.from = from[at:len(from):len(from)]
		}
	}
	return &r.Plan
}

// planKey is the name-bearing part of a call, in field order.
type planKey struct {
	lists  []*axis.List // of the tensor operands (nil: left out), then of axis-list arguments
	dtypes []dtype.Type // of the tensor operands, then of dtype arguments
	words  []string     // axis, enum and renaming arguments
	bools  uint64
}

const (
	planSlots = 64
	planProbe = 4
)

// planCache keeps the plans of one operation; when it is full, new ones take old ones' places, so
// it is bounded whatever scripts do.
type planCache struct {
	slots [planSlots]atomic.Pointer[Plan]
	turn  atomic.Uint32
}

// findPlan finds or makes the plan of a call.
func (c *call) findPlan() *Plan {
	h := c.hash()
	cache := &c.info.plans
	for i := range uintptr(planProbe) {
		p := cache.slots[(h+i)%planSlots].Load()
		if p == nil {
			break
		}
		if c.matches(&p.key) {
			c.env.ahead.look(unsafe.Pointer(p), planLines)
			return p
		}
	}
	p := c.makePlan().together()
	for i := range uintptr(planProbe) {
		if cache.slots[(h+i)%planSlots].CompareAndSwap(nil, p) {
			return p
		}
	}
	cache.slots[(h+uintptr(cache.turn.Add(1)%planProbe))%planSlots].Store(p)
	return p
}

func (c *call) hash() uintptr {
	h := uintptr(len(c.in))
	for _, t := range c.in {
		if t != nil {
			h = h*31 + uintptr(unsafe.Pointer(t.axes))>>4 + uintptr(t.kind())
		}
	}
	for _, k := range c.info.keyed {
		f := &c.info.Fields[k]
		p := f.At(c.op)
		switch f.Kind {
		case KindAxis, KindEnum:
			s := *(*string)(p)
			h = h*31 + uintptr(len(s))
			if len(s) > 0 {
				h = h*31 + uintptr(s[0]) + uintptr(s[len(s)-1])
			}
		case KindBool:
			if *(*bool)(p) {
				h += 7
			}
		case KindDType:
			h += uintptr(*(*dtype.Type)(p))
		case KindAxes, KindSizes, KindRanges, KindPairs, KindRename, KindGroups: // begin with a *axis.List
			h = h*31 + uintptr(*(*unsafe.Pointer)(p))>>4
		}
	}
	return h ^ h>>7
}

func (c *call) matches(k *planKey) bool {
	if len(c.in) > len(k.lists) || len(c.in) > len(k.dtypes) {
		return false
	}
	for i, t := range c.in {
		if t == nil {
			if k.lists[i] != nil {
				return false
			}
		} else if t.axes != k.lists[i] || t.kind() != k.dtypes[i] {
			return false
		}
	}
	lists, dtypes, words, bools := len(c.in), len(c.in), 0, uint64(0)
	for n, i := range c.info.keyed {
		f := &c.info.Fields[i]
		p := f.At(c.op)
		switch f.Kind {
		case KindAxis, KindEnum:
			if words >= len(k.words) || k.words[words] != *(*string)(p) {
				return false
			}
			words++
		case KindBool:
			if *(*bool)(p) {
				bools |= 1 << n
			}
		case KindDType:
			if dtypes >= len(k.dtypes) || k.dtypes[dtypes] != *(*dtype.Type)(p) {
				return false
			}
			dtypes++
		default:
			if lists >= len(k.lists) || k.lists[lists] != *(**axis.List)(p) {
				return false
			}
			lists++
			switch f.Kind {
			case KindRename:
				for _, v := range (*Map[string])(p).Values {
					if words >= len(k.words) || k.words[words] != v {
						return false
					}
					words++
				}
			case KindGroups:
				for _, v := range (*Map[Axes])(p).Values {
					if lists >= len(k.lists) || k.lists[lists] != v {
						return false
					}
					lists++
				}
			}
		}
	}
	return lists == len(k.lists) && words == len(k.words) && dtypes == len(k.dtypes) && bools == k.bools
}

// kind is the dtype, marked where elements lie in panels.
func (t *Tensor) kind() dtype.Type {
	if t.panels > 0 {
		return t.dtype | inPanels
	}
	return t.dtype
}

// inPanels is no dtype's bit.
const inPanels = 1 << 7

func (c *call) key() planKey {
	var k planKey
	for _, t := range c.in {
		if t == nil {
			k.lists, k.dtypes = append(k.lists, nil), append(k.dtypes, dtype.Invalid)
			continue
		}
		k.lists, k.dtypes = append(k.lists, t.axes), append(k.dtypes, t.kind())
	}
	for n, i := range c.info.keyed {
		f := &c.info.Fields[i]
		p := f.At(c.op)
		switch f.Kind {
		case KindAxis, KindEnum:
			k.words = append(k.words, *(*string)(p))
		case KindBool:
			if *(*bool)(p) {
				k.bools |= 1 << n
			}
		case KindDType:
			k.dtypes = append(k.dtypes, *(*dtype.Type)(p))
		default:
			k.lists = append(k.lists, *(**axis.List)(p))
			switch f.Kind {
			case KindRename:
				k.words = append(k.words, (*Map[string])(p).Values...)
			case KindGroups:
				k.lists = append(k.lists, (*Map[Axes])(p).Values...)
			}
		}
	}
	return k
}

// makePlan asks the operation. Sizes that follow from equal names are wired here.
func (c *call) makePlan() *Plan {
	p := &Plan{key: c.key(), c: c}
	c.op.Names(p)
	if len(p.outs) == 0 && !c.info.made {
		panic(fmt.Sprintf("core: %s: Names gave no output", c.info.Name))
	}
	find := func(name string) sizeRef {
		for i, t := range c.in {
			if t != nil {
				if k := t.axes.Index(name); k >= 0 {
					return sizeRef{int32(i), int32(k)}
				}
			}
		}
		return sizeRef{-1, 0}
	}
	for i, t := range c.in {
		if t == nil {
			continue
		}
		for k, name := range t.axes.Names() {
			if first := find(name); int(first.operand) != i {
				p.same = append(p.same, sizePair{first, sizeRef{int32(i), int32(k)}})
			}
		}
	}
	for i := range p.outs {
		for _, name := range p.outs[i].axes.Names() {
			p.outs[i].from = append(p.outs[i].from, find(name))
		}
	}
	p.c = nil
	return p
}

// Out declares the next output.
func (p *Plan) Out(axes *axis.List, dt dtype.Type) {
	if axes.Len() > maxRank {
		p.Fail(fmt.Sprintf("the result would have %d axes, at most %d are possible", axes.Len(), maxRank), "")
	}
	p.outs = append(p.outs, output{axes: axes, dtype: dt})
}

// Keep hands v to the operation's Eval as Ctx.Data. It must be immutable.
func (p *Plan) Keep(v any) { p.data = v }

// Fail ends the call with a message and a hint, which may be empty.
func (p *Plan) Fail(msg, hint string) { p.c.fail(msg, hint) }

// Describe names an operand with its shape, as messages show it: `x[batch=8, seq=128]`.
func (p *Plan) Describe(t *Tensor) string { return p.c.describe(t) }

// Need insists that operand t has the axis.
func (p *Plan) Need(t *Tensor, name Axis) {
	if !t.axes.Has(string(name)) {
		p.c.noAxis(t, string(name))
	}
}

// NeedAll insists that operand t has every axis of the list.
func (p *Plan) NeedAll(t *Tensor, names Axes) {
	for _, n := range names.Names() {
		p.Need(t, Axis(n))
	}
}

// Within insists that operand t, if given, has no axis but those of the list: of is what has them.
func (p *Plan) Within(t *Tensor, axes Axes, of string) {
	if t == nil {
		return
	}
	if more := t.axes.Without(axes); more.Len() > 0 {
		p.Fail(fmt.Sprintf("%s has %s, which %s lacks", p.Describe(t), quoted(more.Names()), of),
			p.c.hint(p.c.taken("take one place", t, more)))
	}
}

// Same insists that the operands have one dtype and returns it; nil operands are passed over.
func (p *Plan) Same(ts ...*Tensor) dtype.Type {
	first := ts[0]
	for _, t := range ts[1:] {
		if t == nil || t.dtype == first.dtype {
			continue
		}
		narrow, dt := t, first.dtype
		if t.dtype.IsFloat() && !p.c.info.inPlace && (!dt.IsFloat() || p.c.count(t.dtype) > p.c.count(dt)) {
			narrow, dt = first, t.dtype
		}
		p.Fail(fmt.Sprintf("%s is %s but %s is %s", p.Describe(first), first.dtype, p.Describe(t), t.dtype),
			fmt.Sprintf("nothing is promoted silently: %s.cast(%q)", p.c.param(narrow), dt))
	}
	return first.dtype
}

// count is how many operands have the dtype.
func (c *call) count(dt dtype.Type) (n int) {
	for _, t := range c.in {
		if t != nil && t.dtype == dt {
			n++
		}
	}
	return n
}

// Float insists that operand t holds floating-point numbers.
func (p *Plan) Float(t *Tensor) dtype.Type {
	if !t.dtype.IsFloat() {
		hint := fmt.Sprintf("use %s.cast(\"f32\")", p.c.param(t))
		if t.number {
			hint = fmt.Sprintf("use float(%s)", p.c.param(t))
		}
		p.Fail(fmt.Sprintf("%s is %s, want a floating-point dtype", p.Describe(t), t.dtype), hint)
	}
	return t.dtype
}

// Integer insists that operand t holds integers.
func (p *Plan) Integer(t *Tensor) dtype.Type {
	if !t.dtype.IsInt() {
		p.Fail(fmt.Sprintf("%s is %s, want integers", p.Describe(t), t.dtype),
			fmt.Sprintf("use %s.cast(\"i64\")", p.c.param(t)))
	}
	return t.dtype
}

// Broadcast is the axes of a pointwise result, under the subset rule unless outer.
func (p *Plan) Broadcast(outer bool, ts ...*Tensor) *axis.List {
	lists := make([]*axis.List, 0, 4)
	for _, t := range ts {
		if t != nil {
			lists = append(lists, t.axes)
		}
	}
	out, ok := axis.Broadcast(lists...)
	if !ok && !outer {
		p.c.disjoint(ts)
	}
	return out
}
