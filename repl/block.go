package repl

import (
	"context"
	"errors"
	"io"
	"strings"

	"go.starlark.net/syntax"
)

const (
	promptFirst = ">>> "
	promptMore  = "... "
)

// A blockReader puts lines together to blocks: one simple statement, or one compound statement up to the
// blank line, unless that was pasted, or the statement that follows it.
type blockReader struct {
	editor Editor
	ahead  string // a line that was read with the block before but belongs to the next one
}

// next returns the text of the next block, which may not be valid Starlark. At the end of the input it
// returns io.EOF; after Ctrl-C, ErrInterrupt and what had been typed of the block.
func (b *blockReader) next() (string, error) {
	var (
		lines   []string // the block
		parsed  []int    // for each line the parser saw, its index in lines
		ended   bool
		failure error
	)
	more := func() ([]byte, error) {
		for !ended {
			line, err := b.line(len(lines) > 0)
			if ended = errors.Is(err, io.EOF) && len(lines) > 0; ended {
				break
			}
			if err != nil {
				lines, failure = append(lines, line), err
				return nil, err
			}
			lines = append(lines, line)
			// The parser would take a comment in an indented block for the blank line that ends it. In what is
			// pasted a blank line ends nothing: what is behind it may still be of the block.
			if len(lines) > 1 && (isComment(line) || strings.TrimSpace(line) == "" && b.pasting()) {
				continue
			}
			parsed = append(parsed, len(lines)-1)
			if len(lines) == 1 {
				line = line[len(clocking.FindString(line)):]
			}
			return []byte(line + "\n"), nil
		}
		return nil, nil // what is there is the block
	}
	f, err := (&syntax.FileOptions{}).ParseCompoundStmt("", more)
	if failure != nil {
		return strings.Join(lines, "\n"), failure
	}
	// The parser knows that a compound statement has ended when it sees the start of the next.
	if last := len(lines) - 1; err == nil && len(f.Stmts) > 0 && len(parsed) > 0 && parsed[len(parsed)-1] == last {
		_, end := f.Stmts[len(f.Stmts)-1].Span()
		if int(end.Line) < len(parsed) && strings.TrimSpace(lines[last]) != "" && isCompound(f.Stmts[0]) {
			b.ahead, lines = lines[last], lines[:last]
		}
	}
	return strings.Join(lines, "\n") + "\n", nil
}

func (b *blockReader) line(more bool) (string, error) {
	if line := b.ahead; line != "" {
		b.ahead = ""
		return line, nil
	}
	if more {
		return b.editor.ReadLine(context.Background(), promptMore)
	}
	return b.editor.ReadLine(context.Background(), promptFirst)
}

// pasting reports whether the last line was pasted, with more to come.
func (b *blockReader) pasting() bool {
	p, ok := b.editor.(Paster)
	return ok && p.Pasting()
}

// isComment reports whether the line has only a comment and cannot end a string begun before it.
func isComment(line string) bool {
	return strings.HasPrefix(strings.TrimSpace(line), "#") &&
		!strings.Contains(line, `"""`) && !strings.Contains(line, `'''`)
}

func isCompound(s syntax.Stmt) bool {
	switch s.(type) {
	case *syntax.DefStmt, *syntax.IfStmt, *syntax.ForStmt, *syntax.WhileStmt:
		return true
	}
	return false
}
