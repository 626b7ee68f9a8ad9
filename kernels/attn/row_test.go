package attn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fucina-go/fucina/kernels/cpu"
	"github.com/fucina-go/fucina/kernels/num"
)

const guard = 12345

// problem is random rows, keys and values with guard values between the rows.
type problem[T num.Float] struct {
	q, k, v           []T
	rows, keys        int
	width, valueWidth int
	step              Strides
}

func newProblem[T num.Float](r *rand.Rand, rows, keys, width, valueWidth int) *problem[T] {
	p := &problem[T]{rows: rows, keys: keys, width: width, valueWidth: valueWidth,
		step: Strides{Out: valueWidth + 3, Q: width + 1, K: width + 2, V: valueWidth + 1}}
	fill := func(rows, cols, step int) []T {
		x := make([]T, rows*step)
		for i := range x {
			if x[i] = T(r.NormFloat64()); i%step >= cols {
				x[i] = guard
			}
		}
		return x
	}
	p.q, p.k, p.v = fill(rows, width, p.step.Q), fill(keys, width, p.step.K), fill(keys, valueWidth, p.step.V)
	return p
}

// compute runs Rows in a tier.
func (p *problem[T]) compute(tier cpu.Tier, lo, hi []int) []T {
	restore, _ := cpu.Force(tier)
	defer restore()
	out := make([]T, p.rows*p.step.Out+1)
	for i := range out {
		out[i] = guard
	}
	Rows(out, p.q, p.k, p.v, p.width, p.valueWidth, p.step, lo, hi, 0.25, nil)
	return out
}

// definition is what Rows promises, for one row, written out.
func (p *problem[T]) definition(r, lo, hi int) []T {
	out := make([]T, p.valueWidth)
	top, total := T(math.Inf(-1)), T(0)
	for at := lo; at < hi; {
		end := min(hi, (at/Block+1)*Block)
		scores := make([]T, end-at)
		for i := range scores {
			var s T
			for j := range p.width {
				s = num.FMA(p.q[r*p.step.Q+j], p.k[(at+i)*p.step.K+j], s)
			}
			scores[i] = T(s * 0.25)
		}
		if peak := max(top, num.Max(scores)); !math.IsInf(float64(peak), -1) {
			shrink := []T{top - peak}
			num.Exp(shrink, shrink)
			if peak > top && total > 0 {
				total = T(total * shrink[0])
				for j := range out {
					out[j] = T(out[j] * shrink[0])
				}
			}
			for i := range scores {
				scores[i] -= peak
			}
			num.Exp(scores, scores)
			top = peak
			total += num.Sum(scores)
			for i, w := range scores {
				for j := range out {
					out[j] = num.FMA(w, p.v[(at+i)*p.step.V+j], out[j])
				}
			}
		}
		at = end
	}
	for j := range out {
		if total > 0 {
			out[j] /= total
		}
	}
	return out
}

func same[T num.Float](x, y T) bool {
	return math.Float64bits(float64(x)) == math.Float64bits(float64(y)) || x != x && y != y
}

func check[T num.Float](t *testing.T, p *problem[T], lo, hi []int) {
	t.Helper()
	for _, tier := range cpu.Tiers() {
		got := p.compute(tier, lo, hi)
		for r := range p.rows {
			want := p.definition(r, lo[r], hi[r])
			for j, w := range want {
				if g := got[r*p.step.Out+j]; !same(g, w) {
					t.Fatalf("%s: %d rows, width %d, row %d, keys %d to %d: element %d is %x, want %x",
						tier, p.rows, p.width, r, lo[r], hi[r], j, g, w)
				}
			}
			for j := p.valueWidth; j < p.step.Out; j++ {
				if got[r*p.step.Out+j] != guard {
					t.Fatalf("%s: row %d: wrote behind its end", tier, r)
				}
			}
		}
	}
}

func TestRowsEqualTheDefinition(t *testing.T) {
	t.Run("float32", testRows[float32])
	t.Run("float64", testRows[float64])
}

func testRows[T num.Float](t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	counts := []int{1, 2, 3, 4, 5, 8, 9, 13, 33, 40}
	if testing.Short() {
		counts = []int{1, 3, 9, 34}
	}
	for _, rows := range counts {
		for _, width := range []int{1, 7, 16, 40, 64} {
			p := newProblem[T](r, rows, 200, width, width+rows%5)
			causal, window, all := make([]int, rows), make([]int, rows), make([]int, rows)
			full, none := make([]int, rows), make([]int, rows)
			for i := range rows {
				causal[i], all[i] = min(200, 120+i), 200
				window[i] = max(0, causal[i]-70)
				full[i], none[i] = r.IntN(200), r.IntN(200)
			}
			check(t, p, make([]int, rows), causal)
			check(t, p, window, causal)
			check(t, p, make([]int, rows), all)
			check(t, p, full, none) // some rows have no keys at all
		}
	}
}

func TestMaskedScores(t *testing.T) {
	// A key of -Inf gives scores of ±Inf or NaN: whole blocks, single keys.
	r := rand.New(rand.NewPCG(5, 6))
	inf := float32(math.Inf(1))
	p := newProblem[float32](r, 3, 150, 16, 16)
	for i := range p.q {
		p.q[i] = float32(math.Abs(float64(p.q[i]))) + 0.1
	}
	for key := range 150 {
		if key < 64 || key%3 == 0 {
			for j := range 16 {
				p.k[key*p.step.K+j] = -inf
			}
		}
	}
	check(t, p, []int{0, 0, 70}, []int{150, 60, 140})
	check(t, p, []int{0, 0, 63}, []int{64, 64, 64})
}

func TestNoAllocation(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	p := newProblem[float32](r, 12, 300, 64, 64)
	out, lo, hi := make([]float32, 12*p.step.Out), make([]int, 12), make([]int, 12)
	for i := range hi {
		hi[i] = 280 + i
	}
	if n := testing.AllocsPerRun(10, func() {
		Rows(out, p.q, p.k, p.v, 64, 64, p.step, lo, hi, 0.1, nil)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRows(b *testing.B) {
	for _, c := range []struct{ rows, keys, width int }{
		{1, 1024, 128}, {4, 1024, 128}, {32, 1024, 128}, {32, 1024, 64},
	} {
		for _, tier := range cpu.Tiers() {
			b.Run(fmt.Sprintf("%dx%dx%d/%s", c.rows, c.keys, c.width, tier), func(b *testing.B) {
				restore, _ := cpu.Force(tier)
				defer restore()
				p := newProblem[float32](rand.New(rand.NewPCG(1, 2)), c.rows, c.keys, c.width, c.width)
				p.step = Strides{c.width, c.width, c.width, c.width}
				out, lo, hi := make([]float32, c.rows*c.width), make([]int, c.rows), make([]int, c.rows)
				for i := range hi {
					hi[i] = c.keys
				}
				for b.Loop() {
					Rows(out, p.q, p.k, p.v, c.width, c.width, p.step, lo, hi, 0.1, nil)
				}
				flop := 4 * float64(c.rows*c.keys*c.width) * float64(b.N)
				b.ReportMetric(flop/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
