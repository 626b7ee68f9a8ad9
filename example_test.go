package fucina_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"testing/fstest"

	"github.com/fucina-go/fucina"
)

// A program runs its user's rules, reads a variable and calls a function.
func ExampleInterpreter() {
	files := fstest.MapFS{"rules.star": {Data: []byte(`
total = ones(a=limit).sum().item()

def score(name, numbers):
    print("scoring", name)
    return tensor(numbers, "a").mean().item()
`)}}
	if err := run(context.Background(), files); err != nil {
		fmt.Println(err)
	}
	// Output:
	// scoring a name
	// 3 2
}

func run(ctx context.Context, files fstest.MapFS) error {
	p := fucina.New(fucina.Stdout(os.Stdout), fucina.MaxSteps(1_000_000), fucina.MemoryLimit(64<<20))
	defer p.Close()
	err := p.Run(ctx, files, "rules.star", map[string]any{"limit": 3})
	if err != nil {
		return err
	}
	var total float64
	if err := p.Get("total", &total); err != nil {
		return err
	}
	var score float64
	if err := p.Call(ctx, "score", &score, "a name", []float64{1, 2, 3}); err != nil {
		return err
	}
	fmt.Println(total, score)
	return nil
}

// inFolder runs a script that may save files in the folder results, and nowhere else.
func inFolder(ctx context.Context, scripts fs.FS) error {
	out, err := os.OpenRoot("results")
	if err != nil {
		return err
	}
	defer out.Close()
	p := fucina.New(fucina.Save(out)) // save_npy("a.npy", x) writes results/a.npy
	defer p.Close()
	return p.Run(ctx, scripts, "main.star", nil)
}

// A script saves into a folder that its host has opened.
func ExampleSave() {
	if err := os.Mkdir("results", 0o777); err != nil {
		fmt.Println(err)
	}
	defer os.RemoveAll("results")
	script := fstest.MapFS{"main.star": {Data: []byte(`save_npy("a.npy", ones(a=3))`)}}
	fmt.Println(inFolder(context.Background(), script))
	_, err := os.Stat("results/a.npy")
	fmt.Println(err)
	// Output:
	// <nil>
	// <nil>
}
