package qdot

const (
	// tileDepth is the most weights of a row that one call of the assembly takes, which cannot be preempted.
	tileDepth = 1 << 15
	// tileMost is the most rows and columns of a tile in any tier.
	tileMost = 6 * 2 * Rows
	// fewRows is up to how many rows of activations weights are not taken apart, but multiplied by tiles of other
	// kinds, whose numbers are so much greater.
	fewRows, fewKinds = 12, 8
)

// tileKind is the number of the assembly's tiles for this format.
func (f *Format) tileKind() int {
	switch {
	case f.seconds() > f.offsets:
		return 6
	case f.offsets == 8:
		return 4
	case f.each > Group:
		return 7
	case f.each == Group/2 && f.wide:
		return 5
	case f.each == Group/2:
		return 2
	case f.offsets == 1:
		return 1
	case f.wide:
		return 3
	}
	return 0
}

// tileFast is Tile in assembly. It reports false if there is none.
func (f *Format) tileFast(c []float32, ldc int, form *Form, x []uint32, stride, rows, cols, k int, add bool) bool {
	if !vectors() {
		return false
	}
	kind, n := f.tileKind(), k/f.each*Rows
	w, s, m := form.Bytes[:2*k*Rows], form.S[:2*n], (*float32)(nil) // the assembly checks no bounds
	e := f.seconds()
	if e > 0 {
		_ = form.M[2*n*e-1]
	}
	if takenApart() {
		if rows > fewRows {
			f.tileApart(c, ldc, form, x, stride, rows, cols, k, add)
			return true
		}
		kind += fewKinds
	}
	most, width := tileShape(kind)
	tiles := (rows + most - 1) / most
	for from := 0; from < k; from += tileDepth {
		depth := min(tileDepth, k-from)
		scales := from / f.each * Rows
		for t := range tiles {
			first, end := t*rows/tiles, (t+1)*rows/tiles
			a := &x[first*stride+from/Group*Record]
			for j := 0; j < cols; j += width {
				p, r := j/Rows, j%Rows
				if e > 0 {
					m = &form.M[(p*n+scales)*e+r]
				}
				partTile(kind, end-first, min(width, cols-j), width, depth/Group, &w[p*k*Rows+from*Rows+4*r], k*Rows,
					&s[p*n+scales+r], m, n, a, stride, c[first*ldc+j:], ldc, add || from > 0)
			}
		}
	}
	return true
}

// apartDepth is how many weights of a row are taken apart at once, for all rows of activations.
const apartDepth = 1024

// apartBytes is the most bytes that so many weights of a panel take when they are taken apart.
func apartBytes(k int) int { return k / 16 * 2 * (32 + 4*64) }

// tileApart is tileFast of a tier whose tiles have weights that were taken apart.
func (f *Format) tileApart(c []float32, ldc int, form *Form, x []uint32, stride, rows, cols, k int, add bool) {
	kind, e, n := f.tileKind(), f.seconds(), k/f.each*Rows
	most, width := tileShape(kind)
	m, tiles := (*float32)(nil), (rows+most-1)/most
	for from := 0; from < k; from += apartDepth {
		depth := min(apartDepth, k-from)
		weights, half := form.apart[:apartBytes(depth)], apartBytes(depth)/2
		for j := 0; j < cols; j += width {
			p := j / Rows
			scales := p*n + from/f.each*Rows
			if e > 0 {
				m = &form.M[scales*e]
			}
			for h := range 2 {
				apart(kind, &weights[h*half], &form.Bytes[(p*k+from)*Rows+h*32], depth/Group)
			}
			for t := range tiles {
				first, end := t*rows/tiles, (t+1)*rows/tiles
				partTile(kind, end-first, min(width, cols-j), width, depth/Group, &weights[0], half,
					&form.S[scales], m, 0, &x[first*stride+from/Group*Record], stride, c[first*ldc+j:], ldc,
					add || from > 0)
			}
		}
	}
}

// partTile computes a tile of which only the first cols columns are wanted.
func partTile(kind, rows, cols, width, groups int, w *byte, wnext int, s, m *float32, snext int, x *uint32, ldx int,
	c []float32, ldc int, add bool) {
	if cols == width {
		tile(kind, rows, groups, w, wnext, s, m, snext, x, ldx, &c[0], ldc, add)
		return
	}
	var all [tileMost]float32
	for i := 0; add && i < rows; i++ {
		copy(all[i*width:][:cols], c[i*ldc:])
	}
	tile(kind, rows, groups, w, wnext, s, m, snext, x, ldx, &all[0], width, add)
	for i := range rows {
		copy(c[i*ldc:][:cols], all[i*width:])
	}
}
