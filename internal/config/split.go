package config

import (
	"fmt"
	"strings"
)

// Words splits a line into words by the syntax of redis.conf. ok is false if the quotes
// are not balanced.
func Words(line string) (words []string, ok bool) { return splitLine(line) }

// splitLine splits a line into words by the syntax of redis.conf. Blanks separate words.
// In "double quotes", \n \r \t \b \a \xHH and \ before any other byte are escapes; in
// 'single quotes', only \' is. The word must end after a closing quote. ok is false if the
// quotes are not balanced. A zero byte ends the line.
func splitLine(line string) (words []string, ok bool) {
	if zero := strings.IndexByte(line, 0); zero >= 0 {
		line = line[:zero]
	}
	for i := 0; ; {
		for i < len(line) && isBlank(line[i]) {
			i++
		}
		if i == len(line) {
			return words, true
		}
		word, next, ok := nextWord(line, i)
		if !ok {
			return nil, false
		}
		words = append(words, word)
		i = next
	}
}

// nextWord reads the word that starts at i and returns where it ends. Quotes
// may open in the middle of a word.
func nextWord(line string, i int) (word string, next int, ok bool) {
	var b strings.Builder
	for i < len(line) && !isBlank(line[i]) {
		switch line[i] {
		case '"', '\'':
			end, ok := quoted(&b, line, i+1, line[i])
			if !ok || end < len(line) && !isBlank(line[end]) {
				return "", 0, false
			}
			return b.String(), end, true
		default:
			b.WriteByte(line[i])
			i++
		}
	}
	return b.String(), i, true
}

// quoted copies up to the closing quote and returns the index after it.
func quoted(b *strings.Builder, line string, i int, quote byte) (next int, ok bool) {
	for ; i < len(line); i++ {
		c := line[i]
		switch {
		case c == quote:
			return i + 1, true
		case c != '\\' || i+1 == len(line):
			b.WriteByte(c)
		case quote == '\'':
			if line[i+1] == '\'' {
				i++
			}
			b.WriteByte(line[i])
		case line[i+1] == 'x' && i+3 < len(line) && isHex(line[i+2]) && isHex(line[i+3]):
			b.WriteByte(hex(line[i+2])<<4 | hex(line[i+3]))
			i += 3
		default:
			i++
			b.WriteByte(unescape(line[i]))
		}
	}
	return 0, false
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

// Quote writes a word so that splitLine reads it back, byte for byte.
func Quote(s string) string {
	b := make([]byte, 0, len(s)+2)
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		case '\a':
			b = append(b, `\a`...)
		case '\b':
			b = append(b, `\b`...)
		default:
			if c < ' ' || c > '~' {
				b = fmt.Appendf(b, `\x%02x`, c)
			} else {
				b = append(b, c)
			}
		}
	}
	return string(append(b, '"'))
}

func isBlank(c byte) bool {
	return c == ' ' || '\t' <= c && c <= '\r'
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func hex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}
