package lua

import (
	"fmt"
	"strings"
)

// tokenKind is a kind of token: a byte for itself, or one of the following.
type tokenKind int

const (
	tokenAnd tokenKind = 257 + iota
	tokenBreak
	tokenDo
	tokenElse
	tokenElseif
	tokenEnd
	tokenFalse
	tokenFor
	tokenFunction
	tokenIf
	tokenIn
	tokenLocal
	tokenNil
	tokenNot
	tokenOr
	tokenRepeat
	tokenReturn
	tokenThen
	tokenTrue
	tokenUntil
	tokenWhile
	tokenConcat
	tokenDots
	tokenEqual
	tokenGreaterEqual
	tokenLessEqual
	tokenNotEqual
	tokenNumber
	tokenName
	tokenString
	tokenEOF
)

var tokenTexts = [...]string{
	"and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in",
	"local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
	"..", "...", "==", ">=", "<=", "~=", "<number>", "<name>", "<string>", "<eof>",
}

// String returns the kind as messages show it.
func (k tokenKind) String() string {
	switch {
	case k >= tokenAnd:
		return tokenTexts[k-tokenAnd]
	case k < ' ' || k == 127:
		return fmt.Sprintf("char(%d)", int(k))
	}
	return string([]byte{byte(k)})
}

// token is one token of a chunk.
type token struct {
	kind   tokenKind
	fence  int     // of a string: the length of its opening and closing delimiter
	begin  int     // where it stands in the chunk
	end    int     //
	text   *text   // of a name or string
	number float64 // of a number
}

// text is a string that the chunk contains, as a name or between quotes. Equal
// ones are one text.
type text struct {
	value Value // hashed
	// bound is the variable that the name stands for where the parser is: its
	// index among the active variables plus one; 0 is a global.
	bound int
}

func (t *text) String() string { return t.value.str() }

// lexer makes tokens of a chunk.
type lexer struct {
	chunk    string
	source   string // its name
	pos      int
	line     int // that of pos
	lastLine int // that of the end of the token before current
	current  token
	ahead    token // the one after current, if hasAhead
	hasAhead bool
	texts    map[string]*text
	fresh    []text // to make texts of
	buffer   []byte // the contents of a string with escapes

	tick     func() error // nil: none
	nextTick int          // the pos at which it is called next
}

// tickBytes is the number of bytes between two ticks.
const tickBytes = 4096

// maxSyntaxID is the size of a chunk's name in a syntax error: MAXSRC of Lua's
// llex.c. Messages of running programs show less of it; see ChunkID.
const maxSyntaxID = 80

// fail ends the compilation. Compile recovers the panic: a parser of recursive
// functions would otherwise be half checks, and no other kind of panic is caught.
func (l *lexer) fail(message string) {
	message = fmt.Sprintf("%s:%d: %s", chunkID(l.source, maxSyntaxID), l.line, message)
	panic(&Error{Value: String(message)})
}

// failNear is fail with the text that is wrong. Lua cuts it at a NUL.
func (l *lexer) failNear(message, near string) {
	near, _, _ = strings.Cut(near, "\x00")
	l.fail(message + " near '" + near + "'")
}

// failHere does the work of failNear for the current token. A NUL byte has no text.
func (l *lexer) failHere(message string) {
	switch t := l.current; t.kind {
	case 0:
		l.fail(message)
	case tokenName, tokenNumber:
		l.failNear(message, l.chunk[t.begin:t.end])
	case tokenString:
		l.failNear(message, l.chunk[t.begin:t.begin+t.fence]+t.text.String()+l.chunk[t.end-t.fence:t.end])
	default:
		l.failNear(message, t.kind.String())
	}
}

// next moves on by a token.
func (l *lexer) next() {
	l.lastLine = l.line
	if l.pos >= l.nextTick && l.tick != nil {
		l.nextTick = l.pos + tickBytes
		if err := l.tick(); err != nil {
			panic(interruption{err})
		}
	}
	if l.hasAhead {
		l.current, l.hasAhead = l.ahead, false
		return
	}
	l.current = l.scan()
}

// peek returns the kind of the token after the current one.
func (l *lexer) peek() tokenKind {
	if !l.hasAhead {
		l.ahead, l.hasAhead = l.scan(), true
	}
	return l.ahead.kind
}

// at returns the byte at pos+i, 0 behind the end.
func (l *lexer) at(i int) byte {
	if l.pos+i < len(l.chunk) {
		return l.chunk[l.pos+i]
	}
	return 0
}

