package core

import (
	"sync"
	"unsafe"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/gemm"
	"github.com/fucina-go/fucina/kernels/num"
)

// A convolution is a product of matrices: of the weight, a row per output channel, and of a matrix whose columns are
// what the kernel sees at each place. The second is made tile by tile (Chellapilla, Puri and Simard 2006).
const (
	convColumns = 128     // places in a tile at most
	convThin    = 1024    // places in a tile of a few rows, which is not worth the second matrix
	convWork    = 1 << 23 // multiplications in a tile
	// The part of the second matrix that is made at once, used and forgotten, stays in the second level cache.
	convPanels = 2 * gemm.Width // its columns at least
	convDepth  = 576            // its rows at most: products of a sum
	convSize   = 20 << 10       // its elements at most, if it has more columns
	convViews  = 1 << 14        // views of places of the kernel that are worth keeping
)

// strided is what the kernel sees along one axis: at place q of the output, places q·step + offsets[i] of the input,
// as far as there are such. The output may be every few places of the axis only.
type strided struct {
	size, count, step int   // size of the input, number of places of the output
	offsets           []int // of the places of the kernel in use
	places            []int // which those are; nil: all
	from, every       int   // which places of the axis the output is, if every > 0
}

// convolve computes output 0, or the part of it that steps says. divided is the axes of the weight that hold all
// groups.
func convolve(c *Ctx, a *Convolution, r convRoles, steps []strided, divided Axes) {
	if c.Out(0).Len() == 0 {
		return
	}
	f32, f64 := convolveAs[float32], convolveAs[float64]
	if r.contract.Len()+r.own.Len() == 0 && r.lanes(a.Input.axes) {
		f32, f64 = convolveLanes[float32], convolveLanes[float64]
	}
	if a.Input.dtype == dtype.F64 {
		f64(c, a, r, steps, divided)
	} else {
		f32(c, a, r, steps, divided)
	}
}

// lanes tells whether the shared axes are the last of the input.
func (r *convRoles) lanes(input *axis.List) bool {
	rest := input.Without(r.shared)
	return r.shared.Len() > 0 && rest.Append(r.shared) == input
}

// convolver is a convolution of dense tensors.
type convolver[C num.Float] struct {
	steps                []strided
	x, w, y, bias        []C
	units, batch, groups int  // units is batches of both, times batch of the input, times groups
	in, out              int  // channels of a group
	size, places, kernel int  // elements along the axes of steps: of x, of y, of the kernel
	direct               bool // a column is one place of x
	thin                 bool // few channels of the output
	depth, rows, block   int  // of a sum; rows and columns of a tile
	across, down         int  // tiles of a unit
	wide                 int  // columns of the part of the second matrix that is made at once
	views                []view
}

func convolveAs[C num.Float](c *Ctx, a *Convolution, r convRoles, steps []strided, divided Axes) {
	out := c.Out(0)
	v := convolver[C]{groups: a.Groups, batch: volume(a.Input, r.free)}
	v.in, v.out = volume(a.Input, r.contract)/v.groups, volume(out, r.own)/v.groups
	xOrder := r.shared.Append(r.free).Append(r.contract).Append(r.spatial)
	yOrder := r.shared.Append(r.free).Append(r.own).Append(r.spatial)
	phase := v.walk(steps)
	run := steps[len(steps)-1].count
	if v.batch > 1 && !v.direct && (v.places < convColumns/2 || run < 12 && v.batch > run) {
		// The places that lie together are few: the batch becomes one more axis, along which the kernel is 1 long.
		v.walk(append(steps[:len(steps):len(steps)],
			strided{size: v.batch, count: v.batch, step: 1, offsets: make([]int, 1)}))
		v.batch = 1
		xOrder = r.shared.Append(r.contract).Append(r.spatial).Append(r.free)
		yOrder = r.shared.Append(r.own).Append(r.spatial).Append(r.free)
	}
	v.units, v.depth = volume(a.Input, r.shared)*v.batch*v.groups, v.in*v.kernel
	v.x = elementsOf[C](c.Dense(a.Input, xOrder, native[C]()))
	v.w = convWeights[C](c, a, r, steps, divided)
	if a.Bias != nil {
		v.bias = elementsOf[C](c.spreadAs(a.Bias, native[C](), r.shared.Append(r.own), out))
	}
	y := convRoom[C](c, r, steps, yOrder, phase)
	c.touch(y) // a tile is of many rows
	v.y = elementsOf[C](y)
	if v.thin = v.out < 4; v.thin {
		v.rows, v.block = v.out, convThin
	} else { // many rows share what is made for a few columns
		v.rows = min(v.out, max(60, convWork/max(1, v.depth*convPanels)/12*12))
		v.block = min(convColumns, max(1, convWork/max(1, v.depth*v.rows*convPanels))*convPanels)
	}
	v.across, v.down = ceilDiv(v.places, v.block), ceilDiv(v.out, v.rows)
	for v.wide = convPanels; 2*v.wide <= v.block && 2*v.wide*v.depth <= convSize; v.wide *= 2 {
	}
	if !v.direct && !v.thin && v.units*v.down > 1 && v.across*v.kernel <= convViews { // all units have the same
		v.views = make([]view, v.across)
		c.Split(v.across, max(1, pointGrain/(v.kernel*convColumns)), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				v.look(&v.views[i], i*v.block, min(v.block, v.places-i*v.block))
			}
		})
	}
	c.Split(v.units*v.across*v.down, 1, v.tiles)
	c.storePlaces(y, r, steps, phase)
}

