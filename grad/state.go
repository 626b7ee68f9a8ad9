package grad

import "github.com/fucina-go/fucina/core"

// State is what an object of a training run must keep to go on later with the same bits: tensors and plain values,
// each by a name that is unique within the object.
type State struct {
	Tensors map[string]*core.Tensor

	// Values are bools, int64s, float64s, strings, and []any of them.
	Values map[string]any
}

// Stateful is an object whose state a checkpoint keeps: an optimizer, a schedule, an average of weights, a data cursor.
type Stateful interface {
	// State is a snapshot: what is done to the object later does not change it.
	State() State

	// SetState goes back to a snapshot. The error says what does not belong to this object; nothing has changed then.
	SetState(State) error
}
