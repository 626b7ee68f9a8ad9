package optim

import (
	"fmt"
	"math"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/kernels/num"
)

// Muon is for the hidden matrices of a network: b = momentum · b + (1 - momentum) · g, with nesterov
// u = (1 - momentum) · g + momentum · b, else u = b, and the matrix nearest to u whose singular values are about 1 is
// subtracted, times lr. That is found by ns_steps steps of a Newton-Schulz iteration, which leaves the singular values
// between about 0.5 and 1.5. Before, the parameter is multiplied by 1 - lr · weight_decay.
//
// The update of an m × n matrix is scaled by √max(1, m/n) (adjust "original"), or by 0.2 · √max(m, n), so that learning
// rate and weight decay of AdamW fit (adjust "match_rms_adamw"). The rows of a tensor with more than two axes are its
// first axis, or those of its axes that rows lists: rows="head head_dim". Embeddings, the output layer, gains and
// biases belong to AdamW, in a group of their own: {"params": rest, "rule": "adamw", "lr": 3e-4}.
//
// As KellerJordan/Muon, in full precision; with lr=1e-3, weight_decay=0.1 and clamp_norm=True, which bounds the norm
// from below instead of adding 1e-7 to it, as torch.optim.Muon. A convolution's kernel counts as one matrix as a whole.
// Remembers as much as the parameters.
type Muon struct {
	Momentum    float64 `arg:"momentum=0.95"`
	WeightDecay float64 `arg:"weight_decay=0"`
	Nesterov    bool    `arg:"nesterov=true"`
	NSSteps     int     `arg:"ns_steps=5"`
	Adjust      string  `arg:"adjust=original" enum:"original match_rms_adamw"`
	ClampNorm   bool    `arg:"clamp_norm=false"`
	Rows        string  `arg:"rows="`
}

var _ = declareRule[Muon]("muon", 0.02)

func (a *Muon) check(c *checks) {
	c.fraction("momentum", a.Momentum)
	c.atLeast0("weight_decay", a.WeightDecay)
	c.want(a.NSSteps > 0 && a.NSSteps <= 100, "ns_steps", a.NSSteps, "a number of steps from 1 to 100")
	c.oneOf("adjust", a.Adjust, "original match_rms_adamw")
}

func (a *Muon) refuse(p *Param) (msg, hint string) {
	if p.Value.Rank() >= 2 {
		return "", ""
	}
	return fmt.Sprintf("%q, %s, is no matrix", p.Name, p.Value.Shape()),
		`give it to AdamW, in a group of its own: {"params": rest, "rule": "adamw", "lr": 3e-4}`
}

func (a *Muon) slots(*Param) []slot { return like("momentum_buffer") }

// scratch: the gradient, u, x, its successor and the order of either, and three square matrices.
func (a *Muon) scratch(p *Param) int {
	x := matrixOf(p, a.Rows)
	short := min(x.m, x.n)
	return 6*p.Value.Len() + 3*short*short
}

func (a *Muon) step(u *update) {
	s := u.env.Open()
	defer s.Close()
	x := matrixOf(u.param, a.Rows)
	g, b := u.wide(), u.slots[0]
	u.combine(b, b, g, a.Momentum, 1-a.Momentum)
	towards := b
	if a.Nesterov {
		towards = u.env.Scratch(b.DType(), b.Axes(), b.Sizes()...)
		u.combine(towards, g, b, 1-a.Momentum, a.Momentum)
	}
	o := x.back(a.orthogonal(u, x.flat(towards), x.m > x.n), u.p)
	scale := math.Sqrt(max(1, float64(x.m)/float64(x.n)))
	if a.Adjust == "match_rms_adamw" {
		scale = 0.2 * math.Sqrt(float64(max(x.m, x.n)))
	}
	u.combine(u.p, u.p, o, 1-u.lr*a.WeightDecay, -u.lr*scale)
}

// The coefficients of the iteration, by Keller Jordan: they make small singular values grow fastest.
const nsA, nsB, nsC = 3.4445, -4.7750, 2.0315

const nsEps = 1e-7

func quotient[T num.Float](by float64) func(int, [][]T) {
	return func(_ int, xs [][]T) { num.Quotient(xs[0], xs[1], T(by)) }
}

// orthogonal runs the iteration x = a·x + (b·A + c·A²)·x with A = x·xᵀ, from the matrix over its norm, with the shorter
// side as rows. The result has the axes row and col, in some order.
func (a *Muon) orthogonal(u *update, m *core.Tensor, tall bool) *core.Tensor {
	short, long := "row", "col"
	if tall {
		short, long = long, short
	}
	axes := one(short).Append(one(long))
	m = m.Packed(axes)
	size := norm(u.env, m)
	if a.ClampNorm {
		size = max(size, nsEps)
	} else {
		size += nsEps
	}
	x := u.env.Scratch(m.DType(), axes, m.Size(short), m.Size(long))
	u.over(1, quotient[float32](size), quotient[float64](size), x, m)
	for range a.NSSteps {
		s := u.env.Open()
		gram := x.Dot(x.Rename(short, "other"), long) // [short, other]; symmetric, to the bit
		square := gram.Dot(gram.Rename(short, "third"), "other").Rename("third", "other")
		u.combine(square, gram, square, nsB, nsC)
		u.combine(x, x, square.Dot(x.Rename(short, "other"), "other"), nsA, 1)
		s.Close()
	}
	return x
}
