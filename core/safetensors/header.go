package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"unicode/utf8"

	"github.com/fucina-go/fucina/core/mem"
)

// maxHeader is how many bytes a header or an index may have; the bound is that of the format's reference
// implementation.
const maxHeader = 100_000_000

const metadataKey = "__metadata__"

// part is one file: its header, and where in it what is. Strings and shapes stay in the header's text, so that opening
// a file costs little more memory than its header has bytes.
type part struct {
	name    string
	text    []byte   // of the header; its strings decoded in place
	entries []entry  // by the place of their data
	byName  []uint32 // entries in the order of their names
	pairs   []pair   // of the metadata, by key
	data    []byte
	mapping *mem.Mapping
}

// entry is a tensor in the header.
type entry struct {
	name       span
	shape      span // its numbers
	start, end uint64
	typ        Type
}

// pair is one of the metadata.
type pair struct{ key, value span }

// parse reads the header of a file from its bytes, which the part aliases.
func parse(name string, file []byte) (*part, error) {
	p := &part{name: name}
	head, data, err := split(file)
	if err == nil {
		p.text, p.data = bytes.Clone(head), data
		err = p.read()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// split finds the header of a file, and the data.
func split(file []byte) (head, data []byte, err error) {
	if len(file) < 8 {
		return nil, nil, fmt.Errorf("is no safetensors file: it has %d bytes, the length of the header alone takes 8",
			len(file))
	}
	n := binary.LittleEndian.Uint64(file)
	switch have := uint64(len(file) - 8); {
	case n > maxHeader:
		return nil, nil, fmt.Errorf("is no safetensors file: its header would have %d bytes, at most %d are possible",
			n, maxHeader)
	case n > have:
		return nil, nil, fmt.Errorf("the header claims %d bytes, but %d follow (truncated?)", n, have)
	case n == 0 || file[8] != '{':
		return nil, nil, errors.New("is no safetensors file: its header does not begin with {")
	}
	head, data = file[8:8+n], file[8+n:]
	if !utf8.Valid(head) {
		return nil, nil, errors.New("the header is no UTF-8")
	}
	return head, data, nil
}

// read reads the header twice: once to check and count, once to keep.
func (p *part) read() error {
	var n counts
	if err := p.walk(&n, false); err != nil {
		return err
	}
	p.entries, p.pairs = make([]entry, 0, n.tensors), make([]pair, 0, n.pairs)
	if err := p.walk(&n, true); err != nil {
		return err
	}
	slices.SortFunc(p.entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end))
	})
	if err := p.checkNames(); err != nil {
		return err
	}
	return p.checkLayout()
}

type counts struct{ tensors, pairs int }

// walk goes through the header. It counts, or keeps what it counted before.
func (p *part) walk(n *counts, keep bool) error {
	s := scanner{text: p.text}
	metadata := false
	err := s.members(func(key span) error {
		if p.isMetadata(key) {
			if metadata {
				return errors.New("has two " + metadataKey)
			}
			metadata = true
			return p.walkMetadata(&s, n, keep)
		}
		if !keep {
			n.tensors++
			if err := p.tensor(&s, &entry{}); err != nil {
				return fmt.Errorf("tensor %q: %w", clip(string(key.of(p.text))), err)
			}
			return nil
		}
		e := entry{name: p.decode(key)}
		if err := p.tensor(&s, &e); err != nil {
			return err
		}
		p.entries = append(p.entries, e)
		return nil
	})
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return fmt.Errorf("the header %w", err)
	}
	return nil
}

// isMetadata tells whether a key, escapes or not, is that of the metadata.
func (p *part) isMetadata(key span) bool {
	const longest = 6 * len(metadataKey)
	return key.len <= uint32(longest) && string(unescape(bytes.Clone(key.of(p.text)))) == metadataKey
}

// decode makes a string of the text what it means.
func (p *part) decode(s span) span {
	if bytes.IndexByte(s.of(p.text), '\\') < 0 {
		return s
	}
	return span{s.at, uint32(len(unescape(s.of(p.text))))}
}

func (p *part) walkMetadata(s *scanner, n *counts, keep bool) error {
	return s.members(func(key span) error {
		if s.next() != '"' {
			return fmt.Errorf("has metadata %q that is no string", clip(string(key.of(p.text))))
		}
		value, err := s.str()
		if err != nil {
			return err
		}
		if !keep {
			n.pairs++
			return nil
		}
		p.pairs = append(p.pairs, pair{p.decode(key), p.decode(value)})
		return nil
	})
}

