package core

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/fucina-go/fucina/core/dtype"
)

// equalBits insists on the same bits of two tensors.
func equalBits(t *testing.T, what string, got, want *Tensor) {
	t.Helper()
	if got.Shape() != want.Shape() || !bytes.Equal(bitsOf(got), bitsOf(want)) {
		t.Errorf("%s: got %v of %s, want %v of %s", what, got.Values(), got.Shape(), want.Values(), want.Shape())
	}
}

// TestAttentionMasks insists that a mask of nothing changes no bit, that one which says what causal says gives
// causal's bits, and that a query which sees no key gives 0.
func TestAttentionMasks(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 2)}
	q, k := m.Tensor(dtype.F32, "seq=130 head=2 head_dim=20"), m.Tensor(dtype.F32, "seq=130 kv_head=1 head_dim=20")
	v := m.Tensor(dtype.F32, "seq=130 kv_head=1 value=7")
	run := func(a Attention) *Tensor {
		a.Q, a.K, a.V, a.Start = q, k, v, -1
		return attention.Call(a)
	}
	nothing := m.Env.Zeros(dtype.F32, axisList("key_seq"), 130)
	equalBits(t, "a mask of zeros", run(Attention{Mask: nothing}), run(Attention{}))
	i, j := m.Env.Arange(130, "seq", dtype.I64), m.Env.Arange(130, "key_seq", dtype.I64)
	earlier := ge.Call(Ge{Compare{X: i, Y: j, Outer: true}})
	equalBits(t, "a causal mask", run(Attention{Mask: earlier}), run(Attention{Causal: true}))
	bias := earlier.Cast(dtype.F32).Log() // 0 and -inf
	equalBits(t, "a causal bias", run(Attention{Mask: bias}), run(Attention{Causal: true}))
	none := i.Gt(Number(m.Env, 0, 2, true)) // the first three see nothing
	y := run(Attention{Mask: none}).Slice("seq", 0, 3, 1)
	equalBits(t, "queries that see nothing", y, y.zerosIn(m.Env))
}

// TestEntropies compares cross_entropy of rows longer than a block with log_softmax and nll_loss, and label smoothing
// with its definition.
func TestEntropies(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 2)}
	for _, n := range []int{1, 511, 512, 513, 2000} {
		x, ids := m.Tensor(dtype.F64, "row=3 class=%d", n), m.Indices(dtype.I64, n, "row=3")
		logs := x.LogSoftmax("class")
		if err := near(x.CrossEntropy(ids, "class"), logs.NLLLoss(ids, "class"), 1e-14); err != nil {
			t.Errorf("%d classes: %v", n, err)
		}
		a := CrossEntropy{ClassLoss{X: x, Target: ids, Axis: "class", IgnoreIndex: -1, Reduction: "mean"}, 0.25}
		want := logs.NLLLoss(ids, "class").times(0.75).Sub(logs.Mean("class").Mean().times(0.25))
		if err := near(crossEntropy.Call(a), want, 1e-13); err != nil {
			t.Errorf("%d classes, smoothed: %v", n, err)
		}
		a.Target = x.Exp()
		want = logs.Mul(a.Target.times(0.75).plus(0.25 / float64(n))).Sum("class").Mean().Neg()
		if err := near(crossEntropy.Call(a), want, 1e-13); err != nil {
			t.Errorf("%d probabilities, smoothed: %v", n, err)
		}
	}
}

// TestRowsOfNothing is what PyTorch gives for rows and windows in which nothing is left.
func TestRowsOfNothing(t *testing.T) {
	e := NewEnv(0, 1)
	inf := math.Inf(-1)
	row := e.FromFloats(dtype.F32, []float64{inf, inf}, axisList("a"), 2)
	window := e.FromFloats(dtype.F32, []float64{1, math.NaN(), 3, 3, inf, inf}, axisList("a"), 6)
	pool := Pool{Input: window, Kernel: Map[int]{axisList("a"), []int{2}}, Dilation: Every(1)}
	ignored := e.FromInts(dtype.I64, []int64{-100}, axisList("row"), 1)
	for _, c := range []struct {
		what string
		got  *Tensor
		want string
	}{
		{"softmax", row.Softmax("a"), "[NaN NaN]"},
		{"log_softmax", row.LogSoftmax("a"), "[NaN NaN]"},
		{"max_pool", maxPool.Call(MaxPool{Pool: pool}), "[NaN 3 -Inf]"},
		{"a mean of ignored rows",
			e.Zeros(dtype.F32, axisList("row", "class"), 1, 2).CrossEntropy(ignored, "class"), "[NaN]"},
		{"a mean of no rows",
			e.Zeros(dtype.F32, axisList("row"), 0).MSELoss(e.Zeros(dtype.F32, axisList("row"), 0)), "[NaN]"},
		{"an infinite logit", e.FromFloats(dtype.F32, []float64{inf, -inf}, axisList("row"), 2).BCEWithLogits(
			e.FromFloats(dtype.F32, []float64{0, 1}, axisList("row"), 2)), "[NaN]"},
	} {
		if got := fmt.Sprint(c.got.Values()); got != c.want {
			t.Errorf("%s: got %s, want %s", c.what, got, c.want)
		}
	}
}

// TestComposedOfShared insists that an operation made of others runs in the Env it is given, though its operands
// belong to none.
func TestComposedOfShared(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 1)}
	x, w := m.Tensor(dtype.F32, "row=100 in=3").Share(), m.Tensor(dtype.F32, "out=4 in=3").Share()
	e := NewEnv(0, 1)
	s := e.Open()
	y := linear.In(e, Linear{X: x, W: w, Bias: nil, Axis: "in"})
	if y.Env() != e || y.scope() != s {
		t.Errorf("the result belongs to the Env %p and the scope %p, want %p and %p", y.Env(), y.scope(), e, s)
	}
	s.Close()
	if x.buf.Holders() != 1 || w.buf.Holders() != 1 || e.Memory().Buffers != 0 {
		t.Errorf("%d and %d holders and %d buffers are left", x.buf.Holders(), w.buf.Holders(), e.Memory().Buffers)
	}
}
