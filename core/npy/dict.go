package npy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// parse reads the header's dictionary, a Python literal with the keys descr, fortran_order and shape.
func (a *Array) parse(dict string) (descr string, err error) {
	p := parser{rest: dict}
	seen := map[string]bool{}
	p.expect("{")
	for p.err == nil && !p.accept("}") {
		key := p.text()
		p.expect(":")
		if seen[key] {
			p.fail("%q occurs twice", clip(key))
		}
		seen[key] = true
		switch key {
		case "descr":
			descr = p.descr()
		case "fortran_order":
			a.Fortran = p.truth()
		case "shape":
			a.Shape = p.tuple()
		default:
			p.fail("%q is unknown", clip(key))
		}
		if !p.accept(",") && !p.next("}") {
			p.fail("want a comma before %q", clip(p.rest))
		}
	}
	if p.err == nil && strings.TrimSpace(p.rest) != "" {
		p.fail("something follows: %q", clip(p.rest))
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if p.err == nil && !seen[key] {
			p.fail("%q is missing", key)
		}
	}
	if p.err != nil {
		return "", fmt.Errorf("the header is damaged: %w", p.err)
	}
	return descr, nil
}

// parser reads tokens until the first error, after which it reads nothing.
type parser struct {
	rest string
	err  error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// next tells whether the token follows.
func (p *parser) next(token string) bool {
	p.rest = strings.TrimLeft(p.rest, " \t\n")
	return p.err == nil && strings.HasPrefix(p.rest, token)
}

func (p *parser) accept(token string) bool {
	if !p.next(token) {
		return false
	}
	p.rest = p.rest[len(token):]
	return true
}

func (p *parser) expect(token string) {
	if !p.accept(token) {
		p.fail("want %s before %q", token, clip(p.rest))
	}
}

// text is a string without escapes.
func (p *parser) text() string {
	for _, quote := range []string{"'", `"`} {
		if p.accept(quote) {
			s, rest, ok := strings.Cut(p.rest, quote)
			if !ok || strings.ContainsAny(s, "\\\n") {
				p.fail("want a plain string before %q", clip(p.rest))
			}
			p.rest = rest
			return s
		}
	}
	p.fail("want a string before %q", clip(p.rest))
	return ""
}

// descr is an element type; of one with fields, its text.
func (p *parser) descr() string {
	if !p.next("[") {
		return p.text()
	}
	end := strings.LastIndexByte(p.rest, ']')
	if end < 0 {
		p.fail("want ] after %q", clip(p.rest))
		return ""
	}
	s := p.rest[:end+1]
	p.rest = p.rest[end+1:]
	return s
}

func (p *parser) truth() bool {
	if p.accept("True") {
		return true
	}
	p.expect("False")
	return false
}

// tuple is sizes in brackets.
func (p *parser) tuple() (sizes []int) {
	p.expect("(")
	for p.err == nil && !p.accept(")") {
		digits := p.rest
		if end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
			digits = digits[:end]
		}
		n, err := strconv.Atoi(digits)
		if err != nil {
			if errors.Is(err, strconv.ErrRange) {
				p.fail("the size %s is too large", clip(digits))
			}
			p.fail("want a size before %q", clip(p.rest))
			return nil
		}
		sizes = append(sizes, n)
		p.rest = strings.TrimPrefix(p.rest[len(digits):], "L") // Python 2 wrote long integers so
		if len(sizes) > maxRank {
			p.fail("there are more than %d sizes", maxRank)
		}
		if !p.accept(",") && !p.next(")") {
			p.fail("want a comma before %q", clip(p.rest))
		}
	}
	return sizes
}
