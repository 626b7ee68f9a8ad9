"""Writes format.txt: calls of fmt and what Python's str.format returns for the same arguments.

    python3 format.py > format.txt      (last run with Python 3.11)

Every option is tried alone on a few values, then 260 random combinations. What Python refuses is left out, and
so is !r of strings, which Starlark quotes in its own way.
"""

import json
import random

random.seed(7)
inf, nan = float("inf"), float("nan")
rows = {}

FLOATS = [-0.0, 1.0, -3.14159265, 1e-5, 0.0001, 123456789.0, 1e16, 5e-324, 2.675, 0.5, 2.5, 999999.5, -inf, nan, 100.0]
INTS = [0, -1, 1234567, -255, -10**30]
STRINGS = ["", "héllo", "日本"]

FLOAT_SPECS = """f .2f .0f e .3e g .3g .10g % .1% .3 .1 .17g #.0f #g #.3g #.0e # , +.2f 010.2f >12.3f <12.3f ^12.3f
    =+12.2f ,.2f _.2f 015,.2f G E F .0% .0g .0""".split() + ["", " .2f"]
INT_SPECS = """d b o x X #b #o #x #X +d 05d 010,d 08, 06, 09, _d _b _x #_x , >10 <10 ^11 =+10 *^15 015_x #018_b f .2f e
    .3g % x<8x 020d +020,""".split() + ["", " d"]
STRING_SPECS = "s 10 <10 >10 ^10 *^9 .2 10.3 .0 -<7 é^9s 010".split() + [""]
BOOL_SPECS = "d 5 05 f x ^7".split() + [""]

CALLS = r"""
fmt("{} {}", 1, 2)
fmt("{1} {0}", 1, 2)
fmt("{0}{0}", "a")
fmt("{a}-{b}", a=1, b=2)
fmt("{{}}")
fmt("{{{}}}", 3)
fmt("}}{{")
fmt("{:{}}|", "a", 5)
fmt("{:{}.{}f}|", 3.14159, 10, 2)
fmt("{x:{w}}|", x="a", w=4)
fmt("{0:{1}}|", "a", 6)
fmt("{!r}", 7)
fmt("{!s:>5}", "a")
fmt("{0!r:>6}|", True)
fmt("step {:>6} loss {:.4f}", 12, 0.25)
fmt("{:>{w}.{p}f}|", 2.5, w=8, p=1)
fmt("", 1)
fmt("no fields")
fmt("{} {x}", 1, x=2)
fmt("{:,}", 1234567.891)
fmt("{:_<10}", "a")
fmt("{:,<10}", "a")
fmt("{: <5}|", "a")
fmt("{:0<6}", 12)
fmt("{:0>6}", -12)
fmt("{:0=6}", -12)
fmt("{:0^7}", -12)
fmt("{:<06}", -12)
fmt("{:x=8}", -12)
""".split("\n")


def literal(v):
    """v as both languages write it."""
    if isinstance(v, float) and (v != v or v in (inf, -inf)):
        return 'float("%s")' % v
    return json.dumps(v, ensure_ascii=False) if isinstance(v, str) else repr(v)


def add(call):
    try:
        rows[call] = eval(call, {"fmt": lambda f, *args, **kwargs: f.format(*args, **kwargs)})
    except (ValueError, TypeError, OverflowError):
        pass


def add_each(values, specs):
    for v in values:
        for spec in specs:
            add('fmt("{:%s}", %s)' % (spec, literal(v)))


def random_spec(kinds):
    def maybe(chance, choice):
        return str(choice()) if random.random() < chance else ""

    align = maybe(0.5, lambda: maybe(0.5, lambda: random.choice("*0x~")) + random.choice("<>=^"))
    return (align + maybe(0.3, lambda: random.choice("+- ")) + maybe(0.3, lambda: "#") + maybe(0.3, lambda: "0")
            + maybe(0.7, lambda: random.randrange(1, 25)) + maybe(0.3, lambda: random.choice(",_"))
            + maybe(0.5, lambda: ".%d" % random.randrange(12)) + random.choice(kinds))


add_each(FLOATS, FLOAT_SPECS)
add_each(INTS, INT_SPECS)
add_each(STRINGS, STRING_SPECS)
add_each([True, False], BOOL_SPECS)
for call in filter(None, CALLS):
    add(call)
for _ in range(260):
    v = random.choice([random.choice(INTS + [random.randrange(-10**9, 10**9)]), random.choice(FLOATS),
                       random.uniform(-1e4, 1e4), random.choice(STRINGS)])
    kinds = {int: ["", *"dboxXfeg%G"], float: ["", *"fFeEgG%"], str: ["", "s"]}[type(v)]
    add('fmt("{:%s}", %s)' % (random_spec(kinds), literal(v)))

print("# Made by format.py; a call, a tab, and the result in JSON.")
for call, result in rows.items():
    print(call + "\t" + json.dumps(result, ensure_ascii=False))
