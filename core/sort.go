package core

import (
	"math"
	"slices"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// Sort is the elements along an axis in ascending order, and their places before: two tensors. Equals keep their
// order; NaN counts as greatest, as in NumPy and PyTorch.
//
// Shape: x[…, axis, …] → values of the same axes, indices of the same axes of i64.
//
// Errors: an axis that x lacks.
//
// Example:
//
//	values, indices = tensor([3, 1, 2], "row").sort("row", descending=True)
type Sort struct {
	X          *Tensor `arg:"x"`
	Axis       Axis    `arg:"axis"`
	Descending bool    `arg:"descending?"`
}

var sortOp = Declare[Sort]("sort")

// Sort is the elements along the axis in ascending order, and their places; see the Sort operation.
func (x *Tensor) Sort(axis string) (values, indices *Tensor) {
	both := sortOp.All(Sort{X: x, Axis: Axis(axis)})
	return both[0], both[1]
}

// Names keeps the axes.
func (a *Sort) Names(p *Plan) {
	p.Need(a.X, a.Axis)
	p.Out(a.X.axes, a.X.dtype)
	p.Out(a.X.axes, dtype.I64)
	p.Keep(inner(a.X.axes, a.Axis))
}

// Eval sorts the places and picks the elements from there.
func (a *Sort) Eval(c *Ctx) {
	values, order := c.Out(0), c.Data().(*axis.List)
	if values.Len() == 0 {
		return
	}
	places := c.sortPlaces(c.Out(1), a.X, order, a.Descending)
	src := c.Dense(a.X, order, a.X.dtype)
	dst := values
	if values.axes != order {
		dst = c.Scratch(values.dtype, order, src.sizes)
	}
	n, size := src.sizes[len(src.sizes)-1], src.dtype.Size()
	c.Split(src.Len(), pointGrain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(row[byte](dst, i, size), row[byte](src, i/n*n+int(places[i]), size))
		}
	})
	if dst != values {
		c.copyInto(values, dst.permuted(values.axes))
	}
}

// sortPlaces fills out with the places of x's elements in sorted order along the last axis of order, and returns
// them in that order of axes. Elements are compared by keys: integers that are in the elements' order.
func (c *Ctx) sortPlaces(out, x *Tensor, order *axis.List, descending bool) []int64 {
	sizes := x.permuted(order).sizes
	keys := elementsOf[int64](c.Scratch(dtype.I64, order, sizes))
	sortKeys(c, keys, x, order, descending)
	dst := out
	if out.axes != order {
		dst = c.Scratch(dtype.I64, order, sizes)
	}
	places, n := elementsOf[int64](dst), sizes[len(sizes)-1]
	run := min(n, sortRun)
	runs := ceilDiv(n, run)
	c.Split(len(keys)/n*runs, max(1, pointGrain/8/run), func(lo, hi int) {
		buf := make([]keyed, run)
		for r := lo; r < hi; r++ {
			from := r / runs * n // where the row begins
			first := r % runs * run
			last := min(first+run, n)
			sortOne(keys[from+first:from+last], places[from+first:from+last], int64(first), buf)
		}
	})
	if runs > 1 {
		merged := mergeRuns(c, sorted{keys, places}, n, run, c.Scratch(dtype.I64, order, sizes),
			c.Scratch(dtype.I64, order, sizes))
		c.Split(len(places), pointGrain, func(lo, hi int) { copy(places[lo:hi], merged[lo:hi]) })
	}
	if dst != out {
		c.copyInto(out, dst.permuted(out.axes))
	}
	return places
}

// sortRun is how many elements are sorted at once; longer rows are merged from such runs.
const sortRun = 1024

// sortKeys sets keys to integers in the order of x's elements, dense in the given order of axes.
func sortKeys(c *Ctx, keys []int64, x *Tensor, order *axis.List, descending bool) {
	flip := int64(0)
	if descending {
		flip = -1
	}
	if !x.dtype.IsFloat() {
		src := elementsOf[int64](c.Dense(x, order, dtype.I64))
		c.Split(len(keys), pointGrain, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				keys[i] = src[i] ^ flip
			}
		})
		return
	}
	src := elementsOf[float64](c.Dense(x, order, dtype.F64))
	c.Split(len(keys), pointGrain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			v := src[i]
			k := int64(math.Float64bits(v + 0)) // -0 becomes 0
			switch {
			case v != v:
				k = math.MaxInt64
			case k < 0:
				k ^= math.MaxInt64
			}
			keys[i] = k ^ flip
		}
	})
}

