package plot

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/guptarohit/asciigraph"
	star "go.starlark.net/starlark"
	gonum "gonum.org/v1/plot"
	gonumplotter "gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/fucina-go/fucina/core"
)

// series is one curve: as many x as y, all finite.
type series struct {
	name string
	x, y []float64
}

// lineDrawing is what plot.line draws.
type lineDrawing struct {
	title, xlabel, ylabel string
	log                   bool
	series                []series
}

// line is plot.line(values, y=None, x=None, title="", xlabel="", ylabel="", log=False): a figure of curves. values is a
// list of numbers, a tensor of one axis, or a dict of such by name, and x are their places, 0, 1, … unless given. Or
// values is a list of dicts, as the history of train.run is: then y names the ones to draw, "loss" unless given, and x
// their places: plot.line(run.history, ("loss", "validation"), x="step"). log draws on a logarithmic scale. Numbers
// that are nan, None or beyond ±1e300 are left out.
func (p *plotter) line(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var values star.Value
	var names, x star.Value = star.None, star.None
	d := &lineDrawing{}
	err := star.UnpackArgs(b.Name(), args, kwargs, "values", &values, "y?", &names, "x?", &x, "title?", &d.title,
		"xlabel?", &d.xlabel, "ylabel?", &d.ylabel, "log?", &d.log)
	if err != nil {
		return nil, err
	}
	switch {
	case isHistory(values):
		err = d.fromHistory(b.Name(), values.(*star.List), names, x)
	case names != star.None:
		err = &core.Error{Op: b.Name(), Msg: "got names in y, but values is no list of dicts",
			Hint: `as in: plot.line(run.history, y="loss", x="step")`}
	default:
		err = d.fromValues(b.Name(), values, x)
	}
	if err != nil {
		return nil, err
	}
	if err := d.clean(b.Name()); err != nil {
		return nil, err
	}
	return &figure{p.it, "line", d}, nil
}

func isHistory(v star.Value) bool {
	list, ok := v.(*star.List)
	if !ok || list.Len() == 0 {
		return false
	}
	_, ok = list.Index(0).(*star.Dict)
	return ok
}

// fromHistory takes the curves called names out of dicts that may have them.
func (d *lineDrawing) fromHistory(op string, list *star.List, names, x star.Value) error {
	wanted := []string{"loss"}
	switch v := names.(type) {
	case star.NoneType:
	case star.String:
		wanted = []string{string(v)}
	case star.Iterable:
		wanted = nil
		for item := range star.Elements(v) {
			name, ok := star.AsString(item)
			if !ok {
				return &core.Error{Op: op, Msg: fmt.Sprintf("y has %s, want names", item)}
			}
			wanted = append(wanted, name)
		}
	default:
		return &core.Error{Op: op, Msg: fmt.Sprintf("y is %s, want a name or several", names)}
	}
	place, hasPlace := star.AsString(x)
	if x != star.None && !hasPlace {
		return &core.Error{Op: op, Msg: fmt.Sprintf("x is %s, want a name", x), Hint: `as in: x="step"`}
	}
	if hasPlace && d.xlabel == "" {
		d.xlabel = place
	}
	found := map[string]*series{}
	for i := range list.Len() {
		dict, ok := list.Index(i).(*star.Dict)
		if !ok {
			return &core.Error{Op: op, Msg: fmt.Sprintf("values[%d] is no dict, as the others are", i)}
		}
		at := float64(i)
		if hasPlace {
			v, ok, err := dict.Get(star.String(place))
			if err != nil || !ok {
				return &core.Error{Op: op, Msg: fmt.Sprintf("values[%d] has no %q", i, place)}
			}
			if at, ok = star.AsFloat(v); !ok {
				return &core.Error{Op: op, Msg: fmt.Sprintf("values[%d][%q] is %s, want a number", i, place, v)}
			}
		}
		for _, name := range wanted {
			v, ok, err := dict.Get(star.String(name))
			if err != nil || !ok {
				continue
			}
			y, ok := star.AsFloat(v)
			if !ok {
				return &core.Error{Op: op, Msg: fmt.Sprintf("values[%d][%q] is %s, want a number", i, name, v)}
			}
			if found[name] == nil {
				found[name] = &series{name: name}
			}
			found[name].x, found[name].y = append(found[name].x, at), append(found[name].y, y)
		}
	}
	for _, name := range wanted {
		if found[name] == nil {
			return &core.Error{Op: op, Msg: fmt.Sprintf("no dict has %q", name)}
		}
		d.series = append(d.series, *found[name])
	}
	return nil
}

