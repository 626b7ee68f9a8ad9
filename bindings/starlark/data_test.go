package starlark

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// put writes files into dir; those called .gz compressed.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(name) == ".gz" {
			z := gzip.NewWriter(f)
			if _, err := z.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			err = z.Close()
		} else {
			_, err = f.WriteString(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// dataMistakes is what TestDataFiles is refused, and with which words.
var dataMistakes = map[string]string{
	`read_text("b.txt")`: "read_text: cannot open ",
	`read_text("bad.txt")`: `read_text: bad.txt: got byte 0xff at offset 0, want UTF-8; convert it, as by ` +
		`iconv -f utf-16 -t utf-8, or read bytes: read_bytes("bad.txt")`,
	`read_text("late.txt")`:               "late.txt: got byte 0xe9 at offset 1048577, want UTF-8; convert",
	`read_text("")`:                       "read_text: got no file name; it is a text, and",
	`load_model("")`:                      "load_model: got no file name; it is a text, and",
	`tokenizer("")`:                       "tokenizer: got no file name; it is a text, and",
	`load_imatrix("")`:                    "load_imatrix: got no file name; it is a text, and",
	`open_gguf("")`:                       "open_gguf: got no file name; it is a text, and",
	`quantize_model("", "a.gguf", "f16")`: "quantize_model: got no file name; it is a text, and",
	`read_bytes(".")`:                     "read_bytes: cannot open .: it is a folder, want a file in it",
	`read_bytes("no.gz.gz")`:              "cannot open",
	`read_bytes("torn.gz")`:               "read_bytes: torn.gz: unexpected EOF",
	`load_idx("torn.gz", "batch y x")`:    "load_idx: torn.gz: unexpected EOF",
	`load_idx("long.gz", "batch y x")`:    "longer than its header says",
	`load_idx("huge.gz", "batch")`:        "more than the file can hold",
	`load_idx("a.txt", "batch")`:          "this is no IDX file",
	`load_idx("train-labels-idx1-ubyte")`: `but 0 are named; load_idx("train-labels-idx1-ubyte", "col")`,
	`load_csv("v.csv")`:                   "load_csv: v.csv: line 2 has not as many cells as the first",
	`load_csv("q.csv")`:                   "q.csv: line 2, column 2: a quote inside of a cell that does",
	`load_csv("open.csv")`:                `open.csv: line 2: the cell in quotes that begins there does not end; a`,
	`load_csv("t.csv", sep="\"")`:         "load_csv: sep: got \"\\\"\", want one character, no quote",
	`load_csv("t.csv", sep="\n")`:         `load_csv: sep: got "\n", want one character, no quote and no`,
	`load_csv("w.csv")`:                   `w.csv has two columns called "a"; number them: header=False`,
	`load_csv("t.csv", sep="ab")`:         `sep: got "ab", want one character`,
	`load("@stdlib//data.star", "data")
data.jsonl("m.jsonl")`: "jsonl: m.jsonl, line 2: json.decode: ",
	`load("@stdlib//data.star", "data")
data.mnist("nowhere")`: "mnist: nowhere has 0 of",
}

// TestDataFiles reads texts, tables and images.
func TestDataFiles(t *testing.T) {
	it, dir := inFolder(t)
	images := "\x00\x00\x08\x03\x00\x00\x00\x03\x00\x00\x00\x01\x00\x00\x00\x02\x00\x33\x66\x99\xcc\xff"
	labels := "\x00\x00\x08\x01\x00\x00\x00\x03\x07\x00\x09"
	put(t, dir, map[string]string{
		"a.txt": "naïve\n\nlines\r\n", "b.txt.gz": "packed",
		"cut.txt": strings.Repeat("€", 1<<20), "bad.txt": "\xff",
		"late.txt": strings.Repeat("x", 1<<20-1) + "é\xe9x", "bad.gz.txt": "", "no.gz": "",
		"t.csv":                     "id, score ,name\n1,0.5,ann\n2,,\"b, ob\"\n3,1e3,\n",
		"u.csv":                     "1;2\n3;4\n",
		"v.csv":                     "a,b\n1\n",
		"w.csv":                     "a,a\n1,2\n",
		"e.csv":                     "",
		"q.csv":                     "a\nb\"c\n",
		"open.csv":                  "a\n\"b\nc\n",
		"l.jsonl":                   "{\"a\": 1}\n\n[2, null]\n",
		"m.jsonl":                   "1\n{\n",
		"train-images-idx3-ubyte":   images,
		"train-labels-idx1-ubyte":   labels,
		"test-images-idx3-ubyte.gz": images,
		"test-labels-idx1-ubyte.gz": labels,
		"long.gz":                   images + "x",
		"huge.gz":                   "\x00\x00\x08\x01\xff\xff\xff\xff",
	})
	torn, err := os.ReadFile(filepath.Join(dir, "test-images-idx3-ubyte.gz"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{"torn": ""})
	if err := os.WriteFile(filepath.Join(dir, "torn.gz"), torn[:len(torn)-6], 0o666); err != nil {
		t.Fatal(err)
	}
	evaluate(t, it, `
load("@stdlib//data.star", "data")
equal(read_text("a.txt"), "naïve\n\nlines\r\n")
equal(data.lines("a.txt"), ["naïve", "lines"])
equal((read_text("b.txt.gz"), read_bytes("bad.txt")), ("packed", b"\xff"))
c = load_csv("t.csv")
equal((list(c), c["id"].dtype, c["id"].tolist()), (["id", "score", "name"], "i64", [1, 2, 3]))
equal((c["score"].dtype, c["score"].axes, str(c["score"].tolist())), ("f64", ("row",), "[0.5, nan, 1000.0]"))
equal(c["name"], ["ann", "b, ob", ""])
u = load_csv("u.csv", axis="batch", header=False, sep=";")
equal((list(u), u[1].tolist(), u[1].axes), ([0, 1], [2, 4], ("batch",)))
equal(load_csv("e.csv"), {})
equal(len(read_text("cut.txt")), 3 << 20)
equal(data.jsonl("l.jsonl"), [{"a": 1}, [2, None]])
x = load_idx("train-images-idx3-ubyte", "batch y x")
equal((x.dtype, x.tolist()), ("u8", [[[0, 51]], [[102, 153]], [[204, 255]]]))
m = data.mnist(".")
for part in ("train", "test"):
    images, labels = m[part]
    equal((images.shape, images.dtype), ({"batch": 3, "channel": 1, "y": 1, "x": 2}, "f32"))
    equal((images.at(batch=-1, channel=0, y=0).tolist()[1], labels.tolist(), labels.dtype), (1.0, [7, 0, 9], "i64"))
equal(check(lambda: load_idx("train-images-idx3-ubyte", "batch y x")).shape, {"batch": 3, "y": 1, "x": 2})
`)
	for src, want := range dataMistakes {
		refuses(t, it, src, want)
	}
}
