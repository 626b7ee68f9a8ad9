package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core/dtype"
)

// TestEinsum compares random equations with a loop over every combination of places, and insists that no
// operand is copied more than once.
func TestEinsum(t *testing.T) {
	defer func() { copied = nil }()
	env := NewEnv(0, 1)
	r := rand.New(rand.NewPCG(7, 11))
	seen := map[string]int{}
	for n := range 500 {
		e := randomEquation(r)
		e.count(seen)
		dt := []dtype.Type{dtype.F32, dtype.F64, dtype.I32, dtype.F16}[n%4]
		xs := e.operands(env, r, dt)
		copies := map[*Tensor]int{}
		copied = func(t *Tensor) { copies[t]++ }
		y := EinsumAll(strings.Join(e.out, " "), xs...)
		copied = nil
		for i, x := range xs {
			if copies[x] > 1 {
				t.Errorf("%v: operand %d was copied %d times", e, i, copies[x])
			}
		}
		if y.dtype != dt {
			t.Errorf("%v: got %s, want %s", e, y.dtype, dt)
		}
		same := func(a any, b float64) bool { return a == b }
		if got, want := y.Cast(dtype.F64).Values(), e.loop(); !slices.EqualFunc(got, want, same) {
			t.Errorf("%v: got %v, want %v", e, got, want)
		}
	}
	for _, role := range []string{"batch", "contracted", "free", "summed", "empty"} {
		if seen[role] < 20 {
			t.Errorf("only %d %s axes in all equations", seen[role], role)
		}
	}
}

// sumOfProducts is an equation with numbers to put in: small integers, of which every order gives the same sum.
type sumOfProducts struct {
	operandAxes [][]string
	out, all    []string
	sizes       map[string]int
	values      [][]float64
}

func (e *sumOfProducts) String() string {
	return fmt.Sprintf("%q → %q, %v", e.operandAxes, e.out, e.sizes)
}

// randomEquation has one to four operands of up to six axes, now and then an empty one.
func randomEquation(r *rand.Rand) *sumOfProducts {
	pool := strings.Split("a b c d e f", " ")
	choose := func(from []string) []string {
		from = slices.Clone(from)
		r.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
		return from[:r.IntN(len(from)+1)]
	}
	e := &sumOfProducts{sizes: map[string]int{}}
	for _, name := range pool {
		e.sizes[name] = 1 + r.IntN(4)
		if r.IntN(40) == 0 {
			e.sizes[name] = 0
		}
	}
	for range 1 + r.IntN(4) {
		axes := choose(pool)
		e.operandAxes = append(e.operandAxes, axes)
		for _, name := range axes {
			if !slices.Contains(e.all, name) {
				e.all = append(e.all, name)
			}
		}
		values := make([]float64, e.volume(axes))
		for i := range values {
			values[i] = float64(r.IntN(3) - 1)
		}
		e.values = append(e.values, values)
	}
	e.out = choose(e.all)
	return e
}

func (e *sumOfProducts) volume(axes []string) int {
	n := 1
	for _, name := range axes {
		n *= e.sizes[name]
	}
	return n
}

// operands are stored in any order of their axes, some backwards and with gaps.
func (e *sumOfProducts) operands(env *Env, r *rand.Rand, dt dtype.Type) (xs []*Tensor) {
	for i, axes := range e.operandAxes {
		sizes := make([]int, len(axes))
		for k, name := range axes {
			sizes[k] = e.sizes[name]
		}
		x := env.FromFloats(dt, e.values[i], axisList(axes...), sizes...)
		step := []int{1, 1, 1, -2}[r.IntN(4)]
		xs = append(xs, lay(env, x, r.Perm(len(axes)), slices.Repeat([]int{step}, len(axes))).Tensor)
	}
	return xs
}

// count notes the roles of the axes.
func (e *sumOfProducts) count(seen map[string]int) {
	for _, name := range e.all {
		users := 0
		for _, axes := range e.operandAxes {
			if slices.Contains(axes, name) {
				users++
			}
		}
		role := map[[2]bool]string{{true, true}: "batch", {true, false}: "contracted", {false, true}: "free",
			{false, false}: "summed"}[[2]bool{users > 1, slices.Contains(e.out, name)}]
		if e.sizes[name] == 0 {
			role = "empty"
		}
		seen[role]++
	}
}

// loop visits every combination of places along all axes.
func (e *sumOfProducts) loop() []float64 {
	at := map[string]int{}
	offset := func(axes []string) int {
		i := 0
		for _, name := range axes {
			i = i*e.sizes[name] + at[name]
		}
		return i
	}
	y := make([]float64, e.volume(e.out))
	var visit func(k int)
	visit = func(k int) {
		if k < len(e.all) {
			for i := range e.sizes[e.all[k]] {
				at[e.all[k]] = i
				visit(k + 1)
			}
			return
		}
		product := 1.0
		for i, axes := range e.operandAxes {
			product *= e.values[i][offset(axes)]
		}
		y[offset(e.out)] += product
	}
	visit(0)
	return y
}

// TestEinsumCopies insists that operands which lie well are not copied at all, and one that does not, once.
func TestEinsumCopies(t *testing.T) {
	defer func() { copied = nil }()
	m := &Maker{Env: NewEnv(0, 1)}
	for _, test := range []struct {
		out, x, w string
		want      int
	}{
		{"row out", "row=3 in=4", "out=5 in=4", 0},
		{"row out", "row=3 in=4", "in=4 out=5", 0},
		{"out row", "row=3 in=4", "out=5 in=4", 0},
		{"b row out", "b=2 row=3 in=4", "b=2 out=5 in=4", 0},
		{"row b out", "row=3 b=2 in=4", "b=2 out=5 in=4", 1},
		{"row out", "in=4 row=3", "in=4 out=5", 1},
		{"b a", "a=3", "b=4", 0},
		{"a b", "b=4 a=3", "a=3", 0},
		{"a", "a=3 b=4", "a=3 b=4", 0},
	} {
		n := 0
		copied = func(*Tensor) { n++ }
		EinsumAll(test.out, m.Tensor(dtype.F32, test.x), m.Tensor(dtype.F32, test.w))
		if n != test.want {
			t.Errorf("[%s], [%s] → %q: %d copies, want %d", test.x, test.w, test.out, n, test.want)
		}
	}
}
