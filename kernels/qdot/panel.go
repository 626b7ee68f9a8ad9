package qdot

// A panel holds the blocks of 16 rows, block after block. The bytes of a block that are no whole words come first, of
// all rows, then the first word of every row, the second of every row, and so on:
//
//	q8_0:  scale of row 0 … scale of row 15 | weights 0 to 3 of row 0 … of row 15 | weights 4 to 7 of row 0 …
//
// So a panel has the size of its rows, and the rows come back byte for byte.

// PanelSize returns the bytes of a panel of rows of k weights, a multiple of Block.
func (f *Format) PanelSize(k int) int { return k / f.Block * f.Bytes * Rows }

// wordsAt is where in a block the words begin, words how many there are.
func (f *Format) wordsAt() int {
	if f.oddAt == 0 {
		return f.odd
	}
	return 0
}

func (f *Format) words() int { return (f.Bytes - f.odd) / 4 }

// Pack sets panel to n rows of k weights, n at most 16, of which the first begins at rows[0] and the next stride bytes
// further on. Rows from n on become zeros.
func (f *Format) Pack(panel, rows []byte, n, k, stride int) {
	blocks := k / f.Block
	panel = panel[:f.PanelSize(k)]
	if n < Rows {
		clear(panel)
	}
	if n == 0 || k == 0 {
		return
	}
	_ = rows[(n-1)*stride+blocks*f.Bytes-1]
	words, at := f.words(), f.wordsAt()
	if n == Rows && assembly() {
		most := max(1, 1<<16/(f.Bytes*Rows)) // blocks that one call of the assembly takes, which cannot be preempted
		for b := 0; b < blocks; b += most {
			packPanel(&panel[b*f.Bytes*Rows], &rows[b*f.Bytes], stride, min(most, blocks-b), f.odd, f.oddAt, at-f.oddAt,
				words, f.Bytes-at-4*words)
		}
		return
	}
	for b := range blocks {
		dst := panel[b*f.Bytes*Rows:]
		for r := range n {
			src := rows[r*stride+b*f.Bytes:][:f.Bytes]
			copy(dst[r*f.odd:(r+1)*f.odd], src[f.oddAt:])
			for w := range words {
				*(*[4]byte)(dst[f.odd*Rows+(w*Rows+r)*4:]) = *(*[4]byte)(src[at+4*w:])
			}
		}
	}
}

// Row sets dst to the bytes of row r of a panel whose rows have k weights.
func (f *Format) Row(dst, panel []byte, r, k int) {
	words, at := f.words(), f.wordsAt()
	for b := range k / f.Block {
		f.rowBlock(dst[b*f.Bytes:][:f.Bytes], panel[b*f.Bytes*Rows:], r, words, at)
	}
}

// rowBlock sets dst to a block of row r, src being where the panel has that block of all rows.
func (f *Format) rowBlock(dst, src []byte, r, words, at int) {
	copy(dst[f.oddAt:f.oddAt+f.odd], src[r*f.odd:])
	for w := range words {
		*(*[4]byte)(dst[at+4*w:]) = *(*[4]byte)(src[f.odd*Rows+(w*Rows+r)*4:])
	}
}
