package core

import "weak"

// Scope owns the tensors that are made while it is the innermost open one. Closing it ends all of
// them but the survivors, which go to the next scope outward.
//
// A tensor knows its scope, so a closed scope ends it without being told; the scope only lists the
// tensors that hold something to give back: a block of the pool or a recorded operation.
type Scope struct {
	env     *Env
	holds   []owned
	compact int     // sweep the list when it is this long
	ended   *ending // set when it is closed
	merged  bool    // it was dissolved; into owns its tensors, nobody if that is nil
	into    *Scope
	strict  bool // let go of every buffer at once, those on the Go heap too
	private bool // nobody can reach what it ends, so that its handles are used again
}

// owned is a tensor that a scope lists: strongly held at first, weakly once memory has run short, so
// that garbage made inside a long scope can be taken back before its end.
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

// scopeSweep is how many tensors a scope lists before it first looks for garbage among them.
const scopeSweep = 1 << 16

// Open begins a scope inside the ones already open.
func (e *Env) Open() *Scope {
	s := &Scope{env: e, compact: scopeSweep, holds: e.holds}
	e.holds = nil
	e.scopes = append(e.scopes, s)
	return s
}

// OpenPrivate is Open for a scope of which nothing but the survivors can be reached after its end, through handles that
// nobody uses any more either: their memory is used for the next ones.
func (e *Env) OpenPrivate() *Scope {
	s := e.Open()
	s.strict, s.private = true, true
	return s
}

// Own puts a tensor that belongs to no scope into the innermost one, if one is open.
func (e *Env) Own(t *Tensor) {
	if n := len(e.scopes); n > 0 {
		e.scopes[n-1].add(t)
	}
}

func (s *Scope) add(t *Tensor) {
	t.owner = s
	if t.node == nil && !s.strict && (t.buf == nil || !t.buf.Pooled()) {
		return
	}
	if len(s.holds) >= s.compact {
		s.env.pool.Collect()
		s.sweep()
		s.compact = max(scopeSweep, 2*len(s.holds))
	}
	s.holds = append(s.holds, owned{strong: t})
}

// loosen lets every open scope hold its tensors weakly, so that a collection can tell which are
// garbage.
func (e *Env) loosen() {
	for _, s := range e.scopes {
		for i := range s.holds {
			if o := &s.holds[i]; o.strong != nil {
				o.weak, o.strong = weak.Make(o.strong), nil
			}
		}
	}
}

// sweep drops the entries of tensors that nobody can reach, that are closed already or that belong
// elsewhere by now.
func (s *Scope) sweep() {
	left := s.holds[:0]
	for i := range s.holds {
		if t := s.holds[i].tensor(); t != nil && t.end == nil && t.owner == s {
			left = append(left, s.holds[i])
		}
	}
	clear(s.holds[len(left):])
	s.holds = left
}

// Close ends the scope, and every scope inside it that is still open. Of the tensors they own only
// the survivors live on; they go to the scope around. A closed scope stays as it is. A survivor of which no place is
// known, because a private scope made it, counts as made where the scope ends that is not private.
func (s *Scope) Close(survivors ...*Tensor) {
	outer, open := s.unwind(func(inner *Scope) { inner.Close(survivors...) })
	if !open {
		return
	}
	s.ended = recycled
	if !s.private {
		s.ended = &ending{how: "the end of its scope", at: s.env.where()}
	}
	for _, t := range survivors {
		if t.scope() != s {
			continue
		}
		if t.made == (Site{}) {
			t.made = s.ended.at
		}
		if outer != nil {
			outer.add(t)
		} else {
			t.owner = nil
		}
	}
	for i := len(s.holds) - 1; i >= 0; i-- { // newest first, as they will be asked for again
		if t := s.holds[i].tensor(); t != nil && t.end == nil && t.scope() == s {
			t.close(s.ended)
			if s.private {
				s.env.reuse(t)
			}
		}
	}
	s.spare()
}

// spare leaves the list of an ended scope, if it is a short one, to the next.
func (s *Scope) spare() {
	if cap(s.holds) <= longestSpare {
		clear(s.holds)
		s.env.holds = s.holds[:0]
	}
	s.holds = nil
}

// longestSpare is how many tensors a list that is used again has room for.
const longestSpare = 256

// Inner tells whether another scope is open around this one.
func (s *Scope) Inner() bool {
	open := s.env.scopes
	return len(open) > 0 && open[0] != s
}

// Dissolve ends the scope, and every scope inside it that is still open, but none of the tensors:
// the scope around owns them from now on.
func (s *Scope) Dissolve() {
	outer, open := s.unwind((*Scope).Dissolve)
	if !open {
		return
	}
	s.merged, s.into = true, outer
	if outer != nil {
		outer.holds = append(outer.holds, s.holds...)
	}
	s.spare()
}

// unwind takes the scope off the stack of open ones, after ending those inside it.
func (s *Scope) unwind(end func(*Scope)) (outer *Scope, open bool) {
	e := s.env
	depth := len(e.scopes) - 1
	for depth >= 0 && e.scopes[depth] != s {
		depth--
	}
	if depth < 0 {
		return nil, false
	}
	for len(e.scopes) > depth+1 {
		end(e.scopes[len(e.scopes)-1])
	}
	e.scopes = e.scopes[:depth]
	if depth > 0 {
		outer = e.scopes[depth-1]
	}
	return outer, true
}

// scope is the scope that owns the tensor, or nil.
func (t *Tensor) scope() *Scope {
	s := t.owner
	for s != nil && s.merged {
		s = s.into
	}
	return s
}

// Owns tells whether t will end with the scope, unless it survives.
func (s *Scope) Owns(t *Tensor) bool { return t.scope() == s }

// ending tells why the tensor may not be used any more; nil while it may.
func (t *Tensor) ending() *ending {
	if t.end != nil || t.owner == nil {
		return t.end
	}
	if s := t.scope(); s != nil {
		return s.ended
	}
	return nil
}

// Keep takes the tensor out of every scope: only Free, or nobody reaching it any more, ends it.
func (t *Tensor) Keep() { t.owner = nil }
