package token

import (
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core"
)

// A tokenizer that was not made by New says so, wherever its vocabulary is needed.
func TestZero(t *testing.T) {
	if _, err := New(nil); err == nil || !strings.Contains(err.Error(), "got no file") {
		t.Errorf("got %v", err)
	}
	var z Tokenizer
	var d Decoder
	for name, call := range map[string]func(){
		"encode": func() { z.Encode("text", AddSpecial) },
		"decode": func() { z.Decode([]int32{1}) },
		"len":    func() { z.Len() },
		"piece":  func() { z.Piece(1) },
		"id":     func() { z.ID("a") },
		"is_eog": func() { z.IsEOG(1) },
	} {
		var err error
		func() {
			defer core.Recover(&err)
			call()
		}()
		if err == nil || !strings.HasPrefix(err.Error(), name+": the tokenizer has no vocabulary; token.New") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	var err error
	func() {
		defer core.Recover(&err)
		d.Next(1)
	}()
	if err == nil {
		t.Error("a zero Decoder decodes")
	}
	if text := d.Flush(); text != "" {
		t.Errorf("a zero Decoder held back %q", text)
	}
	for range z.Merges() {
		t.Error("a zero Tokenizer merges")
	}
	if err := z.WriteHF(nil); err == nil {
		t.Error("a zero Tokenizer is written")
	}
}
