package safetensors

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/fucina-go/fucina/core/dtype"
)

// Info is what a header says of a tensor.
type Info struct {
	Name  string
	DType dtype.Type
	Shape []int // the last axis is the fastest
}

// Header is the beginning of a file with these tensors and texts. The elements follow, little-endian, tensor by tensor
// in the order returned, by indices into the tensors: that of the reference implementation, in which types of stricter
// alignment come first, and names decide between equals. The header is padded so that every tensor is aligned.
//
// Errors: a name that occurs twice, is that of the metadata, or is no UTF-8; too long a header.
func Header(tensors []Info, metadata map[string]string) (head []byte, order []int, err error) {
	order = make([]int, len(tensors))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := &tensors[a], &tensors[b]
		return cmp.Or(cmp.Compare(typeFor(y.DType), typeFor(x.DType)), cmp.Compare(x.Name, y.Name))
	})
	head = append(make([]byte, 8), '{')
	if metadata != nil {
		head = append(quote(head, metadataKey), ":{"...)
		for i, key := range slices.Sorted(maps.Keys(metadata)) {
			value := metadata[key]
			if !utf8.ValidString(key) || !utf8.ValidString(value) {
				return nil, nil, fmt.Errorf("metadata %q is no UTF-8", clip(key))
			}
			if i > 0 {
				head = append(head, ',')
			}
			head = quote(append(quote(head, key), ':'), value)
		}
		head = append(head, '}')
	}
	seen := make(map[string]bool, len(tensors))
	offset := 0
	for _, i := range order {
		t := &tensors[i]
		switch {
		case t.Name == metadataKey || !utf8.ValidString(t.Name):
			return nil, nil, fmt.Errorf("%q cannot name a tensor", clip(t.Name))
		case seen[t.Name]:
			return nil, nil, fmt.Errorf("two tensors are called %q", clip(t.Name))
		}
		seen[t.Name] = true
		if head[len(head)-1] != '{' {
			head = append(head, ',')
		}
		head, offset = describe(head, t, offset)
	}
	head = append(head, '}')
	for len(head)%8 != 0 {
		head = append(head, ' ')
	}
	if len(head)-8 > maxHeader {
		return nil, nil, fmt.Errorf("the header would have %d bytes, at most %d are possible", len(head)-8, maxHeader)
	}
	binary.LittleEndian.PutUint64(head, uint64(len(head)-8))
	return head, order, nil
}

// describe adds a tensor whose data is at offset, and returns where that ends.
func describe(head []byte, t *Info, offset int) ([]byte, int) {
	head = append(quote(head, t.Name), `:{"dtype":"`...)
	head = append(append(head, typeFor(t.DType).String()...), `","shape":[`...)
	end := t.DType.Size()
	for i, n := range t.Shape {
		if i > 0 {
			head = append(head, ',')
		}
		head = strconv.AppendInt(head, int64(n), 10)
		end *= n
	}
	end += offset
	head = append(head, `],"data_offsets":[`...)
	head = strconv.AppendInt(head, int64(offset), 10)
	head = strconv.AppendInt(append(head, ','), int64(end), 10)
	return append(head, "]}"...), end
}

// quote adds a string in JSON's notation.
func quote(head []byte, s string) []byte {
	head = append(head, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			head = append(head, '\\', c)
		case c < ' ':
			head = fmt.Appendf(head, `\u%04x`, c)
		default:
			head = append(head, c)
		}
	}
	return append(head, '"')
}
