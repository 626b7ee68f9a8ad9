package plot

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fucina-go/fucina/bindings/starlark"
)

// run runs a script whose files are in the folder it returns, and what it prints.
func run(t *testing.T, src string) (printed, dir string, err error) {
	t.Helper()
	var out bytes.Buffer
	dir = t.TempDir()
	it := starlark.New(starlark.Config{Stdout: &out, Dir: dir})
	defer it.Close()
	Add(it)
	err = it.RunSource(context.Background(), "plot.star", []byte(src))
	return out.String(), dir, err
}

func TestText(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{`f = plot.line({"a": [1, 2, 3, 2], "b": tensor([3.0, 1.0, 2.0, 2.0], "x")}, title="Two")
f.show(width=40, height=8)`, `
  Two
   3 ┼••                ╭─────╮
 2.5 ┤ ••••        ╭────╯     ╰────╮
   2 ┤    •••╭─────╯    ••••••••••••••
 1.5 ┤  ╭───••••   ••••••
   1 ┼──╯      •••••
     └┬───────┬───────┬───────┬───────┬
      0     0.75     1.5    2.25      3
     ─ a   • b
`},
		{`plot.line([0.001, 0.1, 1, 100], log=True).show(width=40, height=9)`, `
   100 ┤                           ╭──
    10 ┤                      ╭────╯
     1 ┤              ╭───────╯
   0.1 ┤       ╭──────╯
  0.01 ┤  ╭────╯
 0.001 ┼──╯
       └┬───────┬──────┬───────┬──────┬
        0     0.75    1.5    2.25     3
`},
		// A dict that lacks a name is passed over, and so is what is no number.
		{`h = [{"step": 0, "v": 4.0}, {"step": 5, "loss": float("nan"), "v": 3.0}, {"step": 10, "loss": 2.0, "v": 2.0}]
plot.line(h, ("v", "loss"), x="step").show(30, 6)`, `
  4┼──────╮
  3┤      ╰───────────╮
  2┤                  ╰────•
   └┬─────┬─────┬─────┬─────┬
    0    2.5    5    7.5   10
   ─ v   • loss
`},
		{`plot.scatter(tensor([[0, 0], [1, 1], [0, 1.0]], "row xy"), [0, 1, 2],
    regions=lambda p: p.sum("xy").gt(1.0)).show(24, 8)`, `
  1.06│+░░░░░░░░░░░░░░░x
      │    ░░░░░░░░░░░░░
      │       ░░░░░░░░░░
      │           ░░░░░░
 -0.06│o             ░░░
      └─────────────────
       -0.06        1.06
`},
		{`plot.images(stack([linspace(0, 1, 5, "x"), linspace(1, 0, 5, "x")], "batch").expand(y=4).order("batch y x"),
    titles=["up", 7]).show()`, `
up    7
 ░▒▓█ █▓▒░
 ░▒▓█ █▓▒░
`},
		{`print(plot.line([1]), plot.images(zeros(y=2, x=2)))`, "\n<plot.line> <plot.images>\n"},
	} {
		got, _, err := run(t, c.src)
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
		} else if diff := cmp.Diff(c.want[1:], got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s\n%s", c.src, diff, got)
		}
	}
}

