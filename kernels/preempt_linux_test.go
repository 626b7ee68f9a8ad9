package kernels_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fucina-go/fucina/kernels/attn"
	"github.com/fucina-go/fucina/kernels/cpu"
	"github.com/fucina-go/fucina/kernels/gemm"
	"github.com/fucina-go/fucina/kernels/half"
	"github.com/fucina-go/fucina/kernels/num"
	"github.com/fucina-go/fucina/kernels/qdot"
	"github.com/fucina-go/fucina/kernels/update"
)

var longest = flag.Bool("longest", false, "show how long the calls of assembly take")

// long is how many elements a run has, wide how long the other extents of a matrix are.
const long, wide = 1 << 20, 64

// A work is calls of a kernel on operands that are as long as can be.
type work struct {
	name string // of the function, and of what is long
	run  func()
}

// TestWorldStops measures how long a kernel holds up the collector, which has to stop all goroutines: in assembly a
// goroutine cannot be preempted, so that is the longest call of it. What counts is the processor time of the thread
// that is in the kernel from when the stop is asked for to when it stops, so others at work on the machine do not,
// unless they take the processor from the thread that asks: such stops do not count either.
// The aim is 200 µs; -longest shows the figures.
func TestWorldStops(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute, and times mean nothing under the race detector")
	}
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("with one processor there is nobody to stop the other goroutine")
	}
	if cpu.Current() == cpu.Generic {
		t.Skip("there is no assembly")
	}
	const bound = time.Millisecond
	works := slices.Concat(pointwiseWorks(), rowWorks[float32](), rowWorks[float64](), updateWorks[float32](),
		updateWorks[float64](), productWorks[float32](), productWorks[float64](), halfWorks(), attentionWorks(),
		quantizedWorks())
	checkNamed(t, works)
	type figure struct {
		name string
		took time.Duration
	}
	var figures []figure
	for _, w := range works {
		took := time.Hour // the least of some tries: a fault or a timer is not the kernel's
		for tries := 0; tries < 3 && (took > bound || *longest && took >= 100*time.Microsecond); tries++ {
			took = min(took, longestStop(t, w.run))
		}
		figures = append(figures, figure{w.name, took})
		if took > bound {
			t.Errorf("%s cannot be stopped for %v, want at most %v", w.name, took, bound)
		}
	}
	if *longest {
		slices.SortFunc(figures, func(a, b figure) int { return int(b.took - a.took) })
		for _, f := range figures {
			fmt.Printf("%10v  %s\n", f.took.Round(time.Microsecond), f.name)
		}
	}
}

// longestStop is the longest of some stops of a goroutine that calls f again and again.
func longestStop(t *testing.T, f func()) (most time.Duration) {
	const stops = 12
	var done atomic.Bool
	thread, end := make(chan int), make(chan bool)
	go func() {
		runtime.LockOSThread() // so that its time is that of f
		defer runtime.UnlockOSThread()
		f()
		thread <- unix.Gettid()
		for !done.Load() {
			f()
		}
		close(end)
	}()
	clock := int32(^<-thread<<3 | 6) // as pthread_getcpuclockid makes it
	now := func() time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(clock, &ts); err != nil {
			t.Fatal(err)
		}
		return time.Duration(ts.Nano())
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	displaced := func() int64 { // how often this thread had to leave the processor to others
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
			t.Fatal(err)
		}
		return u.Nivcsw
	}
	var stats runtime.MemStats
	for i, good := 0, 0; i < 5*stops && good < stops; i++ {
		time.Sleep(time.Duration(50+37*i) * time.Microsecond)
		before, begin := displaced(), now()
		runtime.ReadMemStats(&stats) // stops the world
		if took := now() - begin; displaced() == before {
			most, good = max(most, took), good+1
		}
	}
	done.Store(true)
	<-end
	return most
}

// checkNamed insists that there is work for every function of the kernels that has a loop over what its caller gives.
func checkNamed(t *testing.T, works []work) {
	other := map[string]string{
		"num.FMA": "one element", "half.Value": "one element", "qdot.E4M3": "one element",
		"gemm.PackedLen": "a number", "gemm.Stride": "a number", "gemm.RowBF16": "Go",
		"qdot.ActivationWords": "a number", "qdot.PanelSize": "a number",
		"qdot.Few": "a number", "qdot.ByName": "a look-up", "gemm.From": "a view", "num.Fold": "16 elements",
		"qdot.Points": "a table", "qdot.Levels": "8 elements", "qdot.Expand": "a block, in Go", "qdot.Sixes": "a block",
		"qdot.Row": "Go", "qdot.NewForm": "memory", "qdot.Fetch": "instructions that wait for nothing",
	}
	seen := map[string]bool{}
	for _, w := range works {
		seen[strings.Fields(w.name)[0]] = true
	}
	for _, dir := range []string{"num", "half", "gemm", "attn", "qdot", "update"} {
		paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || !f.Name.IsExported() {
					continue
				}
				if name := dir + "." + f.Name.Name; !seen[name] && other[name] == "" {
					t.Errorf("nothing measures how long %s holds up the collector", name)
				}
			}
		}
	}
}

