package token

import "unicode/utf8"

// Splitters that tell scripts apart, or digits from the right.

// each is one character of the classes in set: [set].
func each(set class) splitter {
	return search(func(t *text, i int) int {
		if _, c, size := t.at(i); c&set != 0 {
			return i + size
		}
		return i
	})
}

// rows is [set]+.
func rows(set class) splitter {
	return search(func(t *text, i int) int { return t.run(i, set) })
}

// rowsIn is [set]+.
func rowsIn(set ranges) splitter {
	return search(func(t *text, i int) int { return t.runIn(i, set) })
}

// spaced is \s?x+ for the end of x+ at a place.
func spaced(t *text, i int, x func(i int) int) int {
	if _, c, size := t.at(i); c&isSpace != 0 {
		if end := x(i + size); end > i+size {
			return end
		}
	}
	return x(i)
}

func spacedRows(set class) splitter {
	return search(func(t *text, i int) int {
		return spaced(t, i, func(i int) int { return t.run(i, set) })
	})
}

// spacedIn leaves white space out of set.
func spacedIn(set ranges) splitter {
	return search(func(t *text, i int) int {
		return spaced(t, i, func(i int) int {
			for {
				r, c, size := t.at(i)
				if size == 0 || c&isSpace != 0 || !set.has(r) {
					return i
				}
				i += size
			}
		})
	})
}

// oneLineEnd is [\r\n].
var oneLineEnd = search(func(t *text, i int) int { return min(t.skip(i, "\r\n"), i+1) })

// byLine is [^\n]+|[\n]+.
func byLine(t *text) int {
	i := t.skip(0, "\n")
	if i == 0 {
		for i < len(t.s) && t.s[i] != '\n' {
			i++
		}
	}
	return i
}

// notSpaces is \S+.
var notSpaces = search(func(t *text, i int) int { return t.runNot(i, isSpace) })

// spacesAtEnd is \s+$.
func spacesAtEnd(t *text) int {
	i := len(t.s)
	for i > 0 {
		r, size := utf8.DecodeLastRuneInString(t.s[:i])
		if t.table.of(r)&isSpace == 0 {
			break
		}
		i -= size
	}
	if i == 0 {
		return len(t.s)
	}
	return i
}

// numbersBy3 is \p{N}{1,3}.
var numbersBy3 = search(func(t *text, i int) int { return numbers(t, i, 3) })

// digits3 is [0-9][0-9][0-9].
var digits3 = search(func(t *text, i int) int {
	if asciiDigits(t, i, 3) == i+3 {
		return i + 3
	}
	return i
})

// asciiDigits is where at most n of 0-9 at i end.
func asciiDigits(t *text, i, n int) int {
	end := i
	for end < len(t.s) && end < i+n && '0' <= t.s[end] && t.s[end] <= '9' {
		end++
	}
	return end
}

// numbersFromRight is rows of \p{N} in threes counted from their ends. What is between rows goes with the first
// piece of the next.
func numbersFromRight(t *text) int {
	i := 0
	if t.pending == 0 {
		i = t.runNot(0, isNumber)
		for end := i; ; t.pending++ {
			_, c, size := t.at(end)
			if c&isNumber == 0 {
				break
			}
			end += size
		}
	}
	if t.pending == 0 {
		return i
	}
	n := (t.pending-1)%3 + 1
	t.pending -= n
	return numbers(t, i, n)
}

// digitsFromRight is (?=(\d{3})+(?!\d)): it cuts where the digits that follow in a row are 3, 6, 9 or so.
func digitsFromRight(t *text) int {
	i := min(3, t.pending)
	t.pending -= i
	for t.pending == 0 && i < len(t.s) {
		row := asciiDigits(t, i, len(t.s)) - i
		if row == 0 {
			_, _, size := t.at(i)
			i += size
			continue
		}
		i += row % 3
		t.pending = row - row%3
		if i == 0 { // the piece begins here
			i = 3
			t.pending -= 3
		}
	}
	return i
}

// han are the Han characters as Kimi K2's splitter sees them.
var han = ranges{0x3400, 0x4DBF, 0x4E00, 0x9FFF, 0xF900, 0xFAFF, 0x20000, 0x2A6DF, 0x2A700, 0x2B73F, 0x2B740, 0x2B81F,
	0x2B820, 0x2CEAF, 0x2CEB0, 0x2EBEF, 0x2F800, 0x2FA1F}

// kimi is GPT-4o's expression without its capitals, and with rows of Han characters apart.
func kimi(t *text) int {
	if end := t.runIn(0, han); end > 0 {
		return end
	}
	r, c, size := t.at(0)
	lead := 0
	if c&(isLetter|isNumber) == 0 && r != '\r' && r != '\n' {
		lead = size
	}
	end := lead
	for {
		r, c, size := t.at(end)
		if c&isLetter == 0 || han.has(r) {
			break
		}
		end += size
	}
	if end > lead {
		return contraction(t, end, true)
	}
	return kimiRest.rest(t, r, c, size)
}

var kimiRest = words{digits: 3, tail: "\r\n"}.complete()

