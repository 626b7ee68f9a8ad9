package core

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fucina-go/fucina/core/dtype"
)

// attended is the definition of attention: softmax over the keys a query sees, times their values.
func attended(q, k, v naive, a Attention, query, key, kHead string) naive {
	queries, keys := q.sizes[query], k.sizes[key]
	start, scale := a.Start, a.Scale
	if start < 0 {
		start = keys - queries
	}
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(q.sizes["head_dim"]))
	}
	return q.with(q.names, nil, func(i index) float64 {
		at := start + i[query]
		group := q.sizes["head"] / k.sizes[kHead]
		weights, total, y := 0.0, 0.0, 0.0
		for p := range keys {
			if a.Causal && p > at || a.Window > 0 && p <= at-a.Window {
				continue
			}
			j := i.place(index{key: p, kHead: i["head"] / group})
			score := 0.0
			for d := range q.sizes["head_dim"] {
				score += q.at(i.place(index{"head_dim": d})) * k.at(j.place(index{"head_dim": d}))
			}
			weights = math.Exp(score * scale)
			total += weights
			y += weights * v.at(j)
		}
		if total == 0 {
			return 0
		}
		return y / total
	})
}

func TestAttention(t *testing.T) {
	check(t, func(w *world) {
		query := drawn(w, "seq", "row")
		key := drawn(w, "key_seq", query)
		kHead := drawn(w, "kv_head", "head")
		kvHeads := drawn(w, 1, 2, 3)
		dt := drawn(w, floats...)
		batch := []string{"batch", "beam"}[:drawn(w, 0, 1, 2)]
		w.sizes = index{"batch": 2, "beam": drawn(w, 1, 2), "head_dim": drawn(w, 1, 3, 4), query: drawn(w, 0, 1, 3, 5),
			"head": kvHeads * drawn(w, 1, 2)}
		shuffled := func(names ...string) []string { return rapid.Permutation(names).Draw(w.T, "order") }
		q := w.tensor(dt, shuffled(append(slices.Clone(batch), query, "head", "head_dim")...)...)
		w.sizes[key], w.sizes[kHead] = drawn(w, 0, 1, 2, 5, 7, 70), kvHeads
		kNames := append(slices.Clone(batch), key, kHead, "head_dim")
		a := Attention{Q: q, K: w.tensor(dt, shuffled(kNames...)...), V: w.tensor(dt, shuffled(kNames...)...),
			Causal: w.bool(),
			Start:  drawn(w, -1, 0, 2, 9), Window: drawn(w, 0, 0, 1, 2, 3), Scale: drawn(w, 0, 0.25)}
		want := attended(naiveOf(a.Q), naiveOf(a.K), naiveOf(a.V), a, query, key, kHead)
		exact := want.at
		want.at = func(i index) float64 { return rounded(dt, exact(i)) }
		w.same(attention.Call(a), want, 4*loose[dt])
	})
}

// roped is the definition of the rotary embedding, of the paper and with the changes that its arguments name.
func roped(x, positions naive, a Rope, factors func(pair int) float64) naive {
	axis, d := string(a.Axis), a.Dims
	if d == 0 {
		d = x.sizes[axis]
	}
	length := a.Magnitude
	ramp := func(int) float64 { return 0 }
	if a.Extrapolation != 0 {
		// Peng et al. 2023: pair i turns context/(2π base^(2i/d)) times in the original context. Pairs that turn
		// more often than beta_fast stay, those that turn less often than beta_slow are slowed down by scale.
		turns := func(n float64) float64 {
			return float64(d) * math.Log(float64(a.Context)/(n*2*math.Pi)) / (2 * math.Log(a.Base))
		}
		low, high := math.Floor(turns(a.BetaFast)), math.Ceil(turns(a.BetaSlow))
		low, high = max(low, 0), min(high, float64(d-1))
		ramp = func(pair int) float64 {
			return a.Extrapolation * (1 - min(1, max(0, (float64(pair)-low)/max(high-low, 0.001))))
		}
		length *= 0.1*math.Log(1/a.Scale) + 1
	}
	return x.with(x.names, nil, func(i index) float64 {
		at := i[axis]
		if at >= d {
			return x.at(i)
		}
		pair, second := at/2, at%2 == 1
		partner := at ^ 1
		if a.Style == "half" {
			pair, second = at%(d/2), at >= d/2
			partner = (at + d/2) % d
		}
		angle := positions.at(i) * math.Pow(a.Base, -2*float64(pair)/float64(d)) / factors(pair)
		angle = a.Scale*angle*(1-ramp(pair)) + angle*ramp(pair)
		other := x.at(i.place(index{axis: partner}))
		if second {
			return length * (x.at(i)*math.Cos(angle) + other*math.Sin(angle))
		}
		return length * (x.at(i)*math.Cos(angle) - other*math.Sin(angle))
	})
}

func TestRope(t *testing.T) {
	check(t, func(w *world) {
		dt := drawn(w, floats...)
		n := drawn(w, 2, 4, 6, 16, 18)
		w.sizes = index{"row": drawn(w, 0, 1, 3), "head": 2, "batch": 2, "head_dim": n, "pair": 0}
		names := rapid.Permutation(append(w.names([]string{"row", "head", "batch"}, 0), "head_dim")).Draw(w.T, "order")
		x := w.tensor(dt, names...)
		rest := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == "head_dim" })
		on := rest
		if len(rest) > 0 {
			on = w.names(rest, 0)
		}
		positions := w.env.Tensor(dtype.I64, axisList(on...), w.sized(on)...)
		positions.FillInts(rapid.SliceOfN(rapid.Int64Range(-5, 5000), 12, 12).Draw(w.T, "positions")[:positions.Len()])
		a := Rope{X: x, Positions: positions, Axis: "head_dim", Base: drawn(w, 10000.0, 500000),
			Scale: drawn(w, 1, 0.25),
			Dims:  drawn(w, 0, 2, n/4*2), Style: drawn(w, "interleaved", "half"), Magnitude: drawn(w, 1, 0.5),
			Extrapolation: drawn(w, 0, 1, 0.5), BetaFast: 32, BetaSlow: 1, Context: 4096}
		factors := func(int) float64 { return 1 }
		if w.bool() {
			d := a.Dims
			if d == 0 {
				d = n
			}
			w.sizes["pair"] = d / 2
			factors = func(pair int) float64 { return 1 + 0.5*float64(pair) }
			values := make([]float32, d/2)
			for i := range values {
				values[i] = float32(factors(i))
			}
			a.Factors = w.env.Tensor(dtype.F32, axisList("pair"), d/2)
			a.Factors.Fill(values)
		}
		want := roped(naiveOf(x), naiveOf(positions), a, factors)
		exact := want.at
		want.at = func(i index) float64 { return rounded(dt, exact(i)) }
		w.same(rope.Call(a), want, max(1e-12, 2*loose[dt])) // angles are up to 5000, and so are their roundings
	})
}
