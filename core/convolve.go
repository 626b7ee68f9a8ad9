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
	convColumns = 64      // places in a tile
	convDepth   = 1024    // products of a sum that are done at once
	convWork    = 1 << 19 // multiplications in a tile
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
	if a.Input.dtype == dtype.F64 {
		convolveAs[float64](c, a, r, steps, divided)
	} else {
		convolveAs[float32](c, a, r, steps, divided)
	}
}

// convolver is a convolution of dense tensors.
type convolver[C num.Float] struct {
	steps                []strided
	x, w, y, bias        []C
	units                int // batches of both, times outer, times groups
	outer, inner, groups int // outer · inner is the batch of the input
	in, out              int // channels of a group
	size, places, kernel int // elements along the spatial axes: of x, of y, of the kernel
	direct               bool
	columns, depth, rows int // of y in a unit, of a sum, of a tile
	across, down         int // tiles of a unit
}

func convolveAs[C num.Float](c *Ctx, a *Convolution, r convRoles, steps []strided, divided Axes) {
	out := c.Out(0)
	v := convolver[C]{steps: steps, groups: a.Groups, size: 1, places: 1, kernel: 1, direct: true, inner: 1}
	phase := false
	for _, s := range steps {
		v.size, v.places, v.kernel = v.size*s.size, v.places*s.count, v.kernel*len(s.offsets)
		v.direct = v.direct && s.step == 1 && s.count == s.size && len(s.offsets) == 1 && s.offsets[0] == 0
		phase = phase || s.every > 1
	}
	v.in = volume(a.Input, r.contract) / v.groups
	v.out = volume(out, r.own) / v.groups
	v.outer = volume(a.Input, r.free)
	order := r.shared.Append(r.free).Append(r.own).Append(r.spatial)
	if v.places < convColumns/2 && !v.direct {
		v.outer, v.inner = 1, v.outer // few places each: a tile holds those of several batches
		order = r.shared.Append(r.own).Append(r.free).Append(r.spatial)
	}
	v.units = volume(a.Input, r.shared) * v.outer * v.groups
	v.columns, v.depth = v.inner*v.places, v.in*v.kernel
	v.x = elementsOf[C](c.Dense(a.Input, r.shared.Append(r.free).Append(r.contract).Append(r.spatial), native[C]()))
	v.w = convWeights[C](c, a, r, steps, divided)
	if a.Bias != nil {
		v.bias = elementsOf[C](c.spreadAs(a.Bias, native[C](), r.shared.Append(r.own), out))
	}
	y := out
	if phase || out.axes != order || out.dtype != native[C]() {
		sizes := append([]int(nil), out.permuted(order).sizes...)
		for i, s := range steps {
			sizes[len(sizes)-len(steps)+i] = s.count
		}
		y = c.Scratch(native[C](), order, sizes)
	}
	v.y = elementsOf[C](y)
	v.rows = min(v.out, max(8, convWork/max(1, v.depth*convColumns)))
	v.across, v.down = ceilDiv(v.columns, convColumns), ceilDiv(v.out, v.rows)
	c.Split(v.units*v.across*v.down, 1, v.tiles)
	switch {
	case phase:
		c.storePhase(y, steps)
	case y != out:
		c.copyInto(out, y.permuted(out.axes))
	}
}

// spreadAs is t in dtype dt, repeated along those of the axes that it lacks, which like has.
func (c *Ctx) spreadAs(t *Tensor, dt dtype.Type, axes *axis.List, like *Tensor) *Tensor {
	d := c.Scratch(dt, axes, like.permuted(axes).sizes)
	c.copyInto(d, t)
	return d
}