// Files show what was drawn.
func TestFiles(t *testing.T) {
	_, dir, err := run(t, `
f = plot.line({"<loss>": [3, 2, 1], "other": [1, 2, 3]}, title="A title", xlabel="step")
f.save("line.svg").save("line.png", width=300, height=200).save("again.png", width=300, height=200)
f.save("line.PNG")
p = plot.scatter(randn(batch=20, in_=2), regions=lambda x: x.at(in_=0).gt(0))
p.save("scatter.png").save("scatter.svg")
i = plot.images(tensor([[0, 1], [1, 0]], "y x").expand(batch=3).order("batch y x"), titles=["a", "b", "c"], columns=3)
i.save("images.png", width=304, height=128).save("images.svg")
plot.images(stack([ones(y=4, x=4), zeros(y=4, x=4), zeros(y=4, x=4)], "channel")).save("red.png")
`)
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, name := range []string{"line.svg", "scatter.svg", "images.svg"} {
		d, texts := xml.NewDecoder(bytes.NewReader(read(name))), ""
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if text, ok := token.(xml.CharData); ok {
				texts += string(text) + "\n"
			}
		}
		if name == "line.svg" && (!strings.Contains(texts, "<loss>") || !strings.Contains(texts, "A title")) {
			t.Errorf("%s has the texts %q", name, texts)
		}
	}
	shows := func(name string, width, height int, colours ...[3]uint32) {
		img, err := png.Decode(bytes.NewReader(read(name)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if size := img.Bounds().Size(); size != (image.Point{X: width, Y: height}) {
			t.Errorf("%s is %v", name, size)
		}
		found := map[[3]uint32]int{}
		for y := range height {
			for x := range width {
				r, g, b, _ := img.At(x, y).RGBA()
				found[[3]uint32{r >> 8, g >> 8, b >> 8}]++
			}
		}
		for _, c := range colours {
			if found[c] < 10 {
				t.Errorf("%s has the colour %v %d times", name, c, found[c])
			}
		}
	}
	blue, orange := [3]uint32{0, 0x72, 0xb2}, [3]uint32{0xd5, 0x5e, 0}
	shows("line.png", 300, 200, blue, orange)
	shows("line.PNG", 640, 400, blue, orange)
	shows("scatter.png", 560, 520, blue, [3]uint32{0xbf, 0xdb, 0xeb}, [3]uint32{0xf4, 0xd6, 0xbf})
	shows("images.png", 304, 128, [3]uint32{0, 0, 0}, [3]uint32{255, 255, 255})
	shows("red.png", 32, 32, [3]uint32{255, 0, 0})
	if !bytes.Equal(read("line.png"), read("again.png")) {
		t.Error("the same figure gives other bytes")
	}
}

// TestExtremes draws numbers so great, so small and so close together that differences overflow or vanish.
func TestExtremes(t *testing.T) {
	_, _, err := run(t, `
def draw(figure):
    figure.show()
    figure.save("p.png", width=120, height=90)
    figure.save("p.svg", width=120, height=90)

def points(*rows):
    return tensor(list(rows), "point xy", dtype="f64")

draw(plot.line([1e308, 2, -1e308, 7]))
draw(plot.line([1e300, -1e300]))
draw(plot.line([1, 2, 3], x=[-1e300, 0, 1e300]))
draw(plot.images(tensor([[[1e308, -1e308], [3, 4]]], "batch y x", dtype="f64")))
draw(plot.scatter(points([1e300, -1e300], [-1e300, 1e300], [1e308, 3])))
draw(plot.scatter(points([1, 1e-320], [2, 0])))
draw(plot.scatter(points([1e300, 1e300])))
draw(plot.line([1e300, 1e-300, 1], log=True))
for one in [0, 5e-324, 1, -7, 1e17, 1e20, 1e300]:
    draw(plot.line([one]))
    draw(plot.line([one, one * (1 + 2e-16)]))
    draw(plot.line([1, 2], x=[one, one * (1 + 2e-16)]))
    if one > 0:
        draw(plot.line([one, one], log=True))
`)
	if err != nil {
		t.Error(err)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{`plot.line([])`, "plot.line: got no number to draw"},
		{`plot.line([float("nan")])`, "plot.line: got no number to draw"},
		{`plot.line([1e308, -1e308])`, "plot.line: got no number to draw"},
		{`plot.scatter(tensor([[1e308, 1.0]], "at xy", dtype="f64"))`, "plot.scatter: got no point to draw"},
		{`plot.line([1, "a"])`,
			"plot.line: values[1] is a string, want a number"},
		{`plot.line(ones(a=2, b=2))`,
			"plot.line: values is f32[a=2, b=2], want one axis"},
		{`plot.line({"a": [1]}, x=[1, 2])`,
			`plot.line: values["a"] has 1 numbers, but x 2`},
		{`plot.line([0.0, 1.0], log=True)`,
			"plot.line: a logarithmic scale has no 0; leave out log"},
		{`plot.line([{"a": 1}], "b")`, `plot.line: no dict has "b"`},
		{`plot.line([{"a": 1}], "a", x="b")`, `plot.line: values[0] has no "b"`},
		{`plot.line([1], "a")`,
			"got names in y, but values is no list of dicts"},
		{`plot.line([1]).show(width=3)`,
			"show: got 3 columns and 16 lines; want 16 to 1000 columns"},
		{`plot.line([1]).save("a.gif")`,
			`save: cannot write a file that ends in ".gif"; want .png or .svg`},
		{`plot.line([1]).save("a.png", width=1 << 20)`,
			"save: got 1048576 × 400 pixels; want 32 to 8192 each way"},
		{`plot.line([1]).save("no/a.png")`,
			"save: cannot save no/a.png: there is no folder no"},
		{`plot.scatter(ones(a=3))`,
			"plot.scatter: points is f32[a=3], want two axes, one of size 2"},
		{`plot.scatter(ones(a=3, b=2), [1])`,
			"plot.scatter: classes has 1 numbers for 3 points"},
		{`plot.scatter(ones(a=1, b=2), [0.5])`,
			"plot.scatter: classes[0] is 0.5, want a whole number from 0"},
		{`plot.scatter(ones(a=1, b=2), regions=lambda p: p)`,
			"the result of regions is f32[a=25600, b=2], want one axis"},
		{`plot.scatter(ones(a=1, b=2), regions=lambda p: fail("own"))`, "own"},
		{`plot.images(ones(a=3))`,
			"plot.images: x is f32[a=3], want [batch, y, x]"},
		{`plot.images(ones(b=1, c=2, y=3, x=3))`,
			"plot.images: x has 2 channels, want 1 or 3; x.slice(channel"},
		{`plot.images(ones(b=2, y=3, x=3), ["a"])`,
			"plot.images: titles is not a list of 2 texts"},
		{`plot.images(ones(b=0, y=3, x=3))`,
			"plot.images: x is f32[b=0, y=3, x=3], want 1 to 1024 images"},
		{`plot.images(ones(b=500, y=3, x=3), columns=500).save("a.png", width=600, height=64)`,
			"500 images do not fit"},
	} {
		if _, _, err := run(t, c.src); err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "internal") {
			t.Errorf("%s: got %v, want %s", c.src, err, c.want)
		}
	}
}

