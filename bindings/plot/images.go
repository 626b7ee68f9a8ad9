package plot

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"strings"
	"unicode/utf8"

	star "go.starlark.net/starlark"
	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/fucina-go/fucina/bindings/starlark"
	"github.com/fucina-go/fucina/core"
)

// imagesDrawing is what plot.images draws.
type imagesDrawing struct {
	title         string
	titles        []string
	columns       int
	images        []*image.NRGBA // all of one size
	width, height int            // of an image
}

// maxImages is how many images a figure has at most.
const maxImages = 1024

// images is plot.images(x, titles=None, columns=None, low=None, high=None, title=""): a figure of images in a grid. x
// is [batch, y, x] or [batch, channel, y, x] with 1 or 3 channels, whose last two axes are down and across; without a
// batch it is one image. low is black and high white, 0 and 1 unless there are numbers outside. titles has a text, or
// what str makes one of, for each image.
func (p *plotter) images(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var x starlark.Tensor
	var titles, low, high star.Value = star.None, star.None, star.None
	d := &imagesDrawing{}
	err := star.UnpackArgs(b.Name(), args, kwargs, "x", &x, "titles?", &titles, "columns?", &d.columns, "low?", &low,
		"high?", &high, "title?", &d.title)
	if err != nil {
		return nil, err
	}
	n, channels, err := d.layout(b.Name(), x.Tensor)
	if err != nil {
		return nil, err
	}
	values, err := elements(b.Name(), "x", x.Tensor)
	if err != nil {
		return nil, err
	}
	from, to := bounds(values)
	if !(from < 0 || to > 1) {
		from, to = 0, 1
	}
	for _, bound := range []struct {
		v  star.Value
		to *float64
	}{{low, &from}, {high, &to}} {
		if f, ok := star.AsFloat(bound.v); ok {
			*bound.to = f
		} else if bound.v != star.None {
			return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("got %s for low or high, want a number", bound.v)}
		}
	}
	if !(from < to) {
		to = from + 1
	}
	d.fill(values, n, channels, from, to)
	if d.columns == 0 {
		d.columns = min(n, max(1, int(math.Ceil(math.Sqrt(float64(2*n))))))
	}
	if d.columns < 0 {
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("got %d columns", d.columns)}
	}
	d.columns = min(d.columns, n)
	if titles != star.None {
		if d.titles, err = texts(b.Name(), titles, n); err != nil {
			return nil, err
		}
	}
	return &figure{p.it, "images", d}, nil
}

// texts is v, n values, as texts.
func texts(op string, v star.Value, n int) ([]string, error) {
	var all []string
	if x, ok := v.(starlark.Tensor); ok {
		values, err := numbers(op, "titles", x)
		if err != nil {
			return nil, err
		}
		for _, f := range values {
			all = append(all, fmt.Sprint(f))
		}
	} else if list, ok := v.(star.Iterable); ok {
		for item := range star.Elements(list) {
			s, ok := star.AsString(item)
			if !ok {
				s = item.String()
			}
			if all = append(all, s); len(all) > n {
				break
			}
		}
	}
	if len(all) != n {
		return nil, &core.Error{Op: op, Msg: fmt.Sprintf("titles is not a list of %d texts, one for each image", n)}
	}
	return all, nil
}

// layout reads the sizes of x.
func (d *imagesDrawing) layout(op string, x *core.Tensor) (n, channels int, err error) {
	sizes := x.Sizes()
	n, channels = 1, 1
	switch len(sizes) {
	case 2:
	case 3:
		n = sizes[0]
		if x.Axes().At(0) == "channel" {
			n, channels = 1, sizes[0]
		}
	case 4:
		n, channels = sizes[0], sizes[1]
	default:
		return 0, 0, &core.Error{Op: op, Msg: fmt.Sprintf("x is %s, want [batch, y, x] or [batch, channel, y, x]",
			x.Shape())}
	}
	d.height, d.width = sizes[len(sizes)-2], sizes[len(sizes)-1]
	if channels != 1 && channels != 3 {
		return 0, 0, &core.Error{Op: op, Msg: fmt.Sprintf("x has %d channels, want 1 or 3", channels),
			Hint: "x.slice(channel=(0, 1)) is the first"}
	}
	if n == 0 || n > maxImages || d.width == 0 || d.height == 0 {
		return 0, 0, &core.Error{Op: op, Msg: fmt.Sprintf("x is %s, want 1 to %d images", x.Shape(), maxImages),
			Hint: "x.slice(batch=(0, 16))"}
	}
	return n, channels, nil
}

// fill makes images of values.
func (d *imagesDrawing) fill(values []float64, n, channels int, low, high float64) {
	level := func(f float64) uint8 {
		if math.IsNaN(f) {
			return 0
		}
		return uint8(math.Round(255 * math.Max(0, math.Min(1, (f/2-low/2)/(high/2-low/2)))))
	}
	area := d.width * d.height
	for i := range n {
		img := image.NewNRGBA(image.Rect(0, 0, d.width, d.height))
		of := values[i*channels*area:][:channels*area]
		for k := range area {
			c := color.NRGBA{A: 255}
			c.R = level(of[k])
			c.G, c.B = c.R, c.R
			if channels == 3 {
				c.G, c.B = level(of[area+k]), level(of[2*area+k])
			}
			img.SetNRGBA(k%d.width, k/d.width, c)
		}
		d.images = append(d.images, img)
	}
}

