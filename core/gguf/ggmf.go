package gguf

import (
	"fmt"
	"math"
)

// magicGGMF begins a file of the container that ggml had before GGUF, in which rwkv.cpp writes its models. It is the
// number 0x67676d66, "ggmf", in little-endian order.
const magicGGMF = "fmgg"

// ggmfKeys is what the numbers behind the version are called in the metadata of such a file.
var ggmfKeys = [...]string{"ggmf.vocab_size", "ggmf.embedding_length", "ggmf.block_count", "ggmf.file_type"}

// ggmfTypes is the numbers of types there, which are not those of GGUF from q5_0 on.
var ggmfTypes = map[uint32]string{0: "f32", 1: "f16", 2: "q4_0", 3: "q4_1", 7: "q5_0", 8: "q5_1", 9: "q8_0"}

// ggmfFirst is the first version, whose quantized types have other blocks than those of today; ggmfLast has these.
const ggmfFirst, ggmfLast = 100, 101

// parseGGMF reads what follows the magic of such a file: version and four numbers, which become metadata, and tensors
// to the end of the file, each with its description before its data. It has no version as a GGUF file: 0.
//
// Format: https://github.com/RWKV/rwkv.cpp/blob/master/docs/FILE_FORMAT.md
func (f *File) parseGGMF(r *reader) error {
	version, err := r.u32("the version")
	if err != nil {
		return err
	}
	if version != ggmfFirst && version != ggmfLast {
		return fmt.Errorf("ggmf version %d is unknown, want %d or %d", version, ggmfFirst, ggmfLast)
	}
	f.set("ggmf.version", version)
	for _, key := range ggmfKeys {
		n, err := r.u32(key)
		if err != nil {
			return err
		}
		if n > math.MaxInt32 {
			return fmt.Errorf("%s is %d, want 0 or more", key, int32(n))
		}
		f.set(key, n)
	}
	var list []Tensor
	for r.pos < len(r.data) {
		t, err := r.ggmfTensor(version)
		if err != nil {
			return fmt.Errorf("tensor %d, %s: %w", len(list), label(t.Name), err)
		}
		list = append(list, t)
	}
	return f.addTensors(list)
}

// set adds an integer to the metadata.
func (f *File) set(key string, n uint32) {
	f.index[key] = len(f.entries)
	f.entries = append(f.entries, entry{key, Int(KindU32, int64(n))})
}

// ggmfTensor reads a tensor.
func (r *reader) ggmfTensor(version uint32) (t Tensor, err error) {
	var head [3]uint32
	for i, what := range [...]string{"the number of dims", "the length of the name", "the type"} {
		if head[i], err = r.u32(what); err != nil {
			return t, err
		}
	}
	dims, name, id := head[0], head[1], head[2]
	if dims < 1 || dims > maxDims {
		return t, fmt.Errorf("has %d dims, want 1 to %d", int32(dims), maxDims)
	}
	if name > maxName {
		return t, fmt.Errorf("the name has %d bytes, the most is %d", name, maxName)
	}
	t.Dims = make([]int, dims)
	for i := range t.Dims {
		d, err := r.u32("a dim")
		if err != nil {
			return t, err
		}
		if d == 0 || d > math.MaxInt32 {
			return t, fmt.Errorf("dim %d is %d, want 1 or more", i, int32(d))
		}
		t.Dims[i] = int(d)
	}
	text, err := r.take(uint64(name), "the name")
	if err != nil {
		return t, err
	}
	t.Name = string(text)
	kind, ok := ggmfTypes[id]
	if !ok {
		return t, fmt.Errorf("type %d is unknown", int32(id))
	}
	if t.Type, _ = TypeNamed(kind); version == ggmfFirst && id > 1 {
		return t, fmt.Errorf("is %s of version %d, whose blocks are no longer read; quantize the model again", kind,
			version)
	}
	size, err := t.Type.bytes(t.Dims)
	if err != nil {
		return t, err
	}
	t.data, err = r.take(size, "the data")
	return t, err
}
