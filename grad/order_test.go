package grad

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
)

// TestAnyOrder fires the tasks of a graph in random orders, as soon as all that leads to them has fired: the bits
// must be those of the usual order.
func TestAnyOrder(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	m := &core.Maker{Env: env}
	x, y := env.Watch(m.Tensor(dtype.F32, "a=50")), env.Watch(m.Tensor(dtype.F32, "a=50"))
	graph := func() *core.Tensor {
		parts := []*core.Tensor{x, y}
		for i := range 30 {
			next := parts[i].Mul(parts[i+1]).Sigmoid().Add(parts[i/2])
			parts = append(parts, next.Sub(x))
		}
		return parts[len(parts)-1].Mul(parts[20]).Sum()
	}
	gradients := func() (bits []uint32) {
		for _, v := range []*core.Tensor{x, y} {
			for _, g := range v.Variable().Grad.Float32s() {
				bits = append(bits, math.Float32bits(g))
			}
			env.SetGrad(v.Variable(), nil)
		}
		return bits
	}
	Backward([]*core.Tensor{graph()}, nil, Mode{})
	want := gradients()
	differently := 0
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		w := begin("backward", "loss", []*core.Tensor{graph()}, Mode{})
		env.Record(false, func() {
			w.prepare(nil, func(n *core.Node) bool { return n.Leaf() != nil })
			for len(w.order) > 0 {
				var ready []int
				for i, task := range w.order {
					if task.fired || task.summed == len(task.slots) {
						ready = append(ready, i)
					}
				}
				i := ready[random.IntN(len(ready))]
				if i != len(w.order)-1 {
					differently++
				}
				w.fire(w.order[i])
				w.order = append(w.order[:i], w.order[i+1:]...)
			}
		})
		for i, b := range gradients() {
			if b != want[i] {
				t.Fatalf("seed %d: element %d differs", seed, i)
			}
		}
	}
	if differently == 0 {
		t.Error("the order was never another")
	}
}