// tensor reads a tensor's description and compares its bytes with its shape.
func (p *part) tensor(s *scanner, e *entry) error {
	const dtypeKey, shapeKey, offsetsKey = 1, 2, 4
	seen := 0
	elements := uint64(1)
	once := func(bit int, key string) error {
		if seen&bit != 0 {
			return fmt.Errorf("has two %s", key)
		}
		seen |= bit
		return nil
	}
	err := s.members(func(key span) (err error) {
		switch string(key.of(p.text)) {
		case "dtype":
			if err := once(dtypeKey, "dtype"); err != nil {
				return err
			}
			return p.dtype(s, e)
		case "shape":
			if err := once(shapeKey, "shape"); err != nil {
				return err
			}
			s.space()
			from := s.pos
			elements, err = shape(s)
			e.shape = span{uint32(from), uint32(s.pos - from)}
			return err
		case "data_offsets":
			if err := once(offsetsKey, "data_offsets"); err != nil {
				return err
			}
			return offsets(s, e)
		}
		return s.skip(1) // of a newer version
	})
	if err != nil {
		return err
	}
	if seen != dtypeKey|shapeKey|offsetsKey {
		return errors.New("lacks one of dtype, shape and data_offsets")
	}
	sizes := clip(string(e.shape.of(p.text)))
	over, n := bits.Mul64(elements, uint64(types[e.typ].bits))
	switch {
	case over != 0 || n > math.MaxInt64:
		return fmt.Errorf("has more bytes than an int64 holds: %s of %s", sizes, e.typ)
	case n%8 != 0:
		return fmt.Errorf("ends inside a byte: %s of %s", sizes, e.typ)
	case e.end < e.start:
		return fmt.Errorf("ends at byte %d, before it begins at %d", e.end, e.start)
	case e.end-e.start != n/8:
		return fmt.Errorf("has %d bytes, but %s of %s takes %d", e.end-e.start, sizes, e.typ, n/8)
	}
	return nil
}

func (p *part) dtype(s *scanner, e *entry) error {
	name, err := s.str()
	if err != nil {
		return err
	}
	var ok bool
	if e.typ, ok = typeOf(name.of(p.text)); !ok {
		return fmt.Errorf("has the dtype %q, which is unknown", clip(string(name.of(p.text))))
	}
	return nil
}

// shape reads sizes and returns their product.
func shape(s *scanner) (elements uint64, err error) {
	elements, empty := 1, false
	err = s.elements(func() error {
		n, err := s.number()
		if err != nil {
			return err
		}
		if n == 0 {
			empty = true
			return nil
		}
		var over uint64
		if over, elements = bits.Mul64(elements, n); over != 0 || elements > math.MaxInt64 {
			return errors.New("has more elements than an int64 holds")
		}
		return nil
	})
	if empty {
		elements = 0
	}
	return elements, err
}

func offsets(s *scanner, e *entry) error {
	i := 0
	err := s.elements(func() (err error) {
		switch i++; i {
		case 1:
			e.start, err = s.number()
		case 2:
			e.end, err = s.number()
		default:
			_, err = s.number()
		}
		return err
	})
	if err == nil && i != 2 {
		err = fmt.Errorf("has %d data_offsets, want 2", i)
	}
	return err
}

// checkNames insists that no two tensors have one name, and no two pairs of the metadata one key.
func (p *part) checkNames() error {
	p.byName = make([]uint32, len(p.entries))
	for i := range p.byName {
		p.byName[i] = uint32(i)
	}
	name := func(i uint32) []byte { return p.entries[i].name.of(p.text) }
	slices.SortFunc(p.byName, func(a, b uint32) int { return bytes.Compare(name(a), name(b)) })
	for i := 1; i < len(p.byName); i++ {
		if bytes.Equal(name(p.byName[i-1]), name(p.byName[i])) {
			return fmt.Errorf("tensor %q is there twice", clip(string(name(p.byName[i]))))
		}
	}
	key := func(x pair) []byte { return x.key.of(p.text) }
	slices.SortFunc(p.pairs, func(a, b pair) int { return bytes.Compare(key(a), key(b)) })
	for i := 1; i < len(p.pairs); i++ {
		if bytes.Equal(key(p.pairs[i-1]), key(p.pairs[i])) {
			return fmt.Errorf("metadata %q is there twice", clip(string(key(p.pairs[i]))))
		}
	}
	return nil
}

// checkLayout insists that the tensors cover the data, byte for byte: who changes the bytes of one does not expect to
// change another, and what no tensor covers could be anything.
func (p *part) checkLayout() error {
	label := func(e *entry) string { return clip(string(e.name.of(p.text))) }
	var next uint64
	for i := range p.entries {
		e := &p.entries[i]
		switch {
		case e.end > uint64(len(p.data)):
			return fmt.Errorf("tensor %q ends at byte %d of the data, which has %d (truncated?)", label(e), e.end,
				len(p.data))
		case e.start < next:
			return fmt.Errorf("tensor %q begins at byte %d of the data, inside tensor %q, which ends at %d", label(e),
				e.start, label(&p.entries[i-1]), next)
		case e.start > next:
			return fmt.Errorf("bytes %d to %d of the data, before tensor %q, belong to no tensor", next, e.start,
				label(e))
		}
		next = e.end
	}
	if next < uint64(len(p.data)) {
		return fmt.Errorf("the last %d bytes of the data belong to no tensor", uint64(len(p.data))-next)
	}
	return nil
}

// find is the entry called name.
func (p *part) find(name string) (*entry, bool) {
	i, ok := slices.BinarySearchFunc(p.byName, name, func(i uint32, name string) int {
		return cmp.Compare(string(p.entries[i].name.of(p.text)), name)
	})
	if !ok {
		return nil, false
	}
	return &p.entries[p.byName[i]], true
}
