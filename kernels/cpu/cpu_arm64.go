//go:build !purego

package cpu

import "golang.org/x/sys/cpu"

func detectedTiers() []Tier { return []Tier{NEON} }

func detectedFeatures() (f Feature) {
	if cpu.ARM64.HasASIMDDP {
		f |= DotProd
	}
	if cpu.ARM64.HasI8MM {
		f |= I8MM
	}
	return f
}
