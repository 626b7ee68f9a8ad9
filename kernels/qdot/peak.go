package qdot

import "github.com/fucina-go/fucina/kernels/cpu"

// Peak is for benchmarks: it multiplies and adds bytes in registers and nothing else, for so many turns of a loop, and
// returns how many operations that are, a multiplication and an addition being two; 0 without assembly for them.
func Peak(turns int) (operations int) {
	if !vectors() || cpu.Current() == cpu.AVX512 && !cpu.Has(cpu.AVX512VNNI) {
		return 0
	}
	const most = 4096 // a call of assembly cannot be preempted
	for left := turns; left > 0; left -= most {
		peak(min(left, most))
	}
	perVector := map[cpu.Tier]int{cpu.AVX512: 128, cpu.AVXVNNI: 64, cpu.AVX2: 64, cpu.NEON: 32, cpu.I8MM: 64}
	return 12 * turns * perVector[cpu.Current()]
}
