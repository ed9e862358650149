package lua

import (
	"math/bits"
	"strings"
)

// This file compiles a pattern of Lua to a list of items, which a backtracking matcher
// runs. The list has one item for each step of the pattern and no jumps. So the compiler
// decides what C's Lua decides during a match, such as the capture that a ")" closes.
// Errors are items too: Lua reports a malformed pattern only when a match reaches the
// error, and so does ebb.
//
//	"(%w+)=[a-f]-$"    open 0 | max 1 of %w, only | close 0 | char = | min of [a-f], only | finish | end
//
// "only" marks a repetition that can end at one position only, because the next item
// cannot match inside of it. It needs no backtracking. Start reading at matcher.next.

// maxCaptures is LUA_MAXCAPTURES.
const maxCaptures = 32

// charset is a set of bytes.
type charset [4]uint64

func (s *charset) has(c byte) bool { return s[c>>6]>>(c&63)&1 != 0 }
func (s *charset) add(c byte)      { s[c>>6] |= 1 << (c & 63) }

func (s *charset) addSet(t *charset) {
	for i := range s {
		s[i] |= t[i]
	}
}

func (s *charset) invert() {
	for i := range s {
		s[i] = ^s[i]
	}
}

// disjoint reports whether the sets have no byte in common.
func (s *charset) disjoint(t *charset) bool {
	return s[0]&t[0]|s[1]&t[1]|s[2]&t[2]|s[3]&t[3] == 0
}

