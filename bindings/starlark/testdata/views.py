"""Writes views.star: views and moves of tensors, and what NumPy and PyTorch give for the same.

    python3 views.py > views.star       (last run with Python 3.11, NumPy 1.24 and PyTorch 1.13)
"""

import numpy as np
import torch

rng = np.random.default_rng(7)


def names(k):
    return " ".join("abcd"[:k])


def literal(v):
    return repr(v.tolist()).replace("nan", 'float("nan")')


def made(v, axes, dtype=None):
    return 'tensor(%s, "%s"%s)' % (literal(v), axes, ', dtype="%s"' % dtype if dtype else "")


def check(call, want):
    print("equal(%s.tolist(), %s)" % (call, literal(np.asarray(want))))


print('"""Made by views.py; do not edit."""\n')
x = rng.integers(-9, 10, (2, 3, 4))
m = rng.integers(-9, 10, (4, 3))
v = rng.integers(-9, 10, 6)
print("x =", made(x, "a b c"))
print("m =", made(m, "a b"))
print("v =", made(v, "a"))

print("\n# flip, roll, repeat, tile, insert, squeeze, stack, unbind")
for axes in ["a", "c", "b c", "c a b"]:
    check('x.flip("%s")' % axes, np.flip(x, ["abc".index(n) for n in axes.split()]))
for shifts in [dict(a=1), dict(c=-3, b=1), dict(b=7), dict(c=0)]:
    args = ", ".join("%s=%d" % kv for kv in shifts.items())
    check("x.roll(%s)" % args, np.roll(x, list(shifts.values()), ["abc".index(n) for n in shifts]))
check("x.repeat(b=2)", np.repeat(x, 2, 1))
check("x.repeat(c=3, a=2)", np.repeat(np.repeat(x, 3, 2), 2, 0))
check("x.repeat(a=0)", np.repeat(x, 0, 0))
check("x.tile(b=2)", np.tile(x, (1, 2, 1)))
check("x.tile(c=2, a=3)", np.tile(x, (3, 1, 2)))
check('x.insert("d")', np.expand_dims(x, 0))
check('x.insert("d e", before="b")', np.expand_dims(x, (1, 2)))
check('x.insert("d", after="c")', np.expand_dims(x, 3))
check('x.insert("d", after="b").insert("e").squeeze("d e")', x)
check('stack([m, m + 1, m * 2], "c")', np.stack([m, m + 1, m * 2]))
check('stack([m, m.order("b a")], "c")', np.stack([m, m]))
check('x.unbind("b")[1]', x[:, 1])
print('equal(len(x.unbind("c")), 4)')

print("\n# slices with steps, and set of them")
for text, s in [("(None, None, -1)", np.s_[::-1]), ("(2, None, -2)", np.s_[2::-2]), ("(-1, 0, -3)", np.s_[-1:0:-3]),
                ("(0, 9, -1)", np.s_[0:9:-1]), ("(1, None, 2)", np.s_[1::2]), ("(-99, 99)", np.s_[-99:99])]:
    check("v.slice(a=%s)" % text, v[s])
    w = v.copy()
    w[s] = 5
    check("v.copy().set(5, a=%s)" % text, w)
    w[s] = np.arange(len(v[s]))
    check('v.copy().set(arange(%d, "a"), a=%s)' % (len(v[s]), text), w)

print("\n# pad")
for mode in ["constant", "edge", "reflect", "wrap"]:
    for before, after in [(1, 2), (3, 0), (7, 13)]:
        check('v.pad(a=(%d, %d), mode="%s")' % (before, after, mode), np.pad(v, (before, after), mode=mode))
    check('x.pad(c=1, a=(0, 1), mode="%s")' % mode, np.pad(x, ((0, 1), (0, 0), (1, 1)), mode=mode))
check("v.pad(a=(-2, 1), value=7)", np.pad(v[2:], (0, 1), constant_values=7))
check("m.pad(b=(-1, -1))", m[:, 1:-1])
one = np.array([3])
check('tensor([3], "a").pad(a=2, mode="reflect")', np.pad(one, 2, mode="reflect"))

