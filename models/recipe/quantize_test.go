package recipe

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fucina-go/fucina/core/gguf"
	"github.com/fucina-go/fucina/core/par"
	"github.com/fucina-go/fucina/core/quant"
)

const stories = "../../examples/data/stories260K.gguf"

func openModel(t *testing.T, name string) *gguf.File {
	t.Helper()
	f, err := gguf.Open(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// quantized runs a job, and opens and returns what it wrote.
func quantized(t *testing.T, j *Job) (*gguf.File, []byte) {
	t.Helper()
	d, err := j.Draft()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := d.Write(&out); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "out.gguf")
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return openModel(t, name), out.Bytes()
}

// TestReferenceFiles quantizes a model and compares with the files that llama.cpp made of it. Its build fuses products
// and sums, so that some blocks of formats that search for scales differ: at most twice the rates measured for each.
func TestReferenceFiles(t *testing.T) {
	dir := "../../../shared/data/tiny-random-archs"
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		dir = "../" + dir
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		t.Skip("the reference files are not beside the repository")
	}
	rates := map[string]float64{"q4_k": 0.022, "q6_k": 0.038}
	for _, name := range []string{"q8_0", "q4_0", "q4_k_m", "q6_k"} {
		t.Run(name, func(t *testing.T) {
			r, _ := ByName(name)
			got, _ := quantized(t, &Job{File: openModel(t, dir+"/qwen3-256-f16.gguf"), Recipe: r})
			want := openModel(t, dir+"/qwen3-256-"+name+".gguf")
			if a, b := strings.Join(got.Keys(), " "), strings.Join(want.Keys(), " "); a != b {
				t.Errorf("keys are\n%s, want\n%s", a, b)
			}
			for _, key := range want.Keys() {
				a, _ := got.Value(key)
				b, _ := want.Value(key)
				if a.Kind() != b.Kind() || !bytes.Equal(a.Raw(), b.Raw()) {
					t.Errorf("%s differs", key)
				}
			}
			blocks, different := map[string]int{}, map[string]int{}
			for i, w := range want.Tensors() {
				g := got.Tensors()[i]
				if g.Name != w.Name || g.Type != w.Type {
					t.Fatalf("tensor %d is %s of %s, want %s of %s", i, g.Name, g.Type, w.Name, w.Type)
				}
				_, size := w.Type.Block()
				for at := 0; at < len(w.Bytes()); at += size {
					blocks[w.Type.String()]++
					if !bytes.Equal(g.Bytes()[at:at+size], w.Bytes()[at:at+size]) {
						different[w.Type.String()]++
					}
				}
			}
			t.Logf("different blocks: %v of %v", different, blocks)
			for typ, n := range different {
				if float64(n) > rates[typ]*float64(blocks[typ]) {
					t.Errorf("%d of %d blocks of %s differ", n, blocks[typ], typ)
				}
			}
		})
	}
}

// TestReferenceDigests quantizes a trained model by every recipe: the files are llama.cpp's, byte for byte.
func TestReferenceDigests(t *testing.T) {
	data, err := os.ReadFile("testdata/stories260K.sha256")
	if err != nil {
		t.Fatal(err)
	}
	f := openModel(t, stories)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	for _, line := range lines {
		want, name, _ := strings.Cut(line, "  ")
		r, ok := ByName(name)
		if !ok {
			t.Fatalf("no recipe is called %q", name)
		}
		_, b := quantized(t, &Job{File: f, Recipe: r})
		if got := fmt.Sprintf("%x", sha256.Sum256(b)); got != want {
			t.Errorf("%s: %d bytes with the digest %s, want %s", name, len(b), got, want)
		}
	}
	if len(lines) != len(Recipes)-2 { // see testdata/SOURCE.md
		t.Errorf("%d recipes of %d were compared", len(lines), len(Recipes))
	}
}

// keepImportance is where TestReferenceImportance leaves its matrices, so that a reference can be made of them.
var keepImportance = flag.String("importance", "", "a folder to which TestReferenceImportance writes its matrices")

