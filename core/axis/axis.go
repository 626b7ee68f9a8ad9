// Package axis holds axis names and the algebra over lists of them: which axes an operation
// yields, which two operands share, which one lacks. It knows no sizes and no data.
//
// Lists are interned: two equal lists are one pointer, so comparing layouts costs one
// instruction and a plan can be looked up by the lists of its operands. A list that nobody
// holds any more leaves the table, so a long-lived host does not grow with the names that
// its scripts invent.
package axis

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
	"unsafe"
	"weak"
)

// List is an immutable, interned list of distinct axis names; its order is the order of the
// axes. Equal lists are the same pointer. The nil *List is not valid; see Empty.
type List struct {
	names []string
	text  string // the names joined by one space

	sums [8]atomic.Pointer[sum] // of Append, which operations ask for the same ones again and again
}

// sum is what Append gave for another list.
type sum struct{ other, both *List }

// Empty is the list of a scalar's axes.
var Empty = mustParse("")

var table struct {
	sync.RWMutex
	lists map[string]weak.Pointer[List]
}

// Of returns the list of the given names. An error names the first name that is not an
// identifier (a letter or underscore, then letters, digits, underscores) or occurs twice.
func Of(names ...string) (*List, error) {
	for _, name := range names {
		if !Valid(name) {
			return nil, fmt.Errorf("axis name %q is not an identifier", clip(name))
		}
	}
	return Parse(strings.Join(names, " "))
}

// Parse returns the list whose names are written in text, separated by white space.
func Parse(text string) (*List, error) {
	if l := lookup(text); l != nil {
		return l, nil
	}
	names := strings.Fields(text)
	for i, name := range names {
		if !Valid(name) {
			return nil, fmt.Errorf("axis name %q is not an identifier", clip(name))
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("axis %q is named twice", name)
		}
	}
	return intern(names), nil
}

func mustParse(text string) *List {
	l, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return l
}

func lookup(text string) *List {
	table.RLock()
	w, ok := table.lists[text]
	table.RUnlock()
	if !ok {
		return nil
	}
	return w.Value()
}

func intern(names []string) *List {
	text := strings.Join(names, " ")
	table.Lock()
	defer table.Unlock()
	if l := table.lists[text].Value(); l != nil {
		return l
	}
	// The names are parts of the one text, so a list is two small objects.
	l := &List{text: text, names: strings.Fields(text)}
	if table.lists == nil {
		table.lists = map[string]weak.Pointer[List]{}
	}
	table.lists[text] = weak.Make(l)
	runtime.AddCleanup(l, forget, text)
	return l
}

// forget drops the entry of a dead list, unless an equal list has taken its place.
func forget(text string) {
	table.Lock()
	defer table.Unlock()
	if w, ok := table.lists[text]; ok && w.Value() == nil {
		delete(table.lists, text)
	}
}

// Interned is the number of lists in the table; for tests and memory reports.
func Interned() int {
	table.RLock()
	defer table.RUnlock()
	return len(table.lists)
}

// Valid tells whether name can name an axis.
func Valid(name string) bool {
	for i, r := range name {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r >= utf8.RuneSelf && r != utf8.RuneError
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

// Len is the number of axes.
func (l *List) Len() int { return len(l.names) }

// At is the name of axis i.
func (l *List) At(i int) string { return l.names[i] }

// Names is the list itself, outermost axis first; it must not be changed.
func (l *List) Names() []string { return l.names }

// String is the names separated by one space: the form Parse reads.
func (l *List) String() string { return l.text }

// Index is the place of name in the list, or -1.
func (l *List) Index(name string) int { return slices.Index(l.names, name) }

// Has tells whether the list has the axis name.
func (l *List) Has(name string) bool { return slices.Contains(l.names, name) }

// HasAll tells whether the list has every axis of other.
func (l *List) HasAll(other *List) bool {
	return l == other || !slices.ContainsFunc(other.names, func(n string) bool { return !l.Has(n) })
}

// Without is the list less the axes of drop.
func (l *List) Without(drop *List) *List {
	return l.filter(func(n string) bool { return !drop.Has(n) })
}

// Shared is the axes of l that other has too, in l's order.
func (l *List) Shared(other *List) *List {
	return l.filter(other.Has)
}

// Append is l followed by the axes of other that l lacks.
func (l *List) Append(other *List) *List {
	if len(l.names) == 0 {
		return other
	}
	first := uint64(uintptr(unsafe.Pointer(other))) * 0x9e3779b97f4a7c15 >> 61
	at := &l.sums[first] // to be used if all places are taken
	for i := range uint64(len(l.sums)) {
		place := &l.sums[(first+i)%uint64(len(l.sums))]
		s := place.Load()
		if s == nil {
			at = place
			break
		}
		if s.other == other {
			return s.both
		}
	}
	both := l
	if !l.HasAll(other) {
		both = intern(append(slices.Clone(l.names), other.Without(l).names...))
	}
	at.Store(&sum{other, both})
	return both
}

func (l *List) filter(keep func(string) bool) *List {
	var names []string
	for _, n := range l.names {
		if keep(n) {
			names = append(names, n)
		}
	}
	if len(names) == len(l.names) {
		return l
	}
	return intern(names)
}

// Replace is l with the names of put in place of axis i; no names remove the axis. An error
// names a name that l has already.
func (l *List) Replace(i int, put ...string) (*List, error) {
	return Of(slices.Concat(l.names[:i], put, l.names[i+1:])...)
}

// Rename is l with every axis from.At(i) called to[i] instead; swaps are allowed. An error
// names a name that would then occur twice.
func (l *List) Rename(from *List, to []string) (*List, error) {
	names := slices.Clone(l.names)
	for i, n := range from.names {
		if k := l.Index(n); k >= 0 {
			names[k] = to[i]
		}
	}
	return Of(names...)
}

// Broadcast is the axes of a pointwise result over the operands ls: those of the operand that
// has most (the leftmost of equals), then the others' in order. ok tells whether that operand
// already has all of them, which is the subset rule.
func Broadcast(ls ...*List) (out *List, ok bool) {
	widest := Empty
	for _, l := range ls {
		if l.Len() > widest.Len() {
			widest = l
		}
	}
	out = widest
	for _, l := range ls {
		out = out.Append(l)
	}
	return out, out == widest
}

// Contraction says how dot treats the axes of its two operands.
type Contraction struct {
	Sum, Batch *List // summed; in both and kept
	A, B       *List // private to each
	Out        *List // Batch, A, B
}

// Contract sorts the axes of a and b for a product summed over sum, which both must have.
func Contract(a, b, sum *List) Contraction {
	c := Contraction{Sum: sum, Batch: a.Shared(b).Without(sum)}
	c.A = a.Without(b)
	c.B = b.Without(a)
	c.Out = c.Batch.Append(c.A).Append(c.B)
	return c
}

// Nearest is the name in l closest to name by edit distance, or "" when none is close enough
// to be a likely misspelling.
func (l *List) Nearest(name string) string {
	best, at := "", 1+max(1, len(name)/3)
	for _, n := range l.names {
		if d := Distance(name, n); d < at {
			best, at = n, d
		}
	}
	return best
}

// Distance counts the insertions, deletions, substitutions and swaps of neighbours, of bytes, that make b of
// a: the optimal string alignment distance. Of long names it is just large.
func Distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			row[j+1] = min(last[j]+change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
