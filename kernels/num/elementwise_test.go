package num

import (
	"math"
	"math/big"
	"testing"
)

// elementwise lists the functions of one input, the float64 function that a
// float32 result is compared with, and the bounds in ulp for both types.
var elementwise = []struct {
	name     string
	f32      func(y, x []float32)
	f64      func(y, x []float64)
	ref      func(x float64) float64
	bigRef   func(x float64) *big.Float
	ulp      float64 // for float32
	ulp64    float64
	low, top float64 // the float64 arguments for which that bound holds
	low32    float64 // the same for float32
}{
	{"Exp", Exp[float32], Exp[float64], math.Exp, bigExp, 1, 1, -745, 709.7827, -1e40},
	{"Log", Log[float32], Log[float64], math.Log, bigLog, 1, 1, 0, math.MaxFloat64, 0},
	{"Tanh", Tanh[float32], Tanh[float64], math.Tanh, bigTanh, 2, 2, -40, 40, -1e40},
	{"Sigmoid", Sigmoid[float32], Sigmoid[float64], refSigmoid, bigSigmoid, 3, 3, -745, 745, -1e40},
	{"Erf", Erf[float32], Erf[float64], math.Erf, bigErf, 2, 9, -40, 40, -1e40},
	{"SiLU", SiLU[float32], SiLU[float64], refSiLU, bigSiLU, 4, 4, -708, 745, -87},
}

func refSigmoid(x float64) float64 {
	if x < 0 {
		return math.Exp(x) / (1 + math.Exp(x))
	}
	return 1 / (1 + math.Exp(-x))
}

func refSiLU(x float64) float64 { return x * refSigmoid(x) }

const prec = 300

func number(x float64) *big.Float    { return new(big.Float).SetPrec(prec).SetFloat64(x) }
func add(x, y *big.Float) *big.Float { return new(big.Float).Add(x, y) }
func mul(x, y *big.Float) *big.Float { return new(big.Float).Mul(x, y) }
func quo(x, y *big.Float) *big.Float { return new(big.Float).Quo(x, y) }

// bigExp squares the Taylor series of exp(x/2⁴⁰) forty times.
func bigExp(x float64) *big.Float {
	const squarings = 40
	r := number(math.Ldexp(x, -squarings))
	if r.Sign() == 0 {
		return number(1)
	}
	s, term := number(1), number(1)
	for k := 1.0; k < 12; k++ {
		term = quo(mul(term, r), number(k))
		s = add(s, term)
	}
	for range squarings {
		s = mul(s, s)
	}
	return s
}

// bigLog corrects an estimate y: ln x = y + ln(1+d), d = x·exp(-y) - 1.
func bigLog(x float64) *big.Float {
	m, e := math.Frexp(x)
	y := math.Log(m) + float64(e)*math.Ln2
	d := add(mul(number(x), bigExp(-y)), number(-1))
	return add(number(y), add(d, mul(number(-0.5), mul(d, d))))
}

func bigTanh(x float64) *big.Float {
	if math.Abs(x) < 0x1p-60 {
		return number(x)
	}
	e := bigExp(2 * x)
	return quo(add(e, number(-1)), add(e, number(1)))
}

func bigSigmoid(x float64) *big.Float {
	return quo(number(1), add(number(1), bigExp(-x)))
}

// bigErf is the Taylor series, at a precision at which it does not cancel.
func bigErf(x float64) *big.Float {
	if math.Abs(x) > 8 || math.Abs(x) < 0x1p-100 {
		if math.Abs(x) < 1 {
			return mul(number(x), number(2/math.SqrtPi)) // the error is below that of the test
		}
		return number(math.Copysign(1, x))
	}
	const prec = 600
	z := new(big.Float).SetPrec(prec).SetFloat64(x)
	square := new(big.Float).Mul(z, z)
	sum, term := new(big.Float).Copy(z), new(big.Float).Copy(z)
	for n := 1.0; term.MantExp(nil) > -150; n++ {
		term.Quo(term.Mul(term, square), big.NewFloat(-n))
		part := new(big.Float).Quo(term, big.NewFloat(2*n+1))
		sum.Add(sum, part)
	}
	rootPi, _, _ := big.ParseFloat("1.77245385090551602729816748334114518279754945612238712821", 10, prec, 0)
	return sum.Mul(sum, new(big.Float).Quo(big.NewFloat(2), rootPi))
}

func bigSiLU(x float64) *big.Float { return mul(number(x), bigSigmoid(x)) }

// spacing is the unit in the last place of x in a format of so many digits
// whose smallest normal number has exponent least by math.Frexp.
func spacing(x float64, digits, least int) float64 {
	_, e := math.Frexp(x)
	return math.Ldexp(1, max(e, least)-digits)
}

func spacing32(x float64) float64 { return spacing(x, 24, -125) }
func spacing64(x float64) float64 { return spacing(x, 53, -1021) }

