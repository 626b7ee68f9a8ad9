//go:build !purego

package cpu

import "golang.org/x/sys/cpu"

func detectedTiers() (t []Tier) {
	if !(cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C) {
		return nil
	}
	t = append(t, AVX2)
	if cpu.X86.HasAVXVNNI {
		t = append(t, AVXVNNI)
	}
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512DQ {
		t = append(t, AVX512)
	}
	return t
}

func detectedFeatures() (f Feature) {
	if cpu.X86.HasAVX512VNNI {
		f |= AVX512VNNI
	}
	if cpu.X86.HasAVX512BF16 {
		f |= AVX512BF16
	}
	return f
}
