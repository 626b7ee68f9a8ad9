package core

import (
	"fmt"
	"strings"

	"github.com/fucina-go/fucina/core/axis"
)

// An axis that both operands of a product have, and that is not summed, is a batch axis. So where a rename was
// forgotten, as between the queries and the keys of an attention written by hand, the product succeeds and a
// later step misses an axis. What a product kept is therefore noted on its result, and on what is made of
// that, for the later step to tell.

// kept is the axes of both operands that a product kept as batches.
type kept struct {
	axes    *axis.List
	op      string
	at      Site
	operand int // the one to rename, in field order
}

// noteKept notes on the outputs what the running operation kept as batches, or what was kept before it.
func (c *call) noteKept() {
	for i, axes := range c.plan.batches {
		if axes.Len() > 0 {
			t := c.outs[i]
			t.kept = &kept{axes: axes, op: c.info.Name, at: c.env.where(), operand: i + 1}
		}
	}
	for _, t := range c.in {
		if t == nil || t.kept == nil {
			continue
		}
		for _, out := range c.outs {
			if out.kept == nil {
				out.kept = t.kept
			}
		}
	}
}

// keptAsBatch is the hint for operand t lacking the axis name because an operand of an earlier product has
// it still by another name, such as "seq" for "key_seq"; "" if there is none.
func (c *call) keptAsBatch(t *Tensor, name string) string {
	k := t.kept
	if k == nil {
		return ""
	}
	for _, old := range k.axes.Names() {
		if !t.axes.Has(old) || !strings.Contains(name, old) {
			continue
		}
		who := "w"
		if c.env.NameOf != nil {
			who = c.env.NameOf(k.at, k.operand, who)
		}
		return fmt.Sprintf("%s still has %q in %s at %s: %s.rename(%s=%q)", who, old, k.op, k.at, who,
			Keyword(old), name)
	}
	return ""
}
