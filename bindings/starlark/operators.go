package starlark

import (
	"fmt"
	"math/bits"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"
)

// The operators *, + and % may make values of any size within one instruction of Starlark. Where their operands may be
// something else than numbers, pass.go gives them to a hidden value, whose Get answers; += and the methods of
// bounded.go get what bounds their work likewise.

// operatorCheck is the X of X[v, w]: the value of v op w.
type operatorCheck struct {
	hiddenValue
	it *Interp
	op syntax.Token
}

func (c *operatorCheck) Get(operands star.Value) (v star.Value, found bool, err error) {
	pair := operands.(star.Tuple)
	v, err = c.it.binary(c.op, pair[0], pair[1])
	return v, true, err
}

// binary is x op y.
func (it *Interp) binary(op syntax.Token, x, y star.Value) (star.Value, error) {
	switch x.(type) {
	case star.Float, Tensor:
		return star.Binary(op, x, y)
	}
	switch op {
	case syntax.STAR:
		return it.times(x, y)
	case syntax.PLUS:
		return it.plus(x, y)
	case syntax.PIPE:
		return it.union(x, y)
	}
	if format, ok := x.(star.String); ok {
		return it.interpolate(format, y)
	}
	return star.Binary(op, x, y)
}

// smallProduct is how many elements or bytes a repetition may make without a look at the clock.
const smallProduct = 1 << 14

func (it *Interp) times(x, y star.Value) (star.Value, error) {
	n, ok := y.(star.Int)
	seq := x
	if i, isInt := x.(star.Int); isInt {
		if ok {
			return it.product(i, n)
		}
		n, seq, ok = i, y, true
	}
	if !ok {
		return star.Binary(syntax.STAR, x, y)
	}
	var length int
	switch seq.(type) {
	case star.String, star.Bytes, star.Tuple, *star.List:
		length = star.Len(seq)
	default:
		return star.Binary(syntax.STAR, x, y)
	}
	copies, ok := n.Int64()
	over, total := bits.Mul64(uint64(max(copies, 0)), uint64(length))
	if ok && over == 0 && total < smallProduct {
		return star.Binary(syntax.STAR, x, y)
	}
	if n.Sign() < 0 || length == 0 {
		return star.Binary(syntax.STAR, x, y)
	}
	if !ok || over != 0 || total > 1<<60 {
		total = 1 << 60
	}
	switch seq := seq.(type) {
	case *star.List:
		items, err := it.long("a list", copies, total, seq)
		return star.NewList(items), err
	case star.Tuple:
		items, err := it.long("a tuple", copies, total, seq)
		return star.Tuple(items), err
	}
	if err := it.room(seq.Type(), total); err != nil {
		return nil, err
	}
	return it.Apart(int(total), func() (star.Value, error) { return star.Binary(syntax.STAR, x, y) })
}

// long is join for a result of n elements, if there is room for it.
func (it *Interp) long(what string, copies int64, n uint64, parts ...star.Indexable) ([]star.Value, error) {
	if err := it.room(what, n*itemBytes); err != nil {
		return nil, err
	}
	return it.join(int(copies), parts...)
}

// product is x · y, if the result has no more digits than a power may have.
func (it *Interp) product(x, y star.Int) (star.Value, error) {
	if _, ok := x.Int64(); ok {
		if _, ok := y.Int64(); ok {
			return x.Mul(y), nil
		}
	}
	n := x.BigInt().BitLen() + y.BigInt().BitLen()
	if n > maxPowerBits {
		return nil, fmt.Errorf("the product has some %d binary digits, and an integer at most %d; use floats", n,
			maxPowerBits)
	}
	return it.Apart(n, func() (star.Value, error) { return x.Mul(y), nil })
}

