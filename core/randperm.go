package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/rng"
)

// Randperm is the numbers 0, 1, … n-1 in random order, along one axis. See seed for what is drawn.
//
// Errors: a negative n; a dtype that cannot hold n-1.
//
// Source: the shuffle of Fisher and Yates.
//
// Example:
//
//	randperm(5, "row", seed=1)
type Randperm struct {
	N     int        `arg:"n"`
	Axis  Axis       `arg:"axis"`
	DType dtype.Type `arg:"dtype=i64"`
	Random
}

var randperm = Declare[Randperm]("randperm")

// Names makes one axis.
func (a *Randperm) Names(p *Plan) {
	if a.DType == dtype.Bool {
		p.Fail(`dtype="bool" holds no integers`, refit(p.c, "integers do", "dtype", dtype.I64))
	}
	p.Out(axisList(string(a.Axis)), a.DType)
}

// Sizes insists that the numbers fit.
func (a *Randperm) Sizes(s *Sizes) {
	if a.N < 0 {
		s.Fail(fmt.Sprintf("n=%d, want 0 or more", a.N), refit(s.c, "as many as there shall be", "n", -a.N))
	}
	if a.DType.IsInt() && a.N > 0 && !fits(int64(a.N-1), a.DType) {
		s.Fail(fmt.Sprintf("%s cannot hold %d", a.DType, a.N-1), refit(s.c, "another dtype can", "dtype", dtype.I64))
	}
	s.Set(0, string(a.Axis), a.N)
}

// Eval shuffles, in steps between which the operation can be stopped.
func (a *Randperm) Eval(c *Ctx) {
	from := a.draws(c)
	p := elementsOf[int64](c.Scratch(dtype.I64, c.Out(0).axes, []int{a.N}))
	for i := range p {
		p[i] = int64(i)
	}
	for at := 0; at < a.N; at += pointGrain {
		c.Split(1, 1, func(int, int) {
			for i := at; i < min(at+pointGrain, a.N); i++ {
				j := i + rng.IntN(from.seed, from.stream, uint64(i), a.N-i)
				p[i], p[j] = p[j], p[i]
			}
		})
	}
	store(c.Out(0), 0, p)
}

// Samples covers the lengths and the dtypes.
func (*Randperm) Samples(*Maker) (list []Randperm) {
	for _, n := range lengths {
		list = append(list, Randperm{n, "row", dtype.I64, Random{Seed: 1}})
	}
	for _, dt := range append(floats[:4:4], integers...) {
		list = append(list, Randperm{100, "row", dt, Random{Seed: 1}})
	}
	return list
}
