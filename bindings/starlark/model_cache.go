package starlark

import (
	"errors"
	"fmt"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/models/kv"
)

// modelCache is what m.cache returns: a sequence of tokens that a model has evaluated, and what it remembers of them.
// It keeps its memory until k.free() or until nobody can reach it.
type modelCache struct {
	it     *Interp
	m      *Model
	cache  *kv.Cache
	tokens []int32 // evaluated
	owner  any     // the run of a generation that goes on in it
}

// modelNewCache is m.cache(): room for what the model evaluates, empty at first, to be given to generate and chat: a
// prompt that begins as the one before goes on from where they part. k.tokens is the list of what was evaluated.
func modelNewCache(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if err := star.UnpackArgs(b.Name(), args, kwargs); err != nil {
		return nil, err
	}
	it, m := interpOf(t), b.Receiver().(*Model)
	return &modelCache{it: it, m: m, cache: kv.New(it.env, m.layers)}, nil
}

var _ star.HasAttrs = (*modelCache)(nil)

func (k *modelCache) String() string {
	return fmt.Sprintf("<cache of %d tokens for %s>", len(k.tokens), k.m.name)
}
func (k *modelCache) Type() string          { return "cache" }
func (k *modelCache) Freeze()               {}
func (k *modelCache) Truth() star.Bool      { return true }
func (k *modelCache) Hash() (uint32, error) { return 0, errors.New("unhashable: cache") }

// Holds visits the model's weights; what is cached lives outside of every scope.
func (k *modelCache) Holds(visit func(star.Value)) { visit(k.m) }

// Len is the number of tokens.
func (k *modelCache) Len() int { return len(k.tokens) }

// Iterate goes through the tokens.
func (k *modelCache) Iterate() star.Iterator { return idList(k.tokens).Iterate() }

var modelCacheMethods = map[string]*star.Builtin{
	"feed": star.NewBuiltin("feed", cacheFeed),
	"free": star.NewBuiltin("free", cacheFree),
	"keep": star.NewBuiltin("keep", cacheKeep),
}

// Attr is a method by name, or tokens.
func (k *modelCache) Attr(name string) (star.Value, error) {
	if b, ok := modelCacheMethods[name]; ok {
		return b.BindReceiver(k), nil
	}
	if name == "tokens" {
		return idList(k.tokens), nil
	}
	return nil, nil
}

// AttrNames is every attribute.
func (*modelCache) AttrNames() []string { return []string{"feed", "free", "keep", "tokens"} }

// cacheFeed is k.feed(tokens): evaluates a text, or a list of token ids, behind what was evaluated, and returns the
// scores[vocab] of what may come next. A text is taken as it is: nothing is put in front of it.
func cacheFeed(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var tokens star.Value
	if err := star.UnpackArgs(b.Name(), args, kwargs, "tokens", &tokens); err != nil {
		return nil, err
	}
	k := b.Receiver().(*modelCache)
	if err := k.belongs(t, b.Name()); err != nil {
		return nil, err
	}
	var ids []int32
	if s, ok := star.AsString(tokens); ok {
		if err := wholeText(b.Name(), "the text", s); err != nil {
			return nil, err
		}
		ids = k.m.tokens.Encode(s, 0)
	} else if ids, err = k.m.ids(b.Name(), tokens); err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, &core.Error{Op: b.Name(), Msg: "got no tokens", Hint: "as in: k.feed([1, 2])"}
	}
	if total := len(k.tokens) + len(ids); k.m.context > 0 && total > k.m.context {
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("%d tokens were evaluated and %d more are %d, but the "+
			"context of %s is %d", len(k.tokens), len(ids), total, k.m.name, k.m.context),
			Hint: "forget some: k.keep(0)"}
	}
	k.owner = nil
	x, err := k.m.forward(k.it, k.cache, ids, false)
	if err != nil {
		return nil, err
	}
	k.add(ids)
	return Tensor{x.At("row", 0)}, nil
}

// cacheKeep is k.keep(n): forgets all tokens but the first n, and returns how many are left: 0 where a model's layers
// have a state that can only be forgotten as a whole.
func cacheKeep(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var n int
	if err := star.UnpackArgs(b.Name(), args, kwargs, "n", &n); err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("got %d tokens, want 0 or more", n)}
	}
	k := b.Receiver().(*modelCache)
	if err := k.belongs(t, b.Name()); err != nil {
		return nil, err
	}
	k.owner = nil
	return star.MakeInt(k.truncate(n)), nil
}

// cacheFree is k.free(): forgets all and gives the memory back. The cache can be used again.
func cacheFree(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if err := star.UnpackArgs(b.Name(), args, kwargs); err != nil {
		return nil, err
	}
	k := b.Receiver().(*modelCache)
	if err := k.belongs(t, b.Name()); err != nil {
		return nil, err
	}
	k.owner, k.tokens = nil, nil
	k.cache.Free()
	return star.None, nil
}

// belongs is an error if the cache is not of the interpreter that runs t.
func (k *modelCache) belongs(t *star.Thread, op string) error {
	if interpOf(t) == k.it {
		return nil
	}
	return &core.Error{Op: op, Msg: "the cache belongs to another interpreter", Hint: "as in: cache=m.cache()"}
}

// cacheOf is the cache that a call names, nil for None.
func cacheOf(t *star.Thread, op string, v star.Value, m *Model) (*modelCache, error) {
	if v == star.None {
		return nil, nil
	}
	k, ok := v.(*modelCache)
	if !ok {
		return nil, &core.Error{Op: op, Msg: "cache: got " + v.Type() + ", want a cache",
			Hint: "as in: cache=m.cache()"}
	}
	if k.m != m {
		return nil, &core.Error{Op: op, Msg: "cache: it is another model's, " + k.m.name,
			Hint: "as in: cache=m.cache()"}
	}
	return k, k.belongs(t, op)
}

// truncate keeps the first n tokens, or none, and returns how many.
func (k *modelCache) truncate(n int) int {
	n = k.cache.Truncate(min(n, len(k.tokens)))
	k.tokens = k.tokens[:n]
	return n
}

// rewind begins a run: it forgets what the prompt does not begin with, and returns how many tokens are left. The last
// one of the prompt is always evaluated, for its scores.
func (k *modelCache) rewind(owner any, prompt []int32) int {
	k.owner = owner
	same := 0
	for same < len(prompt)-1 && same < len(k.tokens) && prompt[same] == k.tokens[same] {
		same++
	}
	return k.truncate(same)
}

// ask is an error if something else went on in the cache since the run began. A nil cache is nobody else's.
func (k *modelCache) ask(owner any) error {
	if k == nil || k.owner == owner {
		return nil
	}
	return &core.Error{Op: "generate", Msg: "its cache was used for something else in between",
		Hint: "give each its own: cache=m.cache()"}
}

// add remembers what was evaluated.
func (k *modelCache) add(ids []int32) {
	if k != nil {
		k.tokens = append(k.tokens, ids...)
	}
}
