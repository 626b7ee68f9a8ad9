package qdot

import "math"

// mostBytes is the most bytes of a block, of q8_k.
const mostBytes = 292

// Form is up to two panels whose weights have become bytes, for products with many rows.
//
// Bytes: of panel p, at 64·(p·k/4 + i) the weights 4i to 4i+3 of row 0, then those of row 1, and so on; 128 is added to
// each. S and M, of the same order: at 16·(p·k/each + i) the i-th scale of the 16 rows, and likewise their offsets,
// of which a scale may have eight. Where weights are taken apart, those of q3_k stand without the factors of 16, which
// are in M as integers of 16 bits, twice. One goroutine at a time multiplies by a form.
type Form struct {
	Bytes []byte
	S, M  []float32

	apart []byte // what Tile makes of some of the bytes in some tiers
}

// NewForm returns a form that holds two panels of k weights of any format.
func NewForm(k int) *Form {
	return &Form{Bytes: make([]byte, 2*k*Rows), S: make([]float32, 2*k), M: make([]float32, 2*k),
		apart: make([]byte, apartBytes(min(k, apartDepth)))}
}

// Vec computes y[step·s+16·u+j] = (row j of panel u of strip s)·x for count strips of units panels each; y may end
// among the rows of the last panel. In a strip panel follows panel; the first strip begins at panels[0] and the next
// next bytes further on. x is an activation row of k elements, k a multiple of Block.
//
// The product is bound by memory: strips that are far apart are read faster than neighbours, four at a time, and while
// something else is done between two panels, memory rests.
func (f *Format) Vec(y []float32, step int, panels []byte, next, count, units int, x []uint32, k int) {
	if count == 0 || units == 0 {
		return
	}
	size := f.PanelSize(k)
	_, _ = panels[(count-1)*next+units*size-1:], x[ActivationWords(k)-1:]
	for s := 0; s < count; s += strips {
		n, y, panels := min(strips, count-s), y[s*step:], panels[s*next:]
		whole := units // of which nothing lies behind y
		if most := (len(y) - (n-1)*step) / Rows; vectors() && most > 0 {
			whole = min(units, most)
			for i := range n {
				clear(y[i*step:][:whole*Rows])
			}
			f.vecFast(y, step, panels, next, n, whole, x, k)
		} else {
			whole = 0
		}
		for u := whole; u < units; u++ {
			var c [strips * Rows]float32
			if at := panels[u*size:]; vectors() {
				f.vecFast(c[:], Rows, at, next, n, 1, x, k)
			} else {
				for i := range n {
					f.vecPlain((*[Rows]float32)(c[i*Rows:]), at[i*next:][:size], x, k)
				}
			}
			for i := range n {
				copy(y[i*step+u*Rows:], c[i*Rows:(i+1)*Rows])
			}
		}
	}
}

// strips is how many panels an assembly kernel multiplies at once at most.
const strips = 4

// vecPlain is the definition of Vec.
func (f *Format) vecPlain(c *[Rows]float32, panel []byte, x []uint32, k int) {
	var block [mostBytes]byte
	var q [256]int8
	var s, m [16]float32
	words, at := f.words(), f.wordsAt()
	for r := range Rows {
		y := float32(0)
		for b := range k / f.Block {
			f.rowBlock(block[:f.Bytes], panel[b*f.Bytes*Rows:], r, words, at)
			f.expand(q[:f.Block], s[:], m[:], block[:f.Bytes])
			for at := 0; at < f.Block; at += f.turn() {
				i, end := at/f.each, (at+f.turn())/f.each
				offsets := m[i*f.offsets : end*f.offsets]
				y = addProduct(y, q[at:at+f.turn()], s[i:end], offsets, x[(b*f.Block+at)/Group*Record:])
			}
		}
		c[r] = y
	}
}

// addProduct adds the product of a group of weights q, or of those of several that share a scale, whose scales are s
// and whose offsets m, with the activations x.
func addProduct(y float32, q []int8, s, m []float32, x []uint32) float32 {
	d := math.Float32frombits(x[wordScale])
	if len(q) == Group && len(s) == 1 {
		y += float32(float32(sumOf(q, x)) * float32(s[0]*d))
	}
	for i, v := range m {
		n := len(q) / len(m)
		group, word := x[i*n/Group*Record:], wordScaledSum
		if n < Group {
			word = wordScaledLow + i*n%Group/n
		}
		y += float32(v * math.Float32frombits(group[word]))
	}
	switch {
	case len(s) == 2:
		low, high := sumOf(q[:Group/2], x), sumOf(q[Group/2:], x[Group/2/4:])
		y += float32((float32(float32(low)*s[0]) + float32(float32(high)*s[1])) * d)
	case len(q) > Group:
		total := float32(float32(sumOf(q[:Group], x)) * d)
		for at := Group; at < len(q); at += Group {
			group := x[at/Group*Record:]
			total += float32(float32(sumOf(q[at:at+Group], group)) * math.Float32frombits(group[wordScale]))
		}
		y += float32(s[0] * total)
	}
	return y
}

