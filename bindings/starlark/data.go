package starlark

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/idx"
)

// maxText is how many bytes a script may read as one text.
const maxText = 1 << 31

// maxInflate is how many times as long as its file a text can be, a bit more than deflate can do.
const maxInflate = 1100

// unpacked is a file, decompressed if its name ends in .gz, and how many bytes there can be at most.
func (it *Interp) unpacked(op, path string) (r io.Reader, most int64, closer io.Closer, err error) {
	f, size, err := it.openData(op, path)
	if err != nil {
		return nil, 0, nil, err
	}
	if !strings.HasSuffix(path, ".gz") {
		return f, size, f, nil
	}
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		f.Close()
		return nil, 0, nil, fmt.Errorf("%s: %s: %w", op, path, err)
	}
	return z, (size + 64) * maxInflate, f, nil
}

// contents is all of a file, decompressed if its name ends in .gz.
func (it *Interp) contents(op, path string) ([]byte, error) {
	r, _, closer, err := it.unpacked(op, path)
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	b, err := io.ReadAll(io.LimitReader(interruptible{r, it}, maxText+1))
	if err == nil && len(b) > maxText {
		err = fmt.Errorf("it has more than %d bytes", maxText)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", op, path, err)
	}
	return b, nil
}

// interruptible is a file that is read no further when the run is to stop.
type interruptible struct {
	io.Reader
	it *Interp
}

func (r interruptible) Read(p []byte) (int, error) {
	if why := r.it.stopped.Load(); why != nil {
		return 0, why
	}
	return r.Reader.Read(p)
}

// exists is exists(path): whether there is a file or folder of that name that can be opened. A path is relative to the
// working directory.
func exists(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var path string
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path); err != nil {
		return nil, err
	}
	it := interpOf(t)
	f, err := it.cfg.Open(it.ResolvePath(path))
	if err != nil {
		return star.False, nil
	}
	return star.True, f.Close()
}

// readText is read_text(path): a file as a text, which is UTF-8; decompressed if the path ends in .gz. A path is
// relative to the working directory.
func readText(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var path string
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path); err != nil {
		return nil, err
	}
	text, err := interpOf(t).contents(b.Name(), path)
	if err != nil {
		return nil, err
	}
	if err := interpOf(t).checkUTF8(b.Name(), path, text); err != nil {
		return nil, err
	}
	return star.String(text), nil
}

// checkUTF8 is an error if the text in a file is not UTF-8, which says where.
func (it *Interp) checkUTF8(op, path string, text []byte) error {
	const some = 1 << 20 // bytes between two looks at whether to stop
	for at := 0; at < len(text); {
		end := min(at+some, len(text))
		for n := 0; n < utf8.UTFMax && end < len(text) && !utf8.RuneStart(text[end]); n++ {
			end++ // to the next character
		}
		if why := it.stopped.Load(); why != nil {
			return why
		}
		if utf8.Valid(text[at:end]) {
			at = end
			continue
		}
		for r, n := utf8.DecodeRune(text[at:end]); r != utf8.RuneError || n > 1; r, n = utf8.DecodeRune(text[at:end]) {
			at += n
		}
		from := "latin1"
		if text[0] >= 0xfe { // the mark at the beginning of UTF-16
			from = "utf-16"
		}
		return &core.Error{Op: op, Msg: fmt.Sprintf("%s: got byte 0x%02x at offset %d, want UTF-8", path, text[at], at),
			Hint: fmt.Sprintf("convert it, as by iconv -f %s -t utf-8, or read bytes: read_bytes(%q)", from, path)}
	}
	return nil
}

// readBytes is read_bytes(path): a file as bytes; decompressed if the path ends in .gz. A path is relative to the
// working directory.
func readBytes(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var path string
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path); err != nil {
		return nil, err
	}
	text, err := interpOf(t).contents(b.Name(), path)
	return star.Bytes(text), err
}

// saveText is save_text(path, text): writes a text as a file, for which a file of that name makes room at the end.
func saveText(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var path, text string
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path, "text", &text); err != nil {
		return nil, err
	}
	return star.None, interpOf(t).Save(b.Name(), path, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// loadIdx is load_idx(path, axes): the array in an IDX file, the format of the MNIST family of data sets;
// decompressed if the path ends in .gz: load_idx("train-images-idx3-ubyte.gz", "batch y x").
func loadIdx(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var path string
	var axes star.Value = star.None
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path, "axes?", &axes); err != nil {
		return nil, err
	}
	names, err := optionalAxes(axes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	if names == nil {
		names = axis.Empty
	}
	it := interpOf(t)
	r, most, closer, err := it.unpacked(b.Name(), path)
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	a, err := idx.New(r, most)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", b.Name(), path, err)
	}
	if names.Len() != len(a.Shape) {
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("%s has %d axes, of sizes %v, but %d are named", path,
			len(a.Shape), a.Shape, names.Len()),
			Hint: fmt.Sprintf("load_idx(%q, %q)", path, placeholders(len(a.Shape)))}
	}
	x, err := it.env.ReadTensor(a, a.DType, names, a.Shape...)
	if err == nil && !it.env.IsShapeOnly() {
		_, err = io.Copy(io.Discard, a) // there must be no more, and a checksum is compared at the end
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", b.Name(), path, err)
	}
	return Tensor{x}, nil
}

