package kv

import (
	"bytes"
	"io/fs"
	"slices"
	"testing"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/safetensors"
)

type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error               { return nil }
func (inMemory) Stat() (fs.FileInfo, error) { return nil, fs.ErrInvalid }

// readBytes is Read of a file in memory.
func readBytes(env *core.Env, data []byte) (*Cache, []int32, error) {
	f, err := safetensors.Open("a.kv", func(string) (fs.File, error) { return inMemory{bytes.NewReader(data)}, nil })
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	return Read(env, f, "model", 2, func(c *Cache) error {
		defer env.ShapeOnly(env.ShapeOnly(true))
		run(c, 0.5)
		return nil
	})
}

// pass is a pass of one row through a layer of attention and a recurrent one.
func pass(c *Cache, x float64) []float32 { return run(c, x).Float32s() }

func run(c *Cache, x float64) *core.Tensor {
	k := floats(c.env, "row kv_head head_dim", []int{1, 1, 2}, x, 1-x)
	y := Batch{{c, 1}}.Attend(0, core.PagedAttention{Q: k.Rename("kv_head", "head"), K: k, V: k, Window: 40})
	w := floats(c.env, "channel kernel", []int{2, 3}, 4, 2, 1, 4, 2, 1)
	z := Batch{{c, 1}}.Convolve(1, y.At("head", 0).Rename("head_dim", "channel"), w)
	c.Commit(1)
	return z
}

// What was written is read again, and goes on alike.
func TestFile(t *testing.T) {
	env := core.NewEnv(0, 0)
	c := New(env, 2)
	var tokens []int32
	for i := range 500 {
		pass(c, float64(i%7)/7)
		tokens = append(tokens, int32(i))
	}
	var file bytes.Buffer
	if err := c.Write(&file, "model", tokens); err != nil {
		t.Fatal(err)
	}
	d, got, err := readBytes(env, file.Bytes())
	if err != nil || !slices.Equal(got, tokens) || d.Len() != 500 {
		t.Fatalf("got %d tokens, length %d, %v", len(got), d.Len(), err)
	}
	if x, y := pass(c, 0.5), pass(d, 0.5); !slices.Equal(x, y) {
		t.Errorf("got %v, want %v", y, x)
	}
	if d.Reach(500) != 500 || d.Reach(499) != 0 {
		t.Errorf("it goes back to %d and %d", d.Reach(500), d.Reach(499))
	}
}

// What a layer holds must have the shape of what the model makes there.
func TestFileOfOtherShapes(t *testing.T) {
	env := core.NewEnv(0, 0)
	c := New(env, 2)
	pass(c, 0.5)
	var file bytes.Buffer
	if err := c.Write(&file, "model", []int32{7}); err != nil {
		t.Fatal(err)
	}
	used := env.Memory().InUse
	for _, change := range []struct{ old, new, want string }{
		{`"shape":[2,2]`, `"shape":[1,4]`, "layer 1: rows are f32[row=1, channel=4], want f32[row=2, channel=2]"},
		{`"shape":[2,2]`, `"shape":[4,1]`, "layer 1: rows are f32[row=4, channel=1], want f32[row=2, channel=2]"},
		{`\"row\",`, `\"raw\",`, "layer 1: rows are f32[raw=2, channel=2], want f32[row=2, channel=2]"},
		{`\"Rows\":`, `\"rest\":`, "layer 1: rows are none, want f32[row=2, channel=2]"},
		{`\"Pages\":1`, `\"Pages\":0`,
			"layer 0: keys are none, want f32[kv_head=1, key_panel=4, head_dim=2, key_lane=16]"},
		{`\"Window\":40`, `\"Window\":41`, "layer 0: a window of 41, want 40"},
	} {
		bad := bytes.Replace(file.Bytes(), []byte(change.old), []byte(change.new), 1)
		if bytes.Equal(bad, file.Bytes()) {
			t.Errorf("nothing to change: %s", change.old)
		}
		if _, _, err := readBytes(env, bad); err == nil || err.Error() != change.want {
			t.Errorf("%s: got %v, want %s", change.new, err, change.want)
		}
		if now := env.Memory().InUse; now != used {
			t.Errorf("%s: %d bytes are in use, before %d", change.new, now, used)
		}
	}
}

// A cache that the budget has no room for leaves nothing behind.
func TestFileOverBudget(t *testing.T) {
	env := core.NewEnv(0, 0)
	c := New(env, 2)
	for range 300 {
		pass(c, 0.5)
	}
	var file bytes.Buffer
	if err := c.Write(&file, "model", make([]int32, 300)); err != nil {
		t.Fatal(err)
	}
	whole := c.Bytes()
	for part := range int64(8) {
		env := core.NewEnv(whole*(part+1)/10, 1)
		err := func() (err error) {
			defer core.Recover(&err)
			_, _, err = readBytes(env, file.Bytes())
			return err
		}()
		if err == nil {
			t.Fatalf("a budget of %d bytes was enough for %d", whole*(part+1)/10, whole)
		}
		if n := env.Memory().InUse; n != 0 {
			t.Errorf("%d bytes are in use after: %v", n, err)
		}
	}
}

// Whatever is in a file, reading it and using what was read gives an error or works.
func FuzzRead(f *testing.F) {
	env := core.NewEnv(1<<24, 1)
	c := New(env, 2)
	for i := range 3 {
		pass(c, float64(i))
	}
	var file bytes.Buffer
	if err := c.Write(&file, "model", []int32{1, 2, 3}); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes())
	f.Add(bytes.Replace(file.Bytes(), []byte(`Pages\":1`), []byte(`Pages\":0`), 1))
	f.Add(bytes.Replace(file.Bytes(), []byte(`\"row\",`), []byte(`\"raw\",`), 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		env := core.NewEnv(1<<24, 1)
		defer env.Close()
		c, _, err := readBytes(env, data)
		if err != nil {
			return
		}
		func() {
			defer core.Recover(&err)
			pass(c, 0.5)
			c.Truncate(2)
			c.Fork().Free()
		}()
		c.Free()
	})
}