// exaone is exaone-moe's
//
//	(?i:'s|'t|…)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+…
//
// whose words go on over single spaces.
func exaone(t *text) int {
	if end := contraction(t, 0, true); end > 0 {
		return end
	}
	r, c, size := t.at(0)
	i := 0
	if c&(isLetter|isNumber) == 0 && r != '\r' && r != '\n' {
		i = size
	}
	if _, c, _ := t.at(i); c&isLetter == 0 {
		return exaoneRest(t)
	}
	for {
		r, c, size := t.at(i)
		if r == ' ' {
			_, c, _ = t.at(i + 1)
		}
		if c&isLetter == 0 {
			return i
		}
		i = t.run(i+size, isMark)
	}
}

var exaoneRest = words{digits: 1, tail: "\r\n/", oneTail: true}.splitter()

// deepseek3 is [ascii \p{P}\p{S}][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|
// \s+(?!\S)|\s+.
var deepseek3 = search(func(t *text, i int) int { return deepseek(t, i, "\r\n", lines) })

// spark is that with ` ?[\p{P}\p{S}]+|[\r\n]` for ` ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+`.
var spark = search(func(t *text, i int) int {
	return deepseek(t, i, "", func(t *text, i int) int { return min(t.skip(i, "\r\n"), i+1) })
})

func deepseek(t *text, i int, tail string, lines func(t *text, i int) int) int {
	r, c, size := t.at(i)
	if r < 0x80 && c&(isPunct|isSymbol) != 0 {
		end := i + 1
		for end < len(t.s) && ('A' <= t.s[end]&^0x20 && t.s[end]&^0x20 <= 'Z') {
			end++
		}
		if end > i+1 {
			return end
		}
	}
	if c&(isLetter|isPunct|isSymbol) == 0 && r != '\r' && r != '\n' {
		if end := t.run(i+size, isLetter|isMark); end > i+size {
			return end
		}
	}
	if end := t.run(i, isLetter|isMark); end > i {
		return end
	}
	from := i
	if r == ' ' {
		from++
	}
	if end := t.run(from, isPunct|isSymbol); end > from {
		return t.skip(end, tail)
	}
	if end := lines(t, i); end > i {
		return end
	}
	return spaces(t, i)
}

// bloom is ` ?[^(\s|.,!?…。，、।۔،)]+`, in which the brackets and the bar are characters like the others.
var bloom = search(func(t *text, i int) int {
	from := i
	if t.s[i] == ' ' {
		from++
	}
	end := from
	for {
		r, c, size := t.at(end)
		if size == 0 || c&isSpace != 0 || bloomStops.has(r) {
			break
		}
		end += size
	}
	if end == from {
		return i
	}
	return end
})

var bloomStops = ranges{'!', '!', '(', ')', ',', ',', '.', '.', '?', '?', '|', '|', 0x60C, 0x60C, 0x6D4, 0x6D4,
	0x964, 0x964, 0x2026, 0x2026, 0x3001, 0x3002, 0xFF0C, 0xFF0C}

// marksAnd is [\p{P}$+<=>^~|]+, and what more is in ascii.
func marksAnd(ascii string) splitter {
	ascii += "$+<=>^~|"
	return search(func(t *text, i int) int {
		for {
			_, c, size := t.at(i)
			if c&isPunct == 0 && (size != 1 || !indexByte(ascii, t.s[i])) {
				return i
			}
			i += size
		}
	})
}

// youtuScripts is [hangul]+|[fullwidth marks]+|[bopomofo]+|[han and kana]+.
var youtuScripts = search(func(t *text, i int) int {
	for _, set := range []ranges{
		{0x3131, 0x318E, 0xAC00, 0xD7A3},
		{0x2014, 0x2014, 0x2018, 0x2019, 0x201C, 0x201D, 0x2026, 0x2026, 0x3001, 0x303F, 0xFE30, 0xFE4F, 0xFF01, 0xFF01,
			0xFF0C, 0xFF0C, 0xFF1A, 0xFF1B},
		{0x3105, 0x312F},
		hanKana,
	} {
		if end := t.runIn(i, set); end > i {
			return end
		}
	}
	return i
})

// hanKana is [一-龥぀-ゟ゠-ヿ].
var hanKana = ranges{0x3040, 0x30FF, 0x4E00, 0x9FA5}

// cjk is deepseek-llm's [一-龥ࠀ-一가-퟿] but for the white space in it.
var cjk = ranges{0x800, 0x167F, 0x1681, 0x1FFF, 0x200B, 0x2027, 0x202A, 0x202E, 0x2030, 0x205E, 0x2060, 0x2FFF, 0x3001,
	0x9FA5, 0xAC00, 0xD7FF}

// asian is afmoe's set of scripts without spaces.
var asian = ranges{0xE40, 0xE7F, 0xE80, 0xEFF, 0x1000, 0x109F, 0x1100, 0x11FF, 0x1780, 0x17FF, 0x2F00, 0x2FDF, 0x3040,
	0x30FF, 0x3400, 0x4DBF, 0x4E00, 0xFAFF, 0xFF65, 0xFF9F}

