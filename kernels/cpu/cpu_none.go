//go:build purego || (!amd64 && !arm64)

package cpu

func detectedTiers() []Tier { return nil }

func detectedFeatures() Feature { return 0 }
