package starlark

import (
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	starmath "go.starlark.net/lib/math"
	"go.starlark.net/lib/time"
	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"
)

// libraries are the modules of go.starlark.net scripts see.
var libraries = star.StringDict{
	"json": jsonModule,
	"math": starmath.Module,
	"time": time.Module,
}

// builtins are the functions of the prelude that need no tensors.
var builtins = star.StringDict{
	"all":     star.NewBuiltin("all", allTrue),
	"any":     star.NewBuiltin("any", anyTrue),
	"bool":    star.NewBuiltin("bool", boolOf),
	"catch":   star.NewBuiltin("catch", catch),
	"fail":    star.NewBuiltin("fail", fail),
	"fmt":     star.NewBuiltin("fmt", formatText),
	"getattr": star.NewBuiltin("getattr", getAttr),
	"pow":     star.NewBuiltin("pow", power),
	"print":   star.NewBuiltin("print", printLine),
	"repr":    star.NewBuiltin("repr", represent),
	"round":   star.NewBuiltin("round", round),
	"sorted":  star.NewBuiltin("sorted", sorted),
	"str":     star.NewBuiltin("str", toText),
	"sum":     star.NewBuiltin("sum", sum),

	"usage_error": star.NewBuiltin("usage_error", usageError),
	"write":       star.NewBuiltin("write", write),
}

// shared returns a function that is op where a tensor is among the arguments themselves, and b elsewhere.
func shared(op *opFunc, b *star.Builtin) *star.Builtin {
	return star.NewBuiltin(b.Name(), func(
		t *star.Thread, _ *star.Builtin, args star.Tuple, kwargs []star.Tuple,
	) (star.Value, error) {
		named := func(pair star.Tuple) bool { return isTensor(pair[1]) }
		if slices.ContainsFunc(args, isTensor) || slices.ContainsFunc(kwargs, named) {
			return op.CallInternal(t, args, kwargs)
		}
		return b.CallInternal(t, args, kwargs)
	})
}

// text is v as fmt shows it: strings without quotes.
func text(v star.Value) string {
	if s, ok := star.AsString(v); ok {
		return s
	}
	return v.String()
}

// fail is fail(*args, sep=" "): ends the run with an error, whose message is the arguments as text with sep between
// them.
func fail(t *star.Thread, _ *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	shown := make(star.Tuple, len(args))
	for i, arg := range args {
		shown[i] = interpOf(t).shown(arg)
	}
	return star.Universe["fail"].(*star.Builtin).CallInternal(t, shown, kwargs)
}

// printLine is print(*args, sep=" ", end="\n"): the arguments as text with sep between them and end behind.
func printLine(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	sep, end := " ", "\n"
	if err := star.UnpackArgs(b.Name(), nil, kwargs, "sep?", &sep, "end?", &end); err != nil {
		return nil, err
	}
	it := interpOf(t)
	var out strings.Builder
	for i, arg := range args {
		if i > 0 {
			out.WriteString(sep)
		}
		s, err := it.text(arg, false)
		if err != nil {
			return nil, err
		}
		out.WriteString(s)
	}
	out.WriteString(end)
	_, err := io.WriteString(it.cfg.Stdout, out.String())
	return star.None, err
}

// write is write(*args): the arguments without separators or newline, seen at once.
func write(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if err := star.UnpackArgs(b.Name(), nil, kwargs); err != nil {
		return nil, err
	}
	it := interpOf(t)
	w := it.cfg.Stdout
	for _, arg := range args {
		s, err := it.text(arg, false)
		if err != nil {
			return nil, err
		}
		if _, err := io.WriteString(w, s); err != nil {
			return nil, err
		}
	}
	if f, ok := w.(interface{ Flush() error }); ok {
		return star.None, f.Flush()
	}
	return star.None, nil
}

