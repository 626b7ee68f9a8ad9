package gguf

import (
	"fmt"
	"math"
	"strings"
)

// maxParts is what the wire type of the number of parts, u16, counts to.
const maxParts = math.MaxUint16

// Split cuts a draft into parts of at most most bytes of tensor data each, padding included; a tensor that is larger
// has a part of its own, which then is larger too. The tensors keep their order. The first part has all the metadata,
// the others only what tells that they belong to it, as llama.cpp's gguf-split has it; a single part is d itself. name
// is that of the whole, and ends in .gguf: the parts are called name-00001-of-00003.gguf or the like.
//
// Errors: a name with another ending; less than one byte; more than 65535 parts; what Write says of types and sizes.
func (d *Draft) Split(name string, most int64) (parts []*Draft, names []string, err error) {
	stem, ok := strings.CutSuffix(name, ".gguf")
	if !ok {
		return nil, nil, fmt.Errorf("gguf: %s: the name of a model in parts must end in .gguf", name)
	}
	if most < 1 {
		return nil, nil, fmt.Errorf("gguf: parts of %d bytes: want 1 or more", most)
	}
	for _, key := range []string{keySplitNo, keySplitCount, keySplitTensors} {
		if _, ok := d.Value(key); ok {
			return nil, nil, fmt.Errorf("gguf: %s: the metadata has %s already: it is a part of a model", name, key)
		}
	}
	_, sizes, alignment, err := d.head()
	if err != nil {
		return nil, nil, fmt.Errorf("gguf: %w", err)
	}
	part, filled := &Draft{Version: d.Version, entries: append([]entry(nil), d.entries...)}, uint64(0)
	for i, t := range d.Tensors {
		size := sizes[i] + padding(sizes[i], alignment)
		if len(part.Tensors) > 0 && filled+size > uint64(most) {
			parts, filled = append(parts, part), 0
			part = &Draft{Version: d.Version}
			if v, ok := d.Value(keyAlignment); ok {
				part.Set(keyAlignment, v)
			}
		}
		part.Tensors, filled = append(part.Tensors, t), filled+size
	}
	parts = append(parts, part)
	switch {
	case len(parts) == 1:
		return []*Draft{d}, []string{name}, nil
	case len(parts) > maxParts:
		return nil, nil, fmt.Errorf("gguf: %s: would have %d parts, at most %d are possible", name, len(parts),
			maxParts)
	case len(d.Tensors) > math.MaxInt32:
		return nil, nil, fmt.Errorf("gguf: %s: has %d tensors, at most %d are possible", name, len(d.Tensors),
			math.MaxInt32)
	}
	for i, p := range parts {
		p.Set(keySplitNo, Int(KindU16, int64(i)))
		p.Set(keySplitCount, Int(KindU16, int64(len(parts))))
		p.Set(keySplitTensors, Int(KindI32, int64(len(d.Tensors))))
		names = append(names, stem+partSuffix(int64(i), int64(len(parts))))
	}
	return parts, names, nil
}

// IsSplitKey tells whether the key says which part of a split model a file is, so that it is of that file only.
func IsSplitKey(key string) bool {
	return key == keySplitNo || key == keySplitCount || key == keySplitTensors
}
