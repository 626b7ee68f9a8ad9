package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
)

// Draft is a file to be written: metadata in order, and tensors in order, whose data is asked for one after another
// while it is written. The zero Draft is an empty file of version 3.
type Draft struct {
	Version uint32 // 2 or 3; 0 is 3
	Tensors []DraftTensor

	entries []entry
}

// DraftTensor is a tensor of a Draft. Write writes its data, of as many bytes as Type and Dims say.
type DraftTensor struct {
	Name  string
	Type  Type
	Dims  []int // sizes in ggml's order, as in Tensor
	Write func(w io.Writer) error
}

// Draft returns a draft with all that the file has: written unchanged, a file that is laid out as writers do comes
// out byte for byte. If the model is split, so that its metadata is that of the first part, the result is one file,
// and the keys of the split are left out. The file must not be closed before the draft is written; the collector closes
// it no earlier than that.
func (f *File) Draft() *Draft {
	d := &Draft{Version: f.version, entries: slices.Clone(f.entries)}
	if len(f.mappings) > 1 {
		for _, key := range []string{keySplitNo, keySplitCount, keySplitTensors} {
			d.Delete(key)
		}
	}
	for i := range f.tensors {
		d.Tensors = append(d.Tensors, f.tensors[i].Draft())
	}
	return d
}

// Draft returns the tensor as it is, to be written. The file must not be closed before; the collector closes it no
// earlier.
func (t *Tensor) Draft() DraftTensor {
	data, file := t.data, t.file
	return DraftTensor{Name: t.Name, Type: t.Type, Dims: t.Dims, Write: func(w io.Writer) error {
		_, err := w.Write(data)
		runtime.KeepAlive(file)
		return err
	}}
}

// Keys returns the keys of the metadata in the order in which they are written.
func (d *Draft) Keys() []string {
	keys := make([]string, len(d.entries))
	for i := range d.entries {
		keys[i] = d.entries[i].key
	}
	return keys
}

// Value returns the value of key.
func (d *Draft) Value(key string) (Value, bool) {
	if i := d.find(key); i >= 0 {
		return d.entries[i].value, true
	}
	return Value{}, false
}

// Set gives key a value: in its place if it is there, else at the end.
func (d *Draft) Set(key string, v Value) {
	if i := d.find(key); i >= 0 {
		d.entries[i].value = v
		return
	}
	d.entries = append(d.entries, entry{key, v})
}

// Delete removes key, if it is there.
func (d *Draft) Delete(key string) {
	if i := d.find(key); i >= 0 {
		d.entries = slices.Delete(d.entries, i, i+1)
	}
}

func (d *Draft) find(key string) int {
	return slices.IndexFunc(d.entries, func(e entry) bool { return e.key == key })
}

// Int is an integer of a kind for integers. It panics if the kind is another.
func Int(kind Kind, v int64) Value {
	if !kind.IsInt() {
		panic("gguf: " + kind.String() + " is no kind of integer")
	}
	return Value{kind: kind, raw: binary.LittleEndian.AppendUint64(nil, uint64(v))[:kind.size():kind.size()]}
}

// Double is an f64.
func Double(v float64) Value {
	return Value{kind: KindF64, raw: binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))}
}

// Bool is a bool.
func Bool(v bool) Value {
	if v {
		return Value{kind: KindBool, raw: []byte{1}}
	}
	return Value{kind: KindBool, raw: []byte{0}}
}

// Float is an f32.
func Float(v float32) Value {
	return Value{kind: KindF32, raw: binary.LittleEndian.AppendUint32(nil, math.Float32bits(v))}
}

// Text is a string.
func Text(s string) Value {
	return Value{kind: KindString, raw: append(binary.LittleEndian.AppendUint64(nil, uint64(len(s))), s...)}
}

// List is an array of values of the kind elem. It panics if one is of another.
func List(elem Kind, values ...Value) Value {
	b := binary.LittleEndian.AppendUint32(nil, uint32(elem))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(values)))
	for _, v := range values {
		if v.kind != elem {
			panic("gguf: " + v.describe() + " in an array of " + elem.String())
		}
		b = append(b, v.raw...)
		runtime.KeepAlive(v.file)
	}
	return Value{kind: KindArray, raw: b}
}

