package starlark

import (
	"errors"
	"fmt"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/rng"
	"github.com/fucina-go/fucina/grad"
)

// batches is batches(data, size, axis="batch", shuffle=True, seed=0, drop_last=False): data in batches of size
// examples, in an order that depends on the seed and the epoch alone. data is a tensor, cut along the axis, a list of
// examples, or a tuple or dict of such: for x, y in batches((images, labels), 32). A loop over it ends with the
// epoch, and the next loop goes on with the next epoch; one that was left early, or put back by load_checkpoint, goes
// on where it stood. d.next() gives batch after batch without end; d.epoch and d.position, the examples of the epoch
// that are done, say where it stands, len(d) how many batches an epoch has.
func batches(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var data star.Value
	var size int
	var seed star.Int
	d := &batchesOf{it: interpOf(t), op: b.Name(), axis: "batch", shuffle: true, ordered: -1}
	if err := star.UnpackArgs(b.Name(), args, kwargs, "data", &data, "size", &size, "axis?", &d.axis,
		"shuffle?", &d.shuffle, "seed?", &seed, "drop_last?", &d.dropLast); err != nil {
		return nil, err
	}
	n, ok := seed.Int64()
	if !ok || size < 1 {
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("got size=%d and seed=%s", size, seed),
			Hint: "want at least 1, and an integer of 64 bits, as in: size=32"}
	}
	d.seed, d.size, d.data, d.n = n, size, data, -1
	switch v := data.(type) {
	case star.Tuple:
		for i, part := range v {
			if err := d.add(fmt.Sprintf("data[%d]", i), part); err != nil {
				return nil, err
			}
		}
	case *star.Dict:
		for _, item := range v.Items() {
			if err := d.add(fmt.Sprintf("data[%s]", item[0]), item[1]); err != nil {
				return nil, err
			}
		}
	default:
		if err := d.add("data", v); err != nil {
			return nil, err
		}
	}
	if d.n < 1 || d.dropLast && d.n < d.size {
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("there are %d examples, too few for a batch of %d",
			max(d.n, 0), d.size), Hint: "size=1"}
	}
	return d, nil
}

// batchesOf is what batches returns.
type batchesOf struct {
	it      *Interp
	op      string
	data    star.Value
	axis    string
	n       int // examples
	size    int // of a batch
	shuffle bool
	seed    int64

	dropLast        bool
	epoch, position int

	order   []int64 // of the examples in the epoch ordered
	ordered int
}

// add takes a part of the data and insists that it has as many examples as the others.
func (d *batchesOf) add(name string, part star.Value) error {
	n := 0
	switch v := part.(type) {
	case Tensor:
		if n = v.Size(d.axis); n < 0 && v.Rank() == 0 {
			return &core.Error{Op: d.op, Msg: name + " is one number, " + v.Shape(), Hint: "want a tensor with axes"}
		} else if n < 0 {
			return &core.Error{Op: d.op, Msg: fmt.Sprintf("%s has no axis %q, got %s", name, d.axis, v.Shape()),
				Hint: fmt.Sprintf("say which counts the examples: axis=%q", axisAt(v.Tensor, star.MakeInt(0)))}
		}
	case *star.List:
		n = v.Len()
	default:
		return &core.Error{Op: d.op, Msg: fmt.Sprintf("%s is a %s", name, part.Type()),
			Hint: "want a tensor or a list, or a tuple or dict of them"}
	}
	if d.n >= 0 && n != d.n {
		return &core.Error{Op: d.op, Msg: fmt.Sprintf("%s has %d examples, but those before have %d", name, n, d.n)}
	}
	d.n = n
	return nil
}

var (
	_ star.Sequence = (*batchesOf)(nil)
	_ star.HasAttrs = (*batchesOf)(nil)
	_ grad.Stateful = (*batchesOf)(nil)
)

func (d *batchesOf) String() string {
	return fmt.Sprintf("<batches of %d, epoch %d, position %d of %d>", d.size, d.epoch, d.position, d.n)
}
func (d *batchesOf) Type() string          { return "batches" }
func (d *batchesOf) Freeze()               {}
func (d *batchesOf) Truth() star.Bool      { return true }
func (d *batchesOf) Hash() (uint32, error) { return 0, errors.New("unhashable: batches") }

// Len is how many batches an epoch has.
func (d *batchesOf) Len() int { return (d.end() + d.size - 1) / d.size }

// end is how many examples an epoch has.
func (d *batchesOf) end() int {
	if d.dropLast {
		return d.n - d.n%d.size
	}
	return d.n
}

// Holds visits the data.
func (d *batchesOf) Holds(visit func(star.Value)) { visit(d.data) }

// batchesMethods are what scripts call on batches.
var batchesMethods = map[string]*star.Builtin{"next": star.NewBuiltin("next", batchesNext)}

// Attr is a method, or where the batches stand.
func (d *batchesOf) Attr(name string) (star.Value, error) {
	switch name {
	case "epoch":
		return star.MakeInt(d.epoch), nil
	case "position":
		return star.MakeInt(d.position), nil
	}
	if b, ok := batchesMethods[name]; ok {
		return b.BindReceiver(d), nil
	}
	return nil, nil
}

// AttrNames is every attribute.
func (d *batchesOf) AttrNames() []string { return []string{"epoch", "next", "position"} }

// batchesNext is d.next(): the next of the batches, after the last of an epoch the first of the next one.
func batchesNext(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	if err := star.UnpackPositionalArgs(b.Name(), args, kwargs, 0); err != nil {
		return nil, err
	}
	d := b.Receiver().(*batchesOf)
	if d.position >= d.end() {
		d.epoch, d.position = d.epoch+1, 0
	}
	v, err = d.take()
	if err == nil && !d.it.env.IsShapeOnly() && d.position >= d.end() {
		d.epoch, d.position = d.epoch+1, 0
	}
	return v, err
}

