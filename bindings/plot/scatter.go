package plot

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"strconv"
	"strings"

	star "go.starlark.net/starlark"
	gonumplotter "gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/fucina-go/fucina/bindings/starlark"
	"github.com/fucina-go/fucina/core"
)

// scatterDrawing is what plot.scatter draws.
type scatterDrawing struct {
	title, xlabel, ylabel string
	x, y                  []float64
	classes               []int
	left, right           float64 // of the field, with a margin around the points
	bottom, top           float64
	grid                  []int // the classes of regionGrid × regionGrid places, the top row first; nil for none
}

// regionGrid is at how many places each way regions are asked for.
const regionGrid = 160

// scatter is plot.scatter(points, classes=None, regions=None, title="", xlabel="", ylabel=""): a figure of points.
// points is a tensor with two axes, one of which, of size 2, has x and y. classes has a
// whole number for each point, which gives it its colour. regions is a function that says the classes of points, to
// colour the plane behind them: plot.scatter(x, y, regions=lambda x: net.call(x).argmax("class")). It is called once,
// without gradients, with a tensor of the same axes as points.
func (p *plotter) scatter(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var points starlark.Tensor
	var classes, regions star.Value = star.None, star.None
	d := &scatterDrawing{}
	err := star.UnpackArgs(b.Name(), args, kwargs, "points", &points, "classes?", &classes, "regions?", &regions,
		"title?", &d.title, "xlabel?", &d.xlabel, "ylabel?", &d.ylabel)
	if err != nil {
		return nil, err
	}
	pair, err := pointAxes(b.Name(), points.Tensor)
	if err != nil {
		return nil, err
	}
	for i, list := range []*[]float64{&d.x, &d.y} {
		if *list, err = elements(b.Name(), "points", points.Tensor.At(pair, i)); err != nil {
			return nil, err
		}
	}
	if d.classes, err = classNumbers(b.Name(), "classes", classes, len(d.x)); err != nil {
		return nil, err
	}
	if err := d.field(b.Name()); err != nil {
		return nil, err
	}
	if regions != star.None {
		if err := d.regions(p.it, t, b.Name(), points.Tensor, regions, pair); err != nil {
			return nil, err
		}
	}
	return &figure{p.it, "scatter", d}, nil
}

// pointAxes is the axis of x and y.
func pointAxes(op string, x *core.Tensor) (pair string, err error) {
	bad := &core.Error{Op: op, Msg: fmt.Sprintf("points is %s, want two axes, one of size 2", x.Shape())}
	axes := x.Axes()
	if axes.Len() != 2 {
		return "", bad
	}
	first, last := axes.At(0), axes.At(1)
	switch {
	case x.Size(last) == 2:
		return last, nil
	case x.Size(first) == 2:
		return first, nil
	}
	return "", bad
}

// field sets the bounds.
func (d *scatterDrawing) field(op string) error {
	d.left, d.right = bounds(d.x)
	d.bottom, d.top = bounds(d.y)
	if math.IsNaN(d.left) || math.IsNaN(d.bottom) {
		return &core.Error{Op: op, Msg: "got no point to draw"}
	}
	for _, pair := range [][2]*float64{{&d.left, &d.right}, {&d.bottom, &d.top}} {
		low, high := apart(*pair[0], *pair[1])
		margin := 0.06 * (high - low)
		*pair[0], *pair[1] = low-margin, high+margin
	}
	return nil
}

// at is the place of a cell's middle among n, from low to high.
func at(i, n int, low, high float64) float64 { return low + (high-low)*(float64(i)+0.5)/float64(n) }

// regions asks fn for the classes of a grid.
func (d *scatterDrawing) regions(it *starlark.Interp, t *star.Thread, op string, points *core.Tensor, fn star.Value,
	pair string) error {
	const n = regionGrid * regionGrid
	axes, sizes := points.Axes(), points.Sizes()
	stride, step := 2, 1 // of points and of x and y
	if axes.At(0) == pair {
		stride, step = 1, n
	}
	for i := range sizes {
		if axes.At(i) != pair {
			sizes[i] = n
		}
	}
	places := make([]float64, 2*n)
	for k := range n {
		places[k*stride] = at(k%regionGrid, regionGrid, d.left, d.right)
		places[k*stride+step] = at(regionGrid-1-k/regionGrid, regionGrid, d.bottom, d.top)
	}
	grid := starlark.Tensor{Tensor: it.Env().FromFloats(points.DType(), places, axes, sizes...)}
	var v star.Value
	var err error
	it.Env().Record(false, func() { v, err = star.Call(t, fn, star.Tuple{grid}, nil) })
	if err != nil {
		return err
	}
	d.grid, err = classNumbers(op, "the result of regions", v, n)
	return err
}

