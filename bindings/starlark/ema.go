package starlark

import (
	"errors"
	"fmt"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/grad"
	"github.com/fucina-go/fucina/grad/optim"
)

// ema is an average of weights as a script sees it. It is a grad.Stateful.
type ema struct{ *optim.EMA }

var (
	_ Holder        = (*ema)(nil)
	_ grad.Stateful = (*ema)(nil)
)

func (e *ema) Type() string          { return "ema" }
func (e *ema) String() string        { return fmt.Sprintf("<ema of %d parameters>", len(e.Params())) }
func (e *ema) Freeze()               {}
func (e *ema) Truth() star.Bool      { return true }
func (e *ema) Hash() (uint32, error) { return 0, errors.New("unhashable: ema") }

// Holds visits the parameters.
func (e *ema) Holds(visit func(star.Value)) { holdParams(e.Params(), visit) }

// newEMA is optim.ema(params, decay=0.999): a moving average of the variables in params, beginning with their values
// now. e.update() after every step takes in decay · average + (1 - decay) · weight. e.averaged(fn) calls fn with the
// averages in the place of the weights; e.swap() exchanges the two, and a second time puts them back.
func newEMA(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var params star.Value
	var decay star.Value = star.Float(0.999)
	if err := star.UnpackArgs(b.Name(), args, kwargs, "params", &params, "decay?", &decay); err != nil {
		return nil, err
	}
	list, err := paramsOf("ema", params, "")
	if err != nil {
		return nil, err
	}
	x, err := hyperFloat("ema", "decay", decay)
	if err != nil {
		return nil, err
	}
	return &ema{optim.NewEMA(interpOf(t).env, list, x)}, nil
}

// emaMethods are what scripts call on an average.
var emaMethods = map[string]*star.Builtin{
	"averaged": star.NewBuiltin("averaged", emaAveraged),
	"swap":     star.NewBuiltin("swap", emaSwap),
	"update":   star.NewBuiltin("update", emaUpdate),
}

// Attr is params or a method.
func (e *ema) Attr(name string) (star.Value, error) {
	if name == "params" {
		return paramDict(e.Params())
	}
	if b, ok := emaMethods[name]; ok {
		return b.BindReceiver(e), nil
	}
	return nil, nil
}

// AttrNames is every attribute.
func (e *ema) AttrNames() []string { return []string{"averaged", "params", "swap", "update"} }

// emaUpdate is e.update(): takes the weights as they are into the averages.
func emaUpdate(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	if err := star.UnpackPositionalArgs(b.Name(), args, kwargs, 0); err != nil {
		return nil, err
	}
	b.Receiver().(*ema).Update()
	return star.None, nil
}

// emaSwap is e.swap(): exchanges weights and averages. Until a second e.swap() the averages are not updated.
func emaSwap(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	if err := star.UnpackPositionalArgs(b.Name(), args, kwargs, 0); err != nil {
		return nil, err
	}
	b.Receiver().(*ema).Swap()
	return star.None, nil
}

// emaAveraged is e.averaged(fn, *args, **kwargs): calls fn with the averages in the place of the weights, puts these
// back and returns what fn returned.
func emaAveraged(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	if len(args) == 0 {
		return nil, &core.Error{Op: b.Name(), Msg: "got no function, want e.averaged(fn, *args)",
			Hint: "as in: e.averaged(lambda: zeros(row=2))"}
	}
	e := b.Receiver().(*ema)
	if e.Swapped() {
		return nil, &core.Error{Op: b.Name(), Msg: "the parameters are the averages already",
			Hint: "put them back first: e.swap()"}
	}
	e.Swap()
	defer func() {
		if e.Swapped() { // not if fn has put them back
			e.Swap()
		}
	}()
	return star.Call(t, args[0], args[1:], kwargs)
}