// convRoom is where the places that steps says are computed: output 0 itself, if they are all of it.
func convRoom[C num.Float](c *Ctx, r convRoles, steps []strided, order *axis.List, phase bool) *Tensor {
	out := c.Out(0)
	if !phase && out.axes == order && out.dtype == native[C]() {
		return out
	}
	sizes := append([]int(nil), out.permuted(order).sizes...)
	for i, s := range steps {
		sizes[order.Index(r.spatial.At(i))] = s.count
	}
	return c.Scratch(native[C](), order, sizes)
}

// convolveLanes is convolveAs where nothing is summed up but the kernel, and the axes that both tensors share are the
// last: it computes all of them at once. The sums are the same.
func convolveLanes[C num.Float](c *Ctx, a *Convolution, r convRoles, steps []strided, divided Axes) {
	v := convolver[C]{groups: 1, in: 1, out: 1, batch: volume(a.Input, r.free)}
	phase := v.walk(steps)
	order := r.free.Append(r.spatial).Append(r.shared)
	n := volume(a.Input, r.shared)
	x := elementsOf[C](c.Dense(a.Input, order, native[C]()))
	w := make([]C, v.kernel*n)
	for i, f := range convWeights[C](c, a, r, steps, divided) {
		w[i%v.kernel*n+i/v.kernel] = f
	}
	var bias []C
	if a.Bias != nil {
		bias = elementsOf[C](c.spreadAs(a.Bias, native[C](), r.shared, a.Input))
	}
	out := convRoom[C](c, r, steps, order, phase)
	y := elementsOf[C](out)
	c.Split(v.batch*v.places, max(1, pointGrain/(n*v.kernel)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := y[i*n:][:n]
			clear(row)
			batch := x[i/v.places*v.size*n:]
			for k := range v.kernel {
				v.runs(1, k, i%v.places, func(_, _, p, _ int) { num.MulAdd(row, batch[p*n:][:n], w[k*n:], row) })
			}
			if bias != nil {
				num.Add(row, row, bias)
			}
		}
	})
	c.storePlaces(out, r, steps, phase)
}

// walk sets the axes along which the kernel slides, and tells whether the output is a part of its places.
func (v *convolver[C]) walk(steps []strided) (phase bool) {
	v.steps, v.size, v.places, v.kernel, v.direct = steps, 1, 1, 1, true
	for _, s := range steps {
		v.size, v.places, v.kernel = v.size*s.size, v.places*s.count, v.kernel*len(s.offsets)
		v.direct = v.direct && s.step == 1 && s.count == s.size && len(s.offsets) == 1 && s.offsets[0] == 0
		phase = phase || s.every > 1
	}
	return phase
}

// spreadAs is t in dtype dt, repeated along those of the axes that it lacks, which like has.
func (c *Ctx) spreadAs(t *Tensor, dt dtype.Type, axes *axis.List, like *Tensor) *Tensor {
	d := c.Scratch(dt, axes, like.permuted(axes).sizes)
	c.copyInto(d, t)
	return d
}

// storePlaces puts y, which convRoom gave, into the places of output 0 that steps says.
func (c *Ctx) storePlaces(y *Tensor, r convRoles, steps []strided, phase bool) {
	out := c.Out(0)
	if !phase {
		if y != out {
			c.copyInto(out, y.permuted(out.axes))
		}
		return
	}
	if y.dtype != out.dtype {
		narrow := c.Scratch(out.dtype, y.axes, y.sizes)
		c.copyInto(narrow, y)
		y = narrow
	}
	part := &Tensor{env: out.env, dtype: out.dtype, axes: y.axes, sizes: y.sizes}
	part.strides = append(part.strides, out.permuted(y.axes).strides...)
	skip := 0
	for i, s := range steps {
		k := y.axes.Index(r.spatial.At(i))
		skip += s.from * part.strides[k]
		part.strides[k] *= max(1, s.every)
	}
	part.data = unsafe.Add(out.data, skip*out.dtype.Size())
	c.copyStrided(part, y)
}

