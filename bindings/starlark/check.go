package starlark

import (
	"fmt"

	star "go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/fucina-go/fucina/core"
)

// checkPaths is how many ways through a function check follows at most.
const checkPaths = 64

// checkRepeats is how often a condition at one place that hangs on data may be true on one way through:
// it ends loops that run until the data says so.
const checkRepeats = 2

// paths is a run of check: which way each condition that hangs on data goes.
type paths struct {
	choices []bool // of the way being followed, as far as they were made before
	at      int
	seen    map[core.Site]int // how often each place was true on this way
}

// checkShapes is check(fn, *args, **kwargs): runs fn without computing anything. Every operation settles its axes,
// sizes and dtypes and complains as it would, but tensors have no data; so a program is checked in a
// moment, whatever its sizes. Where a condition hangs on data, both ways are followed (up to 64 ways in all,
// fn being called for each), loops twice. It returns what the last way returned.
func checkShapes(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if len(args) == 0 {
		return nil, &core.Error{Op: b.Name(), Msg: "got no function, want check(fn, *args)",
			Hint: "as in: check(lambda: zeros(row=2))"}
	}
	it := interpOf(t)
	if it.paths != nil {
		return it.call(t, args[0], args[1:], kwargs)
	}
	defer it.env.ShapeOnly(it.env.ShapeOnly(true))
	defer func() { it.paths = nil }()
	var choices []bool
	for range checkPaths {
		it.paths = &paths{choices: choices, seen: map[core.Site]int{}}
		v, err := inScope(t, args[0], args[1:], kwargs)
		if err != nil {
			return nil, err
		}
		// The next way: the last choice that was true becomes false.
		choices = it.paths.choices[:it.paths.at]
		for len(choices) > 0 && !choices[len(choices)-1] {
			choices = choices[:len(choices)-1]
		}
		if len(choices) == 0 {
			return v, nil
		}
		choices[len(choices)-1] = false
	}
	return star.None, nil
}

// choose says which way a condition that hangs on data goes.
func (p *paths) choose(at core.Site) bool {
	if p.at == len(p.choices) {
		p.choices = append(p.choices, p.seen[at] < checkRepeats)
	}
	way := p.choices[p.at]
	p.at++
	if way {
		p.seen[at]++
	}
	return way
}

// unknown is a number that only the data would tell, in a shape-only run. Arithmetic with it is unknown too;
// a condition on it goes both ways.
type unknown struct{ it *Interp }

func (u unknown) String() string   { return "unknown" }
func (u unknown) Type() string     { return "unknown" }
func (u unknown) Freeze()          {}
func (u unknown) Truth() star.Bool { return true }
func (u unknown) Hash() (uint32, error) {
	return 0, fmt.Errorf("a number that hangs on data cannot be a key in check()")
}

// HoldsNothing marks that no tensor can be reached through it.
func (u unknown) HoldsNothing() {}

// Condition goes both ways, one after the other.
func (u unknown) Condition(string) (bool, error) { return u.it.paths.choose(u.it.where()), nil }

// Compare is unknown.
func (u unknown) Compare(string, star.Value, bool) (star.Value, error) { return u, nil }

// CompareSameType is for sorting two unknowns, and for < between them.
func (u unknown) CompareSameType(syntax.Token, star.Value, int) (bool, error) {
	return u.it.paths.choose(u.it.where()), nil
}

// Binary is unknown.
func (u unknown) Binary(_ syntax.Token, y star.Value, _ star.Side) (star.Value, error) {
	switch y.(type) {
	case star.Int, star.Float, star.Bool, unknown:
		return u, nil
	}
	return nil, nil
}

// Unary is unknown.
func (u unknown) Unary(syntax.Token) (star.Value, error) { return u, nil }
