package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fucina-go/fucina/core/gguf"
)

// A benchTest is a line of what llama-bench and fucina-repl -m bench print with -o json.
type benchTest struct {
	Prompt   int     `json:"n_prompt"`
	Generate int     `json:"n_gen"`
	Speed    float64 `json:"avg_ts"` // tokens a second
}

// models times whole models in turns: prompts of so many tokens, numbers by commas, and 32 tokens one by one. peers are
// commands like llama-bench, which get -m, -p, -n, -r, -t and -o json besides their own arguments.
func models(ctx context.Context, threads, rounds int, files, peers []string, prompts string) error {
	read := slices.Max(tries(few, func() float64 { return together(threads, readRate) }))
	fmt.Printf("%d thread(s): four-stream read %.1f GB/s\n\n", threads, read/1e9)
	folder, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	program := filepath.Join(folder, "fucina-repl")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/fucina-repl")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	fmt.Println("| model, test | Fucina, t/s | of the read | peers, t/s | Fucina : peers |")
	fmt.Println("|---|---|---|---|---|")
	commands := append([]string{program + " -m bench"}, peers...)
	for _, file := range files {
		bytes, err := readBytes(file)
		if err != nil {
			return err
		}
		var order [][2]int
		speeds := map[[2]int][][]float64{}
		for range rounds {
			for i, command := range commands {
				tests, err := runBench(ctx, command, file, prompts, threads)
				if err != nil {
					return err
				}
				for _, t := range tests {
					key := [2]int{t.Prompt, t.Generate}
					if speeds[key] == nil {
						order = append(order, key)
						speeds[key] = make([][]float64, len(commands))
					}
					speeds[key][i] = append(speeds[key][i], t.Speed)
				}
			}
		}
		for _, key := range order {
			modelLine(filepath.Base(file), key, speeds[key], float64(bytes)/read)
		}
	}
	fmt.Println()
	return nil
}

// modelLine prints a line of the table; seconds is what reading all weights takes.
func modelLine(name string, test [2]int, speeds [][]float64, seconds float64) {
	if slices.ContainsFunc(speeds, func(s []float64) bool { return len(s) == 0 }) {
		return
	}
	ours := median(speeds[0])
	label, share := fmt.Sprintf("%s, pp%d", name, test[0]), ""
	if test[1] > 0 {
		label, share = fmt.Sprintf("%s, tg%d", name, test[1]), fmt.Sprintf("%.2f", ours*seconds)
	}
	var theirs, ratios []string
	for _, s := range speeds[1:] {
		theirs = append(theirs, fmt.Sprintf("%.1f", median(s)))
		ratios = append(ratios, fmt.Sprintf("%.2f", ours/median(s)))
	}
	fmt.Printf("| %s | %.1f | %s | %s | %s |\n", label, ours, share, strings.Join(theirs, " / "),
		strings.Join(ratios, " / "))
}

func runBench(ctx context.Context, command, file, prompts string, threads int) (tests []benchTest, err error) {
	words := strings.Fields(command)
	at := []string{"-m", file}
	if len(words) > 1 && words[1] == "-m" { // ours: the module, then the file
		at = at[1:]
	}
	args := slices.Concat(words[1:], at, []string{"-p", prompts, "-n", "32", "-r", "1", "-t",
		strconv.Itoa(threads), "-o", "json"})
	out, err := exec.CommandContext(ctx, words[0], args...).Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	return tests, json.Unmarshal(out, &tests)
}

// readBytes is the bytes of the weights that a token needs: all but an embedding that is not the output too.
func readBytes(file string) (n int, err error) {
	f, err := gguf.Open(file, nil)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for _, t := range f.Tensors() {
		if _, untied := f.Tensor("output.weight"); untied && t.Name == "token_embd.weight" {
			continue
		}
		n += len(t.Bytes())
	}
	return n, nil
}
