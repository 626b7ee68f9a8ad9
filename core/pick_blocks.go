package core

import "fmt"

// wholeBlocks insists that a place of the axis is not inside the blocks of a quantized x, and that the index, if there
// is one, does not go over other axes of x: then what is taken are runs of blocks.
func (p *Plan) wholeBlocks(x, index *Tensor, name Axis) {
	hint := p.c.param(x) + ".dequantize()"
	if x.axes.Index(string(name)) == x.Rank()-1 {
		p.Fail(fmt.Sprintf("%s has its blocks of %s along %q, of which single places cannot be taken", p.Describe(x),
			x.dtype, name), hint)
	}
	if index == nil {
		return
	}
	if both := index.axes.Shared(x.axes).Without(axisList(string(name))); both.Len() > 0 {
		p.Fail(fmt.Sprintf("%s and %s share %s, and blocks of %s are taken whole", p.Describe(x), p.Describe(index),
			quoted(both.Names()), x.dtype), hint)
	}
}

// pickBlocks sets the output to x, which is quantized, at places of an axis.
func (c *Ctx) pickBlocks(x *Tensor, places []int64, name Axis) {
	f := formatOf(x.dtype)
	at := x.axes.Index(string(name))
	n, run := x.sizes[at], 1
	for _, size := range x.sizes[at+1:] {
		run *= size
	}
	if whole := max(f.Block, x.panels); run%whole != 0 {
		c.Fail(fmt.Sprintf("what lies behind axis %q of %s are %d elements, no multiple of the %d of a %s block", name,
			c.Describe(x), run, whole, f.Name), c.c.param(x)+".dequantize()")
	}
	out, size := c.Out(0).bytes(), f.Size(run)
	if len(out) == 0 {
		return
	}
	c.Split(len(out)/size, max(1, pointGrain/size), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			x.take(out[i*size:(i+1)*size], f, i/len(places)*n+int(places[i%len(places)]), run)
		}
	})
}
