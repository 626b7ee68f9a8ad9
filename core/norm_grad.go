package core

import (
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// normGrad is the gradients of layer_norm, or of rms_norm if there is no mean, in one pass: that with respect to x, and
// those with respect to the weight and the bias, each added up over blocks of rows. It is in no table. The operands
// are f32 or f64; the weight has the axes along which x is normalized.
type normGrad struct {
	X      *Tensor `arg:"x"`
	Weight *Tensor `arg:"weight?"`
	GY     *Tensor `arg:"gy"`
	Mean   *Tensor `arg:"mean?"`
	R      *Tensor `arg:"r"`
	Along  Axes    `arg:"along"`
}

var normGrads = Define[normGrad]("norm_grad")

const (
	normBlock = 32           // rows of a block
	blockAxis = "norm_block" // the axis of the blocks
)

// Names has the blocks as an axis of their own.
func (a *normGrad) Names(p *Plan) {
	kept := a.X.axes.Without(a.Along)
	p.Out(a.X.axes, a.X.dtype)
	p.Out(axisList(blockAxis).Append(a.Along), a.X.dtype)
	p.Out(axisList(blockAxis).Append(a.Along), a.X.dtype)
	p.Keep(kept)
}

// Sizes counts the blocks.
func (a *normGrad) Sizes(s *Sizes) {
	for _, name := range a.X.axes.Names() {
		s.Set(0, name, a.X.Size(name))
	}
	rows := volume(a.X, a.X.axes.Without(a.Along))
	for i := 1; i <= 2; i++ {
		s.Set(i, blockAxis, ceilDiv(rows, normBlock))
		for _, name := range a.Along.Names() {
			s.Set(i, name, a.X.Size(name))
		}
	}
}

// Eval does the blocks.
func (a *normGrad) Eval(c *Ctx) {
	if a.X.dtype == dtype.F64 {
		normGradBlocks[float64](c, a)
	} else {
		normGradBlocks[float32](c, a)
	}
}

func normGradBlocks[C float32 | float64](c *Ctx, a *normGrad) {
	kept := c.Data().(*axis.List)
	order, n := kept.Append(a.Along), volume(a.X, a.Along)
	dense := func(t *Tensor, order *axis.List) []C {
		if t == nil {
			return nil
		}
		return elementsOf[C](c.Dense(t, order, native[C]()))
	}
	x, g, w := dense(a.X, order), dense(a.GY, order), dense(a.Weight, a.Along)
	r, mean := dense(a.R, kept), dense(a.Mean, kept)
	out := c.Out(0)
	if out.axes != order {
		out = c.Scratch(native[C](), order, a.X.permuted(order).sizes)
	}
	gx, gw, gb := elementsOf[C](out), elementsOf[C](c.Out(1)), elementsOf[C](c.Out(2))
	clear(gw)
	clear(gb)
	c.Split(c.Out(1).Size(blockAxis), max(1, pointGrain/max(1, 4*normBlock*n)), func(lo, hi int) {
		room := make([]C, n)
		for block := lo; block < hi; block++ {
			gw, gb := gw[block*n:][:n], gb[block*n:][:n]
			for i := block * normBlock; i < min(len(r), (block+1)*normBlock); i++ {
				gx, g, x := gx[i*n:][:n], g[i*n:][:n], x[i*n:][:n]
				if mean == nil {
					num.RMSNormGradRow(gx, gw, g, x, w, room, r[i])
				} else {
					num.LayerNormGradRow(gx, gw, gb, g, x, w, room, mean[i], r[i])
				}
			}
		}
	})
	if out != c.Out(0) {
		c.copyInto(c.Out(0), out.permuted(c.Out(0).axes))
	}
}
