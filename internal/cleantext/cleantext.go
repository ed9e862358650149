// Package cleantext makes one clean line of a text that a client, a script or a peer chose. Line is for the places that show it:
// INFO, CLIENT LIST, logs and /metrics. There a line break would begin a line that the server never wrote, and a byte that is not
// UTF-8 would make a reader drop the whole page. Reply is for statuses and errors of RESP.
package cleantext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns the first limit bytes of text as one line of valid UTF-8. Each control character, and each byte that is not
// UTF-8, becomes '_'. It allocates nothing for a clean text that is short enough.
func Line(text string, limit int) string {
	if len(text) > limit {
		text = text[:limit]
		for n := 0; n < utf8.UTFMax && len(text) > 0 && !lastRuneWhole(text); n++ {
			text = text[:len(text)-1] // the cut was within a character
		}
	}
	if plain(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, text)
}

// plain reports whether a text has only printable characters of ASCII.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// lastRuneWhole reports whether the text does not end within a character. A byte that begins no character is whole.
func lastRuneWhole(text string) bool {
	for n := 1; n <= utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			return utf8.FullRuneInString(tail)
		}
	}
	return true
}

// Reply returns text as one line of RESP: a status or an error must not forge the reply behind it. Each byte of a line break
// becomes a blank, as in Redis; all others stay. It allocates nothing for a text without line breaks.
func Reply(text string) string {
	at := strings.IndexAny(text, "\r\n")
	if at < 0 {
		return text
	}
	b := []byte(text)
	for i := at; i < len(b); i++ {
		if b[i] == '\r' || b[i] == '\n' {
			b[i] = ' '
		}
	}
	return string(b)
}

// Word returns text as Line does, as the name of a field of INFO: without the characters that separate names, values and
// sections there, which become '_' as in Redis, and without blanks.
func Word(text string, limit int) string {
	return strings.Map(func(r rune) rune {
		if r == ':' || r == '#' || r == ' ' {
			return '_'
		}
		return r
	}, Line(text, limit))
}

// Visible reports whether b is visible ASCII without blanks, as names in CLIENT LIST must be.
func Visible(b []byte) bool {
	for _, x := range b {
		if x < '!' || x > '~' {
			return false
		}
	}
	return true
}
