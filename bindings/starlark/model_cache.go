package starlark

import (
	"errors"
	"fmt"
	"io"
	"slices"

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
	owner  *pieces // the run that goes on in it; nil: none does
}

// modelNewCache is m.cache(): a sequence of tokens, empty at first, with what the model remembers of them: m.forward
// evaluates more of them, and so do generate and chat: a prompt that begins as the tokens do goes on from where they
// part. k.tokens is the list of what was evaluated, len(k) how many there are.
func modelNewCache(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if err := star.UnpackArgs(b.Name(), args, kwargs); err != nil {
		return nil, err
	}
	it, m := interpOf(t), b.Receiver().(*Model)
	return &modelCache{it: it, m: m, cache: m.newCache(it)}, nil
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
	"fork":     star.NewBuiltin("fork", cacheFork),
	"free":     star.NewBuiltin("free", cacheFree),
	"save":     star.NewBuiltin("save", cacheSave),
	"truncate": star.NewBuiltin("truncate", cacheTruncate),
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
func (*modelCache) AttrNames() []string {
	return []string{"fork", "free", "save", "tokens", "truncate"}
}

// check is an error if the cache belongs to another interpreter than the running one.
func (k *modelCache) check(t *star.Thread, op string) error {
	if k.it != interpOf(t) {
		return &core.Error{Op: op, Msg: "the cache belongs to another interpreter", Hint: "make one here: m.cache()"}
	}
	return nil
}

// cacheTruncate is k.truncate(n): forgets all tokens but the first n. It is an error if the model cannot go back there:
// layers with a window keep only what they will see and a few hundred tokens more, recurrent ones the states at a few
// places.
func cacheTruncate(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var n int
	if err := star.UnpackArgs(b.Name(), args, kwargs, "n", &n); err != nil {
		return nil, err
	}
	k := b.Receiver().(*modelCache)
	if err := k.check(t, b.Name()); err != nil {
		return nil, err
	}
	if n < 0 || n > len(k.tokens) {
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("got %d, but the cache has %d tokens", n, len(k.tokens)),
			Hint: fmt.Sprintf("want 0 … %d", len(k.tokens))}
	}
	if at := k.cache.Reach(n); at != n {
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("the layers of %s cannot go back from %d tokens to %d: "+
			"%d is the last place before it that they remember", k.m.name, len(k.tokens), n, at),
			Hint: fmt.Sprintf("k.truncate(%d), and give tokens %d … %d again; or keep a k.fork() to go back to", at, at,
				n-1)}
	}
	k.owner = nil
	k.cache.Truncate(n)
	k.tokens = k.tokens[:n:n]
	return star.None, nil
}

// cacheFork is k.fork(): another cache of the same tokens. The two share memory until one of them goes on.
func cacheFork(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if err := star.UnpackArgs(b.Name(), args, kwargs); err != nil {
		return nil, err
	}
	k := b.Receiver().(*modelCache)
	if err := k.check(t, b.Name()); err != nil {
		return nil, err
	}
	return &modelCache{it: k.it, m: k.m, cache: k.cache.Fork(), tokens: slices.Clone(k.tokens)}, nil
}

// cacheFree is k.free(): forgets all tokens and gives the memory back. The cache can be used again.
func cacheFree(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if err := star.UnpackArgs(b.Name(), args, kwargs); err != nil {
		return nil, err
	}
	k := b.Receiver().(*modelCache)
	if err := k.check(t, b.Name()); err != nil {
		return nil, err
	}
	k.owner, k.tokens = nil, nil
	k.cache.Free()
	return star.None, nil
}

// cacheSave is k.save(path): writes the tokens and what the model remembers of them to a file, which m.load_cache
// reads.
func cacheSave(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var path string
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path); err != nil {
		return nil, err
	}
	k := b.Receiver().(*modelCache)
	switch err := k.check(t, b.Name()); {
	case err != nil:
		return nil, err
	case len(k.tokens) == 0:
		return nil, &core.Error{Op: b.Name(), Msg: "the cache is empty",
			Hint: "evaluate something first: m.forward(k, [1, 2])"}
	case k.m.print == nil:
		return nil, &core.Error{Op: b.Name(), Msg: "the cache is of a model whose weights change"}
	}
	return star.None, k.it.Save(b.Name(), path, func(w io.Writer) error {
		return k.cache.Write(w, k.m.print(), k.tokens)
	})
}

// modelLoadCache is m.load_cache(path): the cache that k.save wrote, of the same model.
func modelLoadCache(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var path string
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path); err != nil {
		return nil, err
	}
	it, m := interpOf(t), b.Receiver().(*Model)
	switch {
	case m.print == nil:
		return nil, &core.Error{Op: b.Name(), Msg: "the weights of this model change, those of a saved cache did not"}
	case it.env.IsShapeOnly():
		return nil, &core.Error{Op: b.Name(), Msg: "a shape-only run reads no cache",
			Hint: "check(fn) computes nothing, so call fn itself: fn()"}
	}
	f, err := it.openTensors(b.Name(), path)
	if err != nil {
		return nil, err
	}
	defer f.file.Close()
	cache, tokens, err := kv.Read(it.env, f.file, m.print(), m.layers, func(c *kv.Cache) error {
		return m.shapes(it, c)
	})
	if err == nil {
		if i := slices.IndexFunc(tokens, func(id int32) bool { return id < 0 || int(id) >= m.tokens.Len() }); i >= 0 {
			cache.Free()
			err = fmt.Errorf("token %d is %d, ids are 0 … %d", i, tokens[i], m.tokens.Len()-1)
		}
	}
	if err != nil {
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("%s: %s", path, err), Hint: "for " + m.name}
	}
	return &modelCache{it: it, m: m, cache: cache, tokens: tokens}, nil
}

