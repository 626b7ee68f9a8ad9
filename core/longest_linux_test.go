package core

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fucina-go/fucina/kernels/cpu"
)

// ofMillions is what is measured with axes of a million elements, too: a run there is a row.
var ofMillions = strings.Fields("argsort conv group_norm layer_norm rms_norm softmax")

var longest = flag.Bool("longest", false, "show how long the longest chunks take")

// TestLongestChunk measures what lies between two looks at whether to stop when the samples of every operation are
// large: an interrupt waits for that long. Split looks before each chunk, Pause inside of them, and every operation
// at its end. What counts is the time of the thread, so that others at work on the machine do not. The aim is 200 µs;
// -longest shows the figures, and of which sample they are.
func TestLongestChunk(t *testing.T) {
	if testing.Short() {
		t.Skip("times mean nothing under the race detector")
	}
	bound := time.Millisecond
	if cpu.Current() == cpu.Generic {
		bound *= 10 // what chunks are made for is the assembly
	}
	defer func(old []int) { lengths, timed, paused = old, nil, nil }(lengths)
	var begin, most time.Duration
	runtime.LockOSThread() // one worker: everything runs here
	defer runtime.UnlockOSThread()
	look := func() {
		now := threadTime(t)
		most, begin = max(most, now-begin), now
	}
	paused = look
	timed = func(_ *Ctx, f func(lo, hi int)) func(lo, hi int) {
		return func(lo, hi int) {
			look()
			f(lo, hi)
			look()
		}
	}
	type figure struct {
		name, sample string
		took         time.Duration
	}
	var figures []figure
	measure := func(info *Info, least int) {
		lengths = []int{1, least}
		f := figure{name: info.Name}
		for _, s := range subjects(info) {
			if s.size() < least {
				continue
			}
			s.env.Control.Workers = 1
			best := time.Hour // of some runs, until one is good: others may be at work on the machine
			for tries := 0; tries < 7 && (best > bound || *longest); tries++ {
				begin, most = threadTime(t), 0
				outs, err := s.outputs(s.args)
				if err != nil {
					t.Errorf("%s: %v", info.Name, err)
					break
				}
				look()
				s.release(outs)
				best = min(best, most)
			}
			if best > f.took {
				f.took, f.sample = best, s.name
			}
		}
		figures = append(figures, f)
		if f.took > bound {
			t.Errorf("%s: nothing looks whether to stop for %v, want at most %v", f.name, f.took, bound)
		}
	}
	for _, info := range All() {
		measure(info, 100_000)
		if slices.Contains(ofMillions, info.Name) {
			measure(info, 1_000_000)
		}
	}
	if *longest {
		slices.SortFunc(figures, func(a, b figure) int { return int(b.took - a.took) })
		for _, f := range figures {
			fmt.Printf("%10v  %-22s %s\n", f.took.Round(time.Microsecond), f.name, f.sample)
		}
	}
}

// threadTime is how long the thread has run.
func threadTime(t *testing.T) time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		t.Fatal(err)
	}
	return time.Duration(now.Nano())
}

// size is the elements of the largest operand.
func (s *subject) size() (n int) {
	for _, x := range s.args {
		if x != nil {
			n = max(n, x.Len())
		}
	}
	return n
}
