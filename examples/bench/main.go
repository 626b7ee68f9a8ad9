// Command bench times Fucina's operations beside PyTorch's, turn by turn in one run on the same cores, and prints a
// table for docs/benchmarks.md: milliseconds of one call (median and least) and the ratio of the medians.
//
//	go run ./examples/bench [-threads 1,2] [-rounds 15] [-python python3] [name...]
//	go run ./examples/bench -formats [-peers command,command] [format...]
//	go run ./examples/bench -models [-prompts 64,512] [-peers command,command] model.gguf...
//
// With -tier, all of Fucina's kernels are those of an earlier processor, such as avx2.
//
// The peer is torch_ops.py, run by an interpreter that has PyTorch; OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE are taken
// out of its environment, because they halve its speed on processors they do not name. Without PyTorch only
// Fucina's times are printed. The first lines say what the machine itself reaches.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fucina-go/fucina"
	"github.com/fucina-go/fucina/kernels/cpu"
)

func main() {
	threads := flag.String("threads", "1,2", "numbers of threads, by commas")
	rounds := flag.Int("rounds", 15, "turns of each side")
	python := flag.String("python", "python3", "an interpreter that has PyTorch")
	products := flag.Bool("formats", false, "time products with weights in all formats instead")
	whole := flag.Bool("models", false, "time language models, GGUF files, instead")
	prompts := flag.String("prompts", "64,512", "with -models, lengths of prompts, by commas")
	peers := flag.String("peers", "", "with -formats or -models, commands to compare with, by commas; see formats.go "+
		"and models.go")
	tier := flag.String("tier", cpu.Current().String(), "the tier of kernels")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := force(*tier); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	err := run(ctx, *threads, func(n int) error {
		others := strings.FieldsFunc(*peers, func(r rune) bool { return r == ',' })
		switch {
		case *products:
			return formats(ctx, n, *rounds, others, flag.Args())
		case *whole:
			return models(ctx, n, *rounds, flag.Args(), others, *prompts)
		}
		return operations(ctx, n, *rounds, *python, flag.Args())
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// force makes a tier current for good.
func force(name string) error {
	for _, t := range cpu.Tiers() {
		if t.String() == name {
			cpu.Force(t)
			return nil
		}
	}
	return fmt.Errorf("-tier: got %q, want one of %v", name, cpu.Tiers())
}

// run calls one with each number of threads.
func run(ctx context.Context, threads string, one func(n int) error) error {
	for _, text := range strings.Split(threads, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("-threads: got %q, want numbers from 1 on", text)
		}
		if err := one(n); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// operations compares those of ops.star with PyTorch's.
func operations(ctx context.Context, threads, rounds int, python string, only []string) error {
	machine(threads)
	peer, err := startPeer(exec.CommandContext(ctx, python, "examples/bench/torch_ops.py"), strconv.Itoa(threads))
	if err != nil {
		fmt.Printf("no peer: %v\n\n", err)
	} else {
		fmt.Printf("peer: %s\n\n", peer.version)
	}
	defer peer.close()
	return compare(ctx, threads, rounds, peer, only)
}

// compare prints the table for one number of threads.
func compare(ctx context.Context, threads, rounds int, peer *peer, only []string) error {
	ours := fucina.New(fucina.Threads(threads))
	defer ours.Close()
	if err := ours.Run(ctx, os.DirFS("examples/bench"), "ops.star", nil); err != nil {
		return err
	}
	var names []string
	if err := ours.Call(ctx, "names", &names); err != nil {
		return err
	}
	fmt.Printf("| %d thread(s), ms: median (least) | Fucina | PyTorch | PyTorch : Fucina |\n", threads)
	fmt.Println("|---|---|---|---|")
	var logs []float64
	for _, name := range names {
		if len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		if err := ours.Call(ctx, "prepare", nil, name); err != nil {
			return err
		}
		if err := peer.ask("prepare "+name, nil); err != nil {
			return err
		}
		times, err := alternate(rounds, func(n int) (s float64, err error) {
			begin := time.Now()
			err = ours.Call(ctx, "run", nil, n)
			return time.Since(begin).Seconds(), err
		}, func(n int) (s float64, err error) {
			err = peer.ask(fmt.Sprintf("run %d", n), &s)
			return s, err
		})
		if err != nil {
			return err
		}
		a, b := times[0], times[1]
		ratio := median(b) / median(a)
		logs = append(logs, math.Log(ratio))
		fmt.Printf("| %s | %.3f (%.3f) | %.3f (%.3f) | %.2f |\n", name,
			1e3*median(a), 1e3*slices.Min(a), 1e3*median(b), 1e3*slices.Min(b), ratio)
	}
	sum := 0.0
	for _, l := range logs {
		sum += l
	}
	fmt.Printf("| geometric mean | | | %.2f |\n\n", math.Exp(sum/float64(len(logs))))
	return nil
}

// alternate gives each side its turns, of about 30 ms, and returns the seconds of one call in each.
func alternate(rounds int, sides ...func(n int) (float64, error)) ([][]float64, error) {
	times := make([][]float64, len(sides))
	repeats := make([]int, len(sides))
	for i, side := range sides {
		if _, err := side(2); err != nil {
			return nil, err
		}
		s, err := side(3)
		if err != nil {
			return nil, err
		}
		repeats[i] = int(min(max(0.03/max(s/3, 1e-9), 1), 10000))
	}
	for range rounds {
		for i, side := range sides {
			s, err := side(repeats[i])
			if err != nil {
				return nil, err
			}
			times[i] = append(times[i], s/float64(repeats[i]))
			time.Sleep(40 * time.Millisecond) // until the workers of this side rest
		}
	}
	return times, nil
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}

// peer is a running program of the other side, such as torch_ops.py. A nil peer answers every question with nothing.
type peer struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
	version string
}

// startPeer starts a command that answers lines, the first one unasked: its version.
func startPeer(cmd *exec.Cmd, threads string) (*peer, error) {
	p := &peer{cmd: cmd}
	p.cmd.Stderr = os.Stderr
	for _, pair := range p.cmd.Environ() {
		if !strings.HasPrefix(pair, "OPENBLAS_") {
			p.cmd.Env = append(p.cmd.Env, pair)
		}
	}
	// The BLAS behind PyTorch has threads of its own, which PyTorch does not set.
	p.cmd.Env = append(p.cmd.Env, "OMP_NUM_THREADS="+threads, "OPENBLAS_NUM_THREADS="+threads)
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	if !p.out.Scan() {
		return nil, fmt.Errorf("%s says nothing: %w", cmd.Path, p.cmd.Wait())
	}
	p.version = p.out.Text()
	return p, nil
}

// ask sends a command and stores the number it is answered with, if one is wanted.
func (p *peer) ask(command string, to *float64) (err error) {
	if p == nil {
		if to != nil {
			*to = math.NaN()
		}
		return nil
	}
	text, err := p.line(command)
	if err == nil && to != nil {
		*to, err = strconv.ParseFloat(text, 64)
	}
	return err
}

// line sends a command and returns what it is answered with.
func (p *peer) line(command string) (string, error) {
	p.signal("-CONT")
	defer p.signal("-STOP")
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		return "", err
	}
	if !p.out.Scan() {
		return "", fmt.Errorf("the peer ended at %q", command)
	}
	return p.out.Text(), nil
}

// signal stops and continues the peer: its workers spin for a while after their work, on the processors that the
// other side is to have. Where there is no such command they do.
func (p *peer) signal(what string) {
	_ = exec.Command("kill", what, strconv.Itoa(p.cmd.Process.Pid)).Run()
}

func (p *peer) close() {
	if p == nil {
		return
	}
	p.signal("-CONT")
	p.in.Close()
	_ = p.cmd.Wait()
}