print("\n# triangles and diagonals")
for d in [-5, -1, 0, 2, 5]:
    check('m.tril("a b", diagonal=%d)' % d, np.tril(m, d))
    check('m.triu("a b", diagonal=%d)' % d, np.triu(m, d))
    check('m.tril("b a", diagonal=%d)' % d, np.tril(m.T, d).T)
    check('x.triu("a b", diagonal=%d)' % d, np.triu(x.transpose(2, 0, 1), d).transpose(1, 2, 0))
    check('m.diagonal("a b", offset=%d)' % d, np.diagonal(m, d))
    check('x.diagonal("c a", out="d", offset=%d)' % d, np.diagonal(x, d, 2, 0))

print("\n# unfold")
for size, step in [(1, 1), (2, 1), (3, 2), (4, 3), (2, 5)]:
    check('v.unfold("a", window=%d, step=%d)' % (size, step), torch.tensor(v).unfold(0, size, step))
check('x.unfold("b", w=2)', torch.tensor(x).unfold(1, 2, 1))

print("\n# gather, index_select, scatter, scatter_add, nonzero")
at = rng.integers(0, 4, (2, 3, 5))
print("at =", made(at, "a b c"))
check('x.gather(at, "c")', torch.gather(torch.tensor(x), 2, torch.tensor(at)))
check('x.index_select(tensor([2, 0, 2], "a"), "b")', x[:, [2, 0, 2]])
unique = np.argsort(rng.random((2, 3, 4)), axis=2)[:, :, :2]
src = rng.integers(-9, 10, (2, 3, 2))
print("unique, src = %s, %s" % (made(unique, "a b c"), made(src, "a b c")))
check('x.scatter(unique, src, "c")', torch.scatter(torch.tensor(x), 2, torch.tensor(unique), torch.tensor(src)))
check('x.scatter(unique, 0, "c")', torch.scatter(torch.tensor(x), 2, torch.tensor(unique), 0))
twice, add = rng.integers(0, 4, (2, 3, 5)), rng.integers(-9, 10, (2, 3, 5))
print("twice, add = %s, %s" % (made(twice, "a b c"), made(add, "a b c")))
check('x.scatter_add(twice, add, "c")', torch.scatter_add(torch.tensor(x), 2, torch.tensor(twice), torch.tensor(add)))
last = x.copy()
for i, j, k in np.ndindex(2, 3, 5):
    last[i, j, twice[i, j, k]] = add[i, j, k]
check('x.scatter(twice, add, "c")', last)
for name, a in [("x", x), ("m", m), ("v", v)]:
    print("places = %s.gt(2).nonzero()" % name)
    for i, want in enumerate(np.nonzero(a > 2)):
        check("places[%d]" % i if a.ndim > 1 else "places", want)
check('tensor([0.0, -0.0, 2.0, float("nan")], "a").nonzero()', np.nonzero(np.array([0.0, -0.0, 2.0, np.nan]))[0])

print("\n# einsum and outer")
y, z = rng.integers(-3, 4, (4, 2, 3)), rng.integers(-3, 4, (3, 5))
print("y, z = %s, %s" % (made(y, "c a b"), made(z, "b d")))
for out in ["", "a", "b d", "d a c", "a b c d"]:
    check('einsum(x, y, z, out="%s")' % out, np.einsum("abc,cab,bd->" + out.replace(" ", ""), x, y, z))
check('einsum(x, out="c b")', np.einsum("abc->cb", x))
check('v.outer(m.rename(a="d"))', np.multiply.outer(v, m))

print("\n# an operand that is given leaves its name to an axis")
image = rng.integers(0, 9, (2, 3))
print("image =", made(image, "y x"))
check("image.slice(x=(1, None))", image[:, 1:])
check("image.at(x=0)", image[:, 0])
check("pad(image, x=(0, 1))", np.pad(image, ((0, 0), (0, 1))))
