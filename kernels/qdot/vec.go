package qdot

// unpreempted is the most weights of a row that one call of an assembly kernel takes: nothing can interrupt it.
const unpreempted = 16384

// vecFast adds the products of x and count strips of units panels, at most strips, to rows of y, step apart.
func (f *Format) vecFast(y []float32, step int, panels []byte, next, count, units int, x []uint32, k int) {
	points, size := f.points(), f.PanelSize(k)
	for most := max(1, unpreempted/k); units > 0; {
		turn := min(units, most)
		for at := 0; at < k; at += unpreempted {
			blocks := min(k-at, unpreempted) / f.Block
			panel, words := &panels[f.PanelSize(at)], &x[ActivationWords(at)]
			vecBlocks(f.Name, &y[0], 4*step, panel, next, count, turn, words, blocks, points)
		}
		if units -= turn; units > 0 {
			y, panels = y[turn*Rows:], panels[turn*size:]
		}
	}
}

func (f *Format) unpackFast(bytes []byte, s, m []float32, panel []byte, k int) bool {
	if !vectors() {
		return false
	}
	offsets, points := (*float32)(nil), f.points()
	for k > 0 {
		n := min(k, unpreempted)
		if e := f.seconds(); e > 0 {
			offsets = &m[0]
			m = m[n/f.each*e*Rows:]
		}
		unpackBlocks(f.Name, &panel[0], &bytes[0], &s[0], offsets, n/f.Block, points)
		panel, bytes, s, k = panel[f.PanelSize(n):], bytes[n*Rows:], s[n/f.each*Rows:], k-n
	}
	return true
}
