package main

// qdot writes package qdot: products of 8-bit activations with weights in block formats. What is here does not depend
// on the format.
func qdot() *source {
	s := newSource("qdot")
	s.qdotTiles()
	s.qdotPeak()
	s.qdotQuantize()
	s.qdotPack()
	return s
}
