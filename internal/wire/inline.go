package wire

// inline parses a request that a person typed: words on a line that ends in LF or CRLF. A
// word can be quoted. The words alias buf; on a line with quotes they alias p.text.
func (p *Parser) inline(buf []byte) (n int, err error) {
	line, err := p.line(buf, '\n', ErrInlineTooLong)
	if err != nil {
		return 0, err
	}
	if len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	var ok bool
	p.args, p.text, ok = splitInline(p.args[:0], p.text[:0], line)
	if !ok {
		return 0, ErrUnbalancedQuotes
	}
	return p.pos, nil
}

// SplitArgs splits a line into words by the rules of inline requests, which
// redis-cli's prompt and redis.conf share:
//
//	plain words    separated by white space
//	"a\n\x00\"b"   \n \r \t \b \a and \xHH decoded, any other \c is c
//	'a\'b'         only \' is special
//
// White space or the end of the line must follow a closing quote. ok is false if a quote
// is not closed in this way. The words do not alias line.
func SplitArgs(line string) (args []string, ok bool) {
	words, _, ok := splitInline(nil, nil, []byte(line))
	if !ok {
		return nil, false
	}
	args = make([]string, len(words))
	for i, w := range words {
		args[i] = string(w)
	}
	return args, true
}

// splitInline appends the words of line to args. It decodes words with quotes into text.
// text gets a capacity of len(line) bytes before the first word, which is always enough,
// so words that are decoded already never move.
func splitInline(args [][]byte, text, line []byte) (_ [][]byte, _ []byte, ok bool) {
	i := 0
	for {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return args, text, true
		}
		start := i
		for i < len(line) && !endsWord(line[i]) && line[i] != '"' && line[i] != '\'' {
			i++
		}
		if i == len(line) || endsWord(line[i]) {
			args = append(args, line[start:i:i])
			continue
		}
		if cap(text) < len(line) {
			text = make([]byte, 0, len(line))
		}
		from := len(text)
		text = append(text, line[start:i]...)
		text, i, ok = unquote(text, line, i)
		if !ok {
			return args, text, false
		}
		args = append(args, text[from:len(text):len(text)])
	}
}

// unquote appends the rest of the word whose first quote is at i, and returns the position
// after the word.
func unquote(text, line []byte, i int) (_ []byte, next int, ok bool) {
	for i < len(line) && !endsWord(line[i]) {
		c := line[i]
		i++
		switch c {
		case '"':
			text, i, ok = doubleQuoted(text, line, i)
		case '\'':
			text, i, ok = singleQuoted(text, line, i)
		default:
			text = append(text, c)
			continue
		}
		if !ok {
			return text, i, false
		}
		return text, i, i == len(line) || isSpace(line[i])
	}
	return text, i, true
}

// doubleQuoted appends the text between double quotes, which begins at i, and returns the
// position after the closing quote.
func doubleQuoted(text, line []byte, i int) (_ []byte, next int, ok bool) {
	for ; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '"':
			return text, i + 1, true
		case c != '\\' || i+1 == len(line):
			text = append(text, c)
		case line[i+1] == 'x' && i+3 < len(line) && isHex(line[i+2]) && isHex(line[i+3]):
			text = append(text, hexValue(line[i+2])<<4|hexValue(line[i+3]))
			i += 3
		default:
			i++
			text = append(text, unescape(line[i]))
		}
	}
	return text, i, false
}

// singleQuoted does the same for single quotes.
func singleQuoted(text, line []byte, i int) (_ []byte, next int, ok bool) {
	for ; i < len(line); i++ {
		switch {
		case line[i] == '\'':
			return text, i + 1, true
		case line[i] == '\\' && i+1 < len(line) && line[i+1] == '\'':
			i++
		}
		text = append(text, line[i])
	}
	return text, i, false
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

func isHex(c byte) bool { return c-'0' <= 9 || c|0x20 >= 'a' && c|0x20 <= 'f' }

func hexValue(c byte) byte {
	if c-'0' <= 9 {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// isSpace is C's isspace in the POSIX locale.
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// endsWord reports whether c ends a word outside quotes. It differs from isSpace: vertical
// tab and form feed separate words but do not end one.
func endsWord(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t'
}
