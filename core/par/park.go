package par

import (
	"sync/atomic"
	"time"
)

// spinTime is how long a goroutine watches for work before it parks. Waking a
// parked one takes 50 to 150 µs, more than most jobs: it must outlast the
// pauses between the operations of one computation.
const spinTime = 1500 * time.Microsecond

// A parker lets one goroutine wait for a condition that others make true.
type parker struct {
	parked atomic.Bool
	token  chan struct{} // one token for each change of parked from true to false by unpark
}

func newParker() parker { return parker{token: make(chan struct{}, 1)} }

// await returns once ready reports true. It watches for spinTime, or not at
// all while s is crowded, and then sleeps. Whoever makes ready true must call
// unpark afterwards. bide, which may be nil, is called in between and says
// whether it had anything to do.
func (p *parker) await(s *set, ready, bide func() bool) {
	for !spin(s, ready, bide) {
		p.parked.Store(true)
		if ready() && p.parked.CompareAndSwap(true, false) {
			return
		}
		s.awake.Add(-1)
		<-p.token
		s.awake.Add(1)
	}
}

// unpark wakes the goroutine in await if it sleeps.
func (p *parker) unpark() {
	if p.parked.Load() && p.parked.CompareAndSwap(true, false) {
		p.token <- struct{}{}
	}
}

// spin reports whether ready came true before it was time to sleep.
func spin(s *set, ready, bide func() bool) bool {
	if ready() {
		return true
	}
	const rounds = 64 // between two looks at the clock
	for start := time.Now(); time.Since(start) < spinTime; {
		for range rounds {
			if ready() {
				return true
			}
			if s.crowded() {
				return false
			}
			if bide == nil || !bide() {
				pause()
			}
		}
	}
	return false
}

var calm atomic.Uint32 // only read: its cache line stays shared

// pause keeps a spinning goroutine off the contended words for about 10 ns.
func pause() {
	for range 16 {
		calm.Load()
	}
}
