package token

import (
	"fmt"
	"slices"
	"strings"
)

// pre is what a value of tokenizer.ggml.pre means.
type pre struct {
	name   string // the first id that means this
	stages []splitter
	whole  bool // a piece that is a token is that token, whatever the merges say
	addBOS bool // where the metadata does not say
	noBOS  bool // the vocabulary has no BOS where the metadata does not say
	raw    bool // tokens are text, not bytes written as characters, and bytes are <0x00> to <0xFF>
	escape bool // a space is "▁" in tokens
	lines  bool // a piece of line ends that is a token is that token
}

// gpt4 is what GPT-4, Llama 3 and Qwen have in common.
var gpt4 = words{before: true, tail: "\r\n"}

func (w words) by(digits int) words      { w.digits = digits; return w }
func (w words) tailed(tail string) words { w.tail = tail; return w }
func (w words) pre() pre                 { return pre{stages: []splitter{w.splitter()}} }

func stages(all ...splitter) pre { return pre{stages: all} }

// marked is letters and marks alike, with contractions after: what llama.cpp makes of the expressions in which
// capitals are told from small letters by category.
var marked = words{letters: isLetter | isMark, after: true, tail: "\r\n/"}

// cased is GPT-4o's.
var cased = words{cased: true, after: true, tail: "\r\n/"}

// preTokenizers are the ids that llama.cpp knows. The first id of a line names the line.
var preTokenizers = []struct {
	ids string
	pre pre
}{
	{"default", stages(marksAnd(""), gpt2, rows(isNumber), digits3)},
	{"gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert jina-v1-en jina-v2-code " +
		"roberta-bpe exaone4 mpt olmo jais trillion granite-docling", stages(gpt2)},
	{"starcoder refact command-r smollm codeshell exaone minerva-7b mellum2", stages(each(isNumber), gpt2)},
	{"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
		gpt4.by(3).pre().with(pre{whole: true, addBOS: true})},
	{"dbrx smaug-bpe", gpt4.by(3).pre()},
	{"glm4 chatglm-bpe", gpt4.by(3).pre().with(pre{noBOS: true})},
	{"qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2 bailingmoe bailingmoe2 llada-moe",
		gpt4.by(1).pre()},
	{"qwen35", words{letters: isLetter | isMark, others: isSpace | isLetter | isMark | isNumber, digits: 1,
		before: true, tail: "\r\n"}.pre()},
	{"seed-coder", gpt4.by(1).tailed("").pre()},
	{"ufakzeka", words{digits: 1, tail: "\r\n"}.pre()},
	{"minicpm5", stages(numbersBy3, gpt4.by(0).splitter()).with(pre{whole: true})},
	{"laguna", stages(byLine, gpt4.by(1).splitter())},
	{"jais-2", words{digits: 3, before: true, tail: "\r\n", spaces: halvings}.pre()},
	{"exaone-moe", stages(exaone)},
	{"gpt-4o llama4 kanana2 talkie minimax-m2", cased.by(3).pre()},
	{"granite-embed-multi-97m", words{letters: isLetter | isMark, cased: true, after: true, digits: 3,
		tail: "\r\n/"}.pre().with(pre{whole: true})},
	{"tekken", words{cased: true, digits: 1, tail: "\r\n/"}.pre().with(pre{whole: true, addBOS: true})},
	{"youtu", stages(youtuScripts, marked.by(1).splitter()).with(pre{whole: true})},
	{"tiny_aya cohere2moe", stages(numbersFromRight, marked.by(3).splitter())},
	{"kimi-k2", stages(kimi)},
	{"deepseek-llm", stages(oneLineEnd, spacedIn(deepseekLetters), spacedIn(deepseekMarks), spacesAtEnd, rowsIn(cjk),
		rows(isNumber))},
	{"deepseek-coder", stages(oneLineEnd, spacedRows(isLetter), spacedRows(isPunct), rowsIn(cjk), each(isNumber))},
	{"deepseek-v3 hunyuan-dense joyai-llm hy_v4", stages(numbersBy3, rowsIn(hanKana), deepseek3)},
	{"spark2_5", stages(numbersBy3, rowsIn(hanKana), spark, each(isNumber))},
	{"afmoe", stages(numbersFromRight, rowsIn(asian), deepseek3)},
	{"falcon", stages(marksAnd("`"), gpt2, digits3)},
	{"bloom poro-chat gpt3-finnish", stages(bloom)},
	{"viking", stages(bloom, each(isNumber))},
	{"chameleon", stages(sentinels, imageTokens, indents, each(isNumber), oneMark, gpt2).with(pre{addBOS: true})},
	{"superbpe", stages(rows(isNumber), digitsFromRight)},
	{"gemma4 granite-embed-multi-311m", stages(byLine).with(pre{raw: true, escape: true, lines: true})},
	{"sarvam-moe", stages(byLine).with(pre{raw: true, escape: true})},
	{"whitespace", stages(notSpaces).with(pre{raw: true})},
}

// with is p with the flags of q.
func (p pre) with(q pre) pre {
	q.stages = p.stages
	return q
}

// preTokenizer is the pre-tokenizer called id.
func preTokenizer(id string) (pre, error) {
	for _, p := range preTokenizers {
		if ids := strings.Fields(p.ids); slices.Contains(ids, id) {
			p.pre.name = ids[0]
			return p.pre, nil
		}
	}
	return pre{}, fmt.Errorf("got the pre-tokenizer %q, want one of %s; name one that is alike, as in pre=\"qwen2\"",
		id, strings.Join(PreTokenizers(), ", "))
}

// PreTokenizers lists the values of tokenizer.ggml.pre that byte-level BPE knows, in order.
func PreTokenizers() []string {
	var ids []string
	for _, p := range preTokenizers {
		ids = append(ids, strings.Fields(p.ids)...)
	}
	slices.Sort(ids)
	return ids
}

// cutter cuts texts into pieces. It is for one goroutine.
type cutter struct {
	stages []splitter
	texts  []text
}

func newCutter(stages []splitter) *cutter {
	c := &cutter{stages: stages, texts: make([]text, len(stages))}
	for i := range c.texts {
		c.texts[i] = newText("")
	}
	return c
}

// cut calls yield for every piece of s, in order, until it returns false.
func (c *cutter) cut(s string, yield func(piece string) bool) bool { return c.cutAt(0, s, yield) }

func (c *cutter) cutAt(stage int, s string, yield func(piece string) bool) bool {
	t := &c.texts[stage]
	t.set(s)
	for len(t.s) > 0 {
		n := c.stages[stage](t)
		piece := t.s[:n]
		t.s = t.s[n:]
		ok := true
		if stage+1 < len(c.stages) {
			ok = c.cutAt(stage+1, piece, yield)
		} else {
			ok = yield(piece)
		}
		if !ok {
			return false
		}
	}
	return true
}
