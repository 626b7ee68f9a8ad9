package qdot

// unpreempted is the most weights of a row that one call of an assembly kernel takes: nothing can interrupt it.
const unpreempted = 16384

// vecFast adds the products of x and count panels, next bytes apart, at most strips, to c.
func (f *Format) vecFast(c *[strips * Rows]float32, panels []byte, next, count int, x []uint32, k int) {
	points := f.points()
	for k > 0 {
		n := min(k, unpreempted)
		vecBlocks(f.Name, &c[0], &panels[0], next, count, &x[0], n/f.Block, points)
		panels, x, k = panels[f.PanelSize(n):], x[ActivationWords(n):], k-n
	}
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
