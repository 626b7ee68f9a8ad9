package main

import "fmt"

// The layout of a record of activations, in bytes, as in kernels/qdot/activations.go.
const (
	recordBytes     = 60
	recordScale     = 32
	recordScaledSum = 36
	recordSum       = 40
	recordLow       = 44
	recordHigh      = 48
	recordScaledLow = 52
)

// byTier writes a choice among what kernels of one architecture have in each tier, the best first. Whether the
// processor has the last one is not asked.
func byTier(write func(t *tier) string, tiers ...*tier) string {
	has := map[*tier]string{avx512: "cpu.Has(cpu.AVX512VNNI)", avxvnni: "cpu.Current() == cpu.AVXVNNI",
		i8mm: "cpu.Current() == cpu.I8MM"}
	if tiers[0] == avx512bf16 { // nothing of bytes
		has[avx512bf16], has[avx512] = "cpu.Has(cpu.AVX512BF16)", "cpu.Current() == cpu.AVX512"
	}
	last := len(tiers) - 1
	if last == 0 {
		return write(tiers[0])
	}
	text := "switch {\n"
	for _, t := range tiers[:last] {
		text += fmt.Sprintf("case %s:\n%s", has[t], write(t))
	}
	return text + fmt.Sprintf("default:\n%s}\n", write(tiers[last]))
}

// qdot writes package qdot: products of activations of 8 bits with weights in block formats, in panels of 16 rows.
func qdot() *source {
	s := newSource("qdot")
	s.qdotFormats()
	s.qdotTiles()
	s.qdotApart()
	s.qdotPeak()
	s.qdotQuantize()
	s.qdotPack()
	s.qdotFetch()
	return s
}