// filled is n numbers between -1 and 1.
func filled[T num.Float](n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = T(i*7919%2003)/1001 - 1
	}
	return x
}

// typed is the name of a work with that of T.
func typed[T num.Float](name string) string {
	var x T
	return fmt.Sprintf("%s %T", name, x)
}

// pointwiseWorks is those of functions of one, two and three runs, which both types share.
func pointwiseWorks() []work { return append(pointwiseOf[float32](), pointwiseOf[float64]()...) }

func pointwiseOf[T num.Float]() (list []work) {
	x, y, z := filled[T](long), filled[T](long), make([]T, long)
	yes := make([]bool, long)
	for name, f := range map[string]func(y, x []T){"Neg": num.Neg[T], "Abs": num.Abs[T], "Sqrt": num.Sqrt[T],
		"Exp": num.Exp[T], "Log": num.Log[T], "Tanh": num.Tanh[T], "Erf": num.Erf[T], "Sigmoid": num.Sigmoid[T],
		"SiLU": num.SiLU[T], "GELU": num.GELU[T], "GELUTanh": num.GELUTanh[T], "SoftmaxRow": num.SoftmaxRow[T]} {
		list = append(list, work{typed[T]("num." + name), func() { f(z, x) }})
	}
	for name, f := range map[string]func(z, x, y []T){"Add": num.Add[T], "Sub": num.Sub[T], "Mul": num.Mul[T],
		"Div": num.Div[T], "Maximum": num.Maximum[T], "Minimum": num.Minimum[T], "SwiGLU": num.SwiGLU[T],
		"GELUSlope": num.GELUSlope[T], "GELUTanhSlope": num.GELUTanhSlope[T], "SiLUSlope": num.SiLUSlope[T]} {
		list = append(list, work{typed[T]("num." + name), func() { f(z, x, y) }})
	}
	for name, f := range map[string]func(z []bool, x, y []T){"Equal": num.Equal[T], "NotEqual": num.NotEqual[T],
		"Less": num.Less[T], "LessEqual": num.LessEqual[T]} {
		list = append(list, work{typed[T]("num." + name), func() { f(yes, x, y) }})
	}
	for name, f := range map[string]func(y, x []T, a T){"Scale": num.Scale[T], "AddScaled": num.AddScaled[T],
		"Quotient": num.Quotient[T], "Softcap": num.Softcap[T]} {
		list = append(list, work{typed[T]("num." + name), func() { f(z, x, 1.5) }})
	}
	slices.SortFunc(list, func(a, b work) int { return strings.Compare(a.name, b.name) })
	return list
}

// rowWorks is those of sums and of rows.
func rowWorks[T num.Float]() []work {
	x, y, z, w, b := filled[T](long), filled[T](long), make([]T, long), filled[T](long), filled[T](long)
	return []work{
		{typed[T]("num.MulAdd"), func() { num.MulAdd(z, x, y, w) }},
		{typed[T]("num.Sum"), func() { num.Sum(x) }},
		{typed[T]("num.Dot"), func() { num.Dot(x, y) }},
		{typed[T]("num.Squares"), func() { num.Squares(x, 0.5) }},
		{typed[T]("num.Max"), func() { num.Max(x) }},
		{typed[T]("num.Min"), func() { num.Min(x) }},
		{typed[T]("num.ExpSum"), func() { num.ExpSum(z, x, 1) }},
		{typed[T]("num.AddExp"), func() { new(num.Lanes[T]).AddExp(z, x, 1) }},
		{typed[T]("num.AddProducts"), func() { new(num.Lanes[T]).AddProducts(x, y) }},
		{typed[T]("num.AddSquares"), func() { new(num.Lanes[T]).AddSquares(x, 0.5) }},
		{typed[T]("num.ScaleRMS"), func() { num.ScaleRMS(z, x, w, 0.5) }},
		{typed[T]("num.ScaleLayer"), func() { num.ScaleLayer(z, x, w, b, 0.5, 0.5) }},
		{typed[T]("num.RMSNormRow"), func() { num.RMSNormRow(z, x, w, 1e-6) }},
		{typed[T]("num.LayerNormRow"), func() { num.LayerNormRow(z, x, w, b, 1e-6) }},
		{typed[T]("num.RMSNormGradRow"), func() { num.RMSNormGradRow(z, w, x, y, x, b, 0.5) }},
		{typed[T]("num.LayerNormGradRow"), func() { num.LayerNormGradRow(z, w, w, x, y, x, b, 0.5, 0.5) }},
		{typed[T]("num.RopeInterleaved"), func() { num.RopeInterleaved(z, x, y[:long/2], w[:long/2]) }},
		{typed[T]("num.RopeHalf"), func() { num.RopeHalf(z, x, y[:long/2], w[:long/2]) }},
	}
}

