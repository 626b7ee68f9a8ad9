package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestEVEXPairs compares bytes with those of GNU as 2.40 for vdpbf16ps %zmmB,%zmmA,%zmmACC.
func TestEVEXPairs(t *testing.T) {
	for _, c := range []struct {
		b, a, acc int
		want      [6]byte
	}{
		{2, 1, 0, [6]byte{0x62, 0xf2, 0x76, 0x48, 0x52, 0xc2}},
		{31, 30, 29, [6]byte{0x62, 0x02, 0x0e, 0x40, 0x52, 0xef}},
		{8, 17, 26, [6]byte{0x62, 0x42, 0x76, 0x40, 0x52, 0xd0}},
		{16, 15, 7, [6]byte{0x62, 0xb2, 0x06, 0x48, 0x52, 0xf8}},
		{24, 8, 16, [6]byte{0x62, 0x82, 0x3e, 0x48, 0x52, 0xc0}},
		{7, 23, 15, [6]byte{0x62, 0x72, 0x46, 0x40, 0x52, 0xff}},
	} {
		if got := evexPairs(c.b, c.a, c.acc); got != c.want {
			t.Errorf("VDPBF16PS Z%d, Z%d, Z%d: got % x, want % x", c.b, c.a, c.acc, got, c.want)
		}
	}
}

// TestPairsAreNamed reads each VDPBF16PS in the assembly as a processor does, by the fields of the EVEX prefix, and
// insists that it is what the comment beside it says.
func TestPairsAreNamed(t *testing.T) {
	line := regexp.MustCompile(`(?m)^\tLONG \$0x([0-9a-f]{8}); WORD \$0x([0-9a-f]{4}) // (.*)$`)
	all := line.FindAllStringSubmatch(generate()["gemm/simd_amd64.s"], -1)
	if len(all) < 500 {
		t.Errorf("%d instructions in bytes: the test misses its object", len(all))
	}
	for _, m := range all {
		var first, last uint64
		if _, err := fmt.Sscanf(m[1]+" "+m[2], "%x %x", &first, &last); err != nil {
			t.Fatal(err)
		}
		bits := func(from, n int) int { return int((first | last<<32) >> from & (1<<n - 1)) }
		// The escape, the map, F3, no mask, 512 bits, the opcode, and a register for the last operand.
		if bits(0, 8) != 0x62 || bits(8, 4) != 0b0010 || bits(16, 3) != 0b110 || bits(23, 1) != 0 || bits(24, 3) != 0 ||
			bits(28, 4) != 0b0100 || bits(32, 8) != 0x52 || bits(46, 2) != 0b11 {
			t.Fatalf("%s is no VDPBF16PS of zmm registers", m[0])
		}
		acc := bits(43, 3) | (1-bits(15, 1))<<3 | (1-bits(12, 1))<<4
		b := bits(40, 3) | (1-bits(13, 1))<<3 | (1-bits(14, 1))<<4
		a := 15 - bits(19, 4) | (1-bits(27, 1))<<4
		if want := fmt.Sprintf("VDPBF16PS Z%d, Z%d, Z%d", b, a, acc); strings.TrimSpace(m[3]) != want {
			t.Fatalf("%s is %s", m[0], want)
		}
	}
}