func (it *Interp) plus(x, y star.Value) (star.Value, error) {
	switch a := x.(type) {
	case star.String:
		if b, ok := y.(star.String); ok && len(a)+len(b) >= longText {
			return it.addText(x, y, len(a)+len(b))
		}
	case star.Bytes:
		if b, ok := y.(star.Bytes); ok && len(a)+len(b) >= longText {
			return it.addText(x, y, len(a)+len(b))
		}
	case *star.List:
		if b, ok := y.(*star.List); ok && a.Len()+b.Len() >= longList {
			items, err := it.long("a list", 1, uint64(a.Len()+b.Len()), a, b)
			return star.NewList(items), err
		}
	case star.Tuple:
		if b, ok := y.(star.Tuple); ok && len(a)+len(b) >= longList {
			items, err := it.long("a tuple", 1, uint64(len(a)+len(b)), a, b)
			return star.Tuple(items), err
		}
	}
	return star.Binary(syntax.PLUS, x, y)
}

func (it *Interp) addText(x, y star.Value, n int) (star.Value, error) {
	if err := it.room(x.Type(), uint64(n)); err != nil {
		return nil, err
	}
	return it.Apart(n, func() (star.Value, error) { return star.Binary(syntax.PLUS, x, y) })
}

// interpolate is format % y. Lists and the like among the arguments write themselves in pieces.
func (it *Interp) interpolate(format star.String, y star.Value) (v star.Value, err error) {
	defer rescue(&err)
	if args, ok := y.(star.Tuple); ok {
		shown := make(star.Tuple, len(args))
		for i, arg := range args {
			shown[i] = it.shown(arg)
		}
		y = shown
	} else if _, mapping := y.(star.Mapping); !mapping {
		y = it.shown(y)
	}
	return star.Binary(syntax.PERCENT, format, y)
}

// shown is v with a String that asks whether to stop.
func (it *Interp) shown(v star.Value) star.Value {
	switch v.(type) {
	case *star.List, star.Tuple, *star.Dict, *star.Set, *starlarkstruct.Struct:
		return &shownValue{v, it}
	}
	return v
}

type shownValue struct {
	star.Value
	it *Interp
}

// String panics with the reason when the run has to stop.
func (s *shownValue) String() string {
	text, err := s.it.text(s.Value, true)
	if err != nil {
		panic(err)
	}
	return text
}

// addCheck is the X of X[v]: what x + v and x += v may take.
type addCheck struct {
	hiddenValue
	it      *Interp
	inPlace bool // +=, with which a list takes whatever can be iterated
}

func (c *addCheck) Get(v star.Value) (star.Value, bool, error) {
	switch v := v.(type) {
	case star.Int, star.Float, Tensor:
	case star.String, star.Bytes:
		if star.Len(v) >= longText {
			return &weighed{v, c.it}, true, nil
		}
	case star.Tuple, *star.List:
		if n := star.Len(v); n >= longList {
			return &addend{weighed{v, c.it}}, true, nil
		}
	default:
		if c.inPlace {
			return c.it.watch(v), true, nil
		}
	}
	return v, true, nil
}

// timesCheck is the X of X[v]: what x *= v and x %= v may take, where x is no plain variable.
type timesCheck struct {
	hiddenValue
	it *Interp
}

func (c *timesCheck) Get(v star.Value) (star.Value, bool, error) {
	switch v.(type) {
	case star.Float, Tensor:
		return v, true, nil
	}
	return &weighed{v, c.it}, true, nil
}

// weighed is a value on the right of an operator that hands the operator to binary.
type weighed struct {
	star.Value
	it *Interp
}

// Binary is y op the value, or the value op y.
func (o *weighed) Binary(op syntax.Token, y star.Value, side star.Side) (star.Value, error) {
	if side == star.Left {
		return o.it.binary(op, o.Value, y)
	}
	return o.it.binary(op, y, o.Value)
}

// addend is a long list or tuple as an operand: a list at the left of += takes its elements in pieces.
type addend struct{ weighed }

// Iterate begins to go through the elements.
func (a *addend) Iterate() star.Iterator { return a.it.watch(a.Value).(star.Iterable).Iterate() }

// Len is the number of elements.
func (a *addend) Len() int { return star.Len(a.Value) }