// take is the batch that begins at the position, which moves on.
func (d *batchesOf) take() (star.Value, error) {
	if err := d.arrange(); err != nil {
		return nil, err
	}
	n := min(d.size, d.end()-d.position)
	places := d.order[d.position : d.position+n]
	if err := d.whole(); err != nil {
		return nil, err
	}
	list, err := axis.Of("place")
	if err != nil {
		return nil, err
	}
	index := d.it.env.Tensor(dtype.I64, list, n)
	defer index.Free()
	index.FillInts(places)
	pick := func(part star.Value) star.Value {
		if x, ok := part.(Tensor); ok {
			return Tensor{core.Lookup("index_select").Run1(d.it.env,
				&core.IndexSelect{X: x.Tensor, Index: index, Axis: core.Axis(d.axis)})}
		}
		items := make([]star.Value, n)
		for i, place := range places {
			items[i] = part.(*star.List).Index(int(place))
		}
		return star.NewList(items)
	}
	var batch star.Value
	switch v := d.data.(type) {
	case star.Tuple:
		parts := make(star.Tuple, len(v))
		for i := range v {
			parts[i] = pick(v[i])
		}
		batch = parts
	case *star.Dict:
		parts := star.NewDict(v.Len())
		for _, item := range v.Items() {
			if err := parts.SetKey(item[0], pick(item[1])); err != nil {
				return nil, err
			}
		}
		batch = parts
	default:
		batch = pick(v)
	}
	if !d.it.env.IsShapeOnly() {
		d.position += n
	}
	return batch, nil
}

// whole insists that no list has become shorter, and that what came into a dict can be cut.
func (d *batchesOf) whole() error {
	parts := []star.Value{d.data}
	switch v := d.data.(type) {
	case star.Tuple:
		parts = v
	case *star.Dict:
		parts = nil
		for _, item := range v.Items() {
			parts = append(parts, item[1])
		}
	}
	for _, part := range parts {
		switch v := part.(type) {
		case Tensor:
		case *star.List:
			if v.Len() < d.n {
				return &core.Error{Op: d.op, Msg: fmt.Sprintf("a list of the data has %d examples now, it had %d",
					v.Len(), d.n)}
			}
		default:
			return &core.Error{Op: d.op, Msg: fmt.Sprintf("a part of the data is a %s now", part.Type()),
				Hint: "want a tensor or a list, or a tuple or dict of them"}
		}
	}
	return nil
}

// epochStream is the stream of random numbers of epoch 0; others follow. Streams of operations count from 1.
const epochStream = 1 << 62

// arrange settles the order of the examples in the epoch: Fisher and Yates's shuffle.
func (d *batchesOf) arrange() error {
	if d.ordered == d.epoch {
		return nil
	}
	if d.ordered >= 0 && !d.shuffle {
		d.ordered = d.epoch
		return nil
	}
	d.ordered = -1
	if d.order == nil {
		d.order = make([]int64, d.n)
	}
	for i := range d.order {
		d.order[i] = int64(i)
	}
	const often = 1 << 14
	for i := d.n - 1; i > 0 && d.shuffle; i-- {
		j := rng.IntN(uint64(d.seed), epochStream+uint64(d.epoch), uint64(i), i+1)
		d.order[i], d.order[j] = d.order[j], d.order[i]
		if why := d.it.stopped.Load(); i%often == 0 && why != nil {
			return why
		}
	}
	d.ordered = d.epoch
	return nil
}

// Iterate goes through what is left of the epoch.
func (d *batchesOf) Iterate() star.Iterator { return &batchesLoop{d: d, epoch: d.epoch} }

type batchesLoop struct {
	d     *batchesOf
	epoch int
	over  bool
}

// Next is the next batch of the epoch. Starlark gives an iteration no way to fail, so an error stops the run.
func (l *batchesLoop) Next(v *star.Value) bool {
	d := l.d
	if l.over || d.epoch != l.epoch {
		return false
	}
	if d.position >= d.end() {
		d.epoch, d.position = d.epoch+1, 0
		l.over = true
		return false
	}
	batch, err := func() (batch star.Value, err error) {
		defer rescue(&err)
		return d.take()
	}()
	if err != nil {
		d.it.halt(&stop{msg: err.Error(), cause: err, catchable: true})
		return false
	}
	l.over = d.it.env.IsShapeOnly() // one turn tells the shapes
	*v = batch
	return true
}

// Done ends the loop.
func (l *batchesLoop) Done() {}

// State is where the batches stand, and what the order depends on.
func (d *batchesOf) State() grad.State {
	return grad.State{Values: map[string]any{"epoch": int64(d.epoch), "position": int64(d.position), "seed": d.seed,
		"shuffle": d.shuffle, "examples": int64(d.n)}}
}

// SetState goes back to where batches of as many examples stood.
func (d *batchesOf) SetState(s grad.State) error {
	epoch, ok1 := s.Values["epoch"].(int64)
	position, ok2 := s.Values["position"].(int64)
	seed, ok3 := s.Values["seed"].(int64)
	shuffle, ok4 := s.Values["shuffle"].(bool)
	examples, ok5 := s.Values["examples"].(int64)
	switch {
	case !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || epoch < 0 || position < 0 || position > examples:
		return errors.New("this is no state of batches")
	case examples != int64(d.n):
		return fmt.Errorf("the state is of batches of %d examples, here are %d", examples, d.n)
	}
	d.epoch, d.position, d.seed, d.shuffle, d.ordered = int(epoch), int(position), seed, shuffle, -1
	return nil
}