// catch is catch(fn, *args, **kwargs): a struct of fn's value and None, or of None and the error's message.
// What must end the run, a cancellation or a limit, it does not catch.
func catch(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if len(args) == 0 {
		return nil, errNoFunction(b.Name())
	}
	v, err := interpOf(t).call(t, args[0], args[1:], kwargs)
	var message star.Value = star.None
	if err != nil {
		it := interpOf(t)
		if why := it.stopped.Load(); why != nil {
			if !why.catchable || !it.stopped.CompareAndSwap(why, nil) {
				return nil, err
			}
			t.Uncancel()
			if now := it.stopped.Load(); now != nil { // it came in between
				t.Cancel(now.msg)
			}
			err = why
		}
		v, message = star.None, star.String(innermost(err).Error())
	}
	return starlarkstruct.FromStringDict(starlarkstruct.Default, star.StringDict{"value": v, "error": message}), nil
}

// UsageError is the end of a program whose arguments are wrong. Where in the script that was found does not matter.
type UsageError struct {
	Usage   string // a line, as in "usage: prune [--all] file"
	Mistake string // a line; may be empty
}

func (e *UsageError) Error() string {
	if e.Mistake == "" {
		return e.Usage
	}
	return e.Mistake + "\n" + e.Usage
}

// usageError is usage_error(usage, mistake=None): ends a program that was called in a wrong way. Only the mistake and,
// on a line of its own, the usage are shown, without the place in the script; the exit code is 2.
func usageError(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	e := &UsageError{}
	if err := star.UnpackArgs(b.Name(), args, kwargs, "usage", &e.Usage, "mistake??", &e.Mistake); err != nil {
		return nil, err
	}
	return nil, e
}

func errNoFunction(name string) error {
	return fmt.Errorf("%s: got no function; use %[1]s(fn, *args)", name)
}

// boolOf is bool(x), which asks values that are not plainly true or false.
func boolOf(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var x star.Value = star.False
	if err := star.UnpackPositionalArgs(b.Name(), args, kwargs, 0, &x); err != nil {
		return nil, err
	}
	is, err := truth(x, b.Name())
	return star.Bool(is), err
}

// allTrue is all(xs): whether every element is true.
func allTrue(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	found, err := find(b.Name(), false, args, kwargs)
	return star.Bool(!found), err
}

// anyTrue is any(xs): whether an element is true.
func anyTrue(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	found, err := find(b.Name(), true, args, kwargs)
	return star.Bool(found), err
}

// find reports whether an element of the only argument has the truth wanted.
func find(name string, wanted bool, args star.Tuple, kwargs []star.Tuple) (bool, error) {
	var xs star.Iterable
	if err := star.UnpackPositionalArgs(name, args, kwargs, 1, &xs); err != nil {
		return false, err
	}
	iter := xs.Iterate()
	defer iter.Done()
	var x star.Value
	for iter.Next(&x) {
		if is, err := truth(x, name); err != nil || is == wanted {
			return err == nil, err
		}
	}
	return false, nil
}

// sum is sum(xs, start=0): the elements added up. Without a start it begins with the first element.
func sum(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var xs star.Iterable
	var total star.Value
	if err := star.UnpackArgs(b.Name(), args, kwargs, "xs", &xs, "start?", &total); err != nil {
		return nil, err
	}
	iter := xs.Iterate()
	defer iter.Done()
	it := interpOf(t)
	var x star.Value
	for iter.Next(&x) {
		if total == nil {
			total = x
			continue
		}
		if why := it.stopped.Load(); why != nil {
			return nil, why
		}
		var err error
		if total, err = it.binary(syntax.PLUS, total, x); err != nil {
			return nil, fmt.Errorf("sum: %w", err)
		}
	}
	if total == nil {
		total = star.MakeInt(0)
	}
	return total, nil
}

// maxPowerBits bounds the size of an integer power; Python would compute for hours.
const maxPowerBits = 1 << 20

