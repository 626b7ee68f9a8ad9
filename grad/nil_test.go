package grad_test

import (
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/grad"
)

// What a Go program forgot to make is an error that says so, and no fault in the engine.
func TestNil(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	x := env.Watch(env.FromFloats(dtype.F32, []float64{2}, nil))
	none := []*core.Tensor{nil}
	same := func(xs []*core.Tensor) []*core.Tensor { return xs }
	for _, c := range []struct {
		call func()
		want string
	}{
		{func() { grad.Backward(none, nil, grad.Mode{}) }, "backward: outputs[0] is nil, want a tensor"},
		{func() { grad.Backward([]*core.Tensor{x, nil}, nil, grad.Mode{}) }, "backward: outputs[1] is nil, want a"},
		{func() { grad.Gradients(none, []*core.Tensor{x}, nil, grad.Mode{}) }, "grad: outputs[0] is nil, want a"},
		{func() { grad.Gradients([]*core.Tensor{x.Mul(x)}, none, nil, grad.Mode{}) },
			"grad: inputs[0] is nil, want a tensor"},
		{func() { grad.JVP(same, none, none, false) }, "jvp: inputs[0] is nil, want a tensor"},
		{func() { grad.JVP(same, []*core.Tensor{x}, none, false) }, "jvp: got None for all tangents"},
		{func() {
			grad.JVP(func([]*core.Tensor) []*core.Tensor { return none }, []*core.Tensor{x}, []*core.Tensor{x}, false)
		}, "jvp: the function gave nil in place 0, want tensors"},
		{func() {
			grad.HVP(func([]*core.Tensor) *core.Tensor { return nil }, []*core.Tensor{x}, []*core.Tensor{x}, false)
		}, "hvp: the loss is nil, want a floating-point scalar"},
		{func() { grad.HessianTimes(nil, []*core.Tensor{x}, []*core.Tensor{x}, false) }, "hvp: the loss is nil"},
		{func() { grad.Checkpoint(env, same, nil) }, "checkpoint: inputs[0] is nil, want a tensor"},
		{func() { x.Assign(nil) }, "assign: got nil, want a tensor"},
		{func() { env.Watch(nil) }, "variable: got nil, want a tensor"},
		{func() { env.Pack(nil, 1, nil) }, "pack: got nil, want a tensor"},
	} {
		var err error
		func() {
			defer core.Recover(&err)
			c.call()
		}()
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	if y := x.Mul(x); true {
		grad.Backward([]*core.Tensor{y}, nil, grad.Mode{}) // as good as new
	}
}
