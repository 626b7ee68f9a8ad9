package recipe

import (
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"

	"github.com/fucina-go/fucina/core/gguf"
)

// Importance is an importance matrix.
type Importance struct {
	// Weights is the importance of the weights of tensors, by name: for each weight of a row how much an error of it
	// counts, row after row for the experts of a tensor that has some.
	Weights map[string][]float32
	File    string // what the quantized file says that it was called, "" for nothing
	Dataset string // the text that the weights were used for, "" if the file does not say
	Chunks  int    // how many parts of that text there were, 0 if the file does not say
}

// ReadImportance reads an importance matrix as llama-imatrix writes it: a GGUF file, or the format it had before.
// open opens a file; nil means os.Open. Of several texts that a GGUF file names, the first counts.
//
// Errors say what is wrong with the file; a number that is not finite, or negative, is an error too.
func ReadImportance(name string, open func(name string) (fs.File, error)) (*Importance, error) {
	if open == nil {
		open = func(name string) (fs.File, error) { return os.Open(name) }
	}
	data, err := readAll(name, open)
	if err != nil {
		return nil, err
	}
	var m *Importance
	if strings.HasPrefix(string(data), "GGUF") {
		m, err = importanceGGUF(name, open)
	} else {
		m, err = importanceOld(data)
	}
	if err != nil {
		return nil, fmt.Errorf("importance matrix %s: %w", name, err)
	}
	m.File = name
	for tensor, values := range m.Weights {
		for i, v := range values {
			if v < 0 || math.IsInf(float64(v), 0) || v != v {
				return nil, fmt.Errorf("importance matrix %s: %s has %v at place %d, want a finite number of 0 or more",
					name, tensor, v, i)
			}
		}
	}
	return m, nil
}

// importanceMost is the most bytes that an importance matrix may have.
const importanceMost = 1 << 30

func readAll(name string, open func(name string) (fs.File, error)) ([]byte, error) {
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > importanceMost {
		return nil, fmt.Errorf("%s has %d bytes, an importance matrix has at most %d", name, info.Size(),
			importanceMost)
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// The keys of an importance matrix in a GGUF file.
const (
	keyDatasets  = "imatrix.datasets"
	keyChunks    = "imatrix.chunk_count"
	keyChunkSize = "imatrix.chunk_size"
)

// importanceGGUF reads pairs of tensors: name.in_sum2[row, experts] and name.counts[1, experts].
func importanceGGUF(name string, open func(name string) (fs.File, error)) (*Importance, error) {
	f, err := gguf.Open(name, open)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m := &Importance{Weights: map[string][]float32{}}
	if f.Has(keyDatasets) {
		list, err := f.Strings(keyDatasets)
		if err != nil {
			return nil, err
		}
		for text := range list.Strings() {
			m.Dataset = string(text)
			break
		}
	}
	if f.Has(keyChunks) {
		n, err := f.Int(keyChunks)
		if err == nil && (n < 0 || n > math.MaxInt32) {
			err = fmt.Errorf("%s is %d, want 0 … %d", keyChunks, n, math.MaxInt32)
		}
		if err != nil {
			return nil, err
		}
		m.Chunks = int(n)
	}
	f32, _ := gguf.TypeNamed("f32")
	for _, sums := range f.Tensors() {
		of, ok := strings.CutSuffix(sums.Name, ".in_sum2")
		if !ok {
			continue
		}
		counts, ok := f.Tensor(of + ".counts")
		if !ok {
			return nil, fmt.Errorf("%s has no counts", of)
		}
		experts := counts.Elements()
		if sums.Type != f32 || counts.Type != f32 || experts < 1 || sums.Elements()%experts != 0 {
			return nil, fmt.Errorf("%s has %d sums of %s and %d counts of %s", of, sums.Elements(), sums.Type, experts,
				counts.Type)
		}
		values, times := floats(sums.Bytes()), floats(counts.Bytes())
		for i := range values {
			if n := times[i/(len(values)/experts)]; n > 0 {
				values[i] /= n
			} else {
				values[i] = 1 // an expert that was never asked
			}
		}
		m.Weights[of] = values
	}
	if len(m.Weights) == 0 {
		return nil, fmt.Errorf("no tensor is called ….in_sum2, so it is none")
	}
	return m, nil
}

func floats(b []byte) []float32 {
	y := make([]float32, len(b)/4)
	for i := range y {
		y[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return y
}

// importanceOld reads i32 n, and n times i32 length, name, i32 calls, i32 values, f32 × values. There may follow i32
// chunks, i32 length, dataset.
func importanceOld(data []byte) (*Importance, error) {
	take := func(what string) (int, error) {
		if len(data) < 4 {
			return 0, fmt.Errorf("ends before %s", what)
		}
		n := int(int32(binary.LittleEndian.Uint32(data)))
		data = data[4:]
		return n, nil
	}
	entries, err := take("the number of tensors")
	if err != nil {
		return nil, err
	}
	if entries < 1 || entries > len(data)/12 {
		return nil, fmt.Errorf("says that it has %d tensors, in %d bytes", entries, len(data))
	}
	m := &Importance{Weights: make(map[string][]float32, entries)}
	for i := range entries {
		length, err := take("a name")
		if err == nil && (length < 1 || length > len(data)) {
			err = fmt.Errorf("tensor %d has a name of %d bytes, %d follow", i, length, len(data))
		}
		if err != nil {
			return nil, err
		}
		name := string(data[:length])
		data = data[length:]
		calls, err := take("the calls")
		if err != nil {
			return nil, err
		}
		n, err := take("the number of values")
		if err == nil && (n < 1 || n > len(data)/4) {
			err = fmt.Errorf("%q has %d values, %d bytes follow", name, n, len(data))
		}
		if err != nil {
			return nil, err
		}
		values := floats(data[:4*n])
		data = data[4*n:]
		for k := range values {
			if calls > 0 {
				values[k] /= float32(calls)
			}
		}
		m.Weights[name] = values
	}
	if len(data) == 0 {
		return m, nil
	}
	if m.Chunks, err = take("the chunks"); err != nil {
		return nil, err
	}
	if m.Chunks < 0 {
		return nil, fmt.Errorf("says that its text had %d chunks", m.Chunks)
	}
	if len(data) > 0 {
		length, err := take("the name of its text")
		if err == nil && (length < 0 || length > len(data)) {
			err = fmt.Errorf("the name of its text has %d bytes, %d follow", length, len(data))
		}
		if err != nil {
			return nil, err
		}
		m.Dataset = string(data[:length])
	}
	return m, nil
}
