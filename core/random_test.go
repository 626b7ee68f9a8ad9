package core

import (
	"math"
	"slices"
	"testing"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/rng"
)

// drawnOf is the result of an operation of the table with the given arguments.
func drawnOf(e *Env, op Op) *Tensor {
	for _, info := range All() {
		if info.argType() == typeName(op) {
			return info.Run(e, op, nil)[0]
		}
	}
	panic("no such operation")
}

func typeName(op Op) string { return (&Info{blank: op}).argType() }

func aSized(n int) Map[int] { return Map[int]{axisList("a"), []int{n}} }

// TestStreams takes the next stream for every operation, and element i from index i.
func TestStreams(t *testing.T) {
	e := NewEnv(0, 0)
	e.Seed(5)
	for stream := uint64(1); stream < 4; stream++ {
		got := drawnOf(e, &Rand{Axes: Map[int]{axisList("a", "b"), []int{3, 1000}}, DType: dtype.F32,
			Random: Random{Seed: -1}}).Float32s()
		for i, v := range got {
			if want := rng.Float32(5, stream, uint64(i)); v != want {
				t.Fatalf("stream %d, element %d: got %v, want %v", stream, i, v, want)
			}
		}
	}
	given := drawnOf(e, &Randn{Axes: aSized(5), DType: dtype.F64, Random: Random{Seed: 9}})
	for i, v := range given.Values() {
		if want := rng.Normal(9, 0, uint64(i)); v != want {
			t.Errorf("element %d: got %v, want %v", i, v, want)
		}
	}
	e.Seed(5)
	if got, want := drawnOf(e, &Rand{DType: dtype.F32, Random: Random{Seed: -1}}).Item(),
		float64(rng.Float32(5, 1, 0)); got != want {
		t.Errorf("after Seed: got %v, want %v", got, want)
	}
}

// TestDistributions compares means and variances with what they should be, to within five deviations.
func TestDistributions(t *testing.T) {
	const n = 100000
	e := NewEnv(0, 0)
	r := func(k int) Random { return Random{Seed: k} }
	for _, c := range []struct {
		op             Op
		mean, variance float64
	}{
		{&Rand{aSized(n), dtype.F32, r(1)}, 0.5, 1.0 / 12},
		{&Rand{aSized(n), dtype.F16, r(2)}, 0.5, 1.0 / 12},
		{&Uniform{-1, 3, aSized(n), dtype.F64, r(3)}, 1, 16.0 / 12},
		{&Randn{aSized(n), dtype.F32, r(4)}, 0, 1},
		{&Normal{2, 3, aSized(n), dtype.F64, r(5)}, 2, 9},
		{&Randint{-2, 3, aSized(n), dtype.I8, r(6)}, 0, 2},
		{&Bernoulli{P: Number(e, 0.3, 0, false), Axes: aSized(n), Random: r(7)}, 0.3, 0.21},
		{&Dropout{e.Cast(drawnOf(e, &Full{Value: 1, Axes: aSized(n), DType: dtype.F32}), dtype.F64), 0.2, true, r(8)},
			1, 0.25},
	} {
		x := drawnOf(e, c.op).Cast(dtype.F64)
		mean, variance := x.Mean().Item().(float64), x.Var().Item().(float64)
		if math.Abs(mean-c.mean) > 5*math.Sqrt(c.variance/n) {
			t.Errorf("%T: mean %v, want %v", c.op, mean, c.mean)
		}
		if math.Abs(variance-c.variance) > 5*c.variance*math.Sqrt(2.0/n) {
			t.Errorf("%T: variance %v, want %v", c.op, variance, c.variance)
		}
	}
}

// TestUniformStaysBelow draws in dtypes that would round up to the bound.
func TestUniformStaysBelow(t *testing.T) {
	e := NewEnv(0, 0)
	for _, dt := range floats {
		for _, bounds := range [][2]float64{{0, 1}, {-1, 0}, {1, 1 + 0x1p-7}, {-3, -1}, {0, 0x1p-100}} {
			x := drawnOf(e, &Uniform{bounds[0], bounds[1], aSized(20000), dt, Random{Seed: 1}}).Cast(dtype.F64)
			low, high := x.Min().Item().(float64), x.Max().Item().(float64)
			if low < bounds[0] || high >= bounds[1] {
				t.Errorf("%s from %v to %v: got %v … %v", dt, bounds[0], bounds[1], low, high)
			}
		}
	}
}

// TestRandperm draws permutations, in which every place is as likely for the first element.
func TestRandperm(t *testing.T) {
	e := NewEnv(0, 0)
	var first [5]int
	for k := range 1000 {
		p := drawnOf(e, &Randperm{5, "a", dtype.I64, Random{Seed: k}}).Int64s()
		first[slices.Index(p, 0)]++
		slices.Sort(p)
		if !slices.Equal(p, []int64{0, 1, 2, 3, 4}) {
			t.Fatalf("seed %d: got %v", k, p)
		}
	}
	for i, n := range first {
		if n < 140 || n > 260 {
			t.Errorf("place %d has the first element %d times in 1000", i, n)
		}
	}
}

// TestSortLong sorts rows that are merged from many runs.
func TestSortLong(t *testing.T) {
	for _, n := range []int{sortRun + 1, 2 * sortRun, 5*sortRun + 77, 16*sortRun + 3} {
		for _, descending := range []bool{false, true} {
			e := NewEnv(0, 2)
			x := drawnOf(e, &Randint{0, 300, Map[int]{axisList("row", "a"), []int{2, n}}, dtype.I16, Random{Seed: n}})
			rows := [][]int64{x.Int64s()[:n], x.Int64s()[n:]}
			both := sortOp.All(Sort{X: x, Axis: "a", Descending: descending})
			values, places := both[0].Int64s(), both[1].Int64s()
			for r, row := range rows {
				want := make([]int, n)
				for i := range want {
					want[i] = i
				}
				slices.SortStableFunc(want, func(i, j int) int {
					if descending {
						i, j = j, i
					}
					return int(row[i] - row[j])
				})
				for i, place := range want {
					if places[r*n+i] != int64(place) || values[r*n+i] != row[place] {
						t.Fatalf("n=%d, descending=%v, row %d: place %d is %d, want %d", n, descending, r, i,
							places[r*n+i], place)
					}
				}
			}
		}
	}
}
