package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"testing"
)

// ggmfTensor is a tensor of a file of the container before GGUF, right or wrong.
type ggmfTensor struct {
	name string
	typ  uint32
	dims []uint32
	data []byte
}

// ggmfImage is such a file.
func ggmfImage(version uint32, tensors ...ggmfTensor) []byte {
	le := binary.LittleEndian
	b := []byte("fmgg")
	for _, n := range []uint32{version, 256, 64, 12, 0} {
		b = le.AppendUint32(b, n)
	}
	for _, t := range tensors {
		for _, n := range append([]uint32{uint32(len(t.dims)), uint32(len(t.name)), t.typ}, t.dims...) {
			b = le.AppendUint32(b, n)
		}
		b = append(append(b, t.name...), t.data...)
	}
	return b
}

var ggmfSample = []ggmfTensor{
	{"emb.weight", 0, []uint32{2, 3}, make([]byte, 24)},
	{"blocks.0.ln1.bias", 1, []uint32{3}, []byte{1, 2, 3, 4, 5, 6}},
	{"blocks.0.att.key.weight", 8, []uint32{32, 2}, make([]byte, 48)},
}

func TestGGMF(t *testing.T) {
	f, err := parse("a.bin", ggmfImage(101, ggmfSample...))
	if err != nil {
		t.Fatal(err)
	}
	use(t, f)
	for key, want := range map[string]int64{"ggmf.version": 101, "ggmf.vocab_size": 256, "ggmf.embedding_length": 64,
		"ggmf.block_count": 12, "ggmf.file_type": 0} {
		if n, err := f.Int(key); n != want || err != nil {
			t.Errorf("%s is %d, %v, want %d", key, n, err, want)
		}
	}
	x, ok := f.Tensor("blocks.0.att.key.weight")
	if !ok || x.Type != typeOf("q5_1") || x.Elements() != 64 || f.Version() != 0 {
		t.Errorf("got %v of %s, version %d", x.Dims, x.Type, f.Version())
	}
	if x, _ := f.Tensor("blocks.0.ln1.bias"); !bytes.Equal(x.Bytes(), []byte{1, 2, 3, 4, 5, 6}) {
		t.Errorf("got % x", x.Bytes())
	}
	// Written, it is a GGUF file.
	again, err := parse("a.gguf", written(t, f.Draft()))
	if err != nil || again.Version() != 3 || len(again.Tensors()) != 3 || !again.Has("ggmf.block_count") {
		t.Errorf("got %v, %v", again, err)
	}
}

func TestGGMFRefuses(t *testing.T) {
	whole := ggmfImage(101, ggmfSample...)
	one := func(x ggmfTensor) []byte { return ggmfImage(101, x) }
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"version", ggmfImage(1), "ggmf version 1 is unknown, want 100 or 101"},
		{"negative", patched(whole, 16, 0xff, 0xff, 0xff, 0xff), "ggmf.block_count is -1, want 0 or more"},
		{"old blocks", ggmfImage(100, ggmfSample...), "tensor 2, blocks.0.att.key.weight: is q5_1 of version 100, " +
			"whose blocks are no longer read; quantize the model again"},
		{"no dims", one(ggmfTensor{name: "w"}), `tensor 0, "": has 0 dims, want 1 to 4`},
		{"many dims", one(ggmfTensor{"w", 0, make([]uint32, 5), nil}), `tensor 0, "": has 5 dims, want 1 to 4`},
		{"negative dim", one(ggmfTensor{"w", 0, []uint32{1 << 31}, nil}),
			`tensor 0, "": dim 0 is -2147483648, want 1 or more`},
		{"long name", patched(whole, 28, 0xff, 0xff, 0xff, 0x7f),
			`tensor 0, "": the name has 2147483647 bytes, the most is 65535`},
		{"type", one(ggmfTensor{"w", 4, []uint32{1}, nil}), "tensor 0, w: type 4 is unknown"},
		{"block", one(ggmfTensor{"w", 2, []uint32{16}, make([]byte, 9)}),
			"tensor 0, w: a row of 16 elements is no multiple of the 32 of a q4_0 block"},
		{"size", one(ggmfTensor{"w", 0, []uint32{1 << 30, 1 << 30, 1 << 30}, nil}),
			"tensor 0, w: dims [1073741824 1073741824 1073741824]: more elements than an int holds"},
		{"data", one(ggmfTensor{"w", 0, []uint32{1 << 30}, nil}),
			"tensor 0, w: the data needs 4294967296 bytes at byte 41, the file has 41 bytes (truncated?)"},
		{"twice", ggmfImage(101, ggmfSample[0], ggmfSample[0]), "tensor emb.weight is there twice"},
	} {
		if _, err := parse("x.bin", c.file); err == nil || err.Error() != "gguf: x.bin: "+c.want {
			t.Errorf("%s: got %v\nwant %s", c.name, err, c.want)
		}
	}
	ends := map[int]bool{24: true} // where a file may end: behind its head, or a tensor
	for i := range ggmfSample {
		ends[len(ggmfImage(101, ggmfSample[:i+1]...))] = true
	}
	for n := range whole {
		if _, err := parse("x.bin", whole[:n:n]); (err == nil) != ends[n] {
			t.Errorf("the first %d of %d bytes: %v", n, len(whole), err)
		}
	}
}

// A real file, where it is at hand.
func TestGGMFReal(t *testing.T) {
	for _, dir := range []string{"../../../shared/data", "../../../../shared/data"} {
		f, err := Open(dir+"/tiny-rwkv/tiny-rwkv-5v2-730K-FP32.bin", nil)
		if err != nil && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if n := len(f.Tensors()); n != 270 {
			t.Errorf("got %d tensors", n)
		}
		return
	}
	t.Skip("the reference file is not beside the repository; TestGGMF makes one")
}