// convWeights is the weight in the order shared, groups, own, contracted, kernel, with the places of the kernel in
// use.
func convWeights[C num.Float](c *Ctx, a *Convolution, r convRoles, steps []strided, divided Axes) []C {
	const group = "conv_group"
	w := &Tensor{env: a.Weight.env, dtype: a.Weight.dtype, data: a.Weight.data, buf: a.Weight.buf}
	names := make([]string, 0, maxRank+1)
	add := func(name string, size, stride int) {
		names, w.sizes, w.strides = append(names, name), append(w.sizes, size), append(w.strides, stride)
	}
	of := func(name string, groups int) {
		k := a.Weight.axes.Index(name)
		add(name, a.Weight.sizes[k]/groups, a.Weight.strides[k])
	}
	for _, name := range r.shared.Names() {
		of(name, 1)
	}
	if a.Groups > 1 {
		k := a.Weight.axes.Index(divided.At(0))
		add(group, a.Groups, a.Weight.sizes[k]/a.Groups*a.Weight.strides[k])
	}
	for _, list := range []Axes{r.own, r.contract} {
		for _, name := range list.Names() {
			if divided.Has(name) {
				of(name, a.Groups)
			} else {
				of(name, 1)
			}
		}
	}
	for i, s := range steps {
		k := a.Weight.axes.Index(r.kernel.At(i))
		stride := a.Weight.strides[k]
		if len(s.places) > 0 && w.data != nil {
			w.data = unsafe.Add(w.data, s.places[0]*stride*w.dtype.Size())
		}
		if len(s.places) > 1 {
			stride *= s.places[1] - s.places[0] // they are evenly spaced
		}
		add(r.kernel.At(i), len(s.offsets), stride)
	}
	w.axes = axisList(names...)
	return elementsOf[C](c.Dense(w, w.axes, native[C]()))
}

// rooms keeps the columns that tiles work with.
var rooms struct{ f32, f64 sync.Pool }

func takeRoom[C num.Float](n int) *[]C {
	pool := &rooms.f32
	if native[C]() == dtype.F64 {
		pool = &rooms.f64
	}
	if b, ok := pool.Get().(*[]C); ok && len(*b) >= n {
		return b
	}
	b := make([]C, n)
	return &b
}

func giveRoom[C num.Float](b *[]C) {
	if native[C]() == dtype.F64 {
		rooms.f64.Put(b)
	} else {
		rooms.f32.Put(b)
	}
}

// tiles does the tiles [lo, hi).
func (v *convolver[C]) tiles(lo, hi int) {
	room := takeRoom[C](min(v.depth, convDepth) * v.wide)
	defer giveRoom(room)
	var own view
	for t := lo; t < hi; t++ {
		i, j, unit := t%v.down*v.rows, t/v.down%v.across*v.block, t/v.down/v.across
		m, n := min(v.rows, v.out-i), min(v.block, v.places-j)
		y := v.y[(unit*v.out+i)*v.places+j:]
		row := (unit/v.groups/v.batch*v.groups+unit%v.groups)*v.out + i // of the weight
		if w, x := v.w[row*v.depth:], v.x[unit*v.in*v.size:]; v.thin || v.depth == 0 {
			v.addUp(y, w, x, m, n, j)
		} else {
			seen := &own
			if v.views != nil {
				seen = &v.views[j/v.block]
			} else if !v.direct {
				v.look(seen, j, n)
			}
			v.product(y, w, x, m, n, j, seen, *room)
		}
		if v.bias == nil {
			continue
		}
		for k, b := range v.bias[row:][:m] {
			ys := y[k*v.places:][:n]
			for l := range ys {
				ys[l] += b
			}
		}
	}
}

// product is y = w · columns j … j+n-1, which are seen, m rows.
func (v *convolver[C]) product(y, w, x []C, m, n, j int, seen *view, columns []C) {
	if v.direct {
		gemm.NN(y, w, x[j:], m, n, v.depth, v.depth, v.size, v.places)
		return
	}
	for at := 0; at < n; at += v.wide {
		for k := 0; k < v.depth; k += convDepth {
			d := min(convDepth, v.depth-k)
			v.fill(columns, x, seen, at/gemm.Width, min(seen.panels, (at+v.wide)/gemm.Width), k, d)
			gemm.Packed(y[at:], w[k:], columns, m, min(v.wide, n-at), d, v.depth, v.places, k > 0)
		}
	}
}

