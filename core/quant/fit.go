package quant

// Searches for the scale with which integers come closest to given numbers. Each is a fixed sequence of
// attempts, of which the first best counts: the attempts and their order are ggml's, so that the bytes are.

// tiny is the greatest magnitude that still counts as zero.
const tiny = 1e-15

// fitSigned finds x ≈ scale · (q - n) with q in 0 … 2n-1, where w weighs the errors; without w an error
// counts x². The greatest magnitude becomes -n, or nearly so: a value 0.1 … 0.9 above and below is tried too.
func fitSigned(n int, x, w []float32, q []uint8) float32 {
	top := peak(x)
	if abs(top) < tiny {
		clear(q)
		return 0
	}
	level := func(inv, v float32) int { return clamp(nearest(inv*v), -n, n-1) }
	moments := func(inv float32) (lx, ll float32) {
		for i, v := range x {
			l := float32(level(inv, v))
			weight := float32(v * v)
			if w != nil {
				weight = w[i]
			}
			lx += float32(float32(weight*v) * l)
			ll += float32(float32(weight*l) * l)
		}
		return lx, ll
	}
	choose := func(inv float32) {
		for i, v := range x {
			q[i] = uint8(level(inv, v) + n)
		}
	}
	inv := float32(-n) / top
	choose(inv)
	scale, best := float32(0), float32(0)
	lx, ll := moments(inv)
	if ll != 0 {
		scale = lx / ll
	}
	best = scale * lx
	for step := -9; step <= 9; step++ {
		if step == 0 {
			continue
		}
		inv := -(float32(n) + float32(0.1*float32(step))) / top
		lx, ll := moments(inv)
		if ll > 0 && lx*lx > best*ll {
			choose(inv)
			scale = lx / ll
			best = scale * lx
		}
	}
	return scale
}

// fitStepwise finds x ≈ scale · (q - n) with q in 0 … 2n-1, an error counting x²: from rounding to the
// nearest it moves one integer after another while that helps, five times at most.
func fitStepwise(n int, x []float32, q []uint8) float32 {
	top := peak(x)
	if abs(top) < tiny {
		clear(q)
		return 0
	}
	inv := float32(-n) / top
	var level [32]int
	lx, ll := float32(0), float32(0)
	for i, v := range x {
		level[i] = clamp(nearest(inv*v), -n, n-1)
		l, w := float32(level[i]), float32(v*v)
		lx += float32(float32(w*v) * l)
		ll += float32(float32(w*l) * l)
	}
	for range 5 {
		changed := false
		for i, v := range x {
			l, w := float32(level[i]), float32(v*v)
			rx := lx - float32(float32(w*v)*l)
			if !(rx > 0) {
				continue
			}
			rl := ll - float32(float32(w*l)*l)
			next := clamp(nearest(v*rl/rx), -n, n-1)
			if next == level[i] {
				continue
			}
			l = float32(next)
			rx += float32(float32(w*v) * l)
			rl += float32(float32(w*l) * l)
			if rl > 0 && rx*rx*ll > lx*lx*rl {
				level[i], lx, ll, changed = next, rx, rl, true
			}
		}
		if !changed {
			break
		}
	}
	for i := range x {
		q[i] = uint8(level[i] + n)
	}
	if ll > 0 {
		return lx / ll
	}
	return 0
}

// ladder is how fitAffine looks for a scale: n levels, first with the range cut into n + from, then n + from +
// by and so on, so many times in all.
type ladder struct {
	n        int
	from, by float32
	times    int
	absolute bool // an error counts as it is, not squared
}

