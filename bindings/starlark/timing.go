package starlark

import (
	"cmp"
	"slices"
	"time"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// timed is how long timeit goes on.
const timed = 200 * time.Millisecond

// timeIt is timeit(fn, *args, **kwargs): how long a call of fn takes, in seconds: a struct of least, mean and runs. fn
// is called once before, so that nothing is for the first time, and then again and again for 0.2 seconds, at least
// three times, in a scope of its own each time. least is what it takes when nothing else runs. The prompt takes
// %timeit fn(x), and %time x = fn(x), which shows how long the line took.
func timeIt(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	if len(args) == 0 {
		return nil, wantFunction(b.Name(), "timeit(lambda: zeros(row=2))")
	}
	it := interpOf(t)
	roots := append(star.Tuple{}, args...)
	for _, kw := range kwargs {
		roots = append(roots, kw[1])
	}
	var least, total time.Duration
	runs := 0
	for warm := false; runs < 3 || total < timed; {
		if err := it.spend(1); err != nil {
			return nil, err
		}
		var took time.Duration
		_, err := holding(t, roots, func() (star.Value, error) {
			began := time.Now()
			_, err := it.call(t, args[0], args[1:], kwargs)
			took = time.Since(began)
			return star.None, err
		})
		if err != nil {
			return nil, err
		}
		if !warm {
			warm = true
			continue
		}
		if runs == 0 || took < least {
			least = took
		}
		total += max(took, time.Nanosecond)
		runs++
	}
	return starlarkstruct.FromStringDict(starlarkstruct.Default, star.StringDict{
		"least": star.Float(least.Seconds()), "mean": star.Float(total.Seconds() / float64(runs)),
		"runs": star.MakeInt(runs)}), nil
}

// profile is profile(fn, *args, **kwargs): calls fn once and tells which operations it spent its time in: a list of
// tuples of an operation, the number of its calls and its seconds, the longest first, and at the end, called "script",
// whatever else there was: the interpreter, files, the backward pass besides its operations. It makes a table of it:
// print(text.table(profile(fn), header=["operation", "calls", "seconds"])).
func profile(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	if len(args) == 0 {
		return nil, wantFunction(b.Name(), "profile(lambda: zeros(row=2))")
	}
	type line struct {
		op    string
		calls int
		took  time.Duration
	}
	lines, computed := map[string]*line{}, time.Duration(0)
	env := interpOf(t).env
	outside := env.Timed
	defer func() { env.Timed = outside }()
	env.Timed = func(op string, took time.Duration) {
		l := lines[op]
		if l == nil {
			l = &line{op: op}
			lines[op] = l
		}
		l.calls++
		l.took += took
		computed += took
		if outside != nil {
			outside(op, took)
		}
	}
	began := time.Now()
	if _, err := inScope(t, args[0], args[1:], kwargs); err != nil {
		return nil, err
	}
	all := time.Since(began)
	var sorted []*line
	for _, l := range lines {
		sorted = append(sorted, l)
	}
	slices.SortFunc(sorted, func(a, b *line) int {
		return cmp.Or(cmp.Compare(b.took, a.took), cmp.Compare(a.op, b.op))
	})
	sorted = append(sorted, &line{"script", 1, max(0, all-computed)})
	var list []star.Value
	for _, l := range sorted {
		list = append(list, star.Tuple{star.String(l.op), star.MakeInt(l.calls), star.Float(l.took.Seconds())})
	}
	return star.NewList(list), nil
}
