package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/quant"
	"github.com/fucina-go/fucina/kernels/cpu"
	"github.com/fucina-go/fucina/kernels/qdot"
)

// side is the side of the square matrices of weights.
const side = 4096

// formats times products of 1 row and of 240 rows with weights in every format, 4096 × 4096 of them, rounding the
// activations included. Weights of one row come from memory: the matrices that take turns are larger than the caches.
// peers are commands that take "prepare q4_0 240", answered by a line ("none": they have no such format), and "run 3",
// answered by the seconds of three products; they get the number of threads as an argument.
func formats(ctx context.Context, threads, rounds int, peers []string, only []string) error {
	read := reader(threads)
	dots := slices.Max(tries(few, func() float64 { return together(threads, dotRate) }))
	fmt.Printf("%d thread(s), tier %s: 8-bit multiply-adds %.0f GOP/s\n", threads, cpu.Current(), dots/1e9)
	var others []*peer
	for _, name := range peers {
		p, err := startPeer(exec.CommandContext(ctx, name, fmt.Sprint(threads)), fmt.Sprint(threads))
		if err != nil {
			return err
		}
		defer p.close()
		fmt.Println("peer:", p.version)
		others = append(others, p)
	}
	env := core.NewEnv(0, threads)
	defer env.Close()
	fmt.Println("\n| format, rows | µs | GB/s or GOP/s | of the read or multiply-adds | peers, µs | peers : Fucina |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, f := range quant.Formats() {
		for _, rows := range []int{1, 240} {
			if f.Block == 1 && f.Name == "f32" || len(only) > 0 && !slices.Contains(only, f.Name) {
				continue
			}
			if err := formatLine(env, f, rows, rounds, others, read, dots); err != nil {
				return err
			}
		}
	}
	fmt.Println()
	return nil
}

// formatLine prints a line of the table.
func formatLine(env *core.Env, f *quant.Format, rows, rounds int, peers []*peer, read func(n int) (float64, error),
	dots float64) error {
	bytes := f.Size(side * side)
	count := 2
	if rows == 1 {
		count = 1 + 300_000_000/bytes
	}
	weights := make([]*core.Tensor, count)
	for i := range weights {
		weights[i] = randomWeights(env, f)
	}
	x := randomFloats(env, rows)
	next := 0
	sides := []func(n int) (float64, error){func(n int) (float64, error) {
		begin := time.Now()
		for range n {
			x.Dot(weights[next%count], "in").Free()
			next++
		}
		return time.Since(begin).Seconds(), nil
	}, read}
	has := make([]bool, len(peers))
	for i, p := range peers {
		answer, err := p.line(fmt.Sprintf("prepare %s %d", f.Name, rows))
		if err != nil {
			return err
		}
		if has[i] = answer != "none"; has[i] {
			sides = append(sides, func(n int) (s float64, err error) {
				err = p.ask(fmt.Sprintf("run %d", n), &s)
				return s, err
			})
		}
	}
	times, err := alternate(rounds, sides...)
	if err != nil {
		return err
	}
	t := median(times[0])
	rate, peak := float64(bytes)/t, readBytesOnce/median(times[1])
	if rows > 1 {
		rate, peak = 2*side*side*float64(rows)/t, dots
	}
	times = times[2:]
	var theirs, ratios []string
	for i := range peers {
		if !has[i] {
			theirs, ratios = append(theirs, "–"), append(ratios, "–")
			continue
		}
		s := median(times[0])
		times = times[1:]
		theirs = append(theirs, fmt.Sprintf("%.0f", 1e6*s))
		ratios = append(ratios, fmt.Sprintf("%.2f", s/t))
	}
	fmt.Printf("| %s, %d | %.0f | %.1f | %.2f | %s | %s |\n", f.Name, rows, 1e6*t, rate/1e9, rate/peak,
		strings.Join(theirs, " / "), strings.Join(ratios, " / "))
	for _, w := range weights {
		w.Free()
	}
	x.Free()
	return nil
}

// readBytesOnce is the bytes that a reader reads at once.
const readBytesOnce = 256 << 20

// reader reads so many bytes so often, in four streams a thread, and returns the seconds.
func reader(threads int) func(n int) (float64, error) {
	words := make([]uint64, readBytesOnce/8)
	for i := 0; i < len(words); i += 512 {
		words[i] = uint64(i) // give every page memory
	}
	part := len(words) / threads
	return func(n int) (float64, error) {
		begin := time.Now()
		for range n {
			var wg sync.WaitGroup
			for i := range threads {
				wg.Go(func() { addUp(words[i*part : (i+1)*part]) })
			}
			wg.Wait()
		}
		return time.Since(begin).Seconds(), nil
	}
}

// randomWeights is a matrix in panels whose rows are 64 random ones again and again: some formats take long to encode.
func randomWeights(env *core.Env, f *quant.Format) *core.Tensor {
	const different = 64
	values, importance := make([]float32, different*side), make([]float32, side)
	for i := range values {
		values[i] = float32(rand.NormFloat64())
	}
	for i := range importance {
		importance[i] = 1
	}
	bytes := make([]byte, f.Size(side*side))
	part := bytes[:f.Size(different*side)]
	if err := f.Encode(part, values, importance); err != nil {
		panic(err)
	}
	for at := len(part); at < len(bytes); at += len(part) {
		copy(bytes[at:], part)
	}
	w := core.Borrow(bytes, &bytes, f.DType, must("out", "in"), side, side)
	return env.Pack(w, side, nil)
}

func randomFloats(env *core.Env, rows int) *core.Tensor {
	x := env.Tensor(dtype.F32, must("row", "in"), rows, side)
	values := make([]float32, rows*side)
	for i := range values {
		values[i] = float32(rand.NormFloat64())
	}
	x.Fill(values)
	return x
}

func must(names ...string) *axis.List {
	l, err := axis.Of(names...)
	if err != nil {
		panic(err)
	}
	return l
}

// dotRate is the multiplications and additions a second of 8-bit integers on registers.
func dotRate() float64 {
	const turns = 2_000_000
	begin := time.Now()
	ops := qdot.Peak(turns)
	return float64(ops) / time.Since(begin).Seconds()
}