// special are arguments where the functions change their ways.
var special = []float64{
	0, math.Copysign(0, -1), 1, -1, 0.625, -0.625, math.Nextafter(0.625, 0), math.Inf(1), math.Inf(-1), math.NaN(),
	math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, 0x1p-126, 0x1.fffffcp-127,
	math.SmallestNonzeroFloat64, 0x1p-1022, math.MaxFloat64,
	88.72283, 88.72284, 89, 89.1, -87.33654, -87.33655, -103.97, -103.98, -104, -104.1,
	709.78, 709.79, 710, 711, -708.39, -708.4, -745.13, -745.14, -746, -747, math.Sqrt2, math.Sqrt2 / 2, math.Ln2 / 2,
	-math.Ln2 / 2, 9, 9.1, 19, 20, 1 - 0x1p-24, 1 + 0x1p-23, 1 - 0x1p-53, 1 + 0x1p-52,
}

func TestElementwiseFloat32(t *testing.T) {
	var x []float32
	step := uint64(9973)
	if testing.Short() {
		step *= 8
	}
	for b := uint64(0); b < 1<<32; b += step {
		x = append(x, math.Float32frombits(uint32(b)))
	}
	for i := -2000; i < 2000; i++ { // where the functions bend
		x = append(x, float32(i)*0x1.0ccccp-4, 1+float32(i)*0x1p-23)
	}
	for _, v := range special {
		x = append(x, float32(v), math.Nextafter32(float32(v), 0), math.Nextafter32(float32(v), 1000))
	}
	y := make([]float32, len(x))
	for _, f := range elementwise {
		f.f32(y, x)
		worst, at := 0.0, 0
		for i, v := range x {
			want := f.ref(float64(v))
			if math.IsNaN(want) || math.IsInf(float64(float32(want)), 0) || float64(v) < f.low32 {
				if w := float32(want); (y[i] != y[i]) != (w != w) || math.Abs(float64(y[i]-w)) > 0x1p-142 {
					t.Errorf("%s(%v) = %v, want %v", f.name, v, y[i], w)
				}
				continue
			}
			if d := math.Abs(float64(y[i])-want) / spacing32(want); !(d <= worst) {
				worst, at = d, i
			}
		}
		t.Logf("%s: at most %.3f ulp, at %v", f.name, worst, x[at])
		if !(worst <= f.ulp) {
			t.Errorf("%s(%v) = %v is off by %.3f ulp, want at most %v", f.name, x[at], y[at], worst, f.ulp)
		}
	}
}

func TestElementwiseFloat64(t *testing.T) {
	for _, f := range elementwise {
		var x []float64
		for _, v := range special {
			x = append(x, v)
		}
		for b := uint64(0x0000123456789ABC); b < 1<<63; b += 0x000FEDCBA9876543 << 1 {
			x = append(x, math.Float64frombits(b), -math.Float64frombits(b))
		}
		some := 3000
		if testing.Short() {
			some = 300
		}
		for i := -some; i < some; i++ {
			x = append(x, float64(i)*0.25000000123, float64(i)*0x1.3333p-11, 1+float64(i)*0x1p-52)
		}
		y := make([]float64, len(x))
		f.f64(y, x)
		worst, at := 0.0, 0
		for i, v := range x {
			if !(v > f.low && v < f.top) {
				if want := f.ref(v); math.Abs(y[i]-want) > 1e-300 || (y[i] != y[i]) != (want != want) {
					t.Errorf("%s(%v) = %v, want %v", f.name, v, y[i], want)
				}
				continue
			}
			big := f.bigRef(v)
			want, _ := big.Float64()
			diff := add(number(y[i]), big.Neg(big))
			if d, _ := diff.Quo(diff.Abs(diff), number(spacing64(want))).Float64(); !(d <= worst) {
				worst, at = d, i
			}
		}
		t.Logf("%s: at most %.3f ulp, at %v", f.name, worst, x[at])
		if !(worst <= f.ulp64) {
			t.Errorf("%s(%v) = %v is off by %.3f ulp, want at most %v", f.name, x[at], y[at], worst, f.ulp64)
		}
	}
}

func TestElementwiseLengths(t *testing.T) {
	for _, f := range elementwise {
		testElementwiseLengths(t, f.name, f.f32)
		testElementwiseLengths(t, f.name, f.f64)
	}
}

func testElementwiseLengths[T Float](t *testing.T, name string, f func(y, x []T)) {
	for n := range 71 {
		x := values[T](n, 1)
		got := guarded(n, func(y []T) { f(y, x) })
		checkGuard(t, name, got)
		inPlace := guarded(n, func(y []T) {
			copy(y, x)
			f(y, y[:n])
		})
		for i, v := range x {
			want := make([]T, 1)
			f(want, []T{v})
			if got.out[i] != want[0] && want[0] == want[0] {
				t.Errorf("%s: element %d of %d is %v, alone %v", name, i, n, got.out[i], want[0])
			}
			if inPlace.out[i] != want[0] && want[0] == want[0] {
				t.Errorf("%s: element %d of %d in place is %v, alone %v", name, i, n, inPlace.out[i], want[0])
			}
		}
	}
}

func TestSignsAreKept(t *testing.T) {
	y := []float32{1, 1}
	Tanh(y, []float32{float32(math.Copysign(0, -1)), -20})
	if !math.Signbit(float64(y[0])) || y[1] != -1 {
		t.Errorf("tanh of -0 and -20 is %v", y)
	}
	Exp(y, []float32{float32(math.Copysign(0, -1)), 0})
	if y[0] != 1 || y[1] != 1 {
		t.Errorf("exp of -0 and 0 is %v", y)
	}
}