// sumOf is the exact sum of the weights q, at most a group, times the activations in x.
func sumOf(q []int8, x []uint32) (sum int32) {
	for j := 0; j < len(q); j += 4 {
		v, a := (*[4]int8)(q[j:]), x[j/4]
		sum += int32(v[0])*int32(int8(a)) + int32(v[1])*int32(int8(a>>8)) + int32(v[2])*int32(int8(a>>16)) +
			int32(v[3])*int32(int8(a>>24))
	}
	return sum
}

// turn is how many weights of a row addProduct takes.
func (f *Format) turn() int { return max(f.each, Group) }

// seconds is how many vectors of a form's M belong to a scale.
func (f *Format) seconds() int {
	if f.factors && vectors() && takenApart() {
		return f.each / 16
	}
	return f.offsets
}

// Unpack sets panel p of the form, 0 or 1, whose panels have k weights, to those of the given panel.
func (f *Format) Unpack(form *Form, p int, panel []byte, k int) {
	panel = panel[:f.PanelSize(k)]
	bytes := form.Bytes[p*k*Rows:][:k*Rows]
	n := k / f.each * Rows
	s := form.S[p*n:][:n]
	var m []float32
	if e := f.seconds(); e > 0 {
		m = form.M[p*n*e:][:n*e]
	}
	if k == 0 || f.unpackFast(bytes, s, m, panel, k) {
		return
	}
	var block [mostBytes]byte
	var q [256]int8
	var scale, offset [16]float32
	words, at := f.words(), f.wordsAt()
	for b := range k / f.Block {
		for r := range Rows {
			f.rowBlock(block[:f.Bytes], panel[b*f.Bytes*Rows:], r, words, at)
			f.expand(q[:f.Block], scale[:], offset[:], block[:f.Bytes])
			for j, v := range q[:f.Block] {
				j += b * f.Block
				bytes[j/4*64+r*4+j%4] = uint8(v) + 128
			}
			for i := range f.Block / f.each {
				s[(b*f.Block/f.each+i)*Rows+r] = scale[i]
			}
			for i := range f.Block / f.each * f.offsets {
				m[(b*f.Block/f.each*f.offsets+i)*Rows+r] = offset[i]
			}
		}
	}
}

// Tile computes c[i·ldc+j] = (row i of x)·(row j of the form's two panels), or adds it to c, for rows activation rows
// of k elements that are stride words apart, and the first cols rows of weights, at most 32.
func (f *Format) Tile(c []float32, ldc int, form *Form, x []uint32, stride, rows, cols, k int, add bool) {
	if rows == 0 || cols == 0 {
		return
	}
	_, _ = c[(rows-1)*ldc+cols-1], x[(rows-1)*stride+ActivationWords(k)-1:]
	if k > 0 && f.tileFast(c, ldc, form, x, stride, rows, cols, k, add) {
		return
	}
	n := k / f.each * Rows
	var q [4 * Group]int8
	for j := range cols {
		p, r := j/Rows, j%Rows
		for i := 0; i < rows && !add; i++ {
			c[i*ldc+j] = 0
		}
		for from := 0; from < k; from += f.turn() {
			for l := 0; l < f.turn(); l += 4 {
				b := (*[4]byte)(form.Bytes[p*k*Rows+(from+l)/4*64+r*4:])
				q[l], q[l+1], q[l+2], q[l+3] = int8(b[0]-128), int8(b[1]-128), int8(b[2]-128), int8(b[3]-128)
			}
			at, scales := p*n+from/f.each*Rows, f.turn()/f.each
			var s [2]float32
			for i := range scales {
				s[i] = form.S[at+i*Rows+r]
			}
			var m [8]float32
			for i := range scales * f.offsets {
				m[i] = form.M[(at*f.offsets)+i*Rows+r]
			}
			for i := range rows {
				group := x[i*stride+from/Group*Record:]
				c[i*ldc+j] = addProduct(c[i*ldc+j], q[:f.turn()], s[:scales], m[:scales*f.offsets], group)
			}
		}
	}
}
