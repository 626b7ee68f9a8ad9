package qdot

// unpreempted is the most weights of a row that one call of an assembly kernel takes: nothing can interrupt it.
const unpreempted = 16384

func (f *Format) vecFast(c []float32, panels []byte, next, count int, x []uint32, k int) bool {
	if !vectors() {
		return false
	}
	clear(c[:count*Rows])
	points := f.points()
	for k > 0 {
		n := min(k, unpreempted)
		for p := 0; p < count; p += 4 {
			vecBlocks(f.Name, &c[p*Rows], &panels[p*next], next, min(4, count-p), &x[0], n/f.Block, points)
		}
		panels, x, k = panels[f.PanelSize(n):], x[ActivationWords(n):], k-n
	}
	return true
}

func (f *Format) unpackFast(bytes []byte, s, m []float32, panel []byte, k int) bool {
	if !vectors() {
		return false
	}
	offsets, points := (*float32)(nil), f.points()
	for k > 0 {
		n := min(k, unpreempted)
		if f.offset {
			offsets = &m[0]
			m = m[n/f.each*Rows:]
		}
		unpackBlocks(f.Name, &panel[0], &bytes[0], &s[0], offsets, n/f.Block, points)
		panel, bytes, s, k = panel[f.PanelSize(n):], bytes[n*Rows:], s[n/f.each*Rows:], k-n
	}
	return true
}
