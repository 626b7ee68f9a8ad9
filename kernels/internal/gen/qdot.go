package main

// qdot writes package qdot: products with block formats in panels of 16 rows.
func qdot() *source {
	s := newSource("qdot")
	s.qdotFormats()
	return s
}
