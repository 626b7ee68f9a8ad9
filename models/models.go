// Package models holds the model families, one Starlark file each, and what reading their weights
// takes. Tokenizers, samplers and caches are in its subpackages; running a family's file is up to
// bindings/starlark.
package models

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/gguf"
)

// FS is the family files. The file of a family is named after the architecture that GGUF files
// give.
//
//go:embed *.star
var FS embed.FS

// Families is the architectures there is a file for.
func Families() []string {
	entries, err := FS.ReadDir(".")
	if err != nil {
		panic(err) // an embedded folder can be read
	}
	var names []string
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), ".star"); name != "common" {
			names = append(names, name)
		}
	}
	return names
}

// Weights is an open GGUF file whose tensors are handed out under axis names.
type Weights struct {
	*gguf.File
	Name string // of the file
	Arch string // general.architecture
	env  *core.Env
	used map[string]bool
	name map[*core.Tensor]string // of what was handed out
}

// Open opens a GGUF model; open is nil for os.Open. Conversions of its tensors run in env.
func Open(env *core.Env, name string, open func(string) (fs.File, error)) (*Weights, error) {
	f, err := gguf.Open(name, open)
	if err != nil {
		return nil, err
	}
	arch, err := f.String("general.architecture")
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Weights{File: f, Name: name, Arch: arch, env: env, used: map[string]bool{},
		name: map[*core.Tensor]string{}}, nil
}

// Family is the file of the model's family. The error names an architecture that there is none for.
func (w *Weights) Family() (file string, err error) {
	if !slices.Contains(Families(), w.Arch) {
		return "", fmt.Errorf("%s is of the architecture %q; known are %s", w.Name, w.Arch,
			strings.Join(Families(), ", "))
	}
	return w.Arch + ".star", nil
}

// Tensor is the weight called name with the given axes, the slowest first, and their sizes. Its
// rows and columns may be spread over several axes: a matrix of 64 rows can be given as head=8,
// head_dim=8. Matrices that are quantized or of 16 bits keep their format and lie in panels, for products along their
// last axes, if there are such products for the format; vectors of 16 bits become f32. The tensor is shared and lives
// as long as it can be reached.
func (w *Weights) Tensor(name string, axes *axis.List, sizes []int) (*core.Tensor, error) {
	t, ok := w.File.Tensor(name)
	if !ok {
		return nil, fmt.Errorf("%s has no tensor %s", w.Name, name)
	}
	if !splits(t.Dims, sizes) {
		return nil, fmt.Errorf("%s: tensor %s is %s, want %s", w.Name, name, dimsText(t.Dims), wantText(axes, sizes))
	}
	if w.used[name] {
		return nil, fmt.Errorf("%s: tensor %s is taken twice", w.Name, name)
	}
	t, err := t.Import()
	if err != nil {
		return nil, fmt.Errorf("%s: tensor %s: %w", w.Name, name, err)
	}
	dt, ok := t.Type.DType()
	if !ok {
		return nil, fmt.Errorf("%s: tensor %s has elements of an unknown type, %s", w.Name, name, t.Type)
	}
	if !dt.IsFloat() && !dt.Quantized() {
		return nil, fmt.Errorf("%s: tensor %s has elements of the type %s, want fractions", w.Name, name, t.Type)
	}
	w.used[name] = true
	x := core.Borrow(t.Bytes(), w.File, dt, axes, sizes...)
	switch half := dt == dtype.F16 || dt == dtype.BF16; {
	case half && (len(t.Dims) < 2 || t.Dims[0] == 0):
		x = w.env.Cast(x, dtype.F32).Share()
	case len(t.Dims) > 2 && t.Dims[1]%core.PanelRows != 0: // a panel would have rows of two experts
		if half {
			x = w.env.Cast(x, dtype.F32).Share()
		}
	case half || dt.Quantized():
		x = w.env.Pack(x, t.Dims[0], w.File.Forget)
	}
	w.name[x] = name
	return x, nil
}

// Fingerprint tells a model from another: it is made of what the file says of its tensors and a few bytes of each.
func (w *Weights) Fingerprint() string {
	h := sha256.New()
	fmt.Fprintln(h, w.Arch)
	for _, t := range w.File.Tensors() {
		fmt.Fprintln(h, t.Name, t.Type, t.Dims)
		data := t.Bytes()
		h.Write(data[:min(64, len(data))])
		h.Write(data[len(data)/2:][:min(64, len(data)-len(data)/2)])
	}
	runtime.KeepAlive(w) // what is no more reached is unmapped
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// NameOf is what the file calls a tensor that was handed out; "" for any other.
func (w *Weights) NameOf(x *core.Tensor) string { return w.name[x] }

// splits tells whether sizes, slowest first, cut up dims, fastest first, each on its own.
func splits(dims, sizes []int) bool {
	k := 0
	for i := len(dims) - 1; i >= 0; i-- {
		n := 1
		for k < len(sizes) && (n < dims[i] || n == dims[i] && sizes[k] == 1) && sizes[k] > 0 {
			n *= sizes[k]
			k++
		}
		if n != dims[i] {
			return false
		}
	}
	return k == len(sizes)
}

func dimsText(dims []int) string {
	parts := make([]string, len(dims))
	for i, n := range dims {
		parts[len(dims)-1-i] = fmt.Sprint(n)
	}
	return strings.Join(parts, " × ")
}

func wantText(axes *axis.List, sizes []int) string {
	parts := make([]string, len(sizes))
	for i, n := range sizes {
		parts[i] = fmt.Sprintf("%s=%d", axes.At(i), n)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// Skip leaves out the tensors whose names begin with prefix.
func (w *Weights) Skip(prefix string) {
	for _, t := range w.Tensors() {
		if strings.HasPrefix(t.Name, prefix) {
			w.used[t.Name] = true
		}
	}
}

// Unused is the tensors of the file that nobody asked for.
func (w *Weights) Unused() []string {
	var names []string
	for _, t := range w.Tensors() {
		if !w.used[t.Name] {
			names = append(names, t.Name)
		}
	}
	return names
}

// Key is a metadata key of the architecture: "block_count" is "llama.block_count". A key that
// begins with a dot is taken as it is without it.
func (w *Weights) Key(name string) string {
	if whole, ok := strings.CutPrefix(name, "."); ok {
		return whole
	}
	return w.Arch + "." + name
}

// Missing tells whether err says that a metadata key is absent.
func Missing(err error) bool { return errors.Is(err, gguf.ErrMissing) }
