package core

import "github.com/fucina-go/fucina/kernels/gemm"

// A block of a weight in bf16 is up to so many columns by so many elements of them: it stays in the second-level cache
// while the rows pass, of which so many are multiplied between two looks at whether to stop.
const (
	bf16Cols  = 128
	bf16Depth = 1024
	bf16Rows  = 48
)

// bf16Work is how many multiplications of a few rows are made between two looks at most: some 6 ms in plain Go.
const bf16Work = 1 << 20

// bf16 computes the products with a w of bf16, which lies in panels.
func (p *blockProduct) bf16() {
	m, n, k := p.m, p.n, p.k
	const wide = 4 * gemm.Width
	cols, deep := bf16Cols, bf16Depth
	switch {
	case !p.direct:
		cols = gemm.Width
	case m <= fewRows:
		cols = min(ceilDiv(n, wide), max(1, halfWork/(m*k*wide))) * wide
		deep = max(bf16Depth, bf16Work/(m*cols)&^1)
	default:
		for cols > wide && n < 8*cols { // some chunks for each worker
			cols /= 2
		}
	}
	across := ceilDiv(n, cols)
	grain := max(1, halfWork/(m*k*cols))
	p.c.Split(len(p.y)/(m*n)*across, grain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			batch, j := i/across, i%across*cols
			w := min(cols, n-j)
			if p.direct {
				p.bf16Columns(words(p.bytes)[p.rows.at(batch*n+j):], batch, j, w, deep)
				continue
			}
			b := takeBytes(p.f.Size(gemm.Width * k))
			p.gatherBF16(words(*b), batch, j, w)
			p.bf16Columns(words(*b), batch, j, w, deep)
			spareBytes.Put(b)
		}
	})
}

// bf16Columns computes w columns of y from j on by their panels, block by block of so many elements.
func (p *blockProduct) bf16Columns(panels []uint16, batch, j, w, deep int) {
	m, n, k := p.m, p.n, p.k
	for at := 0; at < k; at += deep {
		for r := 0; r < m; r += bf16Rows {
			p.c.Pause()
			gemm.BF16(p.y[(batch*m+r)*n+j:], p.h[(batch*m+r)*p.words+at:], panels[at*gemm.Width:], k*gemm.Width,
				min(bf16Rows, m-r), w, min(deep, k-at), p.words, n, at > 0)
		}
	}
}

// gatherBF16 makes a panel of w rows from j on of a batch's weights.
func (p *blockProduct) gatherBF16(panel []uint16, batch, j, w int) {
	k := p.k
	rows, buf := takeBytes(p.f.Size(w*k)), takeBytes(p.f.Size(p.w.panels))
	defer spareBytes.Put(rows)
	defer spareBytes.Put(buf)
	for r := range w {
		copy((*rows)[p.f.Size(r*k):], p.w.rowBytes(*buf, p.f, p.rows.at(batch*p.n+j+r)/k, k))
	}
	gemm.PackBF16(panel, words(*rows), w, k, k)
}
