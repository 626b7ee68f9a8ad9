package core

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/fucina-go/fucina/core/dtype"
)

// TestOps runs every generic check on every sample of every operation.
func TestOps(t *testing.T) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { eachSubject(t, c.run) })
	}
}

// TestSamples insists that the samples of every operation leave nothing out that the checks rely on.
func TestSamples(t *testing.T) {
	for _, info := range All() {
		for _, what := range uncovered(info, subjects(info)) {
			t.Errorf("the samples of %s have no %s", info.Name, what)
		}
	}
}

// uncovered is what the samples leave out.
func uncovered(info *Info, list []*subject) (missing []string) {
	if len(list) == 0 {
		return []string{"arguments at all"}
	}
	seen := map[string]bool{}
	for _, s := range list {
		s.cover(seen)
	}
	for _, n := range lengths {
		missing = unless(missing, seen, fmt.Sprintf("axis of size %d", n))
	}
	if slices.ContainsFunc(list, func(s *subject) bool { return slices.ContainsFunc(s.args, storable) }) {
		missing = unless(missing, seen, "permuted storage", "strided storage", "backward storage")
		if len(info.tensors) > 1 || !Is[InPlace](info) {
			missing = unless(missing, seen, "broadcast storage")
		}
	}
	for i := range info.Fields {
		f := &info.Fields[i]
		switch f.Kind {
		case KindEnum:
			for _, word := range f.Enum {
				missing = unless(missing, seen, f.Name+"="+word)
			}
		case KindBool:
			missing = unless(missing, seen, f.Name+"=true", f.Name+"=false")
		case KindTensors:
			missing = unless(missing, seen, f.Name+" of several tensors")
		case KindTensor, KindAxes:
			if f.Optional {
				missing = unless(missing, seen, f.Name+" left out", f.Name+" given")
			}
		}
	}
	for _, what := range slices.Compact(slices.Sorted(takenDTypes(list))) {
		missing = unless(missing, seen, what)
	}
	if slices.ContainsFunc(list, (*subject).repeatable) {
		missing = unless(missing, seen, "tensor that is two operands")
	}
	return missing
}

// storable tells whether an operand may be stored in several ways: quantized ones may not.
func storable(t *Tensor) bool { return t != nil && !t.dtype.Quantized() }

// repeatable tells whether the operation takes one tensor twice, as far as a tensor of one axis shows.
func (s *subject) repeatable() bool {
	for i, x := range s.args {
		for j := range s.args {
			if i == j || x == nil || s.args[j] == nil {
				continue
			}
			for k, name := range x.axes.Names() {
				args := slices.Clone(s.args)
				args[i] = s.env.Tensor(x.dtype, axisList(name), x.sizes[k])
				args[j] = args[i]
				op := s.info.clone(s.op)
				s.info.setOperands(op, args)
				if s.info.takes(s.env, op) {
					return true
				}
			}
		}
	}
	return false
}

func unless(missing []string, seen map[string]bool, whats ...string) []string {
	for _, what := range whats {
		if !seen[what] {
			missing = append(missing, what)
		}
	}
	return missing
}

// cover notes what the sample has.
func (s *subject) cover(seen map[string]bool) {
	for i, t := range s.args {
		if t == nil {
			continue
		}
		seen[dtypeOf(i, t.dtype)] = true
		for _, l := range layouts {
			seen[l.name+" storage"] = seen[l.name+" storage"] || l.applies(t)
		}
		repeats := slices.Max(append(t.sizes, 0)) > 1 && t.Len() > 0
		seen["broadcast storage"] = seen["broadcast storage"] || repeats && !s.mutates(i)
		for _, n := range t.sizes {
			seen[fmt.Sprintf("axis of size %d", n)] = true
		}
	}
	for i := range s.info.Fields {
		f := &s.info.Fields[i]
		p := f.At(s.op)
		switch f.Kind {
		case KindEnum:
			seen[f.Name+"="+*(*string)(p)] = true
		case KindBool:
			seen[fmt.Sprintf("%s=%v", f.Name, *(*bool)(p))] = true
		case KindDType:
			seen[dtypeOf(-1, *(*dtype.Type)(p))] = true
		case KindTensors:
			seen[f.Name+" of several tensors"] = seen[f.Name+" of several tensors"] || len(*(*[]*Tensor)(p)) > 1
		case KindTensor, KindAxes:
			if *(*unsafe.Pointer)(p) == nil {
				seen[f.Name+" left out"] = true
			} else {
				seen[f.Name+" given"] = true
			}
		}
	}
	if ok, _ := checkRepeated(s); ok {
		seen["tensor that is two operands"] = true
	}
	if outs, err := s.outputs(s.args); err == nil && !Is[InPlace](s.info) {
		for _, t := range outs {
			for _, n := range t.sizes {
				seen[fmt.Sprintf("axis of size %d", n)] = true
			}
		}
	}
}