func (d *scatterDrawing) size() (columns, lines, width, height int) { return 72, 30, 560, 520 }

// shades are the regions of classes in the terminal, glyphs the points.
var (
	shades = []string{" ", "░", "▒", "▓", "╱", "╲", "╳", "·"}
	glyphs = []string{"o", "x", "+", "*", "#", "@", "%", "&"}
)

// text draws the points as letters and the regions as blocks.
func (d *scatterDrawing) text(columns, lines int) (string, error) {
	low, high := strconv.FormatFloat(d.bottom, 'g', 3, 64), strconv.FormatFloat(d.top, 'g', 3, 64)
	margin := max(len(low), len(high)) + 1
	w, h := columns-margin-1, max(2, lines-3)
	cells := make([]string, w*h)
	for i := range h {
		for j := range w {
			cells[i*w+j] = " "
			if d.grid != nil {
				class := d.grid[i*regionGrid/h*regionGrid+j*regionGrid/w]
				cells[i*w+j] = shades[class%len(shades)]
			}
		}
	}
	for k := range d.x {
		if !drawn(d.x[k]) || !drawn(d.y[k]) {
			continue
		}
		j := min(w-1, int(float64(w)*(d.x[k]-d.left)/(d.right-d.left)))
		i := h - 1 - min(h-1, int(float64(h)*(d.y[k]-d.bottom)/(d.top-d.bottom)))
		cells[i*w+j] = glyphs[d.classes[k]%len(glyphs)]
	}
	var b strings.Builder
	if d.title != "" {
		b.WriteString("  " + d.title + "\n")
	}
	for i := range h {
		label := ""
		switch i {
		case 0:
			label = high
		case h - 1:
			label = low
		}
		fmt.Fprintf(&b, "%*s│%s\n", margin, label, strings.TrimRight(strings.Join(cells[i*w:(i+1)*w], ""), " "))
	}
	fmt.Fprintf(&b, "%*s└%s\n", margin, "", strings.Repeat("─", w))
	from, to := strconv.FormatFloat(d.left, 'g', 3, 64), strconv.FormatFloat(d.right, 'g', 3, 64)
	fmt.Fprintf(&b, "%*s%s%*s\n", margin+1, "", from, max(1, w-len(from)), to)
	return b.String(), nil
}

// draw draws the points with gonum, over an image of the regions.
func (d *scatterDrawing) draw(c draw.Canvas) error {
	p := newPlot(d.title, d.xlabel, d.ylabel)
	if d.grid != nil {
		img := image.NewNRGBA(image.Rect(0, 0, regionGrid, regionGrid))
		for k, class := range d.grid {
			img.SetNRGBA(k%regionGrid, k/regionGrid, light(colorOf(class)))
		}
		p.Add(gonumplotter.NewImage(img, d.left, d.bottom, d.right, d.top))
	}
	byClass := map[int]gonumplotter.XYs{}
	last := 0
	for k := range d.x {
		if drawn(d.x[k]) && drawn(d.y[k]) {
			byClass[d.classes[k]] = append(byClass[d.classes[k]], gonumplotter.XY{X: d.x[k], Y: d.y[k]})
			last = max(last, d.classes[k])
		}
	}
	for class := range last + 1 {
		if len(byClass[class]) == 0 {
			continue
		}
		s, err := gonumplotter.NewScatter(byClass[class])
		if err != nil {
			return err
		}
		s.GlyphStyle = draw.GlyphStyle{Color: colorOf(class), Radius: vg.Points(2.5), Shape: draw.CircleGlyph{}}
		p.Add(s)
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = d.left, d.right, d.bottom, d.top
	p.Draw(inset(c))
	return nil
}

// light is a colour to put points of that colour on.
func light(c color.NRGBA) color.NRGBA {
	mix := func(v uint8) uint8 { return uint8((int(v) + 3*255) / 4) }
	return color.NRGBA{mix(c.R), mix(c.G), mix(c.B), 255}
}
