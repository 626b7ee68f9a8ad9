package axis

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func lists(t *rapid.T, label string) *List {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}), 0, 6,
		func(s string) string { return s }).Draw(t, label)
	l, err := Of(names...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestInterned(t *testing.T) {
	a, _ := Parse("batch seq")
	b, _ := Of("batch", "seq")
	c, _ := Parse("  batch   seq ")
	if a != b || a != c {
		t.Fatal("equal lists are not the same pointer")
	}
	if d, _ := Of("seq", "batch"); d == a {
		t.Fatal("order does not matter")
	}
}

func TestInvalid(t *testing.T) {
	for _, text := range []string{"a a", "1a", "a-b", "a b c a", "a,b"} {
		if l, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", text, l)
		}
	}
	for _, text := range []string{"", "_x", "größe", "in", "x1"} {
		if _, err := Parse(text); err != nil {
			t.Errorf("Parse(%q): %v", text, err)
		}
	}
}

func TestAlgebra(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := lists(t, "a"), lists(t, "b")
		shared, private := a.Shared(b), a.Without(b)
		if shared.Len()+private.Len() != a.Len() || !a.HasAll(shared) || !b.HasAll(shared) ||
			private.Shared(b) != Empty {
			t.Fatalf("%v and %v: shared %v, private %v", a, b, shared, private)
		}
		union := a.Append(b)
		if !union.HasAll(a) || !union.HasAll(b) || union.Len() != a.Len()+b.Len()-shared.Len() {
			t.Fatalf("%v + %v = %v", a, b, union)
		}
		if !slices.Equal(union.Names()[:a.Len()], a.Names()) {
			t.Fatalf("%v + %v = %v does not begin with the left operand", a, b, union)
		}
	})
}

func TestBroadcast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := lists(t, "a"), lists(t, "b")
		out, ok := Broadcast(a, b)
		if ok != (a.HasAll(b) || b.HasAll(a)) {
			t.Fatalf("%v with %v: subset rule says %v", a, b, ok)
		}
		if ok && out != a && out != b {
			t.Fatalf("%v with %v gives %v", a, b, out)
		}
		if a.Len() >= b.Len() && a.HasAll(b) && out != a {
			t.Fatalf("%v with %v gives %v, want the left operand's order", a, b, out)
		}
	})
}

func TestContract(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := lists(t, "a"), lists(t, "b")
		sum := a.Shared(b)
		if sum.Len() > 1 {
			sum, _ = Of(sum.At(0))
		}
		c := Contract(a, b, sum)
		if c.Out.Len() != c.Batch.Len()+c.A.Len()+c.B.Len() || c.Out.Shared(sum) != Empty {
			t.Fatalf("%+v", c)
		}
		if a.Len() != c.Sum.Len()+c.Batch.Len()+c.A.Len() || b.Len() != c.Sum.Len()+c.Batch.Len()+c.B.Len() {
			t.Fatalf("%+v loses axes of %v or %v", c, a, b)
		}
	})
}

func TestRename(t *testing.T) {
	l, _ := Parse("a b c")
	ab, _ := Parse("a b")
	if got, err := l.Rename(ab, []string{"b", "a"}); err != nil || got.String() != "b a c" {
		t.Fatal(got, err)
	}
	if got, err := l.Rename(ab, []string{"c", "x"}); err == nil {
		t.Fatalf("two axes c: %v", got)
	}
}

func TestNearest(t *testing.T) {
	l, _ := Parse("batch channel seq")
	for name, want := range map[string]string{"chanel": "channel", "sq": "seq", "vocab": "", "batc": "batch"} {
		if got := l.Nearest(name); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

// A host that runs scripts for months must not keep the names they invented.
func TestForgets(t *testing.T) {
	runtime.GC()
	before := Interned()
	for i := range 10000 {
		if _, err := Parse(fmt.Sprintf("once_%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	// A cleanup runs some time after the collection that found the list dead, on another goroutine.
	for deadline := time.Now().Add(10 * time.Second); Interned() > before+100; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d lists before, %d after", before, Interned())
		}
		runtime.GC()
	}
}

func BenchmarkParse(b *testing.B) {
	keep, _ := Parse("head head_dim")
	for b.Loop() {
		Parse("head head_dim")
	}
	runtime.KeepAlive(keep)
}
