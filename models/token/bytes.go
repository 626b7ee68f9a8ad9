package token

import "unicode/utf8"

// Byte-level vocabularies write every byte as a character: the visible ones of Latin-1 as themselves, the others as
// U+0100, U+0101 and so on, in order. So a space is "Ġ".

// byteRunes is indexed by byte.
var byteRunes = func() (runes [256]rune) {
	next := rune(0x100)
	for b := range runes {
		runes[b] = rune(b)
		if b < 0x21 || 0x7F <= b && b < 0xA1 || b == 0xAD {
			runes[b] = next
			next++
		}
	}
	return runes
}()

// runeBytes is the inverse, -1 where it has none.
var runeBytes = func() (bytes [0x144]int16) {
	for r := range bytes {
		bytes[r] = -1
	}
	for b, r := range byteRunes {
		bytes[r] = int16(b)
	}
	return bytes
}()

// appendSpelled appends word as a byte-level vocabulary writes it.
func appendSpelled(text []byte, word string) []byte {
	for i := range len(word) {
		text = utf8.AppendRune(text, byteRunes[word[i]])
	}
	return text
}

// appendUnspelled appends the bytes that spelled stands for. What is no spelling stands for itself.
func appendUnspelled(text, spelled []byte) []byte {
	for len(spelled) > 0 {
		r, n := utf8.DecodeRune(spelled)
		if int(r) < len(runeBytes) && runeBytes[r] >= 0 {
			text = append(text, byte(runeBytes[r]))
		} else {
			text = append(text, spelled[:n]...)
		}
		spelled = spelled[n:]
	}
	return text
}