func (l *lexer) intern(s string) *text {
	t := l.texts[s]
	if t == nil {
		// A copy, so that a short constant does not keep a long chunk.
		s = strings.Clone(s)
		if len(l.fresh) == 0 {
			l.fresh = make([]text, 32)
		}
		t, l.fresh = &l.fresh[0], l.fresh[1:]
		t.value = String(s).hashed()
		l.texts[s] = t
	}
	return t
}

// scan reads the token at pos, after white space and comments.
func (l *lexer) scan() token {
	for l.pos < len(l.chunk) {
		switch c := l.chunk[l.pos]; c {
		case '\n', '\r':
			l.newline()
		case ' ', '\t', '\v', '\f':
			l.pos++
		case '-':
			if l.at(1) != '-' {
				return l.symbol('-', 1)
			}
			l.comment()
		case '[':
			begin := l.pos
			switch level := l.bracket(); {
			case level >= 0:
				return l.longString(begin, level)
			case level == -1:
				return token{kind: '[', begin: begin, end: l.pos}
			}
			l.failNear("invalid long string delimiter", l.chunk[begin:l.pos])
		case '=':
			return l.orEqual(c, tokenEqual)
		case '<':
			return l.orEqual(c, tokenLessEqual)
		case '>':
			return l.orEqual(c, tokenGreaterEqual)
		case '~':
			return l.orEqual(c, tokenNotEqual)
		case '"', '\'':
			return l.quoted(c)
		case '.':
			dot := func(i int) bool { return l.at(i) == '.' || l.nul(i) }
			switch {
			case dot(1) && dot(2):
				return l.symbol(tokenDots, 3)
			case dot(1):
				return l.symbol(tokenConcat, 2)
			case isDigit(l.at(1)):
				return l.numeral()
			}
			return l.symbol('.', 1)
		default:
			switch {
			case isDigit(c):
				return l.numeral()
			case isNameByte(c):
				return l.word()
			}
			return l.symbol(tokenKind(c), 1)
		}
	}
	return l.symbol(tokenEOF, 0)
}

// isNameByte reports whether c may stand in a name: as in the C locale.
func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || isDigit(c)
}

func (l *lexer) symbol(kind tokenKind, n int) token {
	l.pos += n
	return token{kind: kind, begin: l.pos - n, end: l.pos}
}

func (l *lexer) orEqual(c byte, kind tokenKind) token {
	if l.at(1) == '=' {
		return l.symbol(kind, 2)
	}
	return l.symbol(tokenKind(c), 1)
}

// newline skips a line's end: \n, \r, \r\n or \n\r.
func (l *lexer) newline() {
	c := l.chunk[l.pos]
	l.pos++
	if d := l.at(0); l.pos < len(l.chunk) && d != c && (d == '\n' || d == '\r') {
		l.pos++
	}
	l.line++
}

// comment skips a comment.
func (l *lexer) comment() {
	l.pos += 2
	if l.at(0) == '[' {
		if level := l.bracket(); level >= 0 {
			l.long(level, "unfinished long comment")
			return
		}
	}
	for l.pos < len(l.chunk) && l.chunk[l.pos] != '\n' && l.chunk[l.pos] != '\r' {
		l.pos++
	}
}

// bracket skips a bracket and the equals signs behind it. It returns their
// number if the same bracket follows, which begins or ends a long string;
// otherwise it is -1 minus their number.
func (l *lexer) bracket() int {
	c := l.chunk[l.pos]
	level := 0
	for l.pos++; l.at(0) == '='; l.pos++ {
		level++
	}
	if l.at(0) == c {
		return level
	}
	return -1 - level
}

func (l *lexer) longString(begin, level int) token {
	s := l.long(level, "unfinished long string")
	return token{kind: tokenString, begin: begin, end: l.pos, fence: level + 2, text: l.intern(s)}
}

// long reads a long string or comment from its second opening bracket on, and
// returns its contents: without a newline at the beginning, and with others as
// \n. Inside [[...]] stands [[ for itself, as in Redis; stock Lua 5.1 refuses it.
func (l *lexer) long(level int, unfinished string) string {
	l.pos++
	if c := l.at(0); c == '\n' || c == '\r' {
		l.newline()
	}
	l.buffer = l.buffer[:0]
	plain := l.pos // what lies before is in the buffer
	for l.pos < len(l.chunk) {
		switch l.chunk[l.pos] {
		case ']':
			closing := l.pos
			if l.bracket() == level {
				l.pos++
				return l.contents(plain, closing)
			}
		case '\n', '\r':
			at := l.pos
			l.newline()
			if l.chunk[at:l.pos] != "\n" {
				l.buffer = append(append(l.buffer, l.chunk[plain:at]...), '\n')
				plain = l.pos
			}
		default:
			l.pos++
		}
	}
	l.failNear(unfinished, tokenEOF.String())
	return ""
}