// keyed is an element's key and place.
type keyed struct{ key, place int64 }

// sortOne sorts the keys of a run that begins at the given place, and sets places to where they were.
func sortOne(keys, places []int64, first int64, buf []keyed) {
	buf = buf[:len(keys)]
	for i, k := range keys {
		buf[i] = keyed{k, first + int64(i)}
	}
	slices.SortFunc(buf, func(a, b keyed) int { // no two are equal
		switch {
		case a.key < b.key || a.key == b.key && a.place < b.place:
			return -1
		}
		return 1
	})
	for i, k := range buf {
		keys[i], places[i] = k.key, k.place
	}
}

// sorted is rows of sorted runs: keys and places.
type sorted struct{ keys, places []int64 }

// mergeRuns merges pairs of sorted runs of each row of n elements until the row is one, and returns the places. A
// merge is cut into pieces of equal length, so that each is short whatever the row (Odeh, Green et al. 2012: Merge
// path).
func mergeRuns(c *Ctx, from sorted, n, run int, keys, places *Tensor) []int64 {
	c.touch(keys)
	c.touch(places)
	to := sorted{elementsOf[int64](keys), elementsOf[int64](places)}
	pieces := ceilDiv(n, sortRun)
	for ; run < n; run *= 2 {
		c.Split(len(from.keys)/n*pieces, max(1, pointGrain/sortRun), func(lo, hi int) {
			for p := lo; p < hi; p++ {
				row := p / pieces * n
				at := p % pieces * sortRun // pieces do not cross pairs: a pair is a multiple of them
				pair := at / (2 * run) * (2 * run)
				a, b := min(pair+run, n), min(pair+2*run, n)
				mergePiece(to, from, row+pair, row+a, row+b, at-pair, min(at+sortRun, b)-pair)
			}
		})
		from, to = to, from
	}
	return from.places
}

// mergePiece writes the elements [lo, hi) of the merger of the runs [begin, middle) and [middle, end).
func mergePiece(to, from sorted, begin, middle, end, lo, hi int) {
	keys := from.keys
	// Of the first lo elements, i come from the first run: the least i such that the next of the second run is
	// not before element i.
	i, most := max(0, lo-(end-middle)), min(lo, middle-begin)
	for i < most {
		half := (i + most) / 2
		if keys[begin+half] <= keys[middle+lo-half-1] {
			i = half + 1
		} else {
			most = half
		}
	}
	a, b := begin+i, middle+lo-i
	for k := begin + lo; k < begin+hi; k++ {
		if b >= end || a < middle && keys[a] <= keys[b] {
			to.keys[k], to.places[k] = keys[a], from.places[a]
			a++
		} else {
			to.keys[k], to.places[k] = keys[b], from.places[b]
			b++
		}
	}
}

// Saves the indices.
func (*Sort) Saves(uint64) (in, out uint64) { return 0, 2 }

// VJP puts gy back where the values came from.
func (a *Sort) VJP(y, gy []*Tensor, g *Grads) {
	g.Set(0, a.X.zerosIn(gy[0].env).IndexAdd(y[1], gy[0], string(a.Axis)))
}

// Samples covers the lengths, both orders, the axis in the middle, and the dtypes, of which integers and bools have
// equals.
func (*Sort) Samples(m *Maker) (list []Sort) {
	for _, n := range append(lengths, 2*sortRun+500) {
		list = append(list, Sort{m.Tensor(dtype.F32, "row=3 col=%d", n), "col", n%2 == 0})
	}
	list = append(list, Sort{m.Tensor(dtype.F32, "row=0 col=2"), "col", false})
	for _, dt := range allDTypes {
		list = append(list, Sort{m.Tensor(dt, "row=3 col=17 batch=2"), "col", false},
			Sort{m.Tensor(dt, "col=17"), "col", true})
	}
	return list
}
