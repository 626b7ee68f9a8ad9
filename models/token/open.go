package token

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/fucina-go/fucina/core/gguf"
)

// maxFile bounds the files that are read whole; the largest published tokenizer.json has about 40 MB.
const maxFile = 256 << 20

// Open reads the tokenizer in a file: a GGUF file, Hugging Face's tokenizer.json, tiktoken's ranks or llama2.c's
// tokenizer.bin, told apart by what is in them. It opens the file with open, nil for os.Open, and keeps nothing of it.
func Open(name string, open func(name string) (fs.File, error), options ...Option) (*Tokenizer, error) {
	if open == nil {
		open = func(name string) (fs.File, error) { return os.Open(name) }
	}
	f, err := open(name)
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	defer f.Close()
	start := make([]byte, 4)
	n, err := io.ReadFull(f, start)
	if string(start[:n]) == "GGUF" {
		g, err := gguf.Open(name, open)
		if err != nil {
			return nil, fmt.Errorf("token: %w", err)
		}
		defer g.Close()
		return New(g, options...)
	}
	var data []byte
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(f, maxFile))
	}
	switch {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("token: %w", err)
	case len(data) == maxFile:
		return nil, fmt.Errorf("token: %s: got more than %d MiB, want a tokenizer", name, maxFile>>20)
	}
	t, err := parse(append(start[:n], data...), configOf(options))
	if err != nil {
		return nil, fmt.Errorf("token: %s: %w", name, err)
	}
	return t, nil
}

func parse(data []byte, c config) (*Tokenizer, error) {
	switch {
	case bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n\ufeff"), []byte("{")):
		return parseHF(data, c)
	case looksLikeRanks(data):
		return parseRanks(data, c)
	case looksLikeLlama2(data):
		return parseLlama2(data)
	}
	return nil, errors.New("is no tokenizer: want a GGUF file, a tokenizer.json, tiktoken's ranks or llama2.c's " +
		"tokenizer.bin")
}
