package grad_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/grad"
)

// peak is the bytes that a forward and a backward pass of f need beyond its operands, of the given shapes, and the
// gradients of the operands.
func peak(f func(xs []*core.Tensor, m *core.Maker) *core.Tensor, shapes ...string) (bytes int64, grads [][]float64) {
	env := core.NewEnv(0, 2)
	defer env.Close()
	m := &core.Maker{Env: env}
	var xs []*core.Tensor
	for _, shape := range shapes {
		x := m.Tensor(dtype.F32, shape)
		xs = append(xs, env.Watch(x))
	}
	before := env.Memory().InUse
	s := env.Open()
	loss := f(xs, m)
	backward(loss)
	s.Close()
	for _, x := range xs {
		grads = append(grads, list(x.Variable().Grad))
	}
	return env.Memory().Peak - before, grads
}

// near compares gradients that were computed in another order, in f32.
var near = cmpopts.EquateApprox(1e-4, 1e-6)

// TestLinearCrossEntropyPeak insists that there is never room for the scores of all rows, where the two operations
// that it stands for need that several times.
func TestLinearCrossEntropyPeak(t *testing.T) {
	const rows, vocab = 1000, 3000
	shapes := []string{"row=1000 embed=16", "vocab=3000 embed=16"}
	target := func(m *core.Maker) *core.Tensor { return m.Indices(dtype.I64, vocab, "row=1000") }
	fused, got := peak(func(xs []*core.Tensor, m *core.Maker) *core.Tensor {
		return xs[0].LinearCrossEntropy(xs[1], target(m), "vocab")
	}, shapes...)
	plain, want := peak(func(xs []*core.Tensor, m *core.Maker) *core.Tensor {
		return xs[0].Dot(xs[1], "embed").CrossEntropy(target(m), "vocab")
	}, shapes...)
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("the gradients differ: %.500s", diff)
	}
	t.Logf("%d bytes for %d of scores; %d by dot and cross_entropy", fused, rows*vocab*4, plain)
	if fused > rows*vocab*4/4 || plain < 2*rows*vocab*4 {
		t.Errorf("%d bytes for %d of scores; %d by dot and cross_entropy", fused, rows*vocab*4, plain)
	}
}

// TestAttentionPeak insists that there is never room for the weights of all queries and keys.
func TestAttentionPeak(t *testing.T) {
	const n, heads = 1024, 4
	shapes := []string{"seq=1024 head=4 head_dim=8", "seq=1024 head=4 head_dim=8", "seq=1024 head=4 head_dim=8"}
	used, got := peak(func(xs []*core.Tensor, _ *core.Maker) *core.Tensor {
		return xs[0].Attention(xs[1], xs[2], -1).Square().Sum()
	}, shapes...)
	t.Logf("%d bytes for %d of weights", used, n*n*heads*4)
	if used > n*n*heads*4/8 {
		t.Errorf("%d bytes for %d of weights", used, n*n*heads*4)
	}
	_, want := peak(func(xs []*core.Tensor, _ *core.Maker) *core.Tensor {
		op := core.Lookup("attention").New().(*core.Attention)
		op.Q, op.K, op.V, op.Causal = xs[0], xs[1], xs[2], true
		return op.Ref().Square().Sum()
	}, shapes...)
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("the gradients differ: %.500s", diff)
	}
}

// BenchmarkBackward times forward and backward of what a language model of 4 layers, 128 wide, does most.
func BenchmarkBackward(b *testing.B) {
	for name, workers := range map[string]int{"one": 1, "two": 2} {
		b.Run(name, func(b *testing.B) {
			env := core.NewEnv(0, workers)
			defer env.Close()
			m := &core.Maker{Env: env}
			n := newTimed(m)
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				s := env.Open()
				loss := n.loss()
				b.StartTimer()
				grad.Backward([]*core.Tensor{loss}, nil, grad.Mode{})
				b.StopTimer()
				s.Close()
				n.clear()
				b.StartTimer()
			}
		})
	}
}

// timed is a small GPT: 12 × 64 tokens, 4 layers, 4 heads, 128 wide.
type timed struct {
	env    *core.Env
	tokens *core.Tensor
	wte    *core.Tensor
	blocks []block
}

func newTimed(m *core.Maker) *timed {
	weight := func(shape string) *core.Tensor {
		return m.Env.Watch(m.Tensor(dtype.F32, shape).Mul(core.Number(m.Env, 0.05, 0, false)))
	}
	t := &timed{env: m.Env, tokens: m.Indices(dtype.I64, 65, "batch=12 seq=64"), wte: weight("vocab=65 embed=128")}
	for range 4 {
		t.blocks = append(t.blocks, block{weight("embed=128"), weight("head=4 head_dim=32 embed=128"),
			weight("kv_head=4 head_dim=32 embed=128"), weight("kv_head=4 head_dim=32 embed=128"),
			weight("head=4 head_dim=32 embed=128"), weight("ffn=512 embed=128"), weight("embed=128 ffn=512")})
	}
	return t
}

func (n *timed) loss() *core.Tensor {
	x := n.tokens.Embedding(n.wte, "vocab")
	for _, b := range n.blocks {
		x = b.run(x)
	}
	return x.LinearCrossEntropy(n.wte, n.tokens, "vocab")
}

func (n *timed) clear() {
	n.env.SetGrad(n.wte.Variable(), nil)
	for _, b := range n.blocks {
		for _, w := range b.all() {
			n.env.SetGrad(w.Variable(), nil)
		}
	}
}

// BenchmarkPair times the two products that a dot's gradient consists of: both on two workers, one after the other, and
// each on a worker of its own at the same time, which is the best that nodes fired side by side could do.
func BenchmarkPair(b *testing.B) {
	for _, size := range []struct{ name, x, w string }{
		{"768x128x512", "row=768 in=128", "out=512 in=128"}, {"64x64x64", "row=64 in=64", "out=64 in=64"},
	} {
		env := core.NewEnv(0, 2)
		m := &core.Maker{Env: env}
		x, w := m.Tensor(dtype.F32, size.x), m.Tensor(dtype.F32, size.w)
		gy := x.Dot(w, "in")
		b.Run(size.name+"/alone", func(b *testing.B) {
			env.Control.Workers = 1
			defer func() { env.Control.Workers = 2 }()
			for range b.N {
				s := env.Open()
				gy.Dot(w, "out")
				gy.Dot(x, "row")
				s.Close()
			}
		})
		b.Run(size.name+"/after", func(b *testing.B) {
			for range b.N {
				s := env.Open()
				gy.Dot(w, "out")
				gy.Dot(x, "row")
				s.Close()
			}
		})
		sx, sw, sg := x.Copy().Share(), w.Copy().Share(), gy.Copy().Share()
		one, two := core.NewEnv(0, 1), core.NewEnv(0, 1)
		ask, done := make(chan bool), make(chan bool)
		product := func(env *core.Env, x *core.Tensor, axes string) {
			s := env.Open()
			core.Lookup("dot").Run1(env, dotOf(sg, x, axes))
			s.Close()
		}
		go func() {
			for range ask {
				product(two, sx, "row")
				done <- true
			}
		}()
		b.Run(size.name+"/beside", func(b *testing.B) {
			for range b.N {
				ask <- true
				product(one, sw, "out")
				<-done
			}
		})
		close(ask)
		one.Close()
		two.Close()
		env.Close()
	}
}

func dotOf(x, w *core.Tensor, axes string) core.Op {
	return &core.Dot{X: x, W: w, Axes: mustAxes(axes)}
}
