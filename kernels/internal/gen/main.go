// Command gen writes the assembly of the kernels and its Go declarations:
//
//	go generate ./kernels/...
//
// Each kernel is written once as Go code that emits instructions, for the tiers
// AVX-512, AVX2 and NEON, and products of bytes for AVX-VNNI and I8MM too. The
// files it writes are committed, and a test compares them with what it would
// write now. It has no dependency and is no library.
//
// source.go holds the frame around functions; body.go the loops over elements
// and their register allocation; amd64.go and arm64.go the instructions; the
// other files one family of kernels each.
package main

import (
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gen DIR, the kernels folder")
		os.Exit(2)
	}
	for name, text := range generate() {
		if err := os.WriteFile(filepath.Join(os.Args[1], filepath.FromSlash(name)), []byte(text), 0o666); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
	}
}

// generate returns all files by their slash-separated name below kernels.
func generate() map[string]string {
	out := map[string]string{}
	for _, s := range []*source{num(), gemm(), half(), attn(), update(), qdot()} {
		for name, text := range s.files() {
			if strings.HasSuffix(name, ".go") {
				formatted, err := format.Source([]byte(text))
				if err != nil {
					panic(name + ": " + err.Error())
				}
				text = string(formatted)
			}
			out[s.pkg+"/"+name] = text
		}
	}
	return out
}
