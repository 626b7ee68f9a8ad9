package repl

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/chzyer/readline"
)

// completer is what the tab key does in a Terminal: it indents a line; behind a name that is begun it adds what all
// names that begin so have in common, or lists them above the prompt. In what is pasted it indents.
type completer struct{ t *Terminal }

// begun matches the name, or the attributes of one, that a line ends with, and what is before it.
var begun = regexp.MustCompile(`(?:^|[^\pL\d_.])([\pL_][\pL\d_]*(?:\.[\pL_][\pL\d_]*)*\.?)$`)

// Do implements readline.AutoCompleter.
func (c completer) Do(line []rune, pos int) (completions [][]rune, length int) {
	before := string(line[:pos])
	if strings.TrimSpace(before) == "" {
		return [][]rune{[]rune("    ")}, 0
	}
	m := begun.FindStringSubmatch(before)
	if m == nil || !c.t.asks.Load() || c.t.Pasting() {
		return nil, 0
	}
	names := c.t.names(m[1])
	if len(names) == 0 {
		return nil, 0
	}
	typed := m[1][strings.LastIndexByte(m[1], '.')+1:]
	if more := strings.TrimPrefix(common(names), typed); more != "" {
		return [][]rune{[]rune(more)}, utf8.RuneCountInString(typed)
	}
	if len(names) > 1 {
		fmt.Fprint(c.t.rl.Stdout(), columns(names, readline.GetScreenWidth()))
	}
	return nil, 0
}

// common is what all of the names begin with.
func common(names []string) string {
	same := names[0]
	for _, name := range names[1:] {
		for !strings.HasPrefix(name, same) {
			_, n := utf8.DecodeLastRuneInString(same)
			same = same[:len(same)-n]
		}
	}
	return same
}

// columns sets the names in columns of one width, on lines of at most width characters where they fit.
func columns(names []string, width int) string {
	wide := 0
	for _, name := range names {
		wide = max(wide, utf8.RuneCountInString(name)+2)
	}
	perLine := max(1, (width-1)/wide)
	rows := (len(names) + perLine - 1) / perLine
	var b strings.Builder
	for row := range rows {
		for i := row; i < len(names); i += rows {
			if i+rows < len(names) {
				fmt.Fprintf(&b, "%-*s", wide, names[i])
			} else {
				b.WriteString(names[i])
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
