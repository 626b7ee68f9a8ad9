package core

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fucina-go/fucina/core/dtype"
)

// anyDType draws a dtype.
func (w *world) anyDType() dtype.Type { return drawn(w, allDTypes...) }

// pythonRange is the places that Python's range(n)[start:stop:step] visits, written as its reference
// explains it: a negative place counts from the end, what is still outside is cut off.
func pythonRange(n int, start, stop, step *int) (places []int) {
	by := 1
	if step != nil {
		by = *step
	}
	from, to := 0, n
	if by < 0 {
		from, to = n-1, -1
	}
	cut := func(place *int, absent int) int {
		if place == nil {
			return absent
		}
		p := *place
		if p < 0 {
			p += n
		}
		if by > 0 {
			return max(0, min(p, n))
		}
		return max(-1, min(p, n-1))
	}
	from, to = cut(start, from), cut(stop, to)
	for p := from; by > 0 && p < to || by < 0 && p > to; p += by {
		places = append(places, p)
	}
	return places
}

// ranges draws a range for some axes of x.
func (w *world) ranges(names []string) (m Map[Range], places map[string][]int) {
	places = map[string][]int{}
	place := func(label string) *int {
		p := rapid.IntRange(-7, 7).Draw(w.T, label)
		if p == 7 {
			return nil
		}
		return &p
	}
	keys := w.names(names, 0)
	for _, name := range keys {
		r := Range{place("start"), place("stop"), place("step")}
		if r.Step != nil && *r.Step == 0 {
			r.Step = nil
		}
		m.Values = append(m.Values, r)
		places[name] = pythonRange(w.sizes[name], r.Start, r.Stop, r.Step)
	}
	m.Keys = axisList(keys...)
	return m, places
}

// part is the array at the given places of some axes.
func (n naive) part(places map[string][]int) naive {
	more := index{}
	for name, p := range places {
		more[name] = len(p)
	}
	return n.with(n.names, more, func(i index) float64 {
		j := index{}
		for name, place := range i {
			j[name] = place
			if p, ok := places[name]; ok {
				j[name] = p[place]
			}
		}
		return n.at(j)
	})
}

func TestSlice(t *testing.T) {
	check(t, func(w *world) {
		names := xs2(w.names(worldNames[:4], 0))
		x := w.tensor(w.anyDType(), names...)
		ranges, places := w.ranges(names)
		y := sliceOp.Call(Slice{X: x, Ranges: ranges})
		if y.buf != x.buf {
			w.Fatal("a slice has memory of its own")
		}
		w.same(y, naiveOf(x).part(places), 0)
		// A slice of a slice goes through strides that are no longer those of a dense tensor.
		for k, name := range names {
			w.sizes[name] = y.sizes[k]
		}
		ranges, places = w.ranges(names)
		w.same(sliceOp.Call(Slice{X: y, Ranges: ranges}), naiveOf(y).part(places), 0)
	})
}

func TestSliceExtremes(t *testing.T) {
	least, most := -1<<63, 1<<63-1
	x := NewEnv(0, 1).Arange(5, "a", dtype.I64)
	for _, c := range []struct {
		r    Range
		want []int64
	}{
		{Range{Start: &least, Stop: &most, Step: &most}, []int64{0}},
		{Range{Start: &most, Stop: &least, Step: &least}, []int64{4}},
		{Range{Start: &most, Stop: &most}, nil},
		{Range{Start: &least, Stop: &least}, nil},
	} {
		y := sliceOp.Call(Slice{X: x, Ranges: Map[Range]{axisList("a"), []Range{c.r}}})
		if got := y.Int64s(); !slices.Equal(got, c.want) {
			t.Errorf("%+v: got %v, want %v", c.r, got, c.want)
		}
	}
}

