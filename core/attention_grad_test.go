package core

import (
	"errors"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core/dtype"
)

// The rooms that the gradient of attention computes in count against the budget: 32 queries × 2048 keys, three times
// for each worker.
func TestAttentionGradBudget(t *testing.T) {
	const workers, room = 2, 3 * 32 * 2048 * 4
	run := func(limit int64) (err error) {
		env := NewEnv(0, workers)
		defer env.Close()
		m := &Maker{Env: env}
		a := attentionGrad{Attention: Attention{Q: m.Tensor(dtype.F32, "seq=64 head=4 head_dim=8"),
			K: m.Tensor(dtype.F32, "key_seq=2048 head=4 head_dim=8"),
			V: m.Tensor(dtype.F32, "key_seq=2048 head=4 head_dim=8")}}
		a.GY = m.Tensor(dtype.F32, "seq=64 head=4 head_dim=8")
		env.SetMemoryLimit(env.Memory().InUse + limit)
		defer Recover(&err)
		for _, g := range attentionGrads.All(a) {
			g.Free()
		}
		return nil
	}
	outs := int64(2*2048+64) * 4 * 8 * 4
	if err := run(outs + workers*room + 1<<21); err != nil {
		t.Error(err)
	}
	err := run(outs + room)
	if !errors.As(err, new(*Error)) || !strings.Contains(err.Error(), "out of tensor memory") {
		t.Errorf("got %v, want an error for want of memory", err)
	}
}