// TestReferenceImportance quantizes a trained model with an importance matrix: the files, with the metadata that says
// where it came from, are llama.cpp's, byte for byte; see testdata/SOURCE.md.
func TestReferenceImportance(t *testing.T) {
	f := openModel(t, stories)
	c := &Collector{sums: map[string]*sums{}}
	for _, x := range f.Tensors() {
		if len(x.Dims) > 1 {
			s := &sums{squares: make([]float64, x.Dims[0]), rows: []int{8}}
			for i := range s.squares {
				s.squares[i] = float64(8 * (1 + i*i%17))
			}
			c.sums[x.Name] = s
		}
	}
	dir := *keepImportance
	if dir == "" {
		dir = t.TempDir()
	}
	for _, tt := range []struct{ file, dataset, recipe, want string }{
		{"im.gguf", "tale.txt", "q4_0", "dd6c24cb42793c0a3ecf0893d7a2cd0a6f45449ac591dd5d0f9b98081ea1265f"},
		{"im.gguf", "tale.txt", "q4_k_m", "badad12e0db662459567483702b3caf853af3745157f02d8e1c43879ccfd9f36"},
		{"im.dat", strings.Repeat("a long tale, ", 12), "q5_1",
			"5be5c768a8332417ff3cd7ea32f2581f1c313129443332c0cf5ce1f1227bd87d"},
	} {
		var b bytes.Buffer
		write := c.Draft(tt.dataset, 2, 4).Write
		if tt.file == "im.dat" {
			write = func(w io.Writer) error { return c.WriteOld(w, tt.dataset, 2, 4) }
		}
		path := filepath.Join(dir, tt.file)
		if err := errors.Join(write(&b), os.WriteFile(path, b.Bytes(), 0o600)); err != nil {
			t.Fatal(err)
		}
		m, err := ReadImportance(path, openFile)
		if err != nil {
			t.Fatal(err)
		}
		m.File = tt.file
		r, _ := ByName(tt.recipe)
		out, written := quantized(t, &Job{File: f, Recipe: r, Importance: m})
		keys := out.Keys()
		if got := strings.Join(keys[len(keys)-4:], " "); got != "quantize.imatrix.file quantize.imatrix.dataset "+
			"quantize.imatrix.entries_count quantize.imatrix.chunks_count" {
			t.Errorf("the last keys are %s", got)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(written)); got != tt.want {
			t.Errorf("%s with %s: %d bytes with the digest %s, want %s", tt.recipe, tt.file, len(written), got, tt.want)
		}
	}
}

// TestImportanceMetadata: what is not known of a matrix is not told, nor what an earlier one left; texts are cut.
func TestImportanceMetadata(t *testing.T) {
	r, _ := ByName("q8_0")
	long := strings.Repeat("ä", 100)
	old := openModel(t, stories).Draft()
	old.Set("quantize.imatrix.dataset", gguf.Text("of another time"))
	job := &Job{File: written(t, old, ""), Recipe: r, Importance: &Importance{File: long}}
	out, _ := quantized(t, job)
	if s, err := out.String("quantize.imatrix.file"); err != nil || s != long[:126] {
		t.Errorf("the file is %q, %v", s, err)
	}
	if n, err := out.Int("quantize.imatrix.entries_count"); err != nil || n != 0 {
		t.Errorf("%d entries, %v", n, err)
	}
	for _, key := range []string{"quantize.imatrix.dataset", "quantize.imatrix.chunks_count"} {
		if out.Has(key) {
			t.Errorf("%s is told", key)
		}
	}
	latin := "\xe4" + strings.Repeat("a", 126)
	for _, text := range []string{strings.Repeat("\xff", 127), latin} {
		job.Importance = &Importance{File: text + "b", Dataset: text}
		out, _ = quantized(t, job)
		for _, key := range []string{"quantize.imatrix.file", "quantize.imatrix.dataset"} {
			if s, err := out.String(key); err != nil || s != text {
				t.Errorf("%s is %q, %v; want %q", key, s, err, text)
			}
		}
	}
	job.Importance = nil
	if out, _ = quantized(t, job); !out.Has("quantize.imatrix.dataset") || out.Has("quantize.imatrix.file") {
		t.Error("without a matrix, what is told of one has changed")
	}
}