// help shows what the functions and the methods of a figure are for.
func TestHelp(t *testing.T) {
	got, _, err := run(t, `help("plot.line")
help("plot.scatter")
help("plot.images")
help(plot.line([1]).show)
help(plot.line([1]).save)`)
	for _, want := range []string{"plot.line(values,", "plot.scatter(points,", "plot.images(x,", "p.show(width",
		"p.save(path,"} {
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%v; there is no %q in\n%s", err, want, got)
		}
	}
}

// A drawing ends when the run has to stop. The best of some tries counts.
func TestInterrupt(t *testing.T) {
	if testing.Short() {
		t.Skip("times out of the ordinary under the race detector")
	}
	for name, src := range map[string]string{
		"text":    "for i in range(1 << 20): f.show()",
		"png":     "for i in range(1 << 20): f.save('a.png')",
		"svg":     "for i in range(1 << 20): f.save('a.svg')",
		"large":   "for i in range(1 << 20): small.save('a.png', width=8000, height=8000)",
		"scatter": "for i in range(1 << 20): points.save('a.png')",
	} {
		t.Run(name, func(t *testing.T) {
			it := starlark.New(starlark.Config{Stdout: io.Discard, Dir: t.TempDir()})
			defer it.Close()
			Add(it)
			const setup = `
f = plot.line(randn(x=1 << 18))
small = plot.line([1, 2])
points = plot.scatter(randn(point=1 << 17, xy=2))`
			if _, err := it.Eval(context.Background(), "setup", setup); err != nil {
				t.Fatal(err)
			}
			best := time.Hour
			for tries := 0; tries < 10 && best >= 50*time.Millisecond; tries++ {
				ctx, cancel := context.WithCancel(context.Background())
				var stopped time.Time
				timer := time.AfterFunc(100*time.Millisecond, func() {
					stopped = time.Now()
					cancel()
				})
				_, err := it.Eval(ctx, "work", src)
				took := time.Since(stopped)
				if timer.Stop() || !errors.Is(err, context.Canceled) {
					t.Fatalf("ended with %v before it was interrupted", err)
				}
				cancel()
				best = min(best, took)
			}
			if best >= 50*time.Millisecond {
				t.Errorf("stopped %v after the interrupt, want at most 50 ms", best)
			}
		})
	}
}
