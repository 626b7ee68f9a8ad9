package starlark

import (
	"fmt"
	"io"
	"strings"
	"time"

	star "go.starlark.net/starlark"
)

// progress is progress(xs, label=""): xs, with the state of the loop shown as it goes. On a terminal that is one
// line, drawn again and again; elsewhere a line every ten seconds. It goes to the standard error, never into a script's
// output.
func progress(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var xs star.Iterable
	var label string
	if err := star.UnpackArgs(b.Name(), args, kwargs, "xs", &xs, "label?", &label); err != nil {
		return nil, err
	}
	return &progressValue{Iterable: xs, label: label, cfg: &interpOf(t).cfg}, nil
}

// progressValue is what progress returns.
type progressValue struct {
	star.Iterable
	label string
	cfg   *Config
}

func (p *progressValue) String() string { return "<progress>" }
func (p *progressValue) Type() string   { return "progress" }

// Len is the number of elements, or -1.
func (p *progressValue) Len() int { return star.Len(p.Iterable) }

// Holds visits what is iterated.
func (p *progressValue) Holds(visit func(star.Value)) { visit(p.Iterable) }

// Iterate begins the loop.
func (p *progressValue) Iterate() star.Iterator {
	m := &meter{out: p.cfg.Stderr, terminal: p.cfg.Terminal, label: p.label, total: star.Len(p.Iterable),
		began: time.Now()}
	m.shown = m.began
	return &progressIterator{Iterator: p.Iterable.Iterate(), meter: m}
}

type progressIterator struct {
	star.Iterator
	meter *meter
}

// Next counts the turn that has ended.
func (p *progressIterator) Next(v *star.Value) bool {
	ok := p.Iterator.Next(v)
	p.meter.tick(ok, time.Now())
	return ok
}

// Done leaves the last state standing.
func (p *progressIterator) Done() {
	p.Iterator.Done()
	p.meter.end(time.Now())
}

// meter draws the state of a loop.
type meter struct {
	out          io.Writer
	terminal     bool
	label        string
	total        int // turns, -1 if unknown
	turns        int // that have ended
	running      bool
	began, shown time.Time
	drawn        bool
}

// How often the state is drawn on a terminal, and written elsewhere.
const (
	redrawEvery = 100 * time.Millisecond
	reportEvery = 10 * time.Second
)

func (m *meter) tick(running bool, now time.Time) {
	if m.running {
		m.turns++
	}
	m.running = running
	every := reportEvery
	if m.terminal {
		every = redrawEvery
	}
	if now.Sub(m.shown) >= every {
		m.draw(now)
	}
}

func (m *meter) end(now time.Time) {
	if m.drawn {
		m.draw(now)
		if m.terminal {
			fmt.Fprintln(m.out)
		}
	}
}

func (m *meter) draw(now time.Time) {
	m.shown, m.drawn = now, true
	if m.terminal {
		fmt.Fprintf(m.out, "\r\033[K%s", m.line(now)) // carriage return, clear to the end of the line
		return
	}
	fmt.Fprintln(m.out, m.line(now))
}

// line is "label  42/100 [#########.............] 2.5 turns/s, 23s left".
func (m *meter) line(now time.Time) string {
	var b strings.Builder
	if m.label != "" {
		b.WriteString(m.label + "  ")
	}
	rate := float64(m.turns) / max(1e-9, now.Sub(m.began).Seconds())
	if m.total < 0 {
		fmt.Fprintf(&b, "%d  %.3g turns/s", m.turns, rate)
		return b.String()
	}
	const width = 24
	full := 0
	if m.total > 0 {
		full = width * m.turns / m.total
	}
	fmt.Fprintf(&b, "%d/%d [%s%s] %.3g turns/s", m.turns, m.total, strings.Repeat("#", full),
		strings.Repeat(".", width-full), rate)
	if rate > 0 && m.turns < m.total {
		left := time.Duration(float64(m.total-m.turns) / rate * float64(time.Second))
		fmt.Fprintf(&b, ", %v left", left.Round(time.Second))
	}
	return b.String()
}
