package token

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// mixedText is n bytes or a few more of made-up text, always the same for a seed: sentences of several scripts whose
// words have a long tail, numbers, code, white space, emoji; and bytes that are no UTF-8 if broken is set.
func mixedText(n int, seed uint64, broken bool) string {
	rng := rand.New(rand.NewPCG(seed, 1))
	scripts := [][]string{
		strings.Fields("th e an d er ing st re a o i un co m s p tion ly ed qu ck w b g f h j k l v x z y ou ee"),
		strings.Fields("при вет мир ко т на ста о го ла е ние про до ж и ш ё"),
		strings.Fields("ال كت اب م د ر س ة و ن ي ل م ا"),
		strings.Fields("的 一 是 不 了 人 我 在 有 他 这 中 大 来 上 国 个 到 说 们 为 子 和 你 地 出 道 也 时 年"),
		strings.Fields("こ れ は で す カ タ ナ 日 本 語 ー の を"),
		strings.Fields("한 국 어 는 문 장 이 다 에 서 를"),
		strings.Fields("ह ि न् द ी में क ा ल े"),
		strings.Fields("ä ö ü ß sch ein ung keit é è ç œ ñ ø å"),
	}
	words := make([][]string, len(scripts))
	for i, parts := range scripts {
		for range 20000 {
			var w strings.Builder
			for k := rng.IntN(4); k >= 0; k-- {
				w.WriteString(parts[rng.IntN(len(parts))])
			}
			words[i] = append(words[i], w.String())
		}
	}
	odd := []string{"😀", "👨‍👩‍👧", "\u0301", "\x00", "\u200b", "\ufeff", "▁", "Ġ", "\t", "\r\n", "   ", "</s>", "\u00a0",
		"①"}
	var b strings.Builder
	for b.Len() < n {
		script := words[0]
		if rng.IntN(3) == 0 {
			script = words[rng.IntN(len(words))]
		}
		for k := rng.IntN(20); k >= 0; k-- {
			word := script[int(float64(len(script))*rng.Float64()*rng.Float64()*rng.Float64())]
			switch rng.IntN(30) {
			case 0:
				word = strings.ToUpper(word)
			case 1:
				word = fmt.Sprint(rng.IntN(1000000))
			case 2:
				word += "'s,"
			case 3:
				word = fmt.Sprintf("if x[%d] != %q {\n\t\treturn\n\t}\n", rng.IntN(100), word)
			case 4:
				word = odd[rng.IntN(len(odd))]
			case 5:
				if broken {
					word = string([]byte{byte(rng.IntN(256)), byte(rng.IntN(256))})
				}
			}
			b.WriteString(word)
			b.WriteByte(' ')
		}
		b.WriteString(". \n"[rng.IntN(2):])
	}
	return b.String()
}

// TestRoundTrips decodes what it encodes, of ten megabytes of text.
func TestRoundTrips(t *testing.T) {
	size := 10 << 20
	if testing.Short() {
		size >>= 4
	}
	plain := mixedText(size, 1, false)
	bytes := mixedText(size>>3, 2, true)
	small := kinds(t)
	for _, name := range []string{"gpt-2", "qwen2", "deepseek-v3", "superbpe", "rwkv"} {
		t.Run("small "+name, func(t *testing.T) {
			tk, err := newTokenizer(small[name].write(t))
			if err != nil {
				t.Fatal(err)
			}
			plain := plain
			if name != "gpt-2" {
				plain = plain[:size>>3]
			}
			roundTrip(t, tk, strings.ToValidUTF8(plain, ""))
			roundTripBytes(t, tk, bytes)
		})
	}
	for _, name := range []string{"gpt-2", "qwen2", "llama-spm"} {
		t.Run(name, func(t *testing.T) {
			tk := sharedTokenizer(t, name)
			plain := plain
			if name == "llama-spm" {
				plain = strings.ReplaceAll(plain, spmSpace, "") // which it takes for a space
			}
			roundTrip(t, tk, plain)
			if name == "llama-spm" {
				// Llama.cpp's reading of what is not UTF-8 swallows a space, which is "▁" by then.
				return
			}
			roundTripBytes(t, tk, bytes)
		})
	}
}

// roundTripBytes is for text that is not UTF-8, which Decode does not give back.
func roundTripBytes(t *testing.T, tk *Tokenizer, bytes string) {
	t.Helper()
	for from := 0; from < len(bytes); from += 4096 {
		text := bytes[from:min(from+4096, len(bytes))]
		var back []byte
		for _, id := range tk.Encode(text, Plain) {
			back, _ = tk.appendText(back, id)
		}
		if got := string(back); got != text {
			at := common(got, text)
			t.Fatalf("bytes that are not UTF-8 differ at %d: got %.20q, want %.20q", from+at, got[at:], text[at:])
		}
	}
}

func roundTrip(t *testing.T, tk *Tokenizer, text string) {
	t.Helper()
	ids := tk.Encode(text, Plain)
	if got := tk.Decode(ids); got != text {
		at := common(got, text)
		t.Fatalf("differs at byte %d: got %.40q, want %.40q", at, got[at:], text[at:])
	}
	d := tk.NewDecoder()
	n := 0
	for _, id := range ids {
		piece := d.Next(id)
		if !utf8.ValidString(piece) || !strings.HasPrefix(text[n:], piece) {
			t.Fatalf("streaming differs at byte %d: got %.40q, want %.40q", n, piece, text[n:])
		}
		n += len(piece)
	}
	if n += len(d.Flush()); n != len(text) {
		t.Fatalf("streaming gave %d bytes, want %d", n, len(text))
	}
}

func common(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// BenchmarkEncodeMixed encodes ten megabytes of mixed text on one processor. It needs the vocabularies of the reference
// data, and is skipped without a word where they are not; -shared names their folder:
//
//	go test ./models/token -run - -bench EncodeMixed -benchtime 8x -cpu 1 -shared /folder/data
//
// best-MB/s counts of each 20 kB of the text the fastest time, so that what other programs take does not count.
func BenchmarkEncodeMixed(b *testing.B) {
	text := mixedText(10<<20, 1, false)
	for _, name := range []string{"gpt-2", "mpt", "qwen2", "llama-spm", "bert-bge"} {
		b.Run(name, func(b *testing.B) {
			tk := sharedTokenizer(b, name)
			var best [512]time.Duration
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				for i := range best {
					begin := time.Now()
					tk.Encode(text[len(text)*i/len(best):len(text)*(i+1)/len(best)], Plain)
					if took := time.Since(begin); best[i] == 0 || took < best[i] {
						best[i] = took
					}
				}
			}
			all := time.Duration(0)
			for _, d := range best {
				all += d
			}
			b.ReportMetric(float64(len(text))/1e6/all.Seconds(), "best-MB/s")
		})
	}
}
