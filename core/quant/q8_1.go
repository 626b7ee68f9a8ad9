package quant

// q8_1 is 32 weights q · d, q of 8 bits, signed, and what they add up to. It is the format of what q4_1 and q5_1
// are multiplied by, and of no file.
//
//	f16 d, f16 d · Σ q, 32 bytes
var q8_1 = Format{
	Name: "q8_1", ID: 9, scales: []int{0, 2},
	encode: func(b []byte, x, _ []float32, _ float32) {
		d := bytesOf(b[4:], x)
		total := 0
		for _, q := range b[4:] {
			total += int(int8(q))
		}
		putHalf(b, d)
		putHalf(b[2:], float32(total)*d)
	},
}
