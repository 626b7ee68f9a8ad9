// Command plugin brings an operation of its own to scripts: hinge(x), written in Go like those of the engine.
// Scripts see it as a function and as a method, with help and with the errors all operations have.
//
//	go run ./examples/plugin
package main

import (
	"context"
	"fmt"
	"os"
	"testing/fstest"

	"github.com/fucina-go/fucina"
	"github.com/fucina-go/fucina/core"
)

// Hinge is the operation: its arguments are its fields, here those of every operation on one tensor.
type Hinge struct{ core.Unary }

// Doc is what help shows.
func (*Hinge) Doc() string {
	return "Hinge is max(0, 1 - x), element by element: the loss of a support vector machine.\n\n" +
		"Example:\n\n\ttensor([-1.0, 2.0], \"a\").hinge()\n"
}

// F32 is the f32 kernel; it serves f16 and bf16 too.
func (*Hinge) F32(y, x []float32) {
	for i, v := range x {
		y[i] = max(0, 1-v)
	}
}

const script = `
help("hinge")
x = tensor([[-1.0, 0.5], [1.0, 3.0]], "row margin")
print(x.hinge())
print(hinge(x).mean("margin"))
print(catch(lambda: hinge(tensor([1, 2], "margin"))).error)
`

func main() {
	p := fucina.New(fucina.Op[Hinge]("hinge"))
	defer p.Close()
	files := fstest.MapFS{"main.star": {Data: []byte(script)}}
	if err := p.Run(context.Background(), files, "main.star", nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
