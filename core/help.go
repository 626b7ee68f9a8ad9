package core

import (
	"embed"
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// sources is this package's own text, in which the documentation of every operation stands.
//
//go:embed *.go
var sources embed.FS

// Doc is the documentation of an operation, from the comment on its argument struct.
type Doc struct {
	Summary string // the first sentence
	Text    string // the whole comment but the example, wrapped
	Example string // a script
}

// Doc reads the operation's documentation. The one source file is parsed now, never at start.
func (i *Info) Doc() (Doc, error) {
	if d, ok := i.blank.(interface{ Doc() string }); ok {
		return splitDoc(d.Doc()), nil
	}
	name := filepath.Base(i.File)
	src, err := sources.ReadFile(name)
	if err != nil {
		return Doc{}, err
	}
	f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments)
	if err != nil {
		return Doc{}, err
	}
	text := commentOf(f, i.argType())
	if text == "" {
		return Doc{}, fmt.Errorf("core: %s has no comment on its argument struct", i.Name)
	}
	return splitDoc(i.Name + strings.TrimPrefix(text, i.argType())), nil // a script knows no Go name
}

// AsIn is the operation's example as a hint; "" if it has none.
func (i *Info) AsIn() string {
	doc, err := i.Doc()
	if err != nil || doc.Example == "" {
		return ""
	}
	return "as in: " + strings.Join(strings.Split(strings.TrimSpace(doc.Example), "\n"), "; ")
}

// argType is the Go name of the argument struct.
func (i *Info) argType() string {
	name := fmt.Sprintf("%T", i.blank)
	return name[strings.LastIndexByte(name, '.')+1:]
}

func commentOf(f *ast.File, typeName string) string {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			continue
		}
		for _, spec := range g.Specs {
			ts := spec.(*ast.TypeSpec)
			if ts.Name.Name != typeName {
				continue
			}
			if ts.Doc != nil {
				return ts.Doc.Text()
			}
			return g.Doc.Text()
		}
	}
	return ""
}

// splitDoc takes the example, an indented block behind "Example:", from the rest.
func splitDoc(text string) Doc {
	var p comment.Parser
	parsed := p.Parse(text)
	var d Doc
	var kept []comment.Block
	for k, block := range parsed.Content {
		code, ok := block.(*comment.Code)
		if ok && k > 0 && plain(parsed.Content[k-1]) == "Example:" {
			d.Example = code.Text
			kept = kept[:len(kept)-1]
			continue
		}
		kept = append(kept, block)
	}
	if len(kept) > 0 {
		d.Summary, _, _ = strings.Cut(plain(kept[0])+" ", ". ")
		d.Summary = strings.TrimSuffix(strings.TrimSpace(d.Summary), ".") + "."
	}
	printer := comment.Printer{TextWidth: 100}
	d.Text = string(printer.Text(&comment.Doc{Content: kept}))
	return d
}

func plain(b comment.Block) string {
	para, ok := b.(*comment.Paragraph)
	if !ok {
		return ""
	}
	var s strings.Builder
	for _, t := range para.Text {
		if t, ok := t.(comment.Plain); ok {
			s.WriteString(string(t))
		}
	}
	return strings.Join(strings.Fields(s.String()), " ")
}
