package recipe

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/fucina-go/fucina/core/gguf"
	"github.com/fucina-go/fucina/core/par"
	"github.com/fucina-go/fucina/core/quant"
)

// Job is a model to be quantized.
type Job struct {
	File       *gguf.File
	Recipe     *Recipe
	Importance *Importance                // nil: none
	Override   func(tensor string) string // a format for a tensor, "" for the recipe's; nil: none
	Again      bool                       // also quantize what is quantized already
	Control    *par.Control               // limits and stops the work; nil: no limit
	Done       func(r Result)             // called for each tensor when it is written; nil: nobody asks
}

// Result is what became of a tensor.
type Result struct {
	Name      string
	From, To  gguf.Type
	Elements  int
	Bytes     int     // written
	Error     float64 // root of the mean square of the differences, 0 for a tensor that stays as it is
	Magnitude float64 // root of the mean square of the elements, 0 for such a tensor too
}

// ErrStopped is the error of a job that Control stopped.
var ErrStopped = errors.New("stopped")

// Draft returns the quantized model, whose tensors are encoded while it is written: a few rows at a time, so that
// memory does not grow with the model. Metadata stays as it is but for the version of the formats, the type of the file
// and, with importance, where that came from; tensors come in the order of their layers, by name within.
//
// Errors: no File or no Recipe; an architecture that says nothing of its size; formats that need importance without
// it; importance of another model; tensors that are quantized already, unless Again; what gguf.Draft.Write
// returns, later.
func (j *Job) Draft() (*gguf.Draft, error) {
	if j.File == nil || j.Recipe == nil {
		return nil, errors.New("a job needs a File and a Recipe: gguf.Open and recipe.ByName give them")
	}
	m, err := modelOf(j.File)
	if err != nil {
		return nil, err
	}
	m.Importance = j.Importance != nil
	tensors := slices.Clone(j.File.Tensors())
	slices.SortStableFunc(tensors, func(a, b gguf.Tensor) int {
		return cmp.Or(cmp.Compare(layerOf(a.Name), layerOf(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	weights := make([]Weight, len(tensors))
	for i, t := range tensors {
		weights[i] = Weight{t.Name, t.Dims}
	}
	formats, err := j.Recipe.Formats(m, weights)
	if err != nil {
		return nil, err
	}
	d := j.File.Draft()
	d.Tensors = d.Tensors[:0]
	for i := range tensors {
		t, err := j.tensor(&tensors[i], formats[i])
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", tensors[i].Name, err)
		}
		d.Tensors = append(d.Tensors, t)
	}
	j.describe(d)
	return d, nil
}

// describe sets the metadata of what is done, at the end, where llama.cpp has it. The keys of importance are those of
// llama-quantize; it cuts texts of more than 127 bytes, here at the end of a letter. Bytes that are no UTF-8, which a
// name may have, are left out: strings of GGUF have none.
func (j *Job) describe(d *gguf.Draft) {
	last := func(key string, v gguf.Value, known bool) {
		if d.Delete(key); known {
			d.Set(key, v)
		}
	}
	number := func(key string, n int, known bool) { last(key, gguf.Int(gguf.KindU32, int64(n)), known) }
	text := func(key, s string) {
		const most = 127
		s = strings.ToValidUTF8(s[:min(len(s), most)], "")
		last(key, gguf.Text(s), s != "")
	}
	number("general.quantization_version", 2, true)
	number("general.file_type", j.Recipe.FileType, true)
	if m := j.Importance; m != nil {
		text("quantize.imatrix.file", m.File)
		text("quantize.imatrix.dataset", m.Dataset)
		number("quantize.imatrix.entries_count", len(m.Weights), true)
		number("quantize.imatrix.chunks_count", m.Chunks, m.Chunks > 0)
	}
}

// importanceOf is the importance of the tensor's weights, nil if nothing is known of it.
func (j *Job) importanceOf(tensor string) []float32 {
	if j.Importance == nil {
		return nil
	}
	return j.Importance.Weights[tensor]
}

// modelOf reads what the choice of formats depends on.
func modelOf(f *gguf.File) (m Model, err error) {
	if m.Arch, err = f.String("general.architecture"); err != nil {
		return m, err
	}
	number := func(key string, fallback int) int {
		key = m.Arch + "." + key
		if !f.Has(key) {
			return fallback
		}
		if a, e := f.Ints(key); e == nil { // one for each layer
			for n := range a.Ints() {
				return int(n)
			}
		}
		n, e := f.Int(key)
		if e != nil && err == nil {
			err = e
		}
		return int(n)
	}
	m.Layers = number("block_count", 0)
	m.Heads = number("attention.head_count", 0)
	m.KVHeads = number("attention.head_count_kv", m.Heads)
	m.Experts = number("expert_count", 0)
	if err == nil && m.Layers < 1 {
		err = fmt.Errorf("the file says not how many layers it has: %s.block_count is missing", m.Arch)
	}
	return m, err
}

// tensor returns the draft of t in the format, nil to leave it as it is.
func (j *Job) tensor(t *gguf.Tensor, f *quant.Format) (gguf.DraftTensor, error) {
	if f != nil && j.Override != nil {
		if name := j.Override(t.Name); name != "" {
			other, ok := quant.ByName(name)
			if !ok {
				return gguf.DraftTensor{}, fmt.Errorf("no format is called %q", name)
			}
			f = other
		}
	}
	typ := t.Type
	if typ == gguf.I2S {
		typ, _ = gguf.TypeNamed("tq2_0") // what Import makes of it
	}
	from, plain := typ.Format()
	if f == nil || !plain || from == f {
		return j.draft(t, typ, func(t *gguf.Tensor, w io.Writer) (Result, error) {
			_, err := w.Write(t.Bytes())
			return Result{Bytes: len(t.Bytes())}, err
		}), nil
	}
	if from.Block > 1 && !j.Again {
		return gguf.DraftTensor{}, fmt.Errorf("is quantized already, as %s: each time costs precision, so begin "+
			"with a file of f16 or f32, or allow it", from.Name)
	}
	e := &encoder{control: j.Control, from: from, to: f, row: t.Dims[0]}
	if values := j.importanceOf(t.Name); values != nil {
		experts := 1
		if len(t.Dims) > 2 {
			experts = t.Dims[2]
		}
		if len(values) != e.row*experts {
			return gguf.DraftTensor{}, fmt.Errorf("the importance matrix has %d values for it, want %d: it is of "+
				"another model", len(values), e.row*experts)
		}
		e.importance, e.rows = values, t.Elements()/max(1, len(values))
	} else if j.Recipe.NeedsImportance(t.Name, f) {
		return gguf.DraftTensor{}, fmt.Errorf("becomes %s, for which an importance matrix is needed", f.Name)
	}
	id, _ := gguf.TypeNamed(f.Name)
	return j.draft(t, id, e.write), nil
}

// draft is t of the type to, which write writes; Done is told of what it returns. What the file's tensor took of memory
// is given back then.
func (j *Job) draft(t *gguf.Tensor, to gguf.Type, write func(t *gguf.Tensor, w io.Writer) (Result, error),
) gguf.DraftTensor {
	return gguf.DraftTensor{Name: t.Name, Type: to, Dims: t.Dims, Write: func(w io.Writer) error {
		of, err := t.Import()
		if err != nil {
			return fmt.Errorf("tensor %s: %w", t.Name, err)
		}
		r, err := write(&of, w)
		j.File.Forget(t.Bytes())
		if err == nil && j.Done != nil {
			r.Name, r.From, r.To, r.Elements = t.Name, of.Type, to, t.Elements()
			j.Done(r)
		}
		return err
	}}
}

// encoder writes one tensor in another format.
type encoder struct {
	control    *par.Control
	t          *gguf.Tensor // while it is written
	from, to   *quant.Format
	row        int       // elements
	importance []float32 // of all experts, nil for none
	rows       int       // of an expert, if there is importance
}

// chunkElements is about how many elements are decoded and encoded before they are written.
const chunkElements = 1 << 20

func (e *encoder) write(t *gguf.Tensor, w io.Writer) (r Result, err error) {
	e.t = t
	defer func() { e.t = nil }() // which may be a copy
	total := e.t.Elements() / max(1, e.row)
	chunk := max(1, min(total, chunkElements/max(1, e.row)))
	x, out := make([]float32, chunk*e.row), make([]byte, chunk*e.to.Size(e.row))
	errs := make([]error, chunk)
	squares := make([][2]float64, chunk)
	var difference, power float64
	for at := 0; at < total; at += chunk {
		n := min(chunk, total-at)
		ok := par.Split(e.control, n, max(1, 256/max(1, e.row)), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				b := out[e.to.Size(i*e.row):e.to.Size((i+1)*e.row)]
				errs[i] = e.encode(at+i, x[i*e.row:(i+1)*e.row], b, &squares[i])
			}
		})
		if !ok {
			return r, ErrStopped
		}
		for i := range n {
			if errors.Is(errs[i], quant.ErrStopped) {
				return r, ErrStopped
			}
			if errs[i] != nil {
				return r, fmt.Errorf("tensor %s, row %d: %w", e.t.Name, at+i, errs[i])
			}
			difference, power = difference+squares[i][0], power+squares[i][1]
		}
		if _, err := w.Write(out[:n*e.to.Size(e.row)]); err != nil {
			return r, err
		}
	}
	n := float64(max(1, e.t.Elements()))
	r = Result{Bytes: total * e.to.Size(e.row), Error: math.Sqrt(difference / n), Magnitude: math.Sqrt(power / n)}
	return r, nil
}

// encode encodes a row and adds up the squares of the differences and of the elements.
func (e *encoder) encode(row int, x []float32, out []byte, squares *[2]float64) error {
	size := e.from.Size(e.row)
	if err := e.from.Decode(x, e.t.Bytes()[row*size:(row+1)*size]); err != nil {
		return err
	}
	var importance []float32
	switch {
	case e.importance != nil:
		expert := row / e.rows
		importance = e.importance[expert*e.row : (expert+1)*e.row]
	case e.to.Importance: // where the recipe asks for none, all weights count the same
		importance = slices.Repeat([]float32{1}, e.row)
	}
	if err := e.to.EncodeUntil(out, x, importance, e.control.Stopped); err != nil {
		return err
	}
	y := make([]float32, e.row)
	if err := e.to.Decode(y, out); err != nil {
		return err
	}
	*squares = [2]float64{}
	for i, v := range x {
		d := float64(y[i]) - float64(v)
		squares[0] += float64(d * d)
		squares[1] += float64(v) * float64(v)
	}
	return nil
}
