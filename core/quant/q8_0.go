package quant

// q8_0 is 32 weights q · d, q of 8 bits, signed.
//
//	f16 d, 32 bytes
//
// The greatest magnitude becomes 127, and halves are rounded away from zero.
var q8_0 = Format{
	Name: "q8_0", ID: 8, scales: []int{0},
	decode: func(y []float32, b []byte) {
		d := half(b)
		to, from := (*[32]float32)(y), (*[32]byte)(b[2:])
		for j := 0; j < len(to); j += 4 { // looking the values up is faster than converting them
			to[j], to[j+1] = signed[from[j]]*d, signed[from[j+1]]*d
			to[j+2], to[j+3] = signed[from[j+2]]*d, signed[from[j+3]]*d
		}
	},
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