// view is what the kernel sees at some columns, in every channel: at place i of the kernel the columns of panel p meet
// pieces[first[i·panels+p]:first[i·panels+p+1]], and else padding.
type view struct {
	panels int
	first  []int
	pieces []piece
}

// piece is a part of a row of a panel: n elements from at on are elements p, p+step, … of a channel.
type piece struct{ at, n, p, step int }

// look finds what the kernel sees at columns j … j+n-1.
func (v *convolver[C]) look(seen *view, j, n int) {
	seen.panels, seen.first, seen.pieces = ceilDiv(n, gemm.Width), seen.first[:0], seen.pieces[:0]
	for place := range v.kernel {
		begin := place * seen.panels
		v.runs(n, place, j, func(at, n, p, step int) {
			for n > 0 {
				some := min(n, gemm.Width-at%gemm.Width)
				for len(seen.first) <= begin+at/gemm.Width {
					seen.first = append(seen.first, len(seen.pieces))
				}
				seen.pieces = append(seen.pieces, piece{at % gemm.Width, some, p, step})
				at, n, p = at+some, n-some, p+some*step
			}
		})
		for len(seen.first) < begin+seen.panels {
			seen.first = append(seen.first, len(seen.pieces))
		}
	}
	seen.first = append(seen.first, len(seen.pieces))
}

// fill sets dst, in panels as gemm.Packed reads them, to products k … k+d-1 of a sum in panels lo … hi-1 of a view of
// x.
func (v *convolver[C]) fill(dst, x []C, seen *view, lo, hi, k, d int) {
	to := v.kernel * gemm.Width
	for place := range v.kernel {
		first := k + (place+v.kernel-k%v.kernel)%v.kernel
		if first >= k+d {
			continue
		}
		rows, channel := (k+d-first-1)/v.kernel+1, x[first/v.kernel*v.size:]
		for panel := lo; panel < hi; panel++ {
			row, at := dst[((panel-lo)*d+first-k)*gemm.Width:], place*seen.panels+panel
			pieces := seen.pieces[seen.first[at]:seen.first[at+1]]
			if len(pieces) == 0 || pieces[0].step > 1 && pieces[0].n < gemm.Width {
				gemm.PackPart(row, nil, 0, rows, to, 0, 0, false)
			}
			for i, s := range pieces {
				if s.step == 1 {
					gemm.PackPart(row, channel[s.p:], s.n, rows, to, v.size, s.at, i > 0)
					continue
				}
				for r := range rows {
					to, from := row[r*to+s.at:][:s.n], channel[r*v.size+s.p:]
					for j := range to {
						to[j] = from[j*s.step]
					}
				}
			}
		}
	}
}

// addUp is product without the matrix of columns.
func (v *convolver[C]) addUp(y, w, x []C, m, n, j int) {
	for i := range m {
		row := y[i*v.places:][:n]
		clear(row)
		for k, f := range w[i*v.depth:][:v.depth] {
			v.runs(n, k, j, func(at, n, p, step int) {
				if step == 1 {
					num.AddScaled(row[at:], x[p:p+n], f)
					return
				}
				for i := range n {
					row[at+i] = num.FMA(x[p+i*step], f, row[at+i])
				}
			})
		}
	}
}

// runs calls f for the parts of columns j … j+n-1 that meet elements of x as product k of a sum: columns at, at+1, …
// meet the elements p, p+step, … What lies between meets padding.
func (v *convolver[C]) runs(n, k, j int, f func(at, n, p, step int)) {
	var at, offset [maxRank]int
	channel := k / v.kernel * v.size
	last := len(v.steps) - 1
	for i := last; i >= 0; i-- {
		s := &v.steps[i]
		offset[i], k = s.offsets[k%len(s.offsets)], k/len(s.offsets)
		at[i], j = j%s.count, j/s.count
	}
	s := &v.steps[last]
	for column := 0; ; {
		run := min(n-column, s.count-at[last])
		from, inside := 0, true
		for i := range last {
			s := &v.steps[i]
			p := at[i]*s.step + offset[i]
			inside = inside && p >= 0 && p < s.size
			from = (from + p) * v.steps[i+1].size
		}
		p := at[last]*s.step + offset[last]
		lo := max(0, ceilDiv(-p, s.step))
		hi := min(run, ceilDiv(s.size-p, s.step))
		if inside && lo < hi {
			f(column+lo, hi-lo, channel+from+p+lo*s.step, s.step)
		}
		if column += run; column == n {
			return
		}
		at[last] = 0
		for i := last - 1; i >= 0; i-- {
			if at[i]++; at[i] < v.steps[i].count {
				break
			}
			at[i] = 0
		}
	}
}