func TestAt(t *testing.T) {
	check(t, func(w *world) {
		names := xs2(w.names(worldNames[:4], 0))
		x := w.tensor(w.anyDType(), names...)
		keys := w.names(names, 0)
		at, fixed := Map[int]{Keys: axisList(keys...)}, index{}
		for _, name := range keys {
			n := w.sizes[name]
			if n == 0 {
				return // refused, see TestMisuse
			}
			p := rapid.IntRange(-n, n-1).Draw(w.T, "place")
			at.Values = append(at.Values, p)
			fixed[name] = (p + n) % n
		}
		kept := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(keys, n) })
		a := naiveOf(x)
		w.same(atOp(x, at), a.with(kept, nil, func(i index) float64 { return a.at(i.place(fixed)) }), 0)
	})
}

func atOp(x *Tensor, places Map[int]) *Tensor { return at.Call(At{X: x, Places: places}) }

func TestSet(t *testing.T) {
	check(t, func(w *world) {
		names := xs2(w.names(worldNames[:4], 0))
		dt := w.anyDType()
		x := w.tensor(dt, names...)
		if slices.Contains(x.strides, 0) {
			x = x.Copy()
		}
		ranges, places := w.ranges(names)
		before := naiveOf(x)
		for name, p := range places {
			w.sizes[name] = len(p)
		}
		v := w.tensor(dt, w.names(names, 0)...)
		b := naiveOf(v)
		want := before.with(names, nil, func(i index) float64 {
			j := index{}
			for name, place := range i {
				j[name] = place
				if p, ok := places[name]; ok {
					if j[name] = slices.Index(p, place); j[name] < 0 {
						return before.at(i)
					}
				}
			}
			return b.at(j)
		})
		y := set.Call(Set{X: x, V: v, Ranges: ranges})
		if y != x {
			w.Fatal("set returned another tensor")
		}
		w.same(x, want, 0)
	})
}

// TestSetOverlap writes parts of a tensor to other places of the same one.
func TestSetOverlap(t *testing.T) {
	check(t, func(w *world) {
		names := w.names(worldNames[:3], 1)
		for _, name := range names {
			w.sizes[name] = 5
		}
		x := w.tensor(dtype.I32, names...)
		if slices.Contains(x.strides, 0) {
			x = x.Copy()
		}
		ranges, _ := w.ranges(names)
		v := sliceOp.Call(Slice{X: x, Ranges: ranges})
		into := Map[Range]{Keys: axisList(names...)}
		for k := range names { // as long a part from the other end
			stop, back := -v.sizes[k]-1, -1
			into.Values = append(into.Values, Range{Step: &back, Stop: &stop})
		}
		y := x.Copy()
		set.Call(Set{X: y, V: v.Copy(), Ranges: into})
		set.Call(Set{X: x, V: v, Ranges: into})
		w.same(x, naiveOf(y), 0)
	})
}

func TestSplitAndMerge(t *testing.T) {
	check(t, func(w *world) {
		names := w.names(worldNames[:3], 1)
		old := drawn(w, names...)
		p, q, r := drawn(w, 1, 2, 3), drawn(w, 1, 2, 4), drawn(w, 1, 2)
		w.sizes[old] = p * q * r
		x := w.tensor(w.anyDType(), names...)
		a := naiveOf(x)
		sizes := []int{p, q, r}
		sizes[drawn(w, 0, 1, 2)] = -1
		parts := []string{"p", old, "r"} // one keeps the old name
		y := split.Call(Split{X: x, Axis: Axis(old), Into: Map[int]{axisList(parts...), sizes}})
		at := slices.Index(names, old)
		cut := slices.Concat(names[:at], parts, names[at+1:])
		w.same(y, a.with(cut, index{"p": p, old: q, "r": r}, func(i index) float64 {
			return a.at(i.place(index{old: (i["p"]*q+i[old])*r + i["r"]}))
		}), 0)

		// Merging in another order than that of memory copies.
		b := naiveOf(y)
		group := rapid.Permutation(parts).Draw(w.T, "group")
		merged := slices.DeleteFunc(slices.Clone(cut), func(n string) bool { return slices.Contains(group[1:], n) })
		merged[slices.Index(merged, group[0])] = "m"
		z := merge.Call(Merge{X: y, Into: Map[Axes]{axisList("m"), []Axes{axisList(group...)}}})
		w.same(z, b.with(merged, index{"m": p * q * r}, func(i index) float64 {
			rest, j := i["m"], i.place(nil)
			for _, name := range slices.Backward(group) {
				n := b.sizes[name]
				j[name] = rest % n
				rest /= n
			}
			return b.at(j)
		}), 0)
	})
}

