package quant

// f16 is IEEE 754 binary16: a block is one number.
var f16 = Format{
	Name: "f16", ID: 1, Block: 1, Bytes: 2, scales: []int{0},
	decode: func(y []float32, b []byte) { y[0] = half(b) },
	encode: func(b []byte, x, _ []float32, _ float32) { putHalf(b, x[0]) },
}
