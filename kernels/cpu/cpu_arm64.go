//go:build !purego

package cpu

import "golang.org/x/sys/cpu"

func detectedTiers() []Tier {
	if cpu.ARM64.HasASIMDDP && cpu.ARM64.HasI8MM {
		return []Tier{NEON, I8MM}
	}
	return []Tier{NEON}
}

func detectedFeatures() (f Feature) {
	if cpu.ARM64.HasASIMDDP {
		f |= DotProd
	}
	return f
}
