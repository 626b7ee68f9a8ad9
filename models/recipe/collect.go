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
// weight is the mean of the squares of the inputs that meet it, as llama-imatrix has it.
type Collector struct {
	sums map[string]*sums
}

type sums struct {
	squares []float64 // by column
	rows    int
}

// Add adds the rows of x, which is contracted with the weight w along axes. The columns of w are counted in the order
// of its axes, as the file has them.
//
// Errors: a sum that is not finite; a weight that had another number of columns before.
func (c *Collector) Add(name string, x, w *core.Tensor, axes *axis.List) error {
	columns := 1
	strides := make([]int, x.Rank())
	for i := w.Rank() - 1; i >= 0; i-- {
		if along := w.Axes().At(i); axes.Has(along) {
			strides[x.Axes().Index(along)] = columns
			columns *= w.Size(along)
		}
	}
	if columns == 0 || x.Len() == 0 {
		return nil
	}
	if c.sums == nil {
		c.sums = map[string]*sums{}
	}
	s := c.sums[name]
	if s == nil {
		s = &sums{squares: make([]float64, columns)}
		c.sums[name] = s
	}
	if len(s.squares) != columns {
		return fmt.Errorf("%s has %d columns, but had %d before", name, columns, len(s.squares))
	}
	sizes, index, column := x.Sizes(), make([]int, x.Rank()), 0
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
	s.rows += x.Len() / columns
	for i, v := range s.squares {
		if math.IsInf(float64(float32(v)), 0) || v != v {
			return fmt.Errorf("%s: the squares of column %d add up to %v", name, i, v)
		}
	}
	return nil
}

// Importance is the means of what was added.
func (c *Collector) Importance() Importance {
	m := Importance{}
	for name, s := range c.sums {
		values := make([]float32, len(s.squares))
		for i, v := range s.squares {
			values[i] = float32(v) / float32(s.rows) // as it comes out of the file
		}
		m[name] = values
	}
	return m
}

// Draft is what was added as the file that llama-imatrix writes, and ReadImportance reads: name.in_sum2[columns] and
// name.counts[1] for each weight. The text had chunks, of size tokens each; dataset says what it was.
func (c *Collector) Draft(dataset string, chunks, size int) *gguf.Draft {
	d := &gguf.Draft{}
	d.Set("general.type", gguf.Text("imatrix"))
	d.Set("imatrix.datasets", gguf.List(gguf.KindString, gguf.Text(dataset)))
	d.Set("imatrix.chunk_count", gguf.Int(gguf.KindU32, int64(chunks)))
	d.Set("imatrix.chunk_size", gguf.Int(gguf.KindU32, int64(size)))
	f32, _ := gguf.TypeNamed("f32")
	add := func(name string, values []float64) {
		d.Tensors = append(d.Tensors, gguf.DraftTensor{Name: name, Type: f32, Dims: []int{len(values)},
			Write: func(w io.Writer) error {
				var b []byte
				for _, v := range values {
					b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
				}
				_, err := w.Write(b)
				return err
			}})
	}
	for _, name := range slices.Sorted(maps.Keys(c.sums)) {
		s := c.sums[name]
		add(name+".in_sum2", s.squares)
		add(name+".counts", []float64{float64(s.rows)})
	}
	return d
}
