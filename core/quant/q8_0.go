package quant

import halves "github.com/fucina-go/fucina/kernels/half"

// q8_0 is 32 weights q · d, q of 8 bits, signed.
//
//	f16 d, 32 bytes
//
// The greatest magnitude becomes 127, and halves are rounded away from zero.
var q8_0 = Format{
	Name: "q8_0", ID: 8, scales: []int{0},
	decode: func(y []float32, b []byte) { halves.FromQ8(y, b, 0) },
	encode: func(b []byte, x, _ []float32, _ float32) { putHalf(b, bytesOf(b[2:], x)) },
}

// bytesOf sets q to x as signed bytes and returns their scale, not yet rounded to f16.
func bytesOf(q []byte, x []float32) float32 {
	d := abs(peak(x)) / 127
	inv := inverse(d)
	for j, v := range x {
		q[j] = byte(round(v * inv))
	}
	return d
}

// signed is every byte as a signed number.
var signed = func() (values [256]float32) {
	for i := range values {
		values[i] = float32(int8(i))
	}
	return values
}()
