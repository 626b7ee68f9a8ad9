package recipe

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/gguf"
)

// Collector adds up the squares of what the weights of a model are multiplied by: the importance of a column of a
// weight is the mean of the squares of the inputs that meet it, as llama-imatrix has it. A weight of several matrices,
// such as those of experts, has columns of its own for each.
type Collector struct {
	sums map[string]*sums
}

type sums struct {
	squares []float64 // by column, one matrix after another
	rows    []int     // of inputs, that met each expert; one number if all matrices met as many
}

// mean is the importance of column i; 1 in an expert that was never asked.
func (s *sums) mean(i int) float32 {
	n := s.rows[i/(len(s.squares)/len(s.rows))]
	if n == 0 {
		return 1
	}
	return float32(s.squares[i]) / float32(n) // as it comes out of the file
}

// Add adds the rows of p.X. The columns of p.W are counted in the order of its axes, as the file has them.
//
// Errors: a product without its tensors; a sum that is not finite; a weight that had another number of columns before.
func (c *Collector) Add(name string, p core.Product) error {
	if p.X == nil || p.W == nil {
		return fmt.Errorf("%s: the product has no tensors, want X and W", name)
	}
	x, w, strides := p.X, p.W, make([]int, p.X.Rank())
	cross := func(axes *axis.List, stride int) int {
		for i := axes.Len() - 1; i >= 0; i-- {
			strides[x.Axes().Index(axes.At(i))] = stride
			stride *= w.Size(axes.At(i))
		}
		return stride
	}
	columns := cross(w.Axes().Shared(p.Axes), 1)
	columns = cross(w.Axes().Shared(x.Axes()).Without(p.Axes), columns)
	if columns == 0 || x.Len() == 0 {
		return nil
	}
	experts, column := 1, 0
	if p.Expert != "" {
		experts, column = w.Size(p.Expert), p.Place*columns
	}
	s := c.sums[name]
	if s == nil {
		s = &sums{squares: make([]float64, columns*experts), rows: make([]int, experts)}
		if c.sums == nil {
			c.sums = map[string]*sums{}
		}
		c.sums[name] = s
	}
	if len(s.squares) != columns*experts || len(s.rows) != experts {
		return fmt.Errorf("%s has %d columns, but had %d before", name, columns*experts, len(s.squares))
	}
	sizes, index := x.Sizes(), make([]int, x.Rank())
	for _, v := range x.Float32s() {
		s.squares[column] += float64(v) * float64(v)
		for k := len(index) - 1; k >= 0; k-- { // the next element
			index[k]++
			column += strides[k]
			if index[k] < sizes[k] {
				break
			}
			column -= strides[k] * sizes[k]
			index[k] = 0
		}
	}
	s.rows[p.Place] += x.Len() / columns
	for i, v := range s.squares[p.Place*columns:][:columns] {
		if math.IsInf(float64(float32(v)), 0) || v != v {
			return fmt.Errorf("%s: the squares of column %d add up to %v", name, p.Place*columns+i, v)
		}
	}
	return nil
}

// Means is the importance of the weights, by name: the means of what was added.
func (c *Collector) Means() map[string][]float32 {
	m := make(map[string][]float32, len(c.sums))
	for name, s := range c.sums {
		values := make([]float32, len(s.squares))
		for i := range values {
			values[i] = s.mean(i)
		}
		m[name] = values
	}
	return m
}

// Draft is what was added as the file that llama-imatrix writes, and ReadImportance reads: name.in_sum2[columns,
// experts] and name.counts[1, experts] for each weight. The text had chunks, of size tokens each; dataset says what it
// was, "" for nothing.
func (c *Collector) Draft(dataset string, chunks, size int) *gguf.Draft {
	d := &gguf.Draft{}
	d.Set("general.type", gguf.Text("imatrix"))
	var datasets []gguf.Value
	if dataset != "" {
		datasets = append(datasets, gguf.Text(dataset))
	}
	d.Set(keyDatasets, gguf.List(gguf.KindString, datasets...))
	d.Set(keyChunks, gguf.Int(gguf.KindU32, int64(chunks)))
	d.Set(keyChunkSize, gguf.Int(gguf.KindU32, int64(size)))
	f32, _ := gguf.TypeNamed("f32")
	add := func(name string, n, experts int, at func(i int) float32) {
		dims := []int{n / experts, experts}
		if experts == 1 {
			dims = dims[:1]
		}
		write := func(w io.Writer) error {
			_, err := w.Write(appendFloats(nil, n, at))
			return err
		}
		d.Tensors = append(d.Tensors, gguf.DraftTensor{Name: name, Type: f32, Dims: dims, Write: write})
	}
	for _, name := range slices.Sorted(maps.Keys(c.sums)) {
		s := c.sums[name]
		add(name+".in_sum2", len(s.squares), len(s.rows), func(i int) float32 { return float32(s.squares[i]) })
		add(name+".counts", len(s.rows), len(s.rows), func(i int) float32 { return float32(s.rows[i]) })
	}
	return d
}

// WriteOld writes what was added in the format that llama-imatrix had before, and still calls dat: importanceOld says
// how it begins; behind it are i32 chunks, i32 length, dataset. The values are the means times the calls, which are
// chunks of size tokens.
func (c *Collector) WriteOld(w io.Writer, dataset string, chunks, size int) error {
	le := binary.LittleEndian
	text := func(b []byte, s string) []byte { return append(le.AppendUint32(b, uint32(len(s))), s...) }
	b := le.AppendUint32(nil, uint32(len(c.sums)))
	for _, name := range slices.Sorted(maps.Keys(c.sums)) {
		s := c.sums[name]
		calls := (slices.Max(s.rows) + size - 1) / size
		b = le.AppendUint32(text(b, name), uint32(calls))
		b = le.AppendUint32(b, uint32(len(s.squares)))
		b = appendFloats(b, len(s.squares), func(i int) float32 { return s.mean(i) * float32(calls) })
	}
	_, err := w.Write(text(le.AppendUint32(b, uint32(chunks)), dataset))
	return err
}

// appendFloats appends n numbers to b.
func appendFloats(b []byte, n int, at func(i int) float32) []byte {
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(at(i)))
	}
	return b
}