// power is pow(x, y) on numbers: exact for integers with y >= 0, else a float.
func power(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var x, y star.Value
	if err := star.UnpackArgs(b.Name(), args, kwargs, "x", &x, "y", &y); err != nil {
		return nil, err
	}
	xi, xIsInt := x.(star.Int)
	yi, yIsInt := y.(star.Int)
	if xIsInt && yIsInt && yi.Sign() >= 0 {
		base := xi.BigInt()
		bits, exponent := base.BitLen(), yi.BigInt()
		if bits > 1 && (!exponent.IsInt64() || exponent.Int64() > int64(maxPowerBits/bits)) {
			return nil, fmt.Errorf("pow: %s to the power of %s is too large an integer; use floats", x, y)
		}
		return star.MakeBigInt(base.Exp(base, exponent, nil)), nil
	}
	xf, ok := star.AsFloat(x)
	if !ok {
		return nil, fmt.Errorf("pow: got x of type %s, want a number", x.Type())
	}
	yf, ok := star.AsFloat(y)
	if !ok {
		return nil, fmt.Errorf("pow: got y of type %s, want a number", y.Type())
	}
	switch {
	case xf == 0 && yf < 0:
		return nil, fmt.Errorf("pow: zero to the power of %s", y)
	case xf < 0 && yf != math.Trunc(yf):
		return nil, fmt.Errorf("pow: %s to the power of %s is not a real number", x, y)
	}
	return star.Float(math.Pow(xf, yf)), nil
}

// round is round(x, ndigits=None): to the nearest, ties to even. Without ndigits the result is an int, else of
// x's type.
func round(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var x, digits star.Value = nil, star.None
	if err := star.UnpackArgs(b.Name(), args, kwargs, "x", &x, "ndigits?", &digits); err != nil {
		return nil, err
	}
	places := 0
	if digits != star.None {
		var err error
		if places, err = star.AsInt32(digits); err != nil {
			return nil, fmt.Errorf("round: ndigits: %w", err)
		}
	}
	switch x := x.(type) {
	case star.Int:
		if places >= 0 {
			return x, nil
		}
		return star.MakeBigInt(roundBig(x.BigInt(), -places)), nil
	case star.Float:
		f := float64(x)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			if digits != star.None {
				return x, nil
			}
			return nil, fmt.Errorf("round: %s has no integer value", x)
		}
		if digits == star.None {
			return star.NumberToInt(star.Float(math.RoundToEven(f)))
		}
		return star.Float(roundFloat(f, places)), nil
	}
	return nil, fmt.Errorf("round: got %s, want a number", x.Type())
}

// roundBig rounds n to a multiple of 10^zeros, ties to even.
func roundBig(n *big.Int, zeros int) *big.Int {
	if zeros > n.BitLen() { // 10^zeros is more than twice n
		return new(big.Int)
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(zeros)), nil)
	quotient, rest := new(big.Int).DivMod(n, unit, new(big.Int))
	switch rest.Lsh(rest, 1).Cmp(unit) {
	case 1:
		quotient.Add(quotient, big.NewInt(1))
	case 0:
		quotient.Add(quotient, big.NewInt(int64(quotient.Bit(0))))
	}
	return quotient.Mul(quotient, unit)
}

// roundFloat rounds the exact decimal value of f, as Python does: round(2.675, 2) is 2.67.
func roundFloat(f float64, places int) float64 {
	if places >= 0 {
		f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'f', min(places, 400), 64), 64)
		return f
	}
	mantissa := strconv.FormatFloat(f, 'e', -1, 64)
	exponent, _ := strconv.Atoi(mantissa[strings.IndexByte(mantissa, 'e')+1:])
	switch digits := exponent + 1 + places; {
	case digits > 0:
		f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'e', digits-1, 64), 64)
		return f
	case digits == 0 && math.Abs(f) > math.Pow10(-places)/2:
		return math.Copysign(math.Pow10(-places), f)
	}
	return math.Copysign(0, f)
}