// deepseekMarks is [!-/:-~！-／：-～‘-‟　-。]: it has the letters of ASCII, too.
var deepseekMarks = ranges{'!', '/', ':', '~', 0x2018, 0x201F, 0x3000, 0x3002, 0xFF01, 0xFF0F, 0xFF1A, 0xFF5E}

// deepseekLetters are the letters with capitals and some more.
var deepseekLetters = ranges{'A', 'Z', 'a', 'z', 0xB5, 0xB5, 0xC0, 0xD6, 0xD8, 0xF6, 0xF8, 0x1BA, 0x1BC, 0x1BF, 0x1C4,
	0x293, 0x295, 0x2AF, 0x370, 0x373, 0x376, 0x376, 0x377, 0x377, 0x37B, 0x37D, 0x37F, 0x37F, 0x386, 0x386,
	0x388, 0x38A, 0x38C, 0x38C, 0x38E, 0x3A1, 0x3A3, 0x3F5, 0x3F7, 0x481, 0x48A, 0x52F, 0x531, 0x556, 0x10A0,
	0x10C5, 0x13A0, 0x13F5, 0x13F8, 0x13FD, 0x1C90, 0x1CBA, 0x1CBD, 0x1CBF, 0x1D00, 0x1D2B, 0x1D6B, 0x1D77,
	0x1D79, 0x1D9A, 0x1E00, 0x1F15, 0x1F18, 0x1F1D, 0x1F20, 0x1F45, 0x1F48, 0x1F4D, 0x1F50, 0x1F57, 0x1F59,
	0x1F59, 0x1F5B, 0x1F5B, 0x1F5D, 0x1F5D, 0x1F5F, 0x1F7D, 0x1F80, 0x1FB4, 0x1FB6, 0x1FBC, 0x1FBE, 0x1FBE,
	0x1FC2, 0x1FC4, 0x1FC6, 0x1FCC, 0x1FD0, 0x1FD3, 0x1FD6, 0x1FDB, 0x1FE0, 0x1FEC, 0x1FF2, 0x1FF4, 0x1FF6,
	0x1FFC, 0x2102, 0x2102, 0x2107, 0x2107, 0x210A, 0x2113, 0x2115, 0x2115, 0x2119, 0x211D, 0x2124, 0x2124,
	0x2126, 0x2126, 0x2128, 0x2128, 0x212A, 0x212D, 0x212F, 0x2134, 0x2139, 0x2139, 0x213C, 0x213F, 0x2145,
	0x2149, 0x214E, 0x214E, 0x2183, 0x2183, 0x2184, 0x2184, 0x2C00, 0x2C7B, 0x2C7E, 0x2CE4, 0x2CEB, 0x2CEE,
	0x2CF2, 0x2CF2, 0x2CF3, 0x2CF3, 0xA640, 0xA66D, 0xA680, 0xA69B, 0xA722, 0xA76F, 0xA771, 0xA787, 0xA78B,
	0xA78E, 0xAB70, 0xABBF, 0xFB00, 0xFB06, 0xFB13, 0xFB17, 0xFF21, 0xFF3A, 0xFF41, 0xFF5A, 0x10400, 0x1044F,
	0x104B0, 0x104D3, 0x104D8, 0x104FB, 0x10C80, 0x10CB2, 0x10CC0, 0x10CF2, 0x118A0, 0x118DF, 0x1E900, 0x1E943}

// imageTokens is (IMGIMG)([A-I]{1,4})Z.
var imageTokens = search(func(t *text, i int) int {
	const mark = "IMGIMG"
	if len(t.s)-i < len(mark) || t.s[i:i+len(mark)] != mark {
		return i
	}
	end := i + len(mark)
	for n := 0; n < 4 && end < len(t.s) && 'A' <= t.s[end] && t.s[end] <= 'I'; n++ {
		end++
	}
	if end == i+len(mark) || end == len(t.s) || t.s[end] != 'Z' {
		return i
	}
	return end + 1
})

// sentinels is <sentinel:[0-9]+>.
var sentinels = search(func(t *text, i int) int {
	const mark = "<sentinel:"
	if len(t.s)-i < len(mark) || t.s[i:i+len(mark)] != mark {
		return i
	}
	digits := i + len(mark)
	end := asciiDigits(t, digits, len(t.s))
	if end == digits || end == len(t.s) || t.s[end] != '>' {
		return i
	}
	return end + 1
})

// indents is [\t\n]|four spaces|two spaces.
var indents = search(func(t *text, i int) int {
	if t.s[i] == '\t' || t.s[i] == '\n' {
		return i + 1
	}
	switch n := t.skip(i, " ") - i; {
	case n >= 4:
		return i + 4
	case n >= 2:
		return i + 2
	}
	return i
})

// oneMark is [\p{P} and the symbols of ASCII].
var oneMark = search(func(t *text, i int) int {
	r, c, size := t.at(i)
	if c&isPunct != 0 || r < 0x80 && c&isSymbol != 0 {
		return i + size
	}
	return i
})