// TestQuantize quantizes a trained model in many ways, and reads the result and its report.
func TestQuantize(t *testing.T) {
	f := openModel(t, stories)
	importance := &Importance{Weights: map[string][]float32{}}
	for _, x := range f.Tensors() {
		values := make([]float32, x.Dims[0])
		for i := range values {
			values[i] = 1 + float32(i%3)
		}
		importance.Weights[x.Name] = values
	}
	for _, name := range []string{"f32", "f16", "q8_0", "q4_0", "q5_1", "iq4_nl", "q4_k_m", "iq2_xs", "mxfp4_moe"} {
		t.Run(name, func(t *testing.T) {
			r, _ := ByName(name)
			total := 0
			j := &Job{File: f, Recipe: r, Importance: importance, Done: func(r Result) {
				total += r.Bytes
				if r.From != r.To && !(r.Error <= 0.2*r.Magnitude && r.Magnitude > 0) {
					t.Errorf("%s as %s: error %v of %v", r.Name, r.To, r.Error, r.Magnitude)
				}
			}}
			out, written := quantized(t, j)
			n, err := out.Int("general.file_type")
			if int(n) != r.FileType || err != nil {
				t.Errorf("general.file_type is %d, want %d, %v", n, r.FileType, err)
			}
			// What llama-quantize makes of the same file has these sizes; some rows have 172 elements. To know how many
			// weights the matrix has takes 64 bytes more.
			sizes := map[string]int{"f16": 601248, "q8_0": 379168, "q4_0": 277024, "q5_1": 315168, "q4_k_m": 304096}
			if want, ok := sizes[name]; ok && len(written) != want+64 {
				t.Errorf("%d bytes, want %d", len(written), want+64)
			}
			sum := 0
			for _, x := range out.Tensors() {
				sum += len(x.Bytes())
			}
			if sum != total || len(out.Tensors()) != len(f.Tensors()) {
				t.Errorf("%d tensors of %d bytes, the report has %d", len(out.Tensors()), sum, total)
			}
		})
	}
}

// written writes the draft, with a layer under the key if there is one, and opens it.
func written(t *testing.T, d *gguf.Draft, key string) *gguf.File {
	t.Helper()
	if key != "" {
		d.Set(key, gguf.Int(gguf.KindU32, 1))
		defer d.Delete(key)
	}
	var b bytes.Buffer
	if err := d.Write(&b); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "written.gguf")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return openModel(t, name)
}

