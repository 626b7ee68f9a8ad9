package core

import (
	"weak"
)

// Scope owns the tensors that are made while it is the innermost open one. Closing it ends all
// of them but the ones to keep, which go to the next scope outward.
type Scope struct {
	env     *Env
	made    []owned
	compact int // sweep the list when it is this long
}

// owned is a tensor of a scope: strongly held at first, weakly once memory has run short, so that
// garbage made inside a long scope can be taken back before its end.
type owned struct {
	strong *Tensor
	weak   weak.Pointer[Tensor]
}

func (o *owned) tensor() *Tensor {
	if o.strong != nil {
		return o.strong
	}
	return o.weak.Value()
}

// scopeSweep is how many tensors a scope holds before it first looks for garbage among them.
const scopeSweep = 1 << 16

// Open begins a scope inside the ones already open.
func (e *Env) Open() *Scope {
	s := &Scope{env: e, compact: scopeSweep}
	e.scopes = append(e.scopes, s)
	return s
}

// own puts a new tensor into the innermost scope, if there is one.
func (e *Env) own(t *Tensor) {
	n := len(e.scopes)
	if n == 0 {
		return
	}
	s := e.scopes[n-1]
	if len(s.made) >= s.compact {
		e.pool.Collect()
		s.sweep()
		s.compact = max(scopeSweep, 2*len(s.made))
	}
	s.made = append(s.made, owned{strong: t})
}

// loosen lets every open scope hold its tensors weakly, so that a collection can tell which are
// garbage.
func (e *Env) loosen() {
	for _, s := range e.scopes {
		for i := range s.made {
			if o := &s.made[i]; o.strong != nil {
				o.weak, o.strong = weak.Make(o.strong), nil
			}
		}
	}
}

// sweep drops the entries of tensors that nobody can reach or that are closed already.
func (s *Scope) sweep() {
	kept := s.made[:0]
	for i := range s.made {
		if t := s.made[i].tensor(); t != nil && t.end == nil {
			kept = append(kept, s.made[i])
		}
	}
	clear(s.made[len(kept):])
	s.made = kept
}

// Close ends the scope and every scope opened inside it that is still open. keep tells which
// tensors survive; nil keeps none. A scope that is closed already stays so.
func (s *Scope) Close(keep func(*Tensor) bool) {
	depth := -1
	for i, open := range s.env.scopes {
		if open == s {
			depth = i
		}
	}
	if depth < 0 {
		return
	}
	for len(s.env.scopes) > depth+1 {
		s.env.scopes[len(s.env.scopes)-1].Close(keep)
	}
	s.env.scopes = s.env.scopes[:depth]
	var outer *Scope
	if depth > 0 {
		outer = s.env.scopes[depth-1]
	}
	for i := len(s.made) - 1; i >= 0; i-- { // newest first, as they will be asked for again
		t := s.made[i].tensor()
		switch {
		case t == nil || t.end != nil || t.env == nil || t.kept:
		case keep == nil || !keep(t):
			t.close("the end of its scope")
		case outer != nil:
			outer.made = append(outer.made, owned{strong: t})
		}
	}
	s.made = nil
}

// Keep takes the tensor out of every scope: only Free, or nobody reaching it any more, ends it.
func (t *Tensor) Keep() { t.kept = true }
