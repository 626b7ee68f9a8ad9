// Package plot draws for scripts: curves, points with the regions of a classifier, and images, in the terminal as text
// and in files as PNG or SVG.
//
// The module plot and its figures live here. What is drawn comes from scripts through bindings/starlark; files are
// written as the interpreter writes them. A program that embeds the interpreter links this package, and the drawing
// libraries with it, only if it imports it and calls Add.
package plot

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"path"
	"strings"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/fucina-go/fucina/bindings/starlark"
	"github.com/fucina-go/fucina/core"
)

// sources is this package's text, in which the documentation of its builtins stands.
//
//go:embed *.go
var sources embed.FS

// Add gives the scripts of it the module plot.
func Add(it *starlark.Interp) {
	p := &plotter{it}
	it.Predeclare("plot", &starlarkstruct.Module{Name: "plot", Members: star.StringDict{
		"line":    star.NewBuiltin("plot.line", p.line),
		"scatter": star.NewBuiltin("plot.scatter", p.scatter),
		"images":  star.NewBuiltin("plot.images", p.images),
	}})
	it.Explain(sources, "p", (*figure)(nil))
}

// plotter makes figures for one interpreter.
type plotter struct{ it *starlark.Interp }

// drawing is what a figure shows.
type drawing interface {
	// text is the drawing in at most so many columns and about so many lines.
	text(columns, lines int) (string, error)
	// draw fills the canvas.
	draw(c draw.Canvas) error
	// size is how large it is unless somebody says otherwise: columns and lines of text, then pixels.
	size() (columns, lines, width, height int)
}

// figure is a drawing as a script sees it.
type figure struct {
	it   *starlark.Interp
	kind string
	drawing
}

var figureMethods = map[string]*star.Builtin{
	"show": star.NewBuiltin("show", show),
	"save": star.NewBuiltin("save", save),
}

func (f *figure) String() string        { return "<plot." + f.kind + ">" }
func (f *figure) Type() string          { return "figure" }
func (f *figure) Freeze()               {}
func (f *figure) Truth() star.Bool      { return true }
func (f *figure) Hash() (uint32, error) { return 0, errors.New("unhashable: figure") }

// Attr is a method of the figure, or nothing.
func (f *figure) Attr(name string) (star.Value, error) {
	if m, ok := figureMethods[name]; ok {
		return m.BindReceiver(f), nil
	}
	return nil, nil
}

// AttrNames lists the methods.
func (f *figure) AttrNames() []string { return []string{"save", "show"} }

// HoldsNothing marks that no tensor can be reached through it: what it draws was copied.
func (f *figure) HoldsNothing() {}

// What a figure may be as large as.
const (
	minColumns, maxColumns = 16, 1000
	minPixels, maxPixels   = 32, 8192
)

// show is p.show(width=…, height=…): prints the figure as text, so many columns wide and about so many lines high. It
// returns the figure.
func show(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	f := b.Receiver().(*figure)
	columns, lines, _, _ := f.size()
	if err := star.UnpackArgs(b.Name(), args, kwargs, "width?", &columns, "height?", &lines); err != nil {
		return nil, err
	}
	if columns < minColumns || columns > maxColumns || lines < 2 || lines > maxColumns {
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("got %d columns and %d lines", columns, lines),
			Hint: fmt.Sprintf("want %d to %d columns, 2 to %d lines", minColumns, maxColumns, maxColumns)}
	}
	text, err := f.it.Apart(drawingBytes, func() (star.Value, error) {
		text, err := f.text(columns, lines)
		return star.String(text), err
	})
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(f.it.Stdout(), string(text.(star.String)))
	return f, err
}

// drawingBytes is as how much text a drawing counts: it reads nothing that changes, and is left behind when the run has
// to stop.
const drawingBytes = 1 << 16

// save is p.save(path, width=…, height=…): writes the figure as a PNG or SVG file, by the end of its name, so many
// pixels wide and high. It returns the figure.
func save(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	f := b.Receiver().(*figure)
	_, _, width, height := f.size()
	var name string
	err := star.UnpackArgs(b.Name(), args, kwargs, "path", &name, "width?", &width, "height?", &height)
	if err != nil {
		return nil, err
	}
	if min(width, height) < minPixels || max(width, height) > maxPixels {
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("got %d × %d pixels", width, height),
			Hint: fmt.Sprintf("want %d to %d each way", minPixels, maxPixels)}
	}
	kind := strings.ToLower(path.Ext(name))
	if kind != ".png" && kind != ".svg" {
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("cannot write a file that ends in %q", kind),
			Hint: "want .png or .svg"}
	}
	file, err := f.it.Apart(drawingBytes, func() (star.Value, error) {
		var file bytes.Buffer
		err := f.write(&file, kind, pixels(width), pixels(height))
		return star.Bytes(file.String()), err
	})
	if err != nil {
		return nil, err
	}
	return f, f.it.Save(b.Name(), name, func(w io.Writer) error {
		_, err := io.WriteString(w, string(file.(star.Bytes)))
		return err
	})
}

// write writes the figure in the format of files that end in kind.
func (f *figure) write(to io.Writer, kind string, w, h vg.Length) error {
	if kind == ".svg" {
		c := vgsvg.New(w, h)
		if err := f.draw(draw.New(c)); err != nil {
			return err
		}
		_, err := c.WriteTo(to)
		return err
	}
	c := vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(dpi), vgimg.UseBackgroundColor(color.White))
	if err := f.draw(draw.New(c)); err != nil {
		return err
	}
	return png.Encode(to, c.Image())
}

// dpi is how many pixels an inch has.
const dpi = 96

func pixels(n int) vg.Length { return vg.Length(n) * vg.Inch / dpi }

// palette is the colours of series and classes: those of Okabe and Ito (2008), which people tell apart who do not see
// all colours.
var palette = []color.NRGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
	{0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0xb3, 0xa5, 0x00, 0xff}, {0x60, 0x60, 0x60, 0xff},
}

func colorOf(i int) color.NRGBA { return palette[i%len(palette)] }
