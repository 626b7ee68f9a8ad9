package starlark

import (
	"fmt"

	star "go.starlark.net/starlark"
)

// seed is seed(n): rand, randn, dropout and the like draw anew from here on, as any script does that gave the same
// integer n, whatever the number of threads. Every call of one takes the next stream of the seed, so the same
// calls in the same order draw the same. A call that is given seed= is apart: it draws the same each time. Without
// seed(n), a script draws as after seed(0).
func seed(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var n star.Int
	if err := star.UnpackArgs(b.Name(), args, kwargs, "n", &n); err != nil {
		return nil, err
	}
	i, ok := n.Int64()
	if u, big := n.Uint64(); !ok && big {
		i, ok = int64(u), true
	}
	if !ok {
		return nil, fmt.Errorf("seed: the integer %s has more than 64 bits", n)
	}
	if env := interpOf(t).env; !env.IsShapeOnly() {
		env.Seed(uint64(i))
	}
	return star.None, nil
}
