// Command pipeline scores rows of numbers by rules that its user writes as a script: the Go program reads and writes,
// the script decides, and can be changed without building anything.
//
//	go run ./examples/pipeline examples/pipeline/rules.star < examples/pipeline/rows.csv
//
// Each input line is a name and numbers, separated by commas. The script defines score(batch), where batch has the
// axes "row column", and returns one number per row, and the threshold above which a row is marked.
package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"

	"github.com/fucina-go/fucina"
	"github.com/fucina-go/fucina/core"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pipeline rules.star < rows.csv")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rules string, in io.Reader, out io.Writer) error {
	names, numbers, err := read(in)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return nil
	}
	p := fucina.New(fucina.Stdout(out), fucina.MemoryLimit(64<<20))
	defer p.Close()
	dir, file := filepath.Split(rules)
	if dir == "" {
		dir = "."
	}
	if err := p.Run(ctx, os.DirFS(dir), file, nil); err != nil {
		return err
	}
	batch, err := fucina.Tensor(numbers, "row column", len(names), len(numbers)/len(names))
	if err != nil {
		return err
	}
	var scores *core.Tensor
	if err := p.Call(ctx, "score", &scores, batch); err != nil {
		return err
	}
	var threshold float32
	if err := p.Get("threshold", &threshold); err != nil {
		return err
	}
	if len(scores.Sizes()) != 1 || scores.Len() != len(names) {
		return fmt.Errorf("score: got %s, want a number for each of %d rows", scores.Shape(), len(names))
	}
	for i, score := range scores.Float32s() {
		mark := " "
		if score > threshold {
			mark = "*"
		}
		fmt.Fprintf(out, "%s %-8s %.3f\n", mark, names[i], score)
	}
	return nil
}

// read is the names and the numbers, row by row.
func read(in io.Reader) (names []string, numbers []float32, err error) {
	rows, err := csv.NewReader(in).ReadAll()
	for i, row := range rows {
		names = append(names, row[0])
		for _, field := range row[1:] {
			x, err := strconv.ParseFloat(field, 32)
			if err != nil {
				return nil, nil, fmt.Errorf("row %d: %w", i+1, err)
			}
			numbers = append(numbers, float32(x))
		}
	}
	return names, numbers, err
}
