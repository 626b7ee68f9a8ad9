package main

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

// qdot writes package qdot: products of activations of 8 bits with weights in block formats, in panels of 16 rows.
func qdot() *source {
	s := newSource("qdot")
	s.qdotFormats()
	s.qdotTiles()
	s.qdotPeak()
	s.qdotQuantize()
	s.qdotPack()
	return s
}