// contents returns the buffer and what the chunk has from plain to end.
func (l *lexer) contents(plain, end int) string {
	if len(l.buffer) == 0 {
		return l.chunk[plain:end]
	}
	l.buffer = append(l.buffer, l.chunk[plain:end]...)
	return string(l.buffer)
}

// quoted reads a string between quotes.
func (l *lexer) quoted(quote byte) token {
	begin := l.pos
	l.pos++
	l.buffer = l.buffer[:0]
	plain := l.pos
	for l.pos < len(l.chunk) {
		switch c := l.chunk[l.pos]; c {
		case quote:
			s := l.contents(plain, l.pos)
			l.pos++
			return token{kind: tokenString, begin: begin, end: l.pos, fence: 1, text: l.intern(s)}
		case '\n', '\r':
			l.failNear("unfinished string", string(quote)+l.contents(plain, l.pos))
		case '\\':
			l.buffer = append(l.buffer, l.chunk[plain:l.pos]...)
			l.pos++
			l.escape(quote)
			plain = l.pos
		default:
			l.pos++
		}
	}
	l.failNear("unfinished string", tokenEOF.String())
	return token{}
}

// escape appends what stands behind a backslash.
func (l *lexer) escape(quote byte) {
	if l.pos == len(l.chunk) {
		return // the string is unfinished, which is what will be said
	}
	c := l.chunk[l.pos]
	switch c {
	case 'a':
		c = '\a'
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'v':
		c = '\v'
	case '\n', '\r':
		l.newline()
		l.buffer = append(l.buffer, '\n')
		return
	default:
		if isDigit(c) {
			code := 0
			for i := 0; i < 3 && isDigit(l.at(0)); i++ {
				code = 10*code + int(l.at(0)-'0')
				l.pos++
			}
			if code > 255 {
				l.failNear("escape sequence too large", string(quote)+string(l.buffer))
			}
			l.buffer = append(l.buffer, byte(code))
			return
		}
	}
	l.buffer = append(l.buffer, c)
	l.pos++
}

// nul reports whether the byte i from here is NUL. Lua asks C's strchr whether a
// byte is among some others, and strchr finds the NUL that ends them as well: in
// numerals and after a dot a NUL byte counts as one of the set.
func (l *lexer) nul(i int) bool { return l.pos+i < len(l.chunk) && l.chunk[l.pos+i] == 0 }

// numeral reads a number: what looks like one, and then C's strtod says.
func (l *lexer) numeral() token {
	begin := l.pos
	for isDigit(l.at(0)) || l.at(0) == '.' {
		l.pos++
	}
	if c := l.at(0); c == 'e' || c == 'E' || l.nul(0) {
		l.pos++
		if c := l.at(0); c == '+' || c == '-' || l.nul(0) {
			l.pos++
		}
	}
	for isNameByte(l.at(0)) {
		l.pos++
	}
	s, _, _ := strings.Cut(l.chunk[begin:l.pos], "\x00")
	f, ok := ParseNumber(s)
	if !ok {
		l.failNear("malformed number", s)
	}
	return token{kind: tokenNumber, begin: begin, end: l.pos, number: f}
}

// word reads a name or a reserved word.
func (l *lexer) word() token {
	begin := l.pos
	for l.pos < len(l.chunk) && isNameByte(l.chunk[l.pos]) {
		l.pos++
	}
	s := l.chunk[begin:l.pos]
	if kind := reserved(s); kind != tokenName {
		return token{kind: kind, begin: begin, end: l.pos}
	}
	return token{kind: tokenName, begin: begin, end: l.pos, text: l.intern(s)}
}

// reserved returns the kind of a word.
func reserved(s string) tokenKind {
	switch s {
	case "and":
		return tokenAnd
	case "break":
		return tokenBreak
	case "do":
		return tokenDo
	case "else":
		return tokenElse
	case "elseif":
		return tokenElseif
	case "end":
		return tokenEnd
	case "false":
		return tokenFalse
	case "for":
		return tokenFor
	case "function":
		return tokenFunction
	case "if":
		return tokenIf
	case "in":
		return tokenIn
	case "local":
		return tokenLocal
	case "nil":
		return tokenNil
	case "not":
		return tokenNot
	case "or":
		return tokenOr
	case "repeat":
		return tokenRepeat
	case "return":
		return tokenReturn
	case "then":
		return tokenThen
	case "true":
		return tokenTrue
	case "until":
		return tokenUntil
	case "while":
		return tokenWhile
	}
	return tokenName
}
