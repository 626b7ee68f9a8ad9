package main

import (
	"strings"
	"testing"
)

// TestPanelEncodings compares words for arm64 with the architecture manual's.
func TestPanelEncodings(t *testing.T) {
	for _, c := range []struct {
		write func(s *source)
		want  string
	}{
		{func(s *source) { s.sdot(0, 1, 2, 3) }, "WORD $0x4fa2e820"},
		{func(s *source) { s.sdot(31, 30, 29, 2) }, "WORD $0x4f9debdf"},
		{func(s *source) { s.usmmla(0, 1, 2) }, "WORD $0x4e82ac20"},
		{func(s *source) { s.usmmla(31, 30, 29) }, "WORD $0x4e9dafdf"},
		{func(s *source) { s.panelWord("tbl", 3, 4, 5) }, "WORD $0x4e050083"},
		{func(s *source) { s.panelWord("imul", 3, 4, 5) }, "WORD $0x4ea59c83"},
		{func(s *source) { s.panelWord("bitSet", 3, 4, 5) }, "WORD $0x4e258c83"},
		{func(s *source) { s.panelWord("uxt8", 3, 4, 0) }, "WORD $0x2f08a483"},
		{func(s *source) { s.panelWord("evens", 3, 4, 5) }, "WORD $0x4e851883"},
		{func(s *source) { s.panelWord("odds", 3, 4, 5) }, "WORD $0x4e855883"},
	} {
		s := newSource("x")
		s.now = neon
		c.write(s)
		if got := s.text["arm64"].String(); !strings.HasPrefix(strings.TrimSpace(got), c.want) {
			t.Errorf("got %q, want %s", got, c.want)
		}
	}
}

// TestFetchingCoversBlocks says that every line of a block is fetched ahead.
func TestFetchingCoversBlocks(t *testing.T) {
	for _, f := range panelFormats {
		for _, tier := range tiers {
			b := newPanelBody(tier, f, true)
			bodies := b.parts()
			end := 0
			for step := range f.steps {
				if b.from[step] != end {
					t.Errorf("%s %s: step %d begins at %d, want %d", f.name, tier.suffix, step, b.from[step], end)
				}
				end += bodies * b.portion[step]
			}
			if size := 16 * f.bytes; end < size || end >= size+64*bodies+64 {
				t.Errorf("%s %s: %d bytes of a block of %d are fetched", f.name, tier.suffix, end, size)
			}
		}
	}
}