// Write writes the file: descriptions, and the data of each tensor as it is asked for, padded to the alignment that
// the metadata gives. It holds no more than the descriptions in memory.
//
// Errors: what Open would refuse, such as a name that is there twice or rows that are no whole blocks; a tensor that
// writes more or fewer bytes than it has; what a tensor or w returns.
func (d *Draft) Write(w io.Writer) error {
	head, sizes, alignment, err := d.head()
	if err != nil {
		return fmt.Errorf("gguf: %w", err)
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	for i := range d.Tensors {
		t := &d.Tensors[i]
		c := &counter{w: w, left: sizes[i]}
		if err := t.Write(c); err != nil {
			return err
		}
		if c.left > 0 {
			return fmt.Errorf("gguf: tensor %s wrote %d bytes, want %d", label(t.Name), sizes[i]-c.left, sizes[i])
		}
		if _, err := w.Write(make([]byte, padding(sizes[i], alignment))); err != nil {
			return err
		}
	}
	return nil
}

// Bytes returns how many bytes Write writes. Errors: those of Write that do not depend on the data.
func (d *Draft) Bytes() (int64, error) {
	head, sizes, alignment, err := d.head()
	if err != nil {
		return 0, fmt.Errorf("gguf: %w", err)
	}
	total := int64(len(head))
	for _, size := range sizes {
		size += padding(size, alignment)
		if size > uint64(math.MaxInt64-total) {
			return 0, errors.New("gguf: the file has more bytes than an int64 holds")
		}
		total += int64(size)
	}
	return total, nil
}

// padding is how many bytes are missing from n to a multiple of alignment.
func padding(n, alignment uint64) uint64 { return (alignment - n%alignment) % alignment }

// head returns all that is written before the data, and the bytes of each tensor. Reading it back is how it is
// checked.
func (d *Draft) head() (head []byte, sizes []uint64, alignment uint64, err error) {
	version := d.Version
	if version == 0 {
		version = 3
	}
	le := binary.LittleEndian
	b := le.AppendUint32([]byte("GGUF"), version)
	b = le.AppendUint64(b, uint64(len(d.Tensors)))
	b = le.AppendUint64(b, uint64(len(d.entries)))
	for _, e := range d.entries {
		b = append(le.AppendUint64(b, uint64(len(e.key))), e.key...)
		b = append(le.AppendUint32(b, uint32(e.value.kind)), e.value.raw...)
		runtime.KeepAlive(e.value.file)
	}
	f := &File{index: map[string]int{}, byName: map[string]int{}}
	if err := f.parseVersion(&reader{data: b}); err != nil {
		return nil, nil, 0, err
	}
	if err := f.parseEntries(&reader{data: b, pos: 24}, len(d.entries)); err != nil {
		return nil, nil, 0, err
	}
	align, err := f.alignment()
	if err != nil {
		return nil, nil, 0, err
	}
	alignment = uint64(align)
	offset := uint64(0)
	names := map[string]bool{}
	for i := range d.Tensors {
		t := &d.Tensors[i]
		size, err := t.check()
		if err == nil && names[t.Name] {
			err = fmt.Errorf("is there twice")
		}
		if err != nil {
			return nil, nil, 0, fmt.Errorf("tensor %s: %w", label(t.Name), err)
		}
		names[t.Name] = true
		sizes = append(sizes, size)
		b = append(le.AppendUint64(b, uint64(len(t.Name))), t.Name...)
		b = le.AppendUint32(b, uint32(len(t.Dims)))
		for _, n := range t.Dims {
			b = le.AppendUint64(b, uint64(n))
		}
		b = le.AppendUint32(b, uint32(t.Type))
		b = le.AppendUint64(b, offset)
		offset += size + padding(size, alignment)
	}
	if len(d.Tensors) > 0 {
		b = append(b, bytes.Repeat([]byte{0}, int(padding(uint64(len(b)), alignment)))...)
	}
	return b, sizes, alignment, nil
}

// check returns the bytes of the tensor's data.
func (t *DraftTensor) check() (uint64, error) {
	if len(t.Name) > maxName {
		return 0, fmt.Errorf("the name has %d bytes, the most is %d", len(t.Name), maxName)
	}
	if len(t.Dims) > maxDims {
		return 0, fmt.Errorf("has %d dims, the most is %d", len(t.Dims), maxDims)
	}
	for i, n := range t.Dims {
		if n < 0 {
			return 0, fmt.Errorf("dim %d is %d", i, n)
		}
	}
	return t.Type.bytes(t.Dims)
}

// counter passes on as many bytes as a tensor has.
type counter struct {
	w    io.Writer
	left uint64
}

func (c *counter) Write(b []byte) (int, error) {
	if uint64(len(b)) > c.left {
		return 0, fmt.Errorf("gguf: a tensor writes %d bytes more than it has", uint64(len(b))-c.left)
	}
	n, err := c.w.Write(b)
	c.left -= uint64(n)
	return n, err
}
