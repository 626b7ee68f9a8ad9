package core

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// TestRouteGroups compares the choice among groups with loops: of each group the two best, of these sums the greatest.
func TestRouteGroups(t *testing.T) {
	env := NewEnv(0, 1)
	defer env.Close()
	const rows, experts = 40, 24
	axes, err := axis.Parse("row expert")
	if err != nil {
		t.Fatal(err)
	}
	noise := func(n int, seed uint64) []float64 {
		values := make([]float64, n)
		for i := range values {
			seed = seed*6364136223846793005 + 1442695040888963407
			values[i] = float64(seed>>40)/(1<<23) - 1
		}
		return values
	}
	scores, bias := noise(rows*experts, 1), noise(experts, 2)
	x := env.FromFloats(dtype.F64, scores, axes, rows, experts)
	b := env.FromFloats(dtype.F64, bias, axisList("expert"), experts)
	for _, c := range []struct{ groups, used, k int }{
		{2, 1, 12}, {4, 2, 3}, {4, 4, 5}, {8, 3, 1}, {12, 5, 10}, {24, 3, 2},
	} {
		both := route.All(Route{X: x, K: c.k, Axis: "expert", Out: "choice", Score: "sigmoid", Bias: b, Scale: 2,
			Groups: c.groups, GroupsUsed: c.used})
		weights, indices := elementsOf[float64](both[0]), elementsOf[int64](both[1])
		each := experts / c.groups
		for row := range rows {
			score := func(e int) float64 { return 1 / (1 + math.Exp(-scores[row*experts+e])) }
			choice := func(e int) float64 { return score(e) + bias[e] }
			falling := func(a, b int) int { return int(math.Copysign(1, choice(b)-choice(a))) }
			of := make([]float64, c.groups)
			for g := range of {
				members := make([]int, each)
				for i := range members {
					members[i] = g*each + i
				}
				slices.SortFunc(members, falling)
				for _, e := range members[:min(2, each)] {
					of[g] += choice(e)
				}
			}
			var left []int
			for e := range experts {
				better := 0
				for _, sum := range of {
					if sum > of[e/each] {
						better++
					}
				}
				if better < c.used {
					left = append(left, e)
				}
			}
			slices.SortFunc(left, falling)
			for i, e := range left[:c.k] {
				if at := row*c.k + i; indices[at] != int64(e) || math.Abs(weights[at]-2*score(e)) > 1e-12 {
					t.Fatalf("%+v, row %d: choice %d is %d with %v, want %d with %v", c, row, i, indices[at],
						weights[at], e, 2*score(e))
				}
			}
		}
	}
}

// TestRouteForbidden: experts with a bias of -∞ come after all others of the groups used, and are then equal to those
// of the other groups, of which the first of all is taken. llama.cpp's sort does so with up to 16 experts, with more
// in no order that is told.
func TestRouteForbidden(t *testing.T) {
	env := NewEnv(0, 1)
	defer env.Close()
	never := math.Inf(-1)
	x := env.FromFloats(dtype.F32, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}, axisList("expert"), 9)
	bias := env.FromFloats(dtype.F32, []float64{-9, -9, -9, 0, 0, never, never, 0, 0}, axisList("expert"), 9)
	for k, want := range map[int][]int64{4: {8, 7, 4, 3}, 6: {8, 7, 4, 3, 0, 1}} {
		both := route.All(Route{X: x, K: k, Axis: "expert", Out: "choice", Score: "sigmoid", Bias: bias, Scale: 1,
			Groups: 3, GroupsUsed: 2})
		if got := both[1].Int64s(); !slices.Equal(got, want) {
			t.Errorf("k=%d: got %v, want %v", k, got, want)
		}
	}
}

func TestRouteErrors(t *testing.T) {
	env := NewEnv(0, 1)
	defer env.Close()
	x := env.FromFloats(dtype.F32, make([]float64, 12), axisList("expert"), 12)
	for want, c := range map[string][3]int{
		`route: groups=5 do not divide the 12 elements of axis "expert" of x[expert=12]`:               {5, 1, 1},
		`route: groups=0 do not divide the 12 elements of axis "expert" of x[expert=12]`:               {0, 1, 1},
		`route: groups_used=5 of groups=4`:                                                             {4, 5, 1},
		`route: groups_used=0 of groups=4`:                                                             {4, 0, 1},
		`route: k=7, but axis "expert" of x[expert=12] has 12 elements, of which 2 of 4 groups have 6`: {4, 2, 7},
		`route: k=13, but axis "expert" of x[expert=12] has 12 elements`:                               {1, 1, 13},
	} {
		err := func() (err error) {
			defer Recover(&err)
			route.All(Route{X: x, K: c[2], Axis: "expert", Out: "choice", Score: "softmax", Scale: 1, Groups: c[0],
				GroupsUsed: c[1]})
			return nil
		}()
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