func updateWorks[T update.Float]() []work {
	p, g, m, v, top := filled[T](long), filled[T](long), filled[T](long), make([]T, long), make([]T, long)
	sgd := update.SGD[T]{Sign: 1, Rate: 1e-3, Keep: 0.9, Add: 1, Old: 1}
	adam := update.Adam[T]{Sign: 1, Decay: 1, B1: 0.9,
		C1: 0.1, B2: 0.99, C2: 0.01, Root: 1, Eps: 1e-8, Rate: 1e-3}
	lion := update.Lion[T]{Sign: 1, Decay: 1, B1: 0.9, C1: 0.1, B2: 0.99, C2: 0.01, Rate: 1e-3}
	return []work{
		{typed[T]("update.Combine"), func() { update.Combine(m, p, g, 0.5, 0.5) }},
		{typed[T]("update.Step SGD"), func() { sgd.Step(p, g) }},
		{typed[T]("update.Momentum"), func() { sgd.Momentum(p, g, m) }},
		{typed[T]("update.Step Adam"), func() { adam.Step(p, g, m, v) }},
		{typed[T]("update.StepMax"), func() { adam.StepMax(p, g, m, v, top) }},
		{typed[T]("update.Step Lion"), func() { lion.Step(p, g, m) }},
	}
}

// productWorks is products of which one extent is long.
func productWorks[T num.Float]() (list []work) {
	a, b, c := filled[T](long*wide/4), filled[T](long*wide/4), make([]T, long*wide/4)
	const far = long / 4
	for _, s := range []struct{ m, n, k int }{{1, wide, far}, {4, wide, far}, {wide, wide, far}, {1, far, wide},
		{wide, far, wide}, {far, wide, wide}, {far, 16, 16}, {2, 7, far}} {
		add := func(name string, f func()) {
			list = append(list, work{fmt.Sprintf("%s %d×%d×%d", typed[T]("gemm."+name), s.m, s.n, s.k), f})
		}
		padded := (s.n + gemm.Width - 1) / gemm.Width * gemm.Width
		if padded*s.k > len(b) {
			continue
		}
		add("NN", func() { gemm.NN(c, a, b, s.m, s.n, s.k, s.k, s.n, s.n) })
		add("AddNN", func() { gemm.AddNN(c, a, b, s.m, s.n, s.k, s.k, s.n, s.n) })
		add("NT", func() { gemm.NT(c, a, b, s.m, s.n, s.k, s.k, s.k, s.n) })
		add("Packed", func() { gemm.Packed(c, a, b[:gemm.PackedLen(s.n, s.k)], s.m, s.n, s.k, s.k, s.n, false) })
		add("PackNN", func() { gemm.PackNN(c, b, s.n, s.k, s.n, s.k*gemm.Width) })
		add("PackNT", func() { gemm.PackNT(c, b, s.n, s.k, s.k, s.k*gemm.Width) })
		add("Transpose", func() { gemm.Transpose(c, b, s.k, s.n, s.n, s.k) })
	}
	return append(list,
		work{typed[T]("gemm.PackPart"), func() { gemm.PackPart(c, a, 9, long, gemm.Width, 9, 3, true) }},
		work{"gemm.Peak", func() { gemm.Peak(1 << 16) }})
}

