package core

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fucina-go/fucina/core/dtype"
)

func TestTopKOrder(t *testing.T) {
	nan := math.NaN()
	e := NewEnv(0, 1)
	defer e.Close()
	for _, test := range []struct {
		name   string
		x      []float64
		k      int
		places []int64
	}{
		{"greatest first", []float64{3, 1, 4, 1, 5}, 3, []int64{4, 2, 0}},
		{"equals by place", []float64{2, 7, 7, 2, 7}, 4, []int64{1, 2, 4, 0}},
		{"equals at the end of the choice", []float64{1, 2, 2, 2}, 2, []int64{1, 2}},
		{"NaN is greatest", []float64{1, nan, math.Inf(1), nan}, 3, []int64{1, 3, 2}},
		{"all", []float64{-1, -3, -2}, 3, []int64{0, 2, 1}},
		{"zeros of both signs are equal", []float64{0, math.Copysign(0, -1), 0}, 3, []int64{0, 1, 2}},
		{"none", []float64{1}, 0, nil},
	} {
		for _, dt := range floats {
			x := e.FromFloats(dt, test.x, axisList("a"), len(test.x))
			values, places := x.TopK(test.k, "a", "")
			if diff := cmp.Diff(test.places, places.Int64s(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s, %s: %s", test.name, dt, diff)
			}
			for i, p := range test.places {
				if got, want := values.Values()[i].(float64), test.x[p]; got != want && !math.IsNaN(want) {
					t.Errorf("%s, %s: value %d is %v, want %v", test.name, dt, i, got, want)
				}
			}
		}
	}
}

func TestLookups(t *testing.T) {
	e := NewEnv(0, 1)
	defer e.Close()
	ints := func(axes string, sizes []int, values ...int64) *Tensor {
		return e.FromInts(dtype.I64, values, axisList(strings.Fields(axes)...), sizes...)
	}
	x := ints("row col", []int{2, 3}, 1, 2, 3, 4, 5, 6)
	bools := e.FromInts(dtype.Bool, []int64{1, 0, 1}, axisList("col"), 3)
	for _, test := range []struct {
		name string
		got  *Tensor
		want string
	}{
		{"gather along rows", x.Gather(ints("row choice", []int{2, 2}, 2, 0, 1, 1), "col"),
			"i64[row=2, choice=2] [3 1 5 5]"},
		{"gather, own axis of the same name", x.Gather(ints("row col", []int{2, 1}, 2, 0), "col"),
			"i64[row=2, col=1] [3 4]"},
		{"gather whole columns", x.Gather(ints("pick", []int{2}, 2, 0), "col"), "i64[row=2, pick=2] [3 1 6 4]"},
		{"index_add, one place twice", x.IndexAdd(ints("pick", []int{3}, 1, 0, 1),
			ints("row pick", []int{2, 3}, 10, 20, 30, 1, 2, 3), "col"),
			"i64[row=2, col=3] [21 42 3 6 9 6]"},
		{"masked_select, mask repeated", x.MaskedSelect(bools, "selected"), "i64[selected=4] [1 3 4 6]"},
		{"masked_select, x repeated", ints("col", []int{3}, 7, 8, 9).MaskedSelect(x.Gt(ints("", nil, 2)), "s"),
			"i64[s=4] [9 7 8 9]"},
	} {
		if got := fmt.Sprint(test.got.Shape(), " ", test.got.Int64s()); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func TestLookupErrors(t *testing.T) {
	e := NewEnv(0, 1)
	defer e.Close()
	x := e.Zeros(dtype.F32, axisList("row", "col"), 2, 3)
	at := func(i int64) *Tensor { return e.FromInts(dtype.I64, []int64{i}, axisList("pick"), 1) }
	mask := e.FromInts(dtype.Bool, []int64{1, 0}, axisList("row"), 2)
	for want, f := range map[string]func(){
		"gather: the index 3 is outside of axis \"col\" of x[row=2, col=3]": func() { x.Gather(at(3), "col") },
		"index_add: the index -1 is outside of axis \"row\"": func() {
			x.IndexAdd(at(-1), e.Zeros(dtype.F32, axisList("pick", "col"), 1, 3), "row")
		},
		"topk: k=4, but axis \"col\" of x[row=2, col=3] has 3 elements": func() { x.TopK(4, "col", "") },
		"masked_select: how long axis \"selected\" gets depends on the values of mask[row=2]": func() {
			defer e.ShapeOnly(e.ShapeOnly(true))
			x.MaskedSelect(mask, "selected")
		},
	} {
		var err error
		func() {
			defer Recover(&err)
			f()
		}()
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