// shapes evaluates a row behind an empty cache, which then has the shapes of everything that it keeps, but no data.
func (m *Model) shapes(it *Interp, cache *kv.Cache) error {
	defer it.env.ShapeOnly(it.env.ShapeOnly(true))
	was := it.paths
	defer func() { it.paths = was }()
	it.paths = &paths{seen: map[core.Site]int{}} // the way that a family goes first
	var err error
	it.env.Record(false, func() {
		var y *core.Tensor
		if y, err = m.infer(it, []feed{{cache, []int32{0}}}, false, []bool{true}); y != nil {
			y.Free()
		}
	})
	return err
}

// modelForward is m.forward(cache, tokens, all=False): evaluates new tokens, ids in a list or a tensor, behind those of
// a cache, or of several caches at once, m.forward([(k1, [1, 2]), (k2, [3])]). It returns the scores[row, vocab] of
// what may come after the last token of each, or with all after every token. A row has the same bits in every batch.
func modelForward(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var what, ids star.Value
	all := false
	if err := star.UnpackArgs(b.Name(), args, kwargs, "cache", &what, "tokens?", &ids, "all?", &all); err != nil {
		return nil, err
	}
	m, it := b.Receiver().(*Model), interpOf(t)
	var pairs []star.Value
	switch w := what.(type) {
	case *modelCache:
		pairs = []star.Value{star.Tuple{w, ids}}
	case star.Iterable:
		pairs = slices.Collect(star.Elements(w))
	}
	if len(pairs) == 0 || ids != nil && what.Type() != "cache" {
		return nil, m.misfed(b.Name(), what)
	}
	feeds, caches := make([]feed, len(pairs)), make([]*modelCache, len(pairs))
	for i, pair := range pairs {
		p, ok := pair.(star.Tuple)
		if !ok || len(p) != 2 {
			return nil, m.misfed(b.Name(), pair)
		}
		k, ok := p[0].(*modelCache)
		if !ok || p[1] == nil {
			return nil, m.misfed(b.Name(), pair)
		}
		if err := k.check(t, b.Name()); err != nil {
			return nil, err
		}
		switch {
		case k.m != m:
			return nil, &core.Error{Op: b.Name(), Msg: "the cache is another model's, " + k.m.name,
				Hint: "as in: m.cache()"}
		case slices.Contains(caches, k):
			return nil, &core.Error{Op: b.Name(), Msg: "a cache occurs twice",
				Hint: "give it all its tokens at once, or a fork: k.fork()"}
		}
		caches[i] = k
		if feeds[i].ids, err = m.ids(b.Name(), p[1]); err != nil {
			return nil, err
		}
		if len(feeds[i].ids) == 0 {
			return nil, &core.Error{Op: b.Name(), Msg: "got no tokens", Hint: "as in: m.forward(k, [1, 2])"}
		}
		if total := len(k.tokens) + len(feeds[i].ids); m.context > 0 && total > m.context {
			return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("%d tokens were evaluated and %d more are %d, but "+
				"the context of %s is %d", len(k.tokens), len(feeds[i].ids), total, m.name, m.context),
				Hint: "forget some: k.truncate(0)"}
		}
		feeds[i].cache = k.cache
	}
	x, err := m.forwardAll(it, feeds, all)
	for i, k := range caches {
		k.owner = nil
		k.add(feeds[i].ids, err)
	}
	if err != nil {
		return nil, err
	}
	return Tensor{x}, nil
}

// misfed is the error of what m.forward cannot evaluate.
func (m *Model) misfed(op string, got star.Value) error {
	return &core.Error{Op: op, Msg: "got " + brief(got) + ", want a cache and tokens, or a list of such pairs",
		Hint: "as in: m.forward([(k, [1, 2])]), where k = m.cache()"}
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
		return nil, &core.Error{Op: op, Msg: "the cache is another model's, " + k.m.name, Hint: "as in: m.cache()"}
	}
	return k, k.check(t, op)
}

// rewind begins a run: it forgets what the prompt does not begin with, as far as the model can, and returns how many
// tokens are left. The last one of the prompt is always evaluated, for its scores.
func (k *modelCache) rewind(owner *pieces, prompt []int32) int {
	k.owner = owner
	same := 0
	for same < len(prompt)-1 && same < len(k.tokens) && prompt[same] == k.tokens[same] {
		same++
	}
	same = k.cache.Truncate(same)
	k.tokens = k.tokens[:same]
	return same
}

// ask is an error if something else went on in the cache since the run began. A nil cache is nobody else's.
func (k *modelCache) ask(owner *pieces) error {
	if k == nil || k.owner == owner {
		return nil
	}
	return &core.Error{Op: "generate", Msg: "its cache was used for something else in between",
		Hint: "give each its own: cache=m.cache()"}
}

// add remembers what was evaluated, or after an error how much is left.
func (k *modelCache) add(ids []int32, err error) {
	if k == nil {
		return
	}
	if err == nil {
		k.tokens = append(k.tokens, ids...)
	}
	k.tokens = k.tokens[:k.cache.Len()]
}
