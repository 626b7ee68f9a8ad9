package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fucina-go/fucina/kernels/cpu"
	"github.com/fucina-go/fucina/kernels/gemm"
)

// machine prints what n cores reach at the same time: the clock, multiply-adds on registers, and reading memory
// in four streams a core. All are the best of some tries, since they bound what can be had.
func machine(n int) {
	const brief = 50 // tries of less than a millisecond: some will not be interrupted
	clock := slices.Max(tries(brief, func() float64 { return together(n, clockRate) })) / float64(n)
	flops := slices.Max(tries(brief, func() float64 { return together(n, fmaRate) }))
	read := slices.Max(tries(few, func() float64 { return together(n, readRate) }))
	fmt.Printf("%d thread(s), tier %s: clock %.2f GHz, FMA %.0f GFLOP/s (%.1f a cycle and core), "+
		"four-stream read %.1f GB/s\n", n, cpu.Current(), clock/1e9, flops/1e9, flops/clock/float64(n), read/1e9)
	products(n, flops)
	fmt.Println()
}

// together is the sum of f over n goroutines at once.
func together(n int, f func() float64) float64 {
	rates := make([]float64, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { rates[i] = f() })
	}
	wg.Wait()
	sum := 0.0
	for _, r := range rates {
		sum += r
	}
	return sum
}

var sink uint64

// clockRate is cycles a second: each addition waits one cycle for the one before.
func clockRate() float64 {
	const turns, inTurn = 100_000, 16
	x, a, b := uint64(3), sink|1, sink|2 // not constants, which the compiler would add up
	begin := time.Now()
	for range turns {
		x = (((x + a) ^ b + a) ^ b + a) ^ b
		x = (((x + a) ^ b + a) ^ b + a) ^ b
		x = ((x + a) ^ b + a) ^ b
	}
	t := time.Since(begin).Seconds()
	if x == 1 {
		sink = x
	}
	return inTurn * turns / t
}

// fmaRate is the additions and multiplications a second of a loop that does nothing else, on registers.
func fmaRate() float64 {
	begin := time.Now()
	n := gemm.Peak(1 << 16)
	return float64(n) / time.Since(begin).Seconds()
}

// readRate is bytes a second of adding up 128 MiB that lie in memory.
func readRate() float64 {
	x := make([]uint64, 16<<20)
	for i := 0; i < len(x); i += 512 {
		x[i] = uint64(i) // give every page memory
	}
	begin := time.Now()
	addUp(x)
	return 8 * float64(len(x)) / time.Since(begin).Seconds()
}

// addUp reads all of x, four distant words at a time.
func addUp(x []uint64) {
	n := len(x) / 4
	a, b, c, d := x[:n], x[n:2*n], x[2*n:3*n], x[3*n:]
	b, c, d = b[:len(a)], c[:len(a)], d[:len(a)]
	var s, t, u, v uint64
	for i := 0; i+1 < len(a); i += 2 {
		s += a[i] + a[i+1]
		t += b[i] + b[i+1]
		u += c[i] + c[i+1]
		v += d[i] + d[i+1]
	}
	if s+t+u+v == 1 {
		sink = s
	}
}

// products prints what share of flops the products of large matrices reach on n cores, packed first as an operation
// does, and what share of reading one row times matrices that come from memory, packed and as they lie.
func products(n int, flops float64) {
	for _, size := range []int{512, 1024} {
		rate := median(tries(few, func() float64 { return together(n, func() float64 { return squareRate(size) }) }))
		fmt.Printf("  %d³ with packing: %.0f GFLOP/s, %.2f of FMA\n", size, rate/1e9, rate/flops)
	}
	for _, packed := range []bool{true, false} {
		var rates, reads []float64 // in turns: what memory gives changes from one second to the next
		for range few {
			reads = append(reads, together(n, readRate))
			rates = append(rates, together(n, func() float64 { return rowRate(packed) }))
		}
		rate, read := median(rates), median(reads)
		fmt.Printf("  1 row × 4096×4096, packed %t: %.1f GB/s, %.2f of the read meanwhile\n",
			packed, rate/1e9, rate/read)
	}
}

const few = 7

func tries(n int, f func() float64) []float64 {
	t := make([]float64, n)
	for i := range t {
		t[i] = f()
	}
	return t
}

func squareRate(n int) float64 {
	a, b, c, packed := make([]float32, n*n), make([]float32, n*n), make([]float32, n*n), make([]float32, n*n)
	repeats := 1 + 200_000_000/(n*n*n)
	begin := time.Now()
	for range repeats {
		gemm.PackNN(packed, b, n, n, n, n*gemm.Width)
		gemm.Packed(c, a, packed, n, n, n, n, n, false)
	}
	return 2 * float64(n*n*n*repeats) / time.Since(begin).Seconds()
}

func rowRate(packed bool) float64 {
	const n, k, matrices = 4096, 4096, 4
	b, a, c := make([]float32, matrices*n*k), make([]float32, k), make([]float32, n)
	for i := 0; i < len(b); i += 512 {
		b[i] = 1
	}
	begin := time.Now()
	for i := range matrices {
		if w := b[i*n*k:][:n*k]; packed {
			gemm.Packed(c, a, w, 1, n, k, k, n, false)
		} else {
			gemm.NT(c, a, w, 1, n, k, k, k, n)
		}
	}
	return 4 * n * k * matrices / time.Since(begin).Seconds()
}