// dtypeOf words operand i with a dtype; -1 is the dtype argument.
func dtypeOf(i int, dt dtype.Type) string {
	if i < 0 {
		return "dtype=" + dt.String()
	}
	return fmt.Sprintf("%s as operand %d", dt, i)
}

// takenDTypes asks the operation itself which dtypes it takes: of every operand, alone or along with
// the others of its dtype, and of its dtype argument.
func takenDTypes(list []*subject) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, s := range list {
			for _, dt := range allDTypes {
				for i, x := range s.args {
					if x != nil && (s.takes(dt, func(j int, _ *Tensor) bool { return i == j }) ||
						s.takes(dt, func(_ int, y *Tensor) bool { return y.dtype == x.dtype })) && !yield(dtypeOf(i,
						dt)) {
						return
					}
				}
				for k := range s.info.Fields {
					if f := &s.info.Fields[k]; f.Kind == KindDType {
						op := s.info.clone(s.op)
						*(*dtype.Type)(f.At(op)) = dt
						if s.info.takes(s.env, op) && !yield(dtypeOf(-1, dt)) {
							return
						}
					}
				}
			}
		}
	}
}

// takes tells whether the operation accepts dtype dt for those operands.
func (s *subject) takes(dt dtype.Type, which func(i int, t *Tensor) bool) bool {
	args := make([]*Tensor, len(s.args))
	for i, t := range s.args {
		if t == nil {
			continue
		}
		args[i] = t.twin(false)
		if which(i, t) {
			args[i].dtype = dt
		}
	}
	op := s.info.clone(s.op)
	s.info.setOperands(op, args)
	return s.info.takes(s.env, op)
}

// TestOpDocs insists that every operation is documented and shows a call.
func TestOpDocs(t *testing.T) {
	for _, info := range All() {
		doc, err := info.Doc()
		switch {
		case err != nil:
			t.Error(err)
		case len(doc.Summary) < 10:
			t.Errorf("%s: its comment begins %q, want a sentence", info.Name, doc.Summary)
		case doc.Example == "":
			t.Errorf("%s: its comment has no Example:", info.Name)
		case len(info.tensors) > 0 && !strings.Contains(doc.Text, "Shape:") && !strings.Contains(doc.Example,
			info.Name+"("):
			t.Errorf("%s: its comment has neither a Shape: nor an example that calls it", info.Name)
		}
	}
}

// TestOpNames insists that an operation has one name: the argument struct RMSNorm, a Go method RMSNorm if
// there is one, scripts' rms_norm, the file rmsnorm.go or that of a family.
func TestOpNames(t *testing.T) {
	plain := func(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }
	methods := map[string]bool{}
	tensor := reflect.TypeFor[*Tensor]()
	for i := range tensor.NumMethod() {
		methods[plain(tensor.Method(i).Name)] = true
	}
	taken := map[string]string{"tensor": "FromLists", "all": "AllTrue", "any": "AnyTrue"} // Tensor and All are
	for _, info := range All() {
		if name := info.argType(); plain(name) != plain(info.Name) && name != taken[info.Name] {
			t.Errorf("scripts call the operation %s %s", name, info.Name)
		}
		if info.Name != strings.ToLower(info.Name) {
			t.Errorf("%s is not in lower case", info.Name)
		}
		if len(info.Fields) > 0 && info.Fields[0].Kind == KindTensor && !methods[plain(info.Name)] {
			t.Logf("%s has no Go method %s", info.Name, info.argType())
		}
		if _, err := sources.ReadFile(filepath.Base(info.File)); err != nil {
			t.Errorf("%s: %v", info.Name, err)
		}
	}
}

// BenchmarkOps runs every operation on every sample.
func BenchmarkOps(b *testing.B) {
	for _, info := range All() {
		b.Run(info.Name, func(b *testing.B) {
			for _, s := range subjects(info) {
				b.Run(s.name, func(b *testing.B) {
					b.ReportAllocs()
					var outs []*Tensor
					for b.Loop() {
						outs = s.info.Run(s.env, s.op, outs[:0])
						s.release(outs)
					}
				})
			}
		})
	}
}