// halfWorks is those of 16 bits.
func halfWorks() []work {
	x, y := make([]uint16, 16*long), filled[float32](long)
	half.ToF16(x, y)
	for i := long; i < len(x); i += long {
		copy(x[i:], x[:long])
	}
	packed := make([]uint16, 16*long)
	a, c, room := filled[float32](8*long), make([]float32, 8*long), make([]float32, 8*long)
	list := []work{
		{"half.FromF16", func() { half.FromF16(y, x[:long]) }},
		{"half.ToF16", func() { half.ToF16(x, y) }},
		{"half.FromBF16", func() { half.FromBF16(y, x[:long]) }},
		{"half.ToBF16", func() { half.ToBF16(packed, y) }},
		{"gemm.PackHalf", func() { gemm.PackHalf(packed, x, 16, long, long) }},
		{"gemm.PackBF16", func() { gemm.PackBF16(packed, x, 16, long, long) }},
		{"gemm.Widen", func() {
			var room [1 << 14]float32
			gemm.Panels[float32]{Half: x, Next: 64 * gemm.Width}.Widen(room[:], 64, 64)
		}},
		{"gemm.MultiplyWiden", func() {
			gemm.Panels[float32]{Half: x, Next: long / 4 * gemm.Width}.MultiplyWiden(room, c, a, 12, 32, long/4, long/4,
				32, false)
		}},
		{"gemm.Multiply", func() {
			gemm.Panels[float32]{Half: x, Next: long / 4 * gemm.Width}.Multiply(c, a, 4, 64, long/4, long/4, 64, false)
		}},
	}
	for _, m := range []int{1, 4, 12} {
		list = append(list, work{fmt.Sprintf("gemm.PackedHalf %d rows", m), func() {
			gemm.PackedHalf(c, a, x, m, 64, long/4, long/4, 64, false)
		}}, work{fmt.Sprintf("gemm.BF16 %d rows", m), func() {
			gemm.BF16(c, packed, x, long/4*gemm.Width, m, 64, long/4, long/4, 64, false)
		}})
	}
	return list
}

// attentionWorks is one row, and many, of many keys.
func attentionWorks() (list []work) {
	const keys, width = long / 64, 128
	k, v, q, out := filled[float32](keys*width), filled[float32](keys*width), filled[float32](64*width),
		make([]float32, 64*width)
	step := attn.Strides{Out: width, Q: width, K: width, V: width}
	room := new(attn.Room[float32])
	for _, rows := range []int{1, 8, 64} {
		lo, hi := make([]int, rows), slices.Repeat([]int{keys}, rows)
		list = append(list, work{fmt.Sprintf("attn.Rows %d rows", rows), func() {
			attn.Rows(out, q, k, v, width, width, step, lo, hi, 0.1, nil)
		}}, work{fmt.Sprintf("attn.Blocks %d rows", rows), func() {
			attn.Blocks(room, out, q, rowsOf{k, v, width}, width, width, step, lo, hi, 0.1, 0)
		}})
	}
	bytes := make([]byte, long/32*34)
	y := make([]float32, long)
	return append(list, work{"half.FromQ8", func() { half.FromQ8(y, bytes, 0) }})
}

// rowsOf is keys and values as rows.
type rowsOf struct {
	k, v  []float32
	width int
}

func (r rowsOf) Block(start, from, to int) (k, v attn.Matrix[float32]) {
	k.Rows, v.Rows = r.k[start*r.width:], r.v[start*r.width:]
	return k, v
}

// quantizedWorks is those of each block format, with rows of so many weights.
func quantizedWorks() (list []work) {
	const k = 1 << 16
	x := filled[float32](k)
	words := make([]uint32, 96*qdot.ActivationWords(k))
	for i := range 96 {
		qdot.Quantize(words[i*qdot.ActivationWords(k):(i+1)*qdot.ActivationWords(k)], x)
	}
	c := make([]float32, 96*32)
	form := qdot.NewForm(k)
	for _, name := range []string{"q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k",
		"iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq4_nl", "iq4_xs", "mxfp4",
		"nvfp4", "tq1_0",
		"tq2_0", "q1_0", "q2_0"} {
		f := qdot.ByName(name)
		if f == nil {
			panic(name)
		}
		size := f.PanelSize(k)
		panels, rows := make([]byte, 4*size), make([]byte, size)
		list = append(list,
			work{"qdot.Vec " + name, func() { f.Vec(c, qdot.Rows, panels, size, 4, 1, words, k) }},
			work{"qdot.Vec of many panels " + name, func() { f.Vec(c, 48*qdot.Rows, panels, size, 4, 48, words, 256) }},
			work{"qdot.Unpack " + name, func() { f.Unpack(form, 0, panels[:size], k) }},
			work{"qdot.Tile " + name, func() {
				f.Tile(c, 32, form, words, qdot.ActivationWords(k), 96, 32, k, false)
			}},
			work{"qdot.Pack " + name, func() { f.Pack(panels[:size], rows, qdot.Rows, k, size/qdot.Rows) }})
	}
	values := filled[float32](long)
	to := make([]uint32, qdot.ActivationWords(long))
	return append(list, work{"qdot.Quantize", func() { qdot.Quantize(to, values) }},
		work{"qdot.Peak", func() { qdot.Peak(1 << 16) }})
}