// byteSets holds the sets of one byte. classSets holds the sets of "%" and a byte: a class
// of C's ctype in the C locale (a capital letter: the complement), or the byte itself.
// anySet is the set of ".".
var (
	byteSets  = makeByteSets()
	classSets = makeClassSets()
	anySet    = charset{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
)

func makeByteSets() *[256]charset {
	t := new([256]charset)
	for c := range t {
		t[c].add(byte(c))
	}
	return t
}

func makeClassSets() *[256]charset {
	classes := map[byte]func(c byte) bool{
		'a': func(c byte) bool { return (c|0x20)-'a' <= 25 },
		'c': func(c byte) bool { return c < ' ' || c == 0x7f },
		'd': isDigit,
		'l': func(c byte) bool { return c-'a' <= 25 },
		'p': func(c byte) bool { return c > ' ' && c < 0x7f && !isAlnum(c) },
		's': isSpace,
		'u': func(c byte) bool { return c-'A' <= 25 },
		'w': isAlnum,
		'x': isHexDigit,
		'z': func(c byte) bool { return c == 0 },
	}
	t := makeByteSets()
	for letter, in := range classes {
		small, capital := &t[letter], &t[toUpper(letter)]
		*small, *capital = charset{}, charset{}
		for c := range 256 {
			if in(byte(c)) {
				small.add(byte(c))
			} else {
				capital.add(byte(c))
			}
		}
	}
	return t
}

// pattern is a compiled pattern. It does not change.
type pattern struct {
	text     string
	items    []item
	anchored bool
	// literal is the text of the pattern if the pattern is plain text.
	literal string
	plain   bool
	// first is the set of bytes that can begin a match; nil if it is unknown. firstByte is
	// its byte if it has only one, and -1 otherwise.
	first     *charset
	firstByte int

	captures   int
	unfinished uint32 // bit k: capture k is never closed
	positions  uint32 // bit k: capture k is a position
	fail       string // the message of an itemFail
}

// item is one step of a pattern.
type item struct {
	op itemOp
	// only: a repetition ends where its run of bytes ends, or nowhere.
	only bool
	// arg is the byte of an itemByte, the number of a capture, or the opening byte of an
	// itemBalance, whose closing byte is arg2. In an itemMax, arg2 is the least number of
	// bytes. An itemMin with arg2 1 is ".-", and the byte arg comes after it.
	arg, arg2 byte
	set       *charset
	// follow is the set of bytes that can come after a repetition; nil if it is unknown.
	follow *charset
}

type itemOp uint8

const (
	itemEnd      itemOp = iota // the end of the pattern: a match
	itemByte                   // arg
	itemSet                    // one of set
	itemOptional               // "?": one of set, or nothing
	itemMax                    // "*" and "+": of set, as many as possible
	itemMin                    // "-": of set, as few as possible
	itemOpen                   // "(": begins capture arg
	itemClose                  // ")": ends capture arg
	itemPosition               // "()": capture arg
	itemBack                   // "%1": the text of capture arg
	itemBalance                // "%bxy"
	itemFrontier               // "%f[set]"
	itemFinish                 // "$" at the end
	itemNever                  // cannot match: "%1" of a position
	itemFail                   // an error
)

// compilePattern compiles a pattern, which ends at a zero byte, as in C. With anchors a
// "^" at its beginning is an anchor, otherwise it is an ordinary byte.
func compilePattern(text string, anchors bool) *pattern {
	p := &pattern{text: text, firstByte: -1}
	if i := strings.IndexByte(text, 0); i >= 0 {
		text = text[:i]
	}
	if anchors && text != "" && text[0] == '^' {
		p.anchored = true
		text = text[1:]
	}
	p.items = make([]item, 0, min(len(text), 16)+1)
	for text != "" {
		text = p.step(text)
	}
	p.add(item{op: itemEnd})
	for i := range p.items {
		p.lookAhead(i)
	}
	p.first, _ = p.mandatory(0)
	if p.first != nil {
		p.firstByte = single(p.first)
	}
	p.findLiteral()
	return p
}

func (p *pattern) add(i item) { p.items = append(p.items, i) }

// failure adds an error, which ends the pattern.
func (p *pattern) failure(message string) string {
	p.fail = message
	p.add(item{op: itemFail})
	return ""
}

// step compiles the first item of text and returns the rest.
func (p *pattern) step(text string) (rest string) {
	switch text[0] {
	case '(':
		return p.open(text)
	case ')':
		if p.unfinished == 0 {
			return p.failure("invalid pattern capture")
		}
		k := bits.Len32(p.unfinished) - 1
		p.unfinished &^= 1 << k
		p.add(item{op: itemClose, arg: byte(k)})
		return text[1:]
	case '$':
		if len(text) == 1 {
			p.add(item{op: itemFinish})
			return ""
		}
	case '%':
		if len(text) == 1 {
			break
		}
		switch c := text[1]; {
		case c == 'b':
			if len(text) < 4 {
				return p.failure("unbalanced pattern")
			}
			p.add(item{op: itemBalance, arg: text[2], arg2: text[3]})
			return text[4:]
		case c == 'f':
			return p.frontier(text[2:])
		case isDigit(c):
			return p.back(text)
		}
	}
	return p.repetition(text)
}

func (p *pattern) open(text string) (rest string) {
	k := p.captures
	if k == maxCaptures {
		return p.failure("too many captures")
	}
	p.captures++
	if len(text) > 1 && text[1] == ')' {
		p.positions |= 1 << k
		p.add(item{op: itemPosition, arg: byte(k)})
		return text[2:]
	}
	p.unfinished |= 1 << k
	p.add(item{op: itemOpen, arg: byte(k)})
	return text[1:]
}

func (p *pattern) frontier(text string) (rest string) {
	if text == "" || text[0] != '[' {
		return p.failure("missing '[' after '%f' in pattern")
	}
	end, message := classEnd(text)
	if message != "" {
		return p.failure(message)
	}
	p.add(item{op: itemFrontier, set: bracketSet(text[:end])})
	return text[end:]
}

func (p *pattern) back(text string) (rest string) {
	k := int(text[1]) - '1'
	switch {
	case k < 0 || k >= p.captures || p.unfinished>>k&1 != 0:
		return p.failure("invalid capture index")
	case p.positions>>k&1 != 0:
		p.add(item{op: itemNever})
	default:
		p.add(item{op: itemBack, arg: byte(k)})
	}
	return text[2:]
}

// repetition compiles a byte, class or set with its repetition ("*", "+", "-" or "?").
func (p *pattern) repetition(text string) (rest string) {
	end, message := classEnd(text)
	if message != "" {
		return p.failure(message)
	}
	var i item
	switch text[0] {
	case '.':
		i.set = &anySet
	case '%':
		i.set = &classSets[text[1]]
	case '[':
		i.set = bracketSet(text[:end])
	default:
		i.set = &byteSets[text[0]]
	}
	i.op = itemSet
	b := single(i.set)
	if b >= 0 {
		i.op, i.arg = itemByte, byte(b)
	}
	if end == len(text) {
		p.add(i)
		return ""
	}
	switch text[end] {
	case '?':
		i.op = itemOptional
	case '*':
		i.op = itemMax
	case '+':
		i.op, i.arg2 = itemMax, 1
	case '-':
		i.op = itemMin
	default:
		p.add(i)
		return text[end:]
	}
	p.add(i)
	return text[end+1:]
}

// classEnd returns the length of the byte, class or set with which text begins,
// or the message of an error.
func classEnd(text string) (n int, message string) {
	switch text[0] {
	case '%':
		if len(text) == 1 {
			return 0, "malformed pattern (ends with '%')"
		}
		return 2, ""
	case '[':
		i := 1
		if i < len(text) && text[i] == '^' {
			i++
		}
		// The first byte of a set may be a "]".
		for first := true; first || i < len(text) && text[i] != ']'; first = false {
			if i < len(text) && text[i] == '%' && i+1 < len(text) {
				i++
			}
			i++
		}
		if i >= len(text) {
			return 0, "malformed pattern (missing ']')"
		}
		return i + 1, ""
	}
	return 1, ""
}

// bracketSet returns the set that text describes: "[...]".
func bracketSet(text string) *charset {
	set := new(charset)
	in := text[1 : len(text)-1]
	inverted := in != "" && in[0] == '^'
	if inverted {
		in = in[1:]
	}
	for i := 0; i < len(in); i++ {
		switch {
		case in[i] == '%':
			// A "%" that does not begin a pair can be the last byte, as in "[+-%%]". It then
			// escapes the bracket, which also ends the set.
			if i++; i < len(in) {
				set.addSet(&classSets[in[i]])
			} else {
				set.add(']')
			}
		case i+2 < len(in) && in[i+1] == '-':
			for c := int(in[i]); c <= int(in[i+2]); c++ {
				set.add(byte(c))
			}
			i += 2
		default:
			set.add(in[i])
		}
	}
	if inverted {
		set.invert()
	}
	return set
}

// single returns the byte of a set that has one byte, and -1 for other sets.
func single(s *charset) int {
	for i, w := range s {
		if w != 0 {
			c := i<<6 | bits.TrailingZeros64(w)
			if *s == byteSets[c] {
				return c
			}
			return -1
		}
	}
	return -1
}

// lookAhead computes which bytes can come after item i, if the item is a repetition.
func (p *pattern) lookAhead(i int) {
	it := &p.items[i]
	if it.op != itemMax && it.op != itemMin && it.op != itemOptional {
		return
	}
	follow, last := p.mandatory(i + 1)
	it.follow = follow
	switch {
	case follow != nil:
		it.only = it.set.disjoint(follow)
		if b := single(follow); it.op == itemMin && it.set == &anySet && b >= 0 {
			it.arg, it.arg2 = byte(b), 1
		}
	case last.op == itemFinish:
		it.only = true
	case last.op == itemEnd:
		it.only = it.op != itemMin
	}
}

// mandatory returns the set that must contain the text's next byte at item i. It returns
// nil and the responsible item if the pattern does not determine such a set.
func (p *pattern) mandatory(i int) (*charset, *item) {
	for {
		it := &p.items[i]
		switch it.op {
		case itemOpen, itemClose, itemPosition:
			i++
			continue
		case itemByte, itemSet:
			return it.set, it
		case itemMax:
			if it.arg2 > 0 {
				return it.set, it
			}
		}
		return nil, it
	}
}

func (p *pattern) findLiteral() {
	if p.anchored {
		return
	}
	n := len(p.items) - 1
	for _, it := range p.items[:n] {
		if it.op != itemByte {
			return
		}
	}
	if n == 0 {
		return // the matcher handles the empty pattern, which matches everywhere
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = p.items[i].arg
	}
	p.plain, p.literal = true, string(b)
}
