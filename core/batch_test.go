package core

import (
	"bytes"
	"testing"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/quant"
	"github.com/fucina-go/fucina/kernels/cpu"
)

// tuned is the formats with kernels of their own in every tier.
var tuned = []string{"q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "mxfp4",
	"tq2_0", "q2_0", "f16", "bf16"}

// TestRowsOfBatches insists that each row of a product has the bits of that row alone, by plain Go and one worker: for
// batches of 1 to 64 rows, by 1, 2, 3 and 8 workers, in every tier and tuned format. A small weight is multiplied in
// all ways. One that is shared among workers, and with -short the small one, is multiplied by one of the numbers of
// workers for each number of rows, in turns that let each meet every remainder of rows to a tile; in plain Go the
// large one would take minutes.
func TestRowsOfBatches(t *testing.T) {
	const most = 64
	workers := []int{1, 2, 3, 8}
	products, mismatches := 0, 0
	for _, size := range []struct{ out, in int }{{45, 256}, {1040, 1024}} {
		large := size.out > 1000
		if large && testing.Short() {
			continue
		}
		for _, name := range tuned {
			f, _ := quant.ByName(name)
			m := &Maker{Env: NewEnv(0, 1)}
			w := m.Tensor(dtype.F32, "out=%d in=%d", size.out, size.in)
			if f.Block > 1 {
				w = w.Quantize(f.DType, "in")
			} else {
				w = w.Cast(f.DType)
			}
			w = m.Env.Pack(w, size.in, nil)
			x := m.Tensor(dtype.F32, "row=%d in=%d", most, size.in)
			var want []byte
			restore, _ := cpu.Force(cpu.Generic)
			for r := range most {
				want = append(want, x.Slice("row", r, r+1, 1).Dot(w, "in").bytes()...)
			}
			restore()
			tiers := cpu.Tiers()
			if name == "bf16" && cpu.Has(cpu.AVX512BF16) {
				tiers = append(tiers, cpu.AVX512) // once more, without the instruction for it
			}
			for i, tier := range tiers {
				if large && tier == cpu.Generic {
					continue
				}
				restore, _ := cpu.Force(tier)
				regain := func() {}
				if i >= len(cpu.Tiers()) {
					regain = cpu.Forgo(cpu.AVX512BF16)
				}
				for rows := 1; rows <= most; rows++ {
					by := workers
					if large || testing.Short() {
						turn := (rows + rows/12) % len(workers)
						by = workers[turn : turn+1]
					}
					for _, m.Env.Control.Workers = range by {
						y := x.Slice("row", 0, rows, 1).Dot(w, "in")
						products++
						if got := y.bytes(); !bytes.Equal(got, want[:len(got)]) {
							mismatches++
							t.Errorf("%s of %s, %d rows in %s by %d workers: other bits than the rows alone", name,
								w.Shape(), rows, tier, m.Env.Control.Workers)
						}
						y.Free()
					}
				}
				regain()
				restore()
			}
			m.Env.Close()
		}
	}
	t.Logf("%d products, %d with other bits", products, mismatches)
}
