package repl

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// maxHistoryBytes is the size at which the history file is put aside; with the one put aside before it, at
// most about twice as much is kept.
const maxHistoryBytes = 1 << 20

// A History is the blocks entered at the prompt, oldest first, and the file that keeps them.
//
// The file has one JSON object a line, so that a block of several lines is one entry and fields may be
// added. Each block is appended at once, by one write, before it runs: a crash loses nothing, and several
// prompts may share the file. A file that has grown too large is renamed, never rewritten, for the same reason.
type History struct {
	path   string // "" keeps the blocks in memory only
	blocks []string
}

type historyLine struct {
	Block string `json:"block"`
}

// OpenHistory reads the blocks kept in the file at path, which need not exist. Lines that are not entries
// of a history are left alone and skipped. With an error the history still works: it has what could be
// read and keeps what follows in memory.
func OpenHistory(path string) (*History, error) {
	older, errOlder := readHistory(olderHistory(path))
	newer, errNewer := readHistory(path)
	h := &History{path: path, blocks: append(older, newer...)}
	err := errors.Join(errOlder, errNewer, os.MkdirAll(filepath.Dir(path), 0o700))
	if err != nil {
		h.path = ""
	}
	return h, err
}

func olderHistory(path string) string { return path + ".old" }

func readHistory(path string) (blocks []string, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		var entry historyLine
		if json.Unmarshal(line, &entry) == nil && entry.Block != "" {
			blocks = append(blocks, entry.Block)
		}
	}
	return blocks, nil
}

// Blocks returns the blocks, oldest first.
func (h *History) Blocks() []string { return slices.Clone(h.blocks) }

// Add appends a block unless it equals the one before it. After an error of the file the block is still
// in memory, and the file is not tried again.
func (h *History) Add(block string) error {
	if block == "" || len(h.blocks) > 0 && h.blocks[len(h.blocks)-1] == block {
		return nil
	}
	h.blocks = append(h.blocks, block)
	if h.path == "" {
		return nil
	}
	err := h.write(block)
	if err != nil {
		h.path = ""
	}
	return err
}

func (h *History) write(block string) error {
	info, err := os.Stat(h.path)
	if err == nil && info.Size() > maxHistoryBytes {
		if err := os.Rename(h.path, olderHistory(h.path)); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	line, err := json.Marshal(historyLine{block})
	if err != nil {
		return err
	}
	// A line torn by a full disk must not swallow this one.
	if torn(f) {
		line = append([]byte{'\n'}, line...)
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		return err
	}
	return f.Close()
}

func torn(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	last := make([]byte, 1)
	_, err = f.ReadAt(last, info.Size()-1)
	return err == nil && last[0] != '\n'
}