func TestQuantizeErrors(t *testing.T) {
	f := openModel(t, stories)
	recipe := func(name string) *Recipe {
		r, ok := ByName(name)
		if !ok {
			t.Fatal(name)
		}
		return r
	}
	small, _ := quantized(t, &Job{File: f, Recipe: recipe("q8_0")})
	stopped := &par.Control{}
	stopped.Stop()
	wide := &gguf.Draft{Tensors: []gguf.DraftTensor{{Name: "blk.0.attn_q.weight", Type: small.Tensors()[0].Type,
		Dims: []int{256, 2}, Write: func(w io.Writer) error { _, err := w.Write(make([]byte, 544)); return err }}}}
	wide.Set("general.architecture", gguf.Text("llama"))
	tests := []struct {
		name string
		job  *Job
		want string
	}{
		{"no importance", &Job{File: written(t, wide, "llama.block_count"), Recipe: recipe("iq2_xs"), Again: true},
			"tensor blk.0.attn_q.weight: becomes iq2_xs, for which an importance matrix is needed"},
		{"no layers", &Job{File: written(t, wide, ""), Recipe: recipe("q8_0")}, "llama.block_count is missing"},
		{"again", &Job{File: small, Recipe: recipe("q4_0")}, "quantized already, as q8_0"},
		{"other model", &Job{File: f, Recipe: recipe("q4_0"), Importance: &Importance{
			Weights: map[string][]float32{"token_embd.weight": {1, 2}}}},
			"tensor token_embd.weight: the importance matrix has 2 values for it, want 64: it is of another model"},
		{"no format", &Job{File: f, Recipe: recipe("q8_0"), Override: func(string) string { return "q9" }},
			`no format is called "q9"`},
		{"no rows", &Job{File: f, Recipe: recipe("q8_0"), Override: func(string) string { return "q4_k" }}, ""},
	}
	for _, tt := range tests {
		d, err := tt.job.Draft()
		if err == nil {
			err = d.Write(io.Discard)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
	d, err := (&Job{File: f, Recipe: recipe("q8_0"), Control: stopped}).Draft()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Write(io.Discard); !errors.Is(err, ErrStopped) {
		t.Errorf("got %v, want %v", err, ErrStopped)
	}
	if out, _ := quantized(t, &Job{File: small, Recipe: recipe("q4_0"), Again: true}); len(out.Tensors()) == 0 {
		t.Error("nothing came of it")
	}
}

func openFile(name string) (fs.File, error) { return os.Open(name) }

// oldMatrix is an importance matrix in the old format, of one tensor.
func oldMatrix(calls int32, values ...float32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 1)
	b = append(binary.LittleEndian.AppendUint32(b, 1), 'a')
	b = binary.LittleEndian.AppendUint32(b, uint32(calls))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(values)))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// behind is such a matrix with what may follow it.
func behind(chunks, length int32, text string) []byte {
	b := binary.LittleEndian.AppendUint32(oldMatrix(4, 8, 12), uint32(chunks))
	return append(binary.LittleEndian.AppendUint32(b, uint32(length)), text...)
}

