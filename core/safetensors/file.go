// Package safetensors reads and writes safetensors files: tensors by name, and texts by key, in one file or in several
// with an index.
//
// Here: the format. Not here: tensors of the engine and the names of their axes; an element passes through as bytes,
// little-endian, in one of the dtypes of package dtype.
//
// A file is mapped. Everything in it is taken for hostile until checked, once, by Open, which takes no more memory than
// four times the header and 1 MiB. A file must not change while it is open; mem.Guard tells how to read one that may
// shrink.
//
// Format: https://huggingface.co/docs/safetensors. As the reference implementation does, Open insists that the tensors
// cover the data without holes or overlaps.
package safetensors

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/fucina-go/fucina/core/mem"
)

// File is an open file, or several with an index. Its methods may be called from several goroutines, Close excepted. A
// File that can no longer be reached, through its tensors neither, is closed by the collector.
type File struct{ parts []*part }

// Tensor is a tensor of a file.
type Tensor struct {
	Name  string
	Type  Type
	Shape []int // the last axis is the fastest; none for a scalar

	data []byte
	file *File // whose mapping it is
}

// indexSuffix is how the name of an index ends: model.safetensors.index.json.
const indexSuffix = ".json"

// Open opens the file called name or, if the name ends in .json, the files that this index lists, which are beside it.
// open opens them; nil means os.Open. Errors name the file and what in it is wrong.
func Open(name string, open func(name string) (fs.File, error)) (*File, error) {
	if open == nil {
		open = func(name string) (fs.File, error) { return os.Open(name) }
	}
	f := &File{}
	var err error
	if strings.HasSuffix(name, indexSuffix) {
		err = f.openIndex(name, open)
	} else {
		err = f.openPart(name, open)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	runtime.AddCleanup(f, func(parts []*part) { closeAll(parts) }, f.parts)
	return f, nil
}

// mapped calls read with the bytes of the file called name; the mapping is closed if it fails.
func mapped(name string, open func(string) (fs.File, error), read func(*mem.Mapping) error) error {
	file, err := open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	m, err := mem.MapFile(file)
	if err != nil {
		return err
	}
	if fault := mem.Guard(func() { err = read(m) }); fault != nil {
		err = fault
	}
	if err != nil {
		m.Close()
	}
	return err
}

func (f *File) openPart(name string, open func(string) (fs.File, error)) error {
	return mapped(name, open, func(m *mem.Mapping) error {
		p, err := parse(name, m.Bytes())
		if err != nil {
			return err
		}
		p.mapping = m
		f.parts = append(f.parts, p)
		return nil
	})
}

// openIndex opens the files that an index lists, and insists that they have the tensors that it says, no others.
func (f *File) openIndex(name string, open func(string) (fs.File, error)) error {
	var text []byte
	err := mapped(name, open, func(m *mem.Mapping) error {
		if len(m.Bytes()) > maxHeader {
			return fmt.Errorf("%s: has %d bytes, an index has at most %d", name, len(m.Bytes()), maxHeader)
		}
		text = bytes.Clone(m.Bytes())
		return m.Close()
	})
	if err != nil {
		return err
	}
	if !utf8.Valid(text) {
		return fmt.Errorf("%s: the index is no UTF-8", name)
	}
	byFile := map[string]*part{}
	listed := 0
	err = weightMap(text, func(tensor, file string) error {
		p := byFile[file]
		if p == nil {
			if !fs.ValidPath(file) || file == "." || path.Base(file) != file || strings.Contains(file, `\`) {
				return fmt.Errorf("names the file %q, want one beside it", clip(file))
			}
			if err := f.openPart(filepath.Join(filepath.Dir(name), file), open); err != nil {
				return fmt.Errorf("names %w", err)
			}
			p = f.parts[len(f.parts)-1]
			byFile[file] = p
		}
		if _, ok := p.find(tensor); !ok {
			return fmt.Errorf("says that tensor %q is in %s, which has none of that name", clip(tensor), file)
		}
		listed++
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: the index %w", name, err)
	}
	n := 0
	for _, p := range f.parts {
		n += len(p.entries)
	}
	if n != listed {
		return fmt.Errorf("%s: the index lists %d tensors, its files have %d", name, listed, n)
	}
	return nil
}

// weightMap reads an index: {"weight_map": {tensor: file}}, and what else there is is skipped.
func weightMap(text []byte, f func(tensor, file string) error) error {
	s := scanner{text: text}
	seen := false
	err := s.members(func(key span) error {
		if string(key.of(text)) != "weight_map" {
			return s.skip(1)
		}
		if seen {
			return fmt.Errorf("has two weight_map")
		}
		seen = true
		return s.members(func(tensor span) error {
			file, err := s.str()
			if err != nil {
				return err
			}
			return f(string(unescape(tensor.of(text))), string(unescape(file.of(text))))
		})
	})
	if err == nil {
		err = s.end()
	}
	if err == nil && !seen {
		err = fmt.Errorf("has no weight_map")
	}
	return err
}

// Close unmaps the file: the bytes of its tensors are gone. A second Close does nothing.
func (f *File) Close() error {
	err := closeAll(f.parts)
	f.parts = nil
	return err
}

func closeAll(parts []*part) error {
	var first error
	for _, p := range parts {
		if err := p.mapping.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Len is the number of tensors.
func (f *File) Len() int {
	n := 0
	for _, p := range f.parts {
		n += len(p.entries)
	}
	return n
}

// Tensors is all tensors in the order of the files.
func (f *File) Tensors() iter.Seq[Tensor] {
	return func(yield func(Tensor) bool) {
		for _, p := range f.parts {
			for i := range p.entries {
				if !yield(f.tensor(p, &p.entries[i])) {
					return
				}
			}
		}
	}
}

// Tensor is the tensor called name.
func (f *File) Tensor(name string) (Tensor, bool) {
	defer runtime.KeepAlive(f)
	for _, p := range f.parts {
		if e, ok := p.find(name); ok {
			return f.tensor(p, e), true
		}
	}
	return Tensor{}, false
}

// tensor is an entry as callers see it.
func (f *File) tensor(p *part, e *entry) Tensor {
	t := Tensor{Name: string(e.name.of(p.text)), Type: e.typ, data: p.data[e.start:e.end:e.end], file: f}
	s := scanner{text: e.shape.of(p.text)}
	s.elements(func() error {
		n, err := s.number()
		t.Shape = append(t.Shape, int(n))
		return err
	})
	return t
}

// Metadata is the texts of all files, by key; in several files a key may occur several times.
func (f *File) Metadata() iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		defer runtime.KeepAlive(f)
		for _, p := range f.parts {
			for _, x := range p.pairs {
				if !yield(string(x.key.of(p.text)), string(x.value.of(p.text))) {
					return
				}
			}
		}
	}
}

// Bytes is the tensor's data, which aliases the file: it must not be written to, nor read after File.Close or when the
// tensor, which keeps its File from being collected, cannot be reached.
func (t *Tensor) Bytes() []byte { return t.data }

// Elements reads the elements as bytes, of Type.DType, little-endian; of a bool, any byte but 0 is true. The error says
// that the type is not read.
func (t *Tensor) Elements() (io.Reader, error) {
	as := &types[t.Type]
	if _, ok := t.Type.DType(); !ok {
		return nil, fmt.Errorf("elements of type %s are not read", t.Type)
	}
	if as.put == nil {
		return &plain{*bytes.NewReader(t.data), t.file}, nil
	}
	return &converter{data: t.data, file: t.file, from: as.bits / 8, to: as.dt.Size(), put: as.put}, nil
}

// plain gives elements as they are.
type plain struct {
	bytes.Reader
	file *File // not to be collected
}

// converter gives elements of another size than the file's.
type converter struct {
	data     []byte
	file     *File // not to be collected
	from, to int   // bytes of an element
	put      func(dst, src []byte) error
	ready    []byte // converted, not yet read
}

func (c *converter) Read(p []byte) (int, error) {
	if len(c.ready) == 0 {
		if len(c.data) == 0 {
			return 0, io.EOF
		}
		const block = 4096
		n := min(block, len(c.data)/c.from)
		c.ready = make([]byte, n*c.to)
		for i := range n {
			if err := c.put(c.ready[i*c.to:][:c.to], c.data[i*c.from:][:c.from]); err != nil {
				return 0, err
			}
		}
		c.data = c.data[n*c.from:]
	}
	n := copy(p, c.ready)
	c.ready = c.ready[n:]
	return n, nil
}
