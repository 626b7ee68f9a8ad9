package quant

// The formats iq1_s and iq1_m have weights of -1, 0 or 1, all of eight moved an eighth up or down, times a scale; the
// eight are a point of a grid of 2,048. What they share is here.

// moved is what the levels 0, 1 and 2 stand for, moved up and moved down.
var moved = [2][]float32{{-0.875, 0.125, 1.125}, {-1.125, -0.125, 0.875}}

// ascending sets order to the places of x from the least to the greatest, as they stand where equal.
func ascending(order []uint8, x []float32) {
	for i := range x {
		j := i
		for ; j > 0 && x[order[j-1]] > x[i]; j-- {
			order[j] = order[j-1]
		}
		order[j] = uint8(i)
	}
}

// thirds sets the levels of the first i1 in order to 0, up to i2 to 1, of the others to 2; or the reverse.
func thirds(q, order []uint8, i1, i2 int, reverse bool) {
	for j, at := range order {
		l := uint8(2)
		switch {
		case j < i1:
			l = 0
		case j < i2:
			l = 1
		}
		if reverse {
			l = 2 - l
		}
		q[at] = l
	}
}

// moveOn puts the levels q of x on the grid, eight at a time, which are moved as down says. It returns the scale that
// fits the points, which is the given one if no level changed.
func moveOn(q []uint8, x, w []float32, scale float32, down []uint8, places []int) float32 {
	all := true
	for k := range places {
		i := 8 * k
		place, was := iq1Grid.snap(q[i:i+8], moved[down[k]], x[i:], w[i:], scale)
		places[k] = place
		all = all && was
	}
	if all {
		return scale
	}
	vx, vv := float32(0), float32(0)
	for j, l := range q {
		v := moved[down[j/8]][l]
		vx += float32(float32(w[j]*v) * x[j])
		vv += float32(float32(w[j]*v) * v)
	}
	if vx > 0 && vv > 0 {
		return vx / vv
	}
	return scale
}
