package core

import "github.com/fucina-go/fucina/core/rng"

// Random is the argument of operations that draw random numbers: from where. Element i of the result, counted in
// the order of its axes, is a function of a seed, a stream and i, so the same script with the same seed draws the
// same bits for any worker count. Every call takes the next stream of its Env's seed, unless Seed is given: it
// then draws from stream 0 of that seed, and a repeated call draws the same again.
type Random struct {
	Seed int `arg:"seed=-1"` // -1: the next stream

	source source // where it drew from
}

type source struct {
	seed, stream uint64
	known        bool
}

// Seed makes the random operations of this Env begin anew: those that follow draw from streams 1, 2, 3, … of
// seed n. An Env begins with seed 0.
func (e *Env) Seed(n uint64) { e.seed, e.stream = n, 0 }

// RandomState is where the random operations of this Env stand: the seed, and how many of its streams were taken.
func (e *Env) RandomState() (seed, stream uint64) { return e.seed, e.stream }

// SetRandomState lets the random operations go on from where RandomState said they stood.
func (e *Env) SetRandomState(seed, stream uint64) { e.seed, e.stream = seed, stream }

// draws settles where the operation draws from. An operation that drew already, as one that was recorded did,
// draws the same again.
func (r *Random) draws(c *Ctx) source {
	if !r.source.known {
		e := c.c.env
		if r.Seed >= 0 {
			r.source = source{uint64(r.Seed), 0, true}
		} else {
			e.stream++
			r.source = source{e.seed, e.stream, true}
		}
	}
	return r.source
}

// uniforms sets dst[i] to a number in [0, 1), that of index from+i.
func (s source) uniforms(dst []float64, from int) {
	for i := range dst {
		dst[i] = rng.Float64(s.seed, s.stream, uint64(from+i))
	}
}

// fillBlocks sets output 0 block by block: f sets the elements from the given index on.
func fillBlocks[C number](c *Ctx, f func(y []C, from int)) {
	out := c.Out(0)
	c.Split(out.Len(), max(1, pointGrain/4), func(lo, hi int) {
		var y [blockLen]C
		for ; lo < hi; lo += blockLen {
			n := min(blockLen, hi-lo)
			f(y[:n], lo)
			store(out, lo, y[:n])
		}
	})
}
