package qdot

// tq1_0: 32 bytes of five weights each, byte j of j, 32+j, 64+j, 96+j and 128+j; 16 bytes of five, 160+j, 176+j and so
// on; 4 bytes of four, 240+j, 244+j, 248+j and 252+j; the f16 scale. A byte multiplied by 3 again and again carries
// the weights out at its top, with 1 added.
var tq1_0 = Format{
	Name: "tq1_0", Block: 256, Bytes: 54, odd: 2, oddAt: 52, each: 32, slow: true,
	expand: func(q []int8, s, _ []float32, b []byte) {
		for i := range s[:8] {
			s[i] = f16(b[52:])
		}
		const bytes = 0x00FF00FF00FF00FF
		for _, p := range Trits[:2] {
			for j := 0; j < p.Bytes; j += 8 {
				w := eight(b[p.At+j:])
				even, odd := w&bytes, w>>8&bytes
				for n := range p.Digits {
					even, odd = 3*even, 3*odd
					put(q[p.First+n*p.Bytes+j:], less(even>>8&bytes|odd&^bytes, 1))
					even, odd = even&bytes, odd&bytes
				}
			}
		}
		p := Trits[2]
		for j, v := range b[p.At : p.At+p.Bytes] {
			for n := range p.Digits {
				q[p.First+n*p.Bytes+j] = int8(uint16(v)*3>>8) - 1
				v *= 3
			}
		}
	},
}

// Trits is where the weights of a block of tq1_0 are: so many bytes, of so many each.
var Trits = [...]struct{ At, Bytes, Digits, First int }{{0, 32, 5, 0}, {32, 16, 5, 160}, {48, 4, 4, 240}}
