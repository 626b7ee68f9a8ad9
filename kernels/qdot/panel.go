package qdot

import "encoding/binary"

// A panel holds the blocks of 16 rows, block after block. The bytes of a block that are no whole words come first, of
// all rows, then the first word of every row, the second of every row, and so on:
//
//	q8_0:  scale of row 0 … scale of row 15 | weights 0 to 3 of row 0 … of row 15 | weights 4 to 7 of row 0 …
//
// Formats whose products would go back and forth in a block have the words in the order of use instead, and of words
// that products would read twice the halves apart; see move. A panel has the size of its rows in any case, and the rows
// come back byte for byte.

// A move tells where two words of a block, x and y, lie in a panel: they are words atX and atY of it. If nibbles is not
// 0, the high nibbles of the bytes of x and the low ones of y have changed places: so what stood low is in one word,
// what stood high in the other.
type move struct {
	x, y, atX, atY int
	nibbles        uint64 // 0 or lowNibbles; the assembly reads all five
}

// exchanged is the words x and y with the nibbles of the move exchanged, which undoes itself.
func (m *move) exchanged(x, y uint32) (uint32, uint32) {
	t := (x>>4 ^ y) & uint32(m.nibbles)
	return x ^ t<<4, y ^ t
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
	if n == Rows && assembly() && f.moves != nil {
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
			if f.moves != nil {
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
		moveWords(&dst[odd], &block[odd], &f.moves[0].x, len(f.moves))
	}
}

// moveRow sets a row's words of a panel, the first of them at dst[0], to those of a block.
func (f *Format) moveRow(dst, block []byte) {
	le := binary.LittleEndian
	for i := range f.moves {
		m := &f.moves[i]
		x, y := m.exchanged(le.Uint32(block[4*m.x:]), le.Uint32(block[4*m.y:]))
		le.PutUint32(dst[4*Rows*m.atX:], x)
		le.PutUint32(dst[4*Rows*m.atY:], y)
	}
}

// moveBack undoes moveRow.
func (f *Format) moveBack(block, src []byte) {
	le := binary.LittleEndian
	for i := range f.moves {
		m := &f.moves[i]
		x, y := m.exchanged(le.Uint32(src[4*Rows*m.atX:]), le.Uint32(src[4*Rows*m.atY:]))
		le.PutUint32(block[4*m.x:], x)
		le.PutUint32(block[4*m.y:], y)
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
	if f.moves != nil {
		f.moveBack(dst[at:], src[f.odd*Rows+4*r:])
		return
	}
	for w := range words {
		*(*[4]byte)(dst[at+4*w:]) = *(*[4]byte)(src[f.odd*Rows+(w*Rows+r)*4:])
	}
}
