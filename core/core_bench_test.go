package core

import (
	"testing"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

func BenchmarkAddScalar(b *testing.B) {
	e := NewEnv(0, 1)
	x := e.Tensor(dtype.F32, axis.Empty)
	y := e.Tensor(dtype.F32, axis.Empty)
	for b.Loop() {
		x.Add(y)
	}
}

func BenchmarkAdd4096(b *testing.B) {
	e := NewEnv(0, 1)
	l, _ := axis.Parse("a")
	x := e.Tensor(dtype.F32, l, 4096)
	y := e.Tensor(dtype.F32, l, 4096)
	for b.Loop() {
		x.Add(y).Free()
	}
}

// BenchmarkPlanHit is what names cost a call whose plan is known.
func BenchmarkPlanHit(b *testing.B) {
	e := NewEnv(0, 1)
	l, _ := axis.Parse("row col")
	x, w := e.Tensor(dtype.F32, l, 2, 3), e.Tensor(dtype.F32, l, 2, 3)
	c := e.enter(Lookup("dot"), &Dot{X: x, W: w, Axes: axisList("col")})
	c.gather()
	c.findPlan()
	for b.Loop() {
		c.findPlan()
	}
}
