package attn

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fucina-go/fucina/kernels/cpu"
	"github.com/fucina-go/fucina/kernels/num"
)

// Scores are scaled, and the largest found, as by kernels/num, up to what a NaN leaves open.
func TestScalePeaks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	inf := float32(math.Inf(1))
	for _, tier := range cpu.Tiers() {
		restore, _ := cpu.Force(tier)
		for n := range 66 {
			const rows, ld = 3, 70
			x := make([]float32, rows*ld)
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			if n > 2 {
				x[r.IntN(n)], x[ld+r.IntN(n)] = -inf, inf
			}
			for _, before := range []float32{-inf, 0.5, 100} {
				got, peak := append([]float32{}, x...), []float32{before, before, before}
				scalePeaks(got, rows, ld, n, 0.3, peak)
				for i, v := range x {
					if want := float32(v * 0.3); i%ld < n && got[i] != want || i%ld >= n && got[i] != v {
						t.Fatalf("%s, %d elements: element %d is %v of %v", tier, n, i, got[i], v)
					}
				}
				for row := range rows {
					if want := max(before, num.Max(got[row*ld:][:n])); peak[row] != want {
						t.Fatalf("%s, %d elements: the peak of row %d is %v, want %v", tier, n, row, peak[row], want)
					}
				}
			}
		}
		restore()
	}
}

// A NaN among scores of -Inf makes the row NaN, wherever it stands.
func TestOneNaN(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for at := range 20 {
		p := newProblem[float32](rand.New(rand.NewPCG(7, 7)), 1, 20, 16, 16)
		for i := range p.q {
			p.q[i] = 1
		}
		for key := range 20 {
			for j := range 16 {
				p.k[key*p.step.K+j] = -inf
			}
		}
		p.k[at*p.step.K] = nan
		check(t, p, []int{0}, []int{20})
	}
}
