package gguf

import (
	"bytes"
	"fmt"
	"math/bits"
)

const (
	keyAlignment     = "general.alignment"
	defaultAlignment = 32
	maxAlignment     = 1 << 20

	// minEntry is the least a metadata entry takes: an empty key, a kind, one byte.
	minEntry = 8 + 4 + 1

	// maxPrealloc bounds what is allocated on the word of a count alone; more grows as it is read.
	maxPrealloc = 1024
)

// entry is one key and value of the metadata.
type entry struct {
	key   string
	value Value
}

// parse reads the file called name from its bytes, which the result aliases.
func parse(name string, data []byte) (*File, error) {
	f := &File{name: name, index: map[string]int{}, byName: map[string]int{}}
	return f, f.errorIf(f.parse(&reader{data: data}))
}

func (f *File) parse(r *reader) error {
	if bytes.HasPrefix(r.data, []byte(magicGGMF)) {
		r.pos = len(magicGGMF)
		return f.parseGGMF(r)
	}
	if err := f.parseVersion(r); err != nil {
		return err
	}
	tensors, err := r.count(minTensor, "the number of tensors")
	if err != nil {
		return err
	}
	entries, err := r.count(minEntry, "the number of metadata keys")
	if err != nil {
		return err
	}
	if err := f.parseEntries(r, entries); err != nil {
		return err
	}
	alignment, err := f.alignment()
	if err != nil {
		return err
	}
	list, err := r.readTensors(tensors, alignment)
	if err != nil {
		return err
	}
	return f.addTensors(list)
}

// parseVersion reads magic and version. The magic is the same bytes in either byte order, so it is the
// version that tells a big-endian file.
func (f *File) parseVersion(r *reader) error {
	magic, err := r.take(4, "the magic")
	if err != nil {
		return err
	}
	if string(magic) != "GGUF" {
		return fmt.Errorf(`is not a GGUF file: it starts with %q, want "GGUF"`, magic)
	}
	if f.version, err = r.u32("the version"); err != nil {
		return err
	}
	switch v := f.version; {
	case v == 2 || v == 3:
		return nil
	case v == 1:
		return fmt.Errorf("version 1 is not read, want 2 or 3; convert the model again")
	case v&0xffff == 0 && v != 0:
		return fmt.Errorf("is big-endian (version %d), only little-endian files are read", bits.ReverseBytes32(v))
	}
	return fmt.Errorf("version %d is unknown, want 2 or 3", f.version)
}

func (f *File) parseEntries(r *reader, n int) error {
	f.entries = make([]entry, 0, min(n, maxPrealloc))
	for i := range n {
		key, err := r.name("the key")
		if err != nil {
			return fmt.Errorf("metadata key %d of %d: %w", i, n, err)
		}
		if _, dup := f.index[key]; dup {
			return fmt.Errorf("metadata key %s is there twice", label(key))
		}
		value, err := parseValue(r)
		if err != nil {
			return fmt.Errorf("metadata key %s: %w", label(key), err)
		}
		f.index[key] = i
		f.entries = append(f.entries, entry{key, value})
	}
	return nil
}

func parseValue(r *reader) (Value, error) {
	id, err := r.u32("the kind")
	if err != nil {
		return Value{}, err
	}
	v := Value{kind: Kind(id)}
	start := r.pos
	if err := r.value(v.kind); err != nil {
		return Value{}, err
	}
	v.raw = r.data[start:r.pos:r.pos]
	if v.kind != KindArray {
		v.raw = bytes.Clone(v.raw) // still there when the file shrinks or is closed
	}
	return v, nil
}

// alignment returns what tensor data is aligned to, in bytes.
func (f *File) alignment() (int, error) {
	if !f.Has(keyAlignment) {
		return defaultAlignment, nil
	}
	n, err := f.int(keyAlignment)
	if err != nil {
		return 0, err
	}
	if n <= 0 || n > maxAlignment || n&(n-1) != 0 {
		return 0, fmt.Errorf("%s is %d, want a power of two up to %d", keyAlignment, n, maxAlignment)
	}
	return int(n), nil
}