// loadCSV is load_csv(path, axis="row", header=True, sep=","): the columns of a table in a text file, as a dict by
// the names in its first line, or by 0, 1, … without a header. A column of whole numbers is an i64 tensor along the
// axis, one of numbers an f64 tensor, in which an empty cell is nan; any other is a list of texts. A path that ends
// in .gz is decompressed.
func loadCSV(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	path, name, sep, header := "", "row", ",", true
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path, "axis?", &name, "header?", &header, "sep?",
		&sep); err != nil {
		return nil, err
	}
	list, err := axis.Of(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	if utf8.RuneCountInString(sep) != 1 || strings.ContainsAny(sep, "\x00\r\n\"\ufffd") || !utf8.ValidString(sep) {
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("sep: got %q, want one character, no quote and no end "+
			"of a line", sep), Hint: `as in: sep=","`}
	}
	it := interpOf(t)
	text, err := it.contents(b.Name(), path)
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(interruptible{strings.NewReader(strings.TrimPrefix(string(text), "\ufeff")), it})
	r.Comma, _ = utf8.DecodeRuneInString(sep)
	var rows [][]string
	if _, err := it.Apart(len(text), func() (star.Value, error) {
		var err error
		rows, err = r.ReadAll()
		return nil, err
	}); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", b.Name(), path, badTable(err))
	}
	d := star.NewDict(0)
	if len(rows) == 0 {
		return d, nil
	}
	first := rows[0]
	if header {
		rows = rows[1:]
	}
	for k := range first {
		var key star.Value = star.MakeInt(k)
		if header {
			key = star.String(strings.TrimSpace(first[k]))
		}
		if _, twice, _ := d.Get(key); twice {
			return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("%s has two columns called %s", path, key),
				Hint: "number them: header=False"}
		}
		if err := d.SetKey(key, it.column(rows, k, list)); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// badTable is err of package csv in our words.
func badTable(err error) error {
	var at *csv.ParseError
	if !errors.As(err, &at) {
		return err
	}
	switch {
	case errors.Is(err, csv.ErrFieldCount):
		return fmt.Errorf("line %d has not as many cells as the first", at.StartLine)
	case errors.Is(err, csv.ErrBareQuote):
		return fmt.Errorf("line %d, column %d: a quote inside of a cell that does not begin with one", at.Line,
			at.Column)
	case errors.Is(err, csv.ErrQuote):
		return fmt.Errorf(`line %d: the cell in quotes that begins there does not end; a quote in it is written ""`,
			at.StartLine)
	}
	return err
}

// column is column k of a table.
func (it *Interp) column(rows [][]string, k int, along *axis.List) star.Value {
	whole, fraction := make([]int64, len(rows)), make([]float64, len(rows))
	isWhole, isNumber := true, true
	for i, row := range rows {
		if why := it.stopped.Load(); i%longList == 0 && why != nil {
			panic(why)
		}
		cell := strings.TrimSpace(row[k])
		var err error
		if isWhole {
			whole[i], err = strconv.ParseInt(cell, 10, 64)
			isWhole = err == nil
		}
		if fraction[i] = math.NaN(); cell == "" {
			continue
		}
		if fraction[i], err = strconv.ParseFloat(cell, 64); err != nil && !errors.Is(err, strconv.ErrRange) {
			isNumber = false
			break
		}
	}
	op := &core.FromLists{Data: core.Nested{Sizes: []int{len(rows)}, Floats: fraction}, Axes: along, DType: dtype.F64}
	switch {
	case !isNumber:
		items := make([]star.Value, len(rows))
		for i, row := range rows {
			if why := it.stopped.Load(); i%longList == 0 && why != nil {
				panic(why)
			}
			items[i] = star.String(row[k])
		}
		return star.NewList(items)
	case isWhole:
		op.Data.Floats, op.Data.Ints, op.DType = nil, whole, dtype.I64
	}
	return Tensor{core.Lookup("tensor").Run1(it.env, op)}
}