// fromValues takes lists of numbers.
func (d *lineDrawing) fromValues(op string, values, x star.Value) error {
	var places []float64
	if x != star.None {
		var err error
		if places, err = numbers(op, "x", x); err != nil {
			return err
		}
	}
	add := func(name, said string, v star.Value) error {
		y, err := numbers(op, said, v)
		if err != nil {
			return err
		}
		at := places
		if at == nil {
			at = make([]float64, len(y))
			for i := range at {
				at[i] = float64(i)
			}
		}
		if len(at) != len(y) {
			return &core.Error{Op: op, Msg: fmt.Sprintf("%s has %d numbers, but x %d", said, len(y), len(at))}
		}
		d.series = append(d.series, series{name, slices.Clone(at), y})
		return nil
	}
	if dict, ok := values.(*star.Dict); ok {
		for _, item := range dict.Items() {
			name, ok := star.AsString(item[0])
			if !ok {
				return &core.Error{Op: op, Msg: fmt.Sprintf("values has the name %s, want texts", item[0])}
			}
			if err := add(name, fmt.Sprintf("values[%q]", name), item[1]); err != nil {
				return err
			}
		}
		return nil
	}
	return add("", "values", values)
}

// clean leaves out what cannot be drawn.
func (d *lineDrawing) clean(op string) error {
	points := 0
	for i, s := range d.series {
		kept := series{name: s.name}
		for j, y := range s.y {
			if !drawn(y) || !drawn(s.x[j]) {
				continue
			}
			if d.log && y <= 0 {
				return &core.Error{Op: op, Msg: fmt.Sprintf("a logarithmic scale has no %v", y), Hint: "leave out log"}
			}
			kept.x, kept.y = append(kept.x, s.x[j]), append(kept.y, y)
		}
		d.series[i] = kept
		points += len(kept.x)
	}
	if points == 0 {
		return &core.Error{Op: op, Msg: "got no number to draw"}
	}
	d.series = slices.DeleteFunc(d.series, func(s series) bool { return len(s.x) == 0 })
	return nil
}

func (d *lineDrawing) size() (columns, lines, width, height int) { return 80, 16, 640, 400 }

// marks are what curves are made of in the terminal; the first is of lines.
var marks = []string{"", "•", "+", "×", "o", "*", "#", "@"}

// text draws the curves with asciigraph.
func (d *lineDrawing) text(columns, lines int) (string, error) {
	var b strings.Builder
	if d.title != "" {
		b.WriteString("  " + d.title + "\n")
	}
	format := func(v float64) string { return fmt.Sprintf("%.4g", v) }
	if d.log {
		format = func(v float64) string { return fmt.Sprintf("%.3g", math.Pow(10, v)) }
	}
	var xs, ys [][]float64
	for _, s := range d.series {
		xs = append(xs, s.x)
		y := slices.Clone(s.y)
		for i := range y {
			if d.log {
				y[i] = math.Log10(y[i])
			}
		}
		ys = append(ys, y)
	}
	left, right := bounds(xs...)
	if left < right {
		left, right = apart(left, right)
	}
	low, high := bounds(ys...)
	low, high = apart(low, high)
	lines = max(3, lines-3)
	wide := 0
	for i := range lines {
		wide = max(wide, len(format(low+(high-low)*float64(i)/float64(lines-1))))
	}
	across := max(4, columns-wide-4)
	var resampled [][]float64
	var chars []asciigraph.CharSet
	for i, s := range d.series {
		resampled = append(resampled, resample(s.x, ys[i], left, right, across))
		if i == 0 {
			chars = append(chars, asciigraph.DefaultCharSet)
		} else {
			chars = append(chars, asciigraph.CreateCharSet(marks[1+(i-1)%(len(marks)-1)]))
		}
	}
	options := []asciigraph.Option{asciigraph.Height(lines - 1), asciigraph.SeriesChars(chars...),
		asciigraph.YAxisValueFormatter(format), asciigraph.LowerBound(low), asciigraph.UpperBound(high)}
	if left < right {
		options = append(options, asciigraph.XAxisRange(left, right), asciigraph.XAxisTickCount(5),
			asciigraph.XAxisValueFormatter(func(v float64) string { return fmt.Sprintf("%.4g", v) }))
	}
	for line := range strings.Lines(asciigraph.PlotMany(resampled, options...)) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	if legend := d.legend(); legend != "" {
		b.WriteString(strings.Repeat(" ", wide+2) + legend + "\n")
	}
	return b.String(), nil
}

