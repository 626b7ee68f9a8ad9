package core

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core/dtype"
)

// points is inputs of a function in one dtype and the results to expect, all as bits.
type points struct {
	dt      dtype.Type
	in      [2][]uint64 // of the first operand and the second, if there are two
	want    []uint64
	allowed float64 // units of the last place
}

func (p *points) add(t *testing.T, fields ...string) {
	t.Helper()
	var bits []uint64
	for _, f := range fields {
		b, err := strconv.ParseUint(strings.TrimPrefix(f, "0x"), 16, 8*p.dt.Size())
		if err != nil {
			t.Fatal(err)
		}
		bits = append(bits, b)
	}
	for i, b := range bits[:len(bits)-1] {
		p.in[i] = append(p.in[i], b)
	}
	p.want = append(p.want, bits[len(bits)-1])
}

// worst runs the operation on the points and returns the greatest distance from what is expected, and where.
func (p *points) worst(name string) (ulps float64, at []float64) {
	e := NewEnv(0, 1)
	defer e.Close()
	info := Lookup(name)
	op := info.New()
	var args []*Tensor
	for _, bits := range p.in {
		if bits != nil {
			args = append(args, e.FromFloats(p.dt, valuesOf(p.dt, bits), axisList("a"), len(bits)))
		}
	}
	info.setOperands(op, args)
	got := naiveFloats(info.Run(e, op, nil)[0])
	for i, want := range valuesOf(p.dt, p.want) {
		if d := ulpDistance(p.dt, got[i], want); d > ulps {
			ulps, at = d, nil
			for _, x := range args {
				at = append(at, naiveFloats(x)[i])
			}
			at = append(at, got[i], want)
		}
	}
	return ulps, at
}

func naiveFloats(t *Tensor) (values []float64) {
	eachOffset(t, func(off int) { values = append(values, t.element(off).(float64)) })
	return values
}

func valuesOf(dt dtype.Type, bits []uint64) []float64 {
	values := make([]float64, len(bits))
	for i, b := range bits {
		values[i] = math.Float64frombits(b)
		if dt == dtype.F32 {
			values[i] = float64(math.Float32frombits(uint32(b)))
		}
	}
	return values
}

// ulpDistance counts the numbers of the dtype between a and b.
func ulpDistance(dt dtype.Type, a, b float64) float64 {
	if math.IsNaN(a) || math.IsNaN(b) {
		if math.IsNaN(a) && math.IsNaN(b) {
			return 0
		}
		return math.Inf(1)
	}
	place := func(x float64) int64 {
		k := int64(math.Float64bits(x))
		if dt == dtype.F32 {
			k = int64(int32(math.Float32bits(float32(x)))) << 32
		}
		if k < 0 {
			k = math.MinInt64 - k
		}
		return k
	}
	d := math.Abs(float64(place(a)) - float64(place(b)))
	if dt == dtype.F32 {
		return d / (1 << 32)
	}
	if d < 1<<53 {
		return math.Abs(float64(place(a) - place(b)))
	}
	return d
}

// TestNumPyUmath compares functions with NumPy's validation sets, to within the error they allow or 4 ulp.
func TestNumPyUmath(t *testing.T) {
	files, err := os.ReadDir("testdata/numpy-umath")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, f := range files {
		name, _, _ := strings.Cut(f.Name(), ".")
		sets := map[string]*points{"np.float32": {dt: dtype.F32}, "np.float64": {dt: dtype.F64}}
		rows := csv.NewReader(unzipped(t, "testdata/numpy-umath/"+name+".csv.gz"))
		rows.Comment = '#'
		all, err := rows.ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range all[1:] {
			p := sets[row[0]]
			allowed, err := strconv.ParseFloat(row[3], 64)
			if err != nil {
				t.Fatal(err)
			}
			p.allowed = max(p.allowed, allowed, 4)
			p.add(t, row[1], row[2])
		}
		for _, p := range sets {
			if len(p.want) == 0 {
				continue
			}
			ulps, at := p.worst(name)
			t.Logf("%s %s: %d points, at most %v ulp", name, p.dt, len(p.want), ulps)
			if ulps > p.allowed {
				t.Errorf("%s %s is off by %v ulp, at most %v allowed: %v", name, p.dt, ulps, p.allowed, at)
			}
			count += len(p.want)
		}
	}
	page, err := os.ReadFile("../docs/coverage.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## numpy-umath\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if want := fmt.Sprintf("%d points of %d functions", count, len(files)); !strings.Contains(section, want) ||
		!strings.Contains(section, "All of them apply") || strings.Contains(section, "\n|") {
		t.Errorf("docs/coverage.md has to say of numpy-umath: %s, and that all of them apply; it says\n%s", want,
			section)
	}
}

func unzipped(t *testing.T, name string) io.Reader {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestElementary compares functions with correctly rounded results, to within the distance that their
// documentation states.
func TestElementary(t *testing.T) {
	allowed := map[string]float64{
		"cos f32": 0, "sin f32": 0, "tan f32": 0, "expm1 f32": 0, "log1p f32": 0, "pow f32": 0, "atan2 f32": 0,
		"cos f64": 1, "sin f64": 1, "tan f64": 2, "expm1 f64": 1, "log1p f64": 1, "pow f64": 1, "atan2 f64": 1,
		"erf f32": 2, "exp f32": 2, "log f32": 2, "tanh f32": 4,
		"erf f64": 9, "exp f64": 2, "log f64": 2, "tanh f64": 4,
	}
	f, err := os.Open("testdata/elementary.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sets := map[string]*points{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		key := fields[0] + " " + fields[1]
		if sets[key] == nil {
			dt, _ := dtype.Parse(fields[1])
			sets[key] = &points{dt: dt}
		}
		sets[key].add(t, fields[2:]...)
	}
	for key, most := range allowed {
		p := sets[key]
		if p == nil {
			t.Errorf("no points for %s", key)
			continue
		}
		name, _, _ := strings.Cut(key, " ")
		ulps, at := p.worst(name)
		t.Logf("%s: %d points, at most %v ulp", key, len(p.want), ulps)
		if ulps > most {
			t.Errorf("%s is off by %v ulp, at most %v allowed: %v", key, ulps, most, at)
		}
	}
}
