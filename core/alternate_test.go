package core

import (
	"slices"
	"sync"
	"testing"
)

// TestAlternate insists that every other call goes backwards, and that each element is met once whichever way.
func TestAlternate(t *testing.T) {
	for _, workers := range []int{1, 2, 3} {
		e := NewEnv(0, workers)
		c := &Ctx{&call{env: e, info: Lookup("add")}}
		for _, n := range []int{1, 7, 8, 9, 64, 65, 1000} {
			var first [2]int
			for turn := range 4 {
				var mu sync.Mutex
				met, order := make([]int, n), []int(nil)
				c.Alternate(n, 8, func(lo, hi int) {
					mu.Lock()
					defer mu.Unlock()
					if lo%8 != 0 || hi > n || hi != n && hi-lo != 8 {
						t.Errorf("%d workers, %d elements: got the range [%d, %d)", workers, n, lo, hi)
					}
					for i := lo; i < hi; i++ {
						met[i]++
					}
					order = append(order, lo)
				})
				if slices.Min(met) != 1 || slices.Max(met) != 1 {
					t.Errorf("%d workers, %d elements, turn %d: met %v times", workers, n, turn, met)
				}
				if turn < 2 {
					first[turn] = order[0]
				}
			}
			last := (n - 1) / 8 * 8
			if workers == 1 && n > 8 && first != [2]int{0, last} && first != [2]int{last, 0} {
				t.Errorf("%d elements: one call begins with %d, the next with %d, want 0 and %d",
					n, first[0], first[1], last)
			}
		}
	}
}
