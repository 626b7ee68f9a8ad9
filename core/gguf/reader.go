package gguf

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"unicode"
)

const (
	maxName  = 65535 // bytes of a key, as the specification has it, or of a tensor's name
	maxDepth = 4     // arrays within arrays
)

// reader walks a file's bytes. Every length in the file is checked against the bytes that are left before
// anything is sliced or allocated, so a file can lie about a count but not make the reader believe it. The
// argument what of its methods names in an error what was being read.
type reader struct {
	data []byte
	pos  int
}

// take returns the next n bytes.
func (r *reader) take(n uint64, what string) ([]byte, error) {
	if n > uint64(len(r.data)-r.pos) {
		return nil, fmt.Errorf("%s needs %d bytes at byte %d, the file has %d bytes (truncated?)",
			what, n, r.pos, len(r.data))
	}
	b := r.data[r.pos : r.pos+int(n) : r.pos+int(n)]
	r.pos += int(n)
	return b, nil
}

func (r *reader) u32(what string) (uint32, error) {
	b, err := r.take(4, what)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (r *reader) u64(what string) (uint64, error) {
	b, err := r.take(8, what)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// count reads how many things follow, each of which takes at least size bytes.
func (r *reader) count(size int, what string) (int, error) {
	n, err := r.u64(what)
	if err != nil {
		return 0, err
	}
	if left := len(r.data) - r.pos; n > uint64(left/size) {
		return 0, fmt.Errorf("%s is %d, of %d bytes or more each, but only %d bytes follow at byte %d (truncated?)",
			what, n, size, left, r.pos)
	}
	return int(n), nil
}

// str reads a length and that many bytes.
func (r *reader) str(what string) ([]byte, error) {
	n, err := r.u64(what)
	if err != nil {
		return nil, err
	}
	return r.take(n, what)
}

// name reads a key or a tensor's name.
func (r *reader) name(what string) (string, error) {
	n, err := r.u64(what)
	if err != nil {
		return "", err
	}
	if n > maxName {
		return "", fmt.Errorf("%s has %d bytes, the most is %d", what, n, maxName)
	}
	b, err := r.take(n, what)
	return string(b), err
}

// value reads past a value of the kind and checks all of it.
func (r *reader) value(kind Kind) error {
	switch kind {
	case KindString:
		_, err := r.str("the string")
		return err
	case KindArray:
		_, err := r.array(1)
		return err
	case KindBool:
		b, err := r.take(1, "the bool")
		if err != nil {
			return err
		}
		return checkBools(b)
	}
	if kind.size() == 0 {
		return fmt.Errorf("kind %d is unknown, kinds go to %d", uint32(kind), len(kinds)-1)
	}
	_, err := r.take(uint64(kind.size()), "the value")
	return err
}

// array reads an array, checks every element and keeps none. depth is 1 for an array that is in no other.
func (r *reader) array(depth int) (Array, error) {
	if depth > maxDepth {
		return Array{}, fmt.Errorf("arrays are nested more than %d deep", maxDepth)
	}
	id, err := r.u32("the array's element kind")
	if err != nil {
		return Array{}, err
	}
	elem := Kind(id)
	size := elem.size() // of a fixed-size element, or the least an element can take
	switch elem {
	case KindString:
		size = 8
	case KindArray:
		size = 12
	}
	if size == 0 {
		return Array{}, fmt.Errorf("array element kind %d is unknown, kinds go to %d", id, len(kinds)-1)
	}
	n, err := r.count(size, "the number of elements")
	if err != nil {
		return Array{}, err
	}
	start := r.pos
	switch elem {
	case KindString:
		for i := 0; i < n && err == nil; i++ {
			if _, err = r.str("the string"); err != nil {
				err = fmt.Errorf("element %d of %d: %w", i, n, err)
			}
		}
	case KindArray:
		for i := 0; i < n && err == nil; i++ {
			if _, err = r.array(depth + 1); err != nil {
				err = fmt.Errorf("element %d of %d: %w", i, n, err)
			}
		}
	case KindBool:
		var b []byte
		if b, err = r.take(uint64(n), "the bools"); err == nil {
			err = checkBools(b)
		}
	default:
		_, err = r.take(uint64(n)*uint64(size), "the array")
	}
	if err != nil {
		return Array{}, err
	}
	return Array{elem: elem, n: n, data: r.data[start:r.pos:r.pos]}, nil
}

func checkBools(b []byte) error {
	for i, v := range b {
		if v > 1 {
			return fmt.Errorf("bool %d of %d is %d, want 0 or 1", i, len(b), v)
		}
	}
	return nil
}

// label makes a name from the file fit for a one-line message: quoted if it has spaces or anything a
// terminal might act on, cut if it is long.
func label(name string) string {
	const most = 80
	cut := ""
	if len(name) > most {
		name, cut = name[:most], "…"
	}
	for _, c := range name {
		if c == unicode.ReplacementChar || c == '"' || c == ' ' || !unicode.IsPrint(c) {
			return strconv.QuoteToASCII(name) + cut
		}
	}
	if name == "" {
		return `""`
	}
	return name + cut
}