// storePhase puts y into the places of output 0 that steps says.
func (c *Ctx) storePhase(y *Tensor, steps []strided) {
	out := c.Out(0)
	if y.dtype != out.dtype {
		narrow := c.Scratch(out.dtype, y.axes, y.sizes)
		c.copyInto(narrow, y)
		y = narrow
	}
	all := out.permuted(y.axes)
	part := &Tensor{env: out.env, dtype: out.dtype, axes: y.axes, sizes: y.sizes,
		strides: append([]int(nil), all.strides...)}
	skip, first := 0, len(y.sizes)-len(steps)
	for i, s := range steps {
		skip += s.from * all.strides[first+i]
		part.strides[first+i] *= s.every
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
	depth := min(v.depth, convDepth)
	room := takeRoom[C](depth * convColumns)
	defer giveRoom(room)
	for t := lo; t < hi; t++ {
		i, j, unit := t%v.down*v.rows, t/v.down%v.across*convColumns, t/v.down/v.across
		m, n := min(v.rows, v.out-i), min(convColumns, v.columns-j)
		group := unit % v.groups
		shared := unit / v.groups / v.outer
		y := v.y[(unit*v.out+i)*v.columns+j:]
		row := (shared*v.groups+group)*v.out + i // of the weight
		v.product(y, v.w[row*v.depth:], unit, m, n, j, *room)
		if v.bias == nil {
			continue
		}
		for k, b := range v.bias[row:][:m] {
			ys := y[k*v.columns:][:n]
			for l := range ys {
				ys[l] += b
			}
		}
	}
}

// product is y = w · columns j … j+n-1, m rows.
func (v *convolver[C]) product(y, w []C, unit, m, n, j int, columns []C) {
	if v.depth == 0 {
		for k := range m {
			clear(y[k*v.columns:][:n])
		}
	}
	base := unit * v.in * v.size // of x, where the unit's batch is the first
	if v.inner > 1 {
		base = (unit/v.groups*v.inner*v.groups + unit%v.groups) * v.in * v.size
	}
	for k := 0; k < v.depth; k += convDepth {
		d := min(convDepth, v.depth-k)
		b, ldb := columns, n
		if v.direct {
			b, ldb = v.x[base+k*v.size+j:], v.size
		} else {
			for i := range d {
				v.fill(columns[i*n:][:n], base+(k+i)/v.kernel*v.size, (k+i)%v.kernel, j)
			}
		}
		if k == 0 {
			gemm.NN(y, w, b, m, n, d, v.depth, ldb, v.columns)
		} else {
			gemm.AddNN(y, w[k:], b, m, n, d, v.depth, ldb, v.columns)
		}
	}
}

// fill sets dst to what place k of the kernel sees of the channel of x at base, from column j on.
func (v *convolver[C]) fill(dst []C, base, k, j int) {
	var at, offset [maxRank]int
	last := len(v.steps) - 1
	for i := last; i >= 0; i-- {
		n := len(v.steps[i].offsets)
		offset[i] = v.steps[i].offsets[k%n]
		k /= n
	}
	base += j / v.places * v.groups * v.in * v.size
	for i, p := last, j%v.places; i >= 0; i-- {
		at[i] = p % v.steps[i].count
		p /= v.steps[i].count
	}
	for len(dst) > 0 {
		run := dst[:min(len(dst), v.steps[last].count-at[last])]
		dst = dst[len(run):]
		from, inside := 0, true
		for i := range last {
			s := &v.steps[i]
			p := at[i]*s.step + offset[i]
			inside = inside && p >= 0 && p < s.size
			from = (from + p) * v.steps[i+1].size
		}
		if inside {
			readRun(run, v.x[base+from:], &v.steps[last], at[last], offset[last])
		} else {
			clear(run)
		}
		at[last] = 0
		for i := last - 1; i >= 0; i-- {
			if at[i]++; at[i] < v.steps[i].count {
				break
			}
			at[i] = 0
			if i == 0 {
				base += v.groups * v.in * v.size
			}
		}
		if last == 0 {
			base += v.groups * v.in * v.size
		}
	}
}

// readRun sets dst to what one place of the kernel sees of x from place at of the output on.
func readRun[C num.Float](dst, x []C, s *strided, at, offset int) {
	p := at*s.step + offset
	if s.step == 1 {
		lo := min(max(0, -p), len(dst))
		hi := min(max(lo, s.size-p), len(dst))
		clear(dst[:lo])
		if lo < hi {
			copy(dst[lo:hi], x[p+lo:p+hi])
		}
		clear(dst[hi:])
		return
	}
	for i := range dst {
		dst[i] = 0
		if p >= 0 && p < s.size {
			dst[i] = x[p]
		}
		p += s.step
	}
}