// legend is "─ loss   • validation", if there are names.
func (d *lineDrawing) legend() string {
	var parts []string
	for i, s := range d.series {
		mark := "─"
		if i > 0 {
			mark = marks[1+(i-1)%(len(marks)-1)]
		}
		if s.name != "" {
			parts = append(parts, mark+" "+s.name)
		}
	}
	return strings.Join(parts, "   ")
}

// resample is the curve at n places from left to right, by straight lines between its points; NaN where it is not.
func resample(x, y []float64, left, right float64, n int) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case x[a] < x[b]:
			return -1
		case x[a] > x[b]:
			return 1
		}
		return 0
	})
	out := make([]float64, n)
	half := (right - left) / float64(2*max(1, n-1)) // a point alone still shows
	j := 0
	for i := range out {
		at := left + (right-left)*float64(i)/float64(max(1, n-1))
		for j+1 < len(order) && x[order[j+1]] <= at {
			j++
		}
		a := order[j]
		switch {
		case at < x[a]-half || j+1 == len(order) && at > x[a]+half:
			out[i] = math.NaN()
		case j+1 == len(order) || at <= x[a]:
			out[i] = y[a]
		default:
			b := order[j+1]
			out[i] = y[a] + (y[b]-y[a])*(at-x[a])/(x[b]-x[a])
		}
	}
	return out
}

// draw draws the curves with gonum.
func (d *lineDrawing) draw(c draw.Canvas) error {
	p := newPlot(d.title, d.xlabel, d.ylabel)
	p.Add(gonumplotter.NewGrid())
	if d.log {
		p.Y.Scale = gonum.LogScale{}
		p.Y.Tick.Marker = gonum.LogTicks{Prec: -1}
	}
	for i, s := range d.series {
		points := make(gonumplotter.XYs, len(s.x))
		for j := range points {
			points[j].X, points[j].Y = s.x[j], s.y[j]
		}
		l, err := gonumplotter.NewLine(points)
		if err != nil {
			return err
		}
		l.Color, l.Width = colorOf(i), vg.Points(1.5)
		p.Add(l)
		if s.name != "" {
			p.Legend.Add(s.name, l)
		}
	}
	p.X.Min, p.X.Max = apart(p.X.Min, p.X.Max)
	if d.log {
		low, high := apart(math.Log10(p.Y.Min), math.Log10(p.Y.Max))
		p.Y.Min, p.Y.Max = math.Pow(10, low), math.Pow(10, high)
	} else {
		p.Y.Min, p.Y.Max = apart(p.Y.Min, p.Y.Max)
	}
	p.Legend.Top = true
	p.Draw(inset(c))
	return nil
}

// inset is the canvas without what a line at its edge needs.
func inset(c draw.Canvas) draw.Canvas {
	return draw.Crop(c, pixels(4), -pixels(10), pixels(4), -pixels(6))
}

// newPlot is an empty plot in our style.
func newPlot(title, xlabel, ylabel string) *gonum.Plot {
	p := gonum.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, xlabel, ylabel
	p.Title.Padding = vg.Points(6)
	return p
}