func (d *imagesDrawing) rows() int { return (len(d.images) + d.columns - 1) / d.columns }

func (d *imagesDrawing) size() (columns, lines, width, height int) {
	cell := max(1, min(4, 900/(d.columns*d.width)))
	width = d.columns*(d.width*cell+8) + 8
	height = d.rows()*(d.height*cell+8+d.titleHeight()) + 8
	if d.title != "" {
		height += 24
	}
	limit := func(n int) int { return max(minPixels, min(maxPixels, n)) }
	return 80, maxColumns, limit(width), limit(height)
}

func (d *imagesDrawing) titleHeight() int {
	if d.titles == nil {
		return 0
	}
	return 16
}

// ink is from dark to light; a terminal is dark, or nobody minds.
var ink = []rune(" ░▒▓█")

// text draws an image by characters, each of which is one place across and two down.
func (d *imagesDrawing) text(columns, _ int) (string, error) {
	across := max(1, (columns+1)/(min(d.width, columns)+1))
	across = min(across, d.columns)
	w := min(d.width, columns)
	h := max(1, (d.height*w/d.width+1)/2)
	var b strings.Builder
	if d.title != "" {
		b.WriteString("  " + d.title + "\n")
	}
	for first := 0; first < len(d.images); first += across {
		last := min(first+across, len(d.images))
		if d.titles != nil {
			var line strings.Builder
			for _, title := range d.titles[first:last] {
				runes := []rune(title)
				title = string(runes[:min(len(runes), w)])
				line.WriteString(title + strings.Repeat(" ", w+1-utf8.RuneCountInString(title)))
			}
			b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		}
		for i := range h {
			var line strings.Builder
			for _, img := range d.images[first:last] {
				for j := range w {
					line.WriteRune(ink[(d.mean(img, j, i, w, h)*(len(ink)-1)+127)/255])
				}
				line.WriteByte(' ')
			}
			b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		}
	}
	return b.String(), nil
}

// mean is the brightness of what lies under cell (j, i) of w × h.
func (d *imagesDrawing) mean(img *image.NRGBA, j, i, w, h int) int {
	sum, n := 0, 0
	for y := i * d.height / h; y < max(i*d.height/h+1, (i+1)*d.height/h); y++ {
		for x := j * d.width / w; x < max(j*d.width/w+1, (j+1)*d.width/w); x++ {
			c := img.NRGBAAt(x, y)
			sum += (299*int(c.R) + 587*int(c.G) + 114*int(c.B)) / 1000
			n++
		}
	}
	return sum / n
}

// draw lays the images out on the canvas.
func (d *imagesDrawing) draw(c draw.Canvas) error {
	width, height := c.Max.X-c.Min.X, c.Max.Y-c.Min.Y
	gap, above, top := pixels(8), pixels(d.titleHeight()), vg.Length(0)
	style := text.Style{Color: color.Black, Font: font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, 9),
		Handler: gonum.DefaultTextHandler, XAlign: text.XCenter, YAlign: text.YBottom}
	if d.title != "" {
		top = pixels(24)
		big := style
		big.Font.Size = 12
		c.FillText(big, vg.Point{X: c.Min.X + width/2, Y: c.Max.Y - pixels(20)}, d.title)
	}
	cellW := (width - gap) / vg.Length(d.columns)
	cellH := (height - gap - top) / vg.Length(d.rows())
	scale := min((cellW-gap)/vg.Length(d.width), (cellH-gap-above)/vg.Length(d.height))
	if scale <= 0 {
		return &core.Error{Op: "save", Msg: fmt.Sprintf("%d images do not fit", len(d.images)),
			Hint: "more pixels, or fewer images"}
	}
	w, h := scale*vg.Length(d.width), scale*vg.Length(d.height)
	for k, img := range d.images {
		left := c.Min.X + gap + vg.Length(k%d.columns)*cellW
		high := c.Max.Y - top - gap - vg.Length(k/d.columns)*cellH
		if d.titles != nil {
			c.FillText(style, vg.Point{X: left + w/2, Y: high - above + pixels(3)}, d.titles[k])
		}
		high -= above
		box := vg.Rectangle{Min: vg.Point{X: left, Y: high - h}, Max: vg.Point{X: left + w, Y: high}}
		c.DrawImage(box, enlarged(img, int(math.Ceil(float64(scale/pixels(1))))))
	}
	return nil
}

// enlarged is img with every point n × n times, so that it is not smoothed.
func enlarged(img *image.NRGBA, n int) image.Image {
	if n <= 1 {
		return img
	}
	size := img.Bounds().Size()
	big := image.NewNRGBA(image.Rect(0, 0, size.X*n, size.Y*n))
	for y := range size.Y * n {
		for x := range size.X * n {
			big.SetNRGBA(x, y, img.NRGBAAt(x/n, y/n))
		}
	}
	return big
}
