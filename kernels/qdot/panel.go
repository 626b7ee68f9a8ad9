package qdot

import "encoding/binary"

// A panel holds the blocks of 16 rows, block after block. The bytes of a block that are no whole words come first, of
// all rows, then the first word of every row, the second of every row, and so on:
//
//	q8_0:  scale of row 0 … scale of row 15 | weights 0 to 3 of row 0 … of row 15 | weights 4 to 7 of row 0 …
//
// Formats whose products would go back and forth in a block, or would have to put weights together from bits of several
// words, have the words in the order of use instead and bits at other places; see piece. A panel has the size of its
// rows in any case, and the rows come back byte for byte.

// A piece tells where some bits of a block lie in a panel: those of mask in word from, shifted left or right, belong to
// word to. The pieces of a format are every bit once.
type piece struct {
	from, to, left, right int    // one of the shifts is 0
	mask                  uint64 // of 4 bytes; the assembly reads all five
}

// shifted is the piece with the bits mask of word from, up places higher in word to.
func shifted(from, to, up int, mask uint32) piece {
	return piece{from, to, max(up, 0), max(-up, 0), uint64(mask)}
}

// whole is all of word from.
func whole(from, to int) piece { return shifted(from, to, 0, 1<<32-1) }

// halved is the words x and y in two others: in low the low nibbles of their bytes, those of x low, in high the others.
func halved(x, y, low, high int) []piece {
	const nibbles = lowNibbles & (1<<32 - 1)
	return []piece{shifted(x, low, 0, nibbles), shifted(x, high, -4, nibbles<<4), shifted(y, low, 4, nibbles),
		shifted(y, high, 0, nibbles<<4)}
}

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
	if n == Rows && assembly() && f.pieces != nil {
		f.packMoved(panel, rows, blocks, stride)
		return
	}
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
			if f.pieces != nil {
				f.moveRow(dst[f.odd*Rows+4*r:], src[at:])
				continue
			}
			for w := range words {
				*(*[4]byte)(dst[f.odd*Rows+(w*Rows+r)*4:]) = *(*[4]byte)(src[at+4*w:])
			}
		}
	}
}

// packMoved is Pack of 16 rows in assembly, block by block, whose words then go to their places.
func (f *Format) packMoved(panel, rows []byte, blocks, stride int) {
	var block [mostBytes * Rows]byte
	words, at, odd := f.words(), f.wordsAt(), f.odd*Rows
	for b := range blocks {
		packPanel(&block[0], &rows[b*f.Bytes], stride, 1, f.odd, f.oddAt, at-f.oddAt, words, 0)
		dst := panel[b*f.Bytes*Rows:][:f.Bytes*Rows]
		copy(dst[:odd], block[:])
		clear(dst[odd:])
		movePieces(&dst[odd], &block[odd], &f.pieces[0].from, len(f.pieces))
	}
}

// blockWords has room for the words of a block; an index of which lastWord leaves the bits needs no check.
type blockWords [lastWord + 1]uint32

const lastWord = 127

// moveRow sets a row's words of a panel, the first of them at dst[0], to those of a block.
func (f *Format) moveRow(dst, block []byte) {
	var from, to blockWords
	le := binary.LittleEndian
	for w := range f.words() {
		from[w] = le.Uint32(block[4*w:])
	}
	for i := range f.pieces {
		m := &f.pieces[i]
		to[m.to&lastWord] |= from[m.from&lastWord] & uint32(m.mask) << (m.left & 31) >> (m.right & 31)
	}
	for w := range f.words() {
		le.PutUint32(dst[4*Rows*w:], to[w])
	}
}

// moveBack undoes moveRow.
func (f *Format) moveBack(block, src []byte) {
	var from, to blockWords
	le := binary.LittleEndian
	for w := range f.words() {
		to[w] = le.Uint32(src[4*Rows*w:])
	}
	for i := range f.pieces {
		m := &f.pieces[i]
		from[m.from&lastWord] |= to[m.to&lastWord] << (m.right & 31) >> (m.left & 31) & uint32(m.mask)
	}
	for w := range f.words() {
		le.PutUint32(block[4*w:], from[w])
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
	if f.pieces != nil {
		f.moveBack(dst[at:], src[f.odd*Rows+4*r:])
		return
	}
	for w := range words {
		*(*[4]byte)(dst[at+4*w:]) = *(*[4]byte)(src[f.odd*Rows+(w*Rows+r)*4:])
	}
}
