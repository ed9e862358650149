package glob

import "encoding/binary"

// setBytes is the size of a set of bytes. A Pattern stores a longer class as a set.
const setBytes = 256 / 8

// setMark stands before a set in Pattern.code, where the same byte in a pattern is escaped.
const setMark = '\x01'

// Pattern is a pattern that is prepared for many strings: matching a byte costs O(1) for a class of
// any length, and a run of "*" counts as one. It matches the same strings as the function Match. A
// Pattern is immutable and safe for concurrent use. The zero value matches the empty string only.
type Pattern struct {
	text string
	code string // text with sets for long classes and one "*" for each run; empty: match text
}

// New prepares a copy of a pattern. It costs O(len(pattern)), and up to twice the pattern's memory
// in addition if the pattern has long classes or runs of "*".
func New[P string | []byte](pattern P) Pattern {
	p := Pattern{text: string(pattern)}
	if len(p.text) <= setBytes {
		return p
	}
	code, shorter := make([]byte, 0, setBytes), false
	for i := 0; i < len(p.text); {
		from := i
		switch c := p.text[i]; {
		case c == '*':
			for i++; i < len(p.text) && p.text[i] == '*'; i++ {
				shorter = true
			}
			code = append(code, '*')
			continue
		case c == '[':
			s, n := classSet(p.text, i)
			if i += n; n > setBytes {
				shorter = true
				code = append(code, setMark)
				for _, word := range s {
					code = binary.LittleEndian.AppendUint64(code, word)
				}
				continue
			}
		case c == '\\' && i+1 < len(p.text):
			i += 2
		case c == setMark:
			code = append(code, '\\')
			i++
		default:
			i++
		}
		code = append(code, p.text[from:i]...)
	}
	if shorter {
		p.code = string(code)
	}
	return p
}

// classSet returns the bytes that the class at i allows, and the class's length.
func classSet(p string, i int) (s [4]uint64, n int) {
	start := i
	i++
	not := i < len(p) && p[i] == '^'
	if not {
		i++
	}
	for ; i < len(p) && p[i] != ']'; i++ {
		lo := p[i]
		hi := lo
		switch {
		case lo == '\\' && i+1 < len(p):
			i++
			lo, hi = p[i], p[i]
		case i+2 < len(p) && p[i+1] == '-':
			lo, hi = min(lo, p[i+2]), max(lo, p[i+2])
			i += 2
		}
		for w := lo >> 6; w <= hi>>6; w++ { // a class may have many ranges
			from, to := max(lo, w<<6)&63, min(hi, w<<6|63)&63
			s[w] |= ^uint64(0) << from & (^uint64(0) >> (63 - to))
		}
	}
	if not {
		for k := range s {
			s[k] = ^s[k]
		}
	}
	return s, min(i+1, len(p)) - start
}

// String returns the original pattern.
func (p *Pattern) String() string { return p.text }

// Match reports whether s matches. The lengths of classes and of runs of "*" do not matter. Without
// "*" it costs O(len(s)), at worst O(len(s) x len(s)), times the cost of a class of 32 bytes. It
// allocates nothing.
func (p *Pattern) Match(s []byte) bool {
	if p.code == "" {
		return match(p.text, s, 0)
	}
	return match(p.code, s, prepared)
}
