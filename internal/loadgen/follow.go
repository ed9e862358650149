package loadgen

import (
	"bufio"
	"bytes"
	"strconv"
	"strings"
)

// follow is a second request, made from the reply to the first.
type follow struct {
	args [][]part

	leaves [][2]int // of the last reply: places in text
	bytes  []byte
	failed bool // the last reply was an error
	arg    []byte
	out    []byte
}

// part is a piece of an argument: text, the random number, or a leaf of the reply.
type part struct {
	text   string
	number bool
	leaf   int // -1: none
}

func newFollow(args []string, size int) *follow {
	if args == nil {
		return nil
	}
	f := &follow{}
	for _, a := range args {
		a = strings.ReplaceAll(a, "__data__", strings.Repeat("x", size))
		var parts []part
		for a != "" {
			i := strings.Index(a, "__")
			if i < 0 {
				parts = append(parts, part{text: a, leaf: -1})
				break
			}
			if i > 0 {
				parts = append(parts, part{text: a[:i], leaf: -1})
			}
			a = a[i+2:]
			name, rest, _ := strings.Cut(a, "__")
			a = rest
			switch n, err := strconv.Atoi(strings.TrimPrefix(name, "reply_")); {
			case name == "rand_int":
				parts = append(parts, part{number: true, leaf: -1})
			case name == "key":
				parts = append(parts, part{text: "key:", leaf: -1}, part{number: true, leaf: -1})
			case err == nil:
				parts = append(parts, part{leaf: n})
			default:
				parts = append(parts, part{text: "__" + name + "__", leaf: -1})
			}
		}
		f.args = append(f.args, parts)
	}
	return f
}

// read reads one reply and keeps its strings and numbers.
func (f *follow) read(r *bufio.Reader) error {
	f.leaves, f.bytes, f.failed = f.leaves[:0], f.bytes[:0], false
	for left := 1; left > 0; left-- {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) < 3 {
			return errBadReply
		}
		body := line[1 : len(line)-2]
		switch line[0] {
		case '*', '~', '>', '%', '$':
			n, err := strconv.Atoi(string(body))
			if err != nil {
				return err
			}
			switch {
			case line[0] == '%':
				left += 2 * n
			case line[0] != '$':
				left += max(n, 0)
			case n >= 0:
				at := len(f.bytes)
				for len(f.bytes) < at+n+2 {
					chunk, err := r.Peek(min(at+n+2-len(f.bytes), r.Size()))
					if err != nil {
						return err
					}
					f.bytes = append(f.bytes, chunk...)
					if _, err := r.Discard(len(chunk)); err != nil {
						return err
					}
				}
				f.bytes = f.bytes[:at+n]
				f.leaves = append(f.leaves, [2]int{at, at + n})
			}
		case '_':
		case '-':
			f.bytes, f.failed = append(f.bytes, body...), true
		default:
			at := len(f.bytes)
			f.bytes = append(f.bytes, body...)
			f.leaves = append(f.leaves, [2]int{at, len(f.bytes)})
		}
	}
	return nil
}

func (f *follow) text() string { return string(bytes.TrimSpace(f.bytes)) }

// add appends the second request to out, unless the reply has too little for it.
func (f *follow) add(number []byte) bool {
	before := len(f.out)
	f.out = append(f.out, '*')
	f.out = strconv.AppendInt(f.out, int64(len(f.args)), 10)
	f.out = append(f.out, "\r\n"...)
	for _, parts := range f.args {
		f.arg = f.arg[:0]
		for _, p := range parts {
			switch {
			case p.number:
				f.arg = append(f.arg, number...)
			case p.leaf < 0:
				f.arg = append(f.arg, p.text...)
			case p.leaf >= len(f.leaves):
				f.out = f.out[:before]
				return false
			default:
				l := f.leaves[p.leaf]
				f.arg = append(f.arg, f.bytes[l[0]:l[1]]...)
			}
		}
		f.out = append(f.out, '$')
		f.out = strconv.AppendInt(f.out, int64(len(f.arg)), 10)
		f.out = append(f.out, "\r\n"...)
		f.out = append(f.out, f.arg...)
		f.out = append(f.out, "\r\n"...)
	}
	return true
}