// TestImportance reads a matrix in both formats.
func TestImportance(t *testing.T) {
	dir := t.TempDir()
	f32, _ := gguf.TypeNamed("f32")
	tensor := func(name string, dims []int, values ...float32) gguf.DraftTensor {
		return gguf.DraftTensor{Name: name, Type: f32, Dims: dims, Write: func(w io.Writer) error {
			return binary.Write(w, binary.LittleEndian, values)
		}}
	}
	write := func(name string, data []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	var about gguf.Draft // metadata
	of := func(tensors ...gguf.DraftTensor) []byte {
		var b bytes.Buffer
		about.Tensors = tensors
		if err := about.Write(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	sums := tensor("a.in_sum2", []int{2, 2}, 2, 4, 6, 8)
	telling := func(key string, v gguf.Value) []byte {
		defer about.Delete(key)
		about.Set(key, v)
		return of(sums, tensor("a.counts", []int{1, 2}, 2, 0))
	}
	tests := []struct {
		name string
		data []byte
		want []float32
		err  string
	}{
		{"text of old", behind(3, 4, "tale"), []float32{2, 3}, ""},
		{"no chunks", behind(-1, 4, "tale"), nil, "says that its text had -1 chunks"},
		{"long text", behind(1, 5, "tale"), nil, "the name of its text has 5 bytes, 4 follow"},
		{"cut", behind(1, 5, "")[:31], nil, "ends before the name of its text"},
		{"chunks alone", behind(1, 5, "")[:29], []float32{2, 3}, ""},
		{"many chunks", telling("imatrix.chunk_count", gguf.Int(gguf.KindU64, 1<<40)), nil,
			"imatrix.chunk_count is 1099511627776, want 0 … 2147483647"},
		{"chunks of text", telling("imatrix.chunk_count", gguf.Text("3")), nil, "imatrix.chunk_count"},
		{"a text that is none", telling("imatrix.datasets", gguf.Bool(true)), nil, "imatrix.datasets"},
		{"gguf", of(sums, tensor("a.counts", []int{1, 2}, 2, 0)), []float32{1, 2, 1, 1}, ""},
		{"old", oldMatrix(4, 8, 12), []float32{2, 3}, ""},
		{"no counts", of(sums), nil, "a has no counts"},
		{"odd counts", of(sums, tensor("a.counts", []int{3}, 1, 2, 3)), nil, "a has 4 sums of f32 and 3 counts of f32"},
		{"model", of(tensor("w", []int{1}, 1)), nil, "no tensor is called ….in_sum2, so it is none"},
		{"infinite", oldMatrix(1, 3, float32(math.Inf(1))), nil,
			"a has +Inf at place 1, want a finite number of 0 or more"},
		{"negative", oldMatrix(1, -3), nil, "a has -3 at place 0"},
		{"short", oldMatrix(1, 1, 2)[:20], nil, `"a" has 2 values, 3 bytes follow`},
		{"text", []byte("once upon a time"), nil, "says that it has"},
		{"empty", nil, nil, "ends before the number of tensors"},
	}
	for _, tt := range tests {
		m, err := ReadImportance(write(tt.name, tt.data), openFile)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: got %v, want %s", tt.name, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		for i, v := range tt.want {
			if m.Weights["a"][i] != v {
				t.Errorf("%s: %v, want %v", tt.name, m.Weights["a"], tt.want)
				break
			}
		}
	}
}

// FuzzImportance: bytes of any kind are a matrix of sound numbers or an error.
func FuzzImportance(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x01\x00\x00\x00a\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x80\x3f"))
	f.Add([]byte("\xff\xff\xff\x7f"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := importanceOld(data); err == nil && len(m.Weights) == 0 {
			t.Error("neither a matrix nor an error")
		}
	})
}

// TestExperts: each expert of a tensor is encoded with an importance of its own.
func TestExperts(t *testing.T) {
	const row, rows, experts = 256, 2, 3
	x := make([]float32, row*rows*experts)
	importance := make([]float32, row*experts)
	for i := range x {
		x[i] = float32(math.Sin(float64(i * i)))
	}
	for i := range importance {
		importance[i] = float32(1 + i*i%17)
	}
	f32, _ := gguf.TypeNamed("f32")
	d := &gguf.Draft{Tensors: []gguf.DraftTensor{{Name: "blk.0.ffn_up_exps.weight", Type: f32,
		Dims:  []int{row, rows, experts},
		Write: func(w io.Writer) error { return binary.Write(w, binary.LittleEndian, x) }}}}
	d.Set("general.architecture", gguf.Text("llama"))
	r, _ := ByName("q4_k_s")
	out, _ := quantized(t, &Job{File: written(t, d, "llama.block_count"), Recipe: r,
		Importance: &Importance{Weights: map[string][]float32{"blk.0.ffn_up_exps.weight": importance}}})
	f, _ := quant.ByName("q4_k")
	want := make([]byte, f.Size(len(x)))
	for e := range experts {
		lo, hi := e*row*rows, (e+1)*row*rows
		if err := f.Encode(want[f.Size(lo):f.Size(hi)], x[lo:hi], importance[e*row:(e+1)*row]); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.Tensors()[0].Bytes(); !bytes.Equal(got, want) {
		t.Errorf("got %x\nwant %x", got[:64], want[:64])
	}
}

// eager is a file whose last bytes come together with io.EOF, as those of an archive may.
type eager struct {
	fs.File
	r io.Reader
}

func (e eager) Read(p []byte) (int, error) { return e.r.Read(p) }

// TestImportanceWithEOF reads a whole file that says at once that it ends.
func TestImportanceWithEOF(t *testing.T) {
	data := binary.LittleEndian.AppendUint32([]byte{1, 0, 0, 0, 1, 0, 0, 0, 'a', 2, 0, 0, 0, 1, 0, 0, 0},
		math.Float32bits(6))
	name := filepath.Join(t.TempDir(), "eager")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := ReadImportance(name, func(name string) (fs.File, error) {
		f, err := os.Open(name)
		return eager{f, iotest.DataErrReader(f)}, err
	})
	if err != nil || len(m.Weights["a"]) != 1 || m.Weights["a"][0] != 3 {
		t.Errorf("%v, %v", m, err)
	}
}