// TestMergeIsAView merges what lies together already.
func TestMergeIsAView(t *testing.T) {
	x := NewEnv(0, 1).Zeros(dtype.F32, axisList("a", "b", "c"), 2, 300, 4)
	for _, c := range []struct {
		group string
		x     *Tensor
		view  bool
	}{
		{"b c", x, true},
		{"a b c", x, true},
		{"a c", x, false},
		{"c b", x.Order("c b a"), false},
		{"b c", x.Order("b c a"), true},
		{"b c", x.Slice("b", 0, 300, 2), false},
		{"b c", x.Slice("a", 1, 2, 1), true},
		{"n b", x.Expand("n", 3), false},
		{"n m", x.Expand("n", 3).Expand("m", 2), true},
	} {
		y := merge.Call(Merge{X: c.x, Into: Map[Axes]{axisList("d"), []Axes{axisList(c.group)}}})
		if got := y.buf == x.buf; got != c.view {
			t.Errorf("merging %q of %s: a view is %v, want %v", c.group, c.x.Shape(), got, c.view)
		}
	}
}

func TestRenameOrderExpand(t *testing.T) {
	check(t, func(w *world) {
		names := w.names(worldNames[:4], 0)
		x := w.tensor(w.anyDType(), names...)
		a := naiveOf(x)

		to := rapid.Permutation(names).Draw(w.T, "to") // every renaming is a permutation: swaps and cycles
		renamed := rename.Call(Rename{X: x, To: Map[string]{axisList(names...), to}})
		sizes, back := index{}, map[string]string{}
		for k, name := range names {
			sizes[to[k]], back[to[k]] = w.sizes[name], name
		}
		w.same(renamed, a.with(to, sizes, func(i index) float64 {
			j := index{}
			for name, place := range i {
				j[back[name]] = place
			}
			return a.at(j)
		}), 0)

		order := rapid.Permutation(names).Draw(w.T, "order")
		ordered := x.Order(axisList(order...).String())
		w.same(ordered, a.with(order, nil, a.at), 0)
		w.same(ordered.Copy(), a.with(order, nil, a.at), 0)

		n := drawn(w, 0, 1, 3)
		expanded := expand.Call(Expand{X: x, Axes: Map[int]{axisList("n", "m"), []int{n, 2}}})
		w.same(expanded, a.with(append([]string{"n", "m"}, names...), index{"n": n, "m": 2}, a.at), 0)
		for _, y := range []*Tensor{renamed, ordered, expanded} {
			if y.buf != x.buf {
				w.Fatal("a view has memory of its own")
			}
		}
	})
}

func TestConcat(t *testing.T) {
	check(t, func(w *world) {
		names := w.names(worldNames[:4], 1)
		along := drawn(w, names...)
		dt := w.anyDType()
		var xs []*Tensor
		var parts []naive
		total := 0
		for range drawn(w, 1, 2, 3) {
			w.sizes[along] = drawn(w, 0, 1, 2, 5)
			x := w.tensor(dt, rapid.Permutation(names).Draw(w.T, "order")...)
			xs, parts = append(xs, x), append(parts, naiveOf(x))
			total += w.sizes[along]
		}
		first := parts[0]
		w.same(ConcatAll(along, xs...), first.with(first.names, index{along: total}, func(i index) float64 {
			place := i[along]
			for _, p := range parts {
				if n := p.sizes[along]; place >= n {
					place -= n
					continue
				}
				return p.at(i.place(index{along: place}))
			}
			panic("beyond the last part")
		}), 0)
	})
}
