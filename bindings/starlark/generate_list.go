package starlark

import (
	"fmt"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
)

// mostTogether is how many prompts are continued at once; the next one begins when one has ended.
const mostTogether = 64

// generations is what m.generate returns for a list of prompts: an iterable of tuples, the place of a prompt in the
// list and a piece of its text.
type generations struct{ each []*generation }

// promptList is v as a list of prompts; ok is false if it is one prompt.
func promptList(v star.Value) (list []star.Value, ok bool) {
	seq, ok := v.(star.Indexable)
	if _, text := v.(star.String); !ok || text || seq.Len() == 0 {
		return nil, false
	}
	if _, id := seq.Index(0).(star.Int); id {
		return nil, false
	}
	for i := range seq.Len() {
		list = append(list, seq.Index(i))
	}
	return list, true
}

// several is generations, one for each prompt.
func (r *request) several(t *star.Thread, m *Model, prompts []star.Value, settings []star.Tuple) (star.Value, error) {
	if r.memory != star.None || r.caller != star.None {
		return nil, &core.Error{Op: r.op, Msg: fmt.Sprintf("got %d prompts, but a cache and a callback are for one",
			len(prompts)), Hint: fmt.Sprintf("as in: for place, piece in m.%s(prompts)", r.op)}
	}
	g, err := r.read(t, m, settings)
	if err != nil {
		return nil, err
	}
	all := &generations{make([]*generation, len(prompts))}
	for i, prompt := range prompts {
		one := *g
		if one.prompt, err = m.prompt(r.op, prompt); err == nil {
			err = one.fit(r.op, r.tokens != star.None)
		}
		if err != nil {
			return nil, fmt.Errorf("prompt %d: %w", i, err)
		}
		all.each[i] = &one
	}
	return all, nil
}

func (g *generations) String() string {
	return fmt.Sprintf("<generations for %d prompts>", len(g.each))
}
func (g *generations) Type() string          { return "generations" }
func (g *generations) Freeze()               {}
func (g *generations) Truth() star.Bool      { return true }
func (g *generations) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: generations") }

// Holds visits the model's weights.
func (g *generations) Holds(visit func(star.Value)) { visit(g.each[0].m) }

// Iterate begins to generate.
func (g *generations) Iterate() star.Iterator { return &together{of: g} }

// together is one run of generations.
type together struct {
	of    *generations
	begun int          // prompts
	runs  []part       // those that go on
	ready []star.Value // not yet given
}

// part is a prompt that goes on.
type part struct {
	*pieces
	place int
}

// Next yields the next piece of any prompt.
func (t *together) Next(v *star.Value) bool {
	for len(t.ready) == 0 {
		for ; len(t.runs) < mostTogether && t.begun < len(t.of.each); t.begun++ {
			t.runs = append(t.runs, part{t.of.each[t.begun].begin(), t.begun})
		}
		if len(t.runs) == 0 {
			return false
		}
		if err := t.round(); err != nil {
			t.Done()
			t.of.each[0].it.halt(&stop{msg: err.Error(), cause: err, catchable: true})
			return false
		}
	}
	*v, t.ready = t.ready[0], t.ready[1:]
	return true
}

// Done gives the caches back.
func (t *together) Done() {
	for _, r := range t.runs {
		r.Done()
	}
	t.runs, t.begun = nil, len(t.of.each)
}

// round makes one token for each prompt that goes on.
func (t *together) round() (err error) {
	defer rescue(&err)
	g := t.of.each[0]
	var feeds []feed
	for _, r := range t.runs {
		if r.made < r.g.tokens {
			feeds = append(feeds, feed{r.cache, r.next})
		}
	}
	var scores [][]float32
	if len(feeds) > 0 {
		x, err := g.m.forwardAll(g.it, feeds, false)
		if err != nil {
			return err
		}
		defer x.Free()
		for row := range x.Unbind("row") {
			scores = append(scores, row.Float32s())
			row.Free()
		}
	}
	var left []part
	for _, r := range t.runs {
		var piece string
		r.probs = nil
		if r.made == r.g.tokens {
			piece = r.finish()
		} else {
			if piece, err = r.choose(scores[0]); err != nil {
				return err
			}
			scores = scores[1:]
		}
		if shown := r.shown(piece); shown != nil {
			t.ready = append(t.ready, star.Tuple{star.MakeInt(r.place), shown})
		}
		if r.end != "" {
			r.Done()
		} else {
			left = append(left, r)
		}
	}
	t.runs = left
	return nil
}
