// Package glob matches Redis's patterns: those of KEYS, SCAN, PSUBSCRIBE, ACL.
//
//   - any bytes, also none          [abc]  one of these bytes
//     ?        one byte                      [a-z]  one byte of a range
//     \x       the byte x itself             [^a]   one byte not of these
//
// Patterns and strings are bytes, not runes. Start reading at match.
package glob

// Match reports whether s matches the pattern. It costs O(len(pattern)) for a
// pattern without "*", O(len(pattern) x len(s)) at worst, and allocates nothing.
func Match[P, S string | []byte](pattern P, s S) bool { return match(pattern, s, 0) }

// MatchFold does the work of Match without regard to the case of ASCII letters.
func MatchFold[P, S string | []byte](pattern P, s S) bool { return match(pattern, s, folded) }

// These are the flags of match.
const (
	folded   = 0x20 // ignore the case of ASCII letters; the value is the bit in which the cases differ
	prepared = 0x01 // the pattern is Pattern.code, in which sets stand for long classes
)

// match remembers the last "*". On a mismatch, it lets this star match one byte more. A return to
// earlier stars cannot help, because the last star reaches every position that they could reach.
func match[P, S string | []byte](p P, s S, how byte) bool {
	i, j := 0, 0
	starI, starJ := -1, 0
	for j < len(s) {
		if i < len(p) {
			switch c := p[i]; {
			case c == '*':
				if rest := p[i+1:]; how&folded == 0 && plain(rest) {
					return len(rest) <= len(s)-j && ends(s[j:], rest)
				}
				starI, starJ = i, j
				i++
				continue
			case c == s[j] && !special(c):
				i, j = i+1, j+1
				continue
			}
		}
		if n := one(p, i, s[j], how); n > 0 {
			i, j = i+n, j+1
			continue
		}
		if starI < 0 {
			return false
		}
		starJ++
		i, j = starI+1, starJ
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// special reports whether a byte of a pattern may have a meaning of its own.
func special(c byte) bool { return c == '*' || c == '?' || c == '[' || c == '\\' || c == setMark }

// plain reports whether no byte of a pattern is special.
func plain[P string | []byte](p P) bool {
	for i := range len(p) {
		if special(p[i]) {
			return false
		}
	}
	return true
}

// ends reports whether s, which is not shorter, ends with p.
func ends[P, S string | []byte](s S, p P) bool {
	at := len(s) - len(p)
	for i := range len(p) {
		if s[at+i] != p[i] {
			return false
		}
	}
	return true
}

// one matches a byte against the element of the pattern at i and returns the
// element's length, 0 if it does not match.
func one[P string | []byte](p P, i int, c, how byte) int {
	if i >= len(p) {
		return 0
	}
	switch {
	case p[i] == '?':
		return 1
	case p[i] == '[':
		return class(p, i, c, how)
	case p[i] == setMark && how&prepared != 0:
		if p[i+1+int(c>>3)]&(1<<(c&7)) != 0 {
			return 1 + setBytes
		}
	case p[i] == '\\' && i+1 < len(p):
		if fold(p[i+1], how) == fold(c, how) {
			return 2
		}
	case fold(p[i], how) == fold(c, how):
		return 1
	}
	return 0
}

// class is one for "[...]". A class that is not closed ends with the pattern; a
// range may be given in either order.
func class[P string | []byte](p P, i int, c, how byte) int {
	start := i
	i++
	not := i < len(p) && p[i] == '^'
	if not {
		i++
	}
	c, in := fold(c, how), false
	for ; i < len(p) && p[i] != ']'; i++ {
		switch {
		case p[i] == '\\' && i+1 < len(p):
			i++
			in = in || fold(p[i], how) == c
		case i+2 < len(p) && p[i+1] == '-':
			lo, hi := fold(min(p[i], p[i+2]), how), fold(max(p[i], p[i+2]), how)
			in = in || lo <= c && c <= hi
			i += 2
		default:
			in = in || fold(p[i], how) == c
		}
	}
	if in == not {
		return 0
	}
	return min(i+1, len(p)) - start
}

// fold returns c in lower case if how has folded, else c.
func fold(c, how byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | how&folded
	}
	return c
}
