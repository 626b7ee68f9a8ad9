package token
import ("testing";"time";"golang.org/x/sys/unix";"runtime";"fmt"; "github.com/fucina-go/fucina/core/gguf")
func cpuNow() time.Duration { var n unix.Timespec; unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &n); return time.Duration(n.Nano()) }
func TestZZPre(t *testing.T) {
	text := mixedText(1<<20, 1, false)
	runtime.LockOSThread()
	base := map[string]string{}
	for _, vocab := range []string{"gpt-2", "qwen2"} {
		for _, pre := range PreTokenizers() {
			tk := sharedTokenizerWith(t, vocab, pre)
			if tk == nil { continue }
			best := time.Hour
			for range 4 {
				b := cpuNow()
				tk.Encode(text, Plain)
				best = min(best, cpuNow()-b)
			}
			fmt.Printf("%6.1f MB/s %s %s\n", float64(len(text))/1e6/best.Seconds(), vocab, pre)
		}
	}
	_ = base
}
func sharedTokenizerWith(t testing.TB, name, pre string) *Tokenizer {
	f, err := gguf.Open("/work/shared/data/tokenizers/ggml-vocab-"+name+".gguf", nil)
	if err != nil { t.Fatal(err) }
	tk, err := New(f, WithPre(pre))
	if err != nil { t.Log(pre, err); return nil }
	return tk
}