// fitAffine finds x ≈ scale · q - low with q in 0 … n and low at least 0, where w weighs the errors.
func fitAffine(s ladder, x, w []float32, q []uint8) (scale, low float32) {
	lo, hi := span(x)
	sumW, sumX := w[0], w[0]*x[0]
	for i := 1; i < len(x); i++ {
		sumW += w[i]
		sumX += float32(w[i] * x[i])
	}
	lo = min(lo, 0)
	if hi <= lo {
		clear(q)
		return 0, -lo
	}
	n := float32(s.n)
	inv := n / (hi - lo)
	scale = 1 / inv
	for i, v := range x {
		q[i] = uint8(clamp(nearest(inv*(v-lo)), 0, s.n))
	}
	best := s.misfit(x, w, q, scale, lo)
	var buffer [32]uint8
	try := buffer[:len(x)]
	for step := range s.times {
		inv := (s.from + float32(s.by*float32(step)) + n) / (hi - lo)
		sumL, sumLL, sumXL := float32(0), float32(0), float32(0)
		for i, v := range x {
			try[i] = uint8(clamp(nearest(inv*(v-lo)), 0, s.n))
			l := float32(try[i])
			wl := float32(w[i] * l)
			sumL += wl
			sumLL += float32(wl * l)
			sumXL += float32(wl * v)
		}
		det := float32(sumW*sumLL) - float32(sumL*sumL)
		if !(det > 0) {
			continue
		}
		a := (float32(sumW*sumXL) - float32(sumX*sumL)) / det
		b := (float32(sumLL*sumX) - float32(sumL*sumXL)) / det
		if b > 0 {
			a, b = sumXL/sumLL, 0
		}
		if e := s.misfit(x, w, try, a, b); e < best {
			copy(q, try)
			best, scale, lo = e, a, b
		}
	}
	return scale, -lo
}

// misfit is the weighted error of scale·q + lo.
func (s ladder) misfit(x, w []float32, q []uint8, scale, lo float32) (e float32) {
	for i, v := range x {
		d := float32(scale*float32(q[i])) + lo - v
		if s.absolute {
			d = abs(d)
		} else {
			d *= d
		}
		e += float32(w[i] * d)
	}
	return e
}

// fitPositive finds x ≈ scale · q with q in 0 … n for x of 0 and more, where w weighs the errors: the best of
// nine first scales, then stepwise. A negative x, of which there are few, may take an integer below 0.
func fitPositive(n int, x, w []float32, q []uint8) float32 {
	top := float32(0)
	for _, v := range x {
		top = max(top, v)
	}
	if top < tiny {
		clear(q)
		return 0
	}
	inv := fitPositiveFirst(n, top, x, w)
	lx, ll := float32(0), float32(0)
	for i, v := range x {
		level := min(n, nearest(inv*v))
		q[i] = uint8(level)
		l := float32(level)
		lx += float32(float32(w[i]*v) * l)
		ll += float32(float32(w[i]*l) * l)
	}
	for range 5 {
		changed := false
		for i, v := range x {
			l := float32(q[i])
			rx := lx - float32(float32(w[i]*v)*l)
			rl := ll - float32(float32(w[i]*l)*l)
			if !(rx > 0 && rl > 0) {
				continue
			}
			next := min(n, nearest(v*rl/rx))
			if next == int(q[i]) {
				continue
			}
			l = float32(next)
			rx += float32(float32(w[i]*v) * l)
			rl += float32(float32(w[i]*l) * l)
			if rx*rx*ll > lx*lx*rl {
				q[i], lx, ll, changed = uint8(next), rx, rl, true
			}
		}
		if !changed {
			break
		}
	}
	if ll > 0 {
		return lx / ll
	}
	return 0
}

// fitPositiveFirst returns the best of the inverse scales that make top n - 0.4 … n + 0.4.
func fitPositiveFirst(n int, top float32, x, w []float32) float32 {
	misfit := func(inv float32, first bool) (e float32) {
		scale := 1 / inv
		for i, v := range x {
			l := nearest(inv * v)
			if first {
				l = int(uint8(l)) // as stored: one below 0 is far off
			} else {
				l = min(n, l)
			}
			d := v - float32(scale*float32(l))
			e += float32(float32(w[i]*d) * d)
		}
		return e
	}
	inv := float32(n) / top
	best := misfit(inv, true)
	for step := -4; step <= 4; step++ {
		if step == 0 {
			continue
		}
		next := (float32(0.1*float32(step)) + float32(n)) / top
		if e := misfit(next, false); e < best {
			best, inv = e, next
		}
	}
	return inv
}
