package qdot

import "github.com/fucina-go/fucina/kernels/cpu"

// Line is the bytes of a cache line.
const Line = 64

// Fetch asks for lines of memory, the first at address p, to come into the second-level cache of the processor that
// calls it. Memory that has been given back meanwhile does no harm.
func Fetch(p uintptr, lines int) {
	if hasSIMD && cpu.Current() != cpu.Generic && lines > 0 {
		fetch(p, lines)
	}
}
