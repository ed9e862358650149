package lua

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// somePattern returns a pattern of a few pieces, which may be malformed.
func somePattern(r *rand.Rand) string {
	pieces := []string{"a", "b", "c", ".", "%a", "%d", "%s", "%W", "%w", "%p", "%z", "%%", "[abc]", "[^a]", "[a-c]", "[%a_]", "[]]", "[^]a]",
		"[a-]", "[%]]", "[+-%%]", "%bab", "%b()", "%f[a]", "%f[%A]", "%f[^%z]", "()", "x", " ", "=", "\x00", "\xff", "^", "$", "-", "]"}
	bad := []string{"%", "[a", "[", "%f", "%b", "%bx", "(", ")", "%0", "%9", "[^", "[%", "%1"}
	var b strings.Builder
	if r.IntN(5) == 0 {
		b.WriteByte('^')
	}
	open, closed := 0, 0
	for range 1 + r.IntN(6) {
		switch n := r.IntN(24); {
		case n == 0:
			b.WriteString(bad[r.IntN(len(bad))])
			continue
		case n < 4:
			b.WriteByte('(')
			open++
			continue
		case n < 6 && open > 0:
			b.WriteByte(')')
			open--
			closed++
			continue
		case n == 6 && closed > 0:
			fmt.Fprintf(&b, "%%%d", 1+r.IntN(closed))
		default:
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		if r.IntN(2) == 0 {
			b.WriteByte("*+-?"[r.IntN(4)])
		}
	}
	for range open {
		if r.IntN(10) > 0 {
			b.WriteByte(')')
		}
	}
	if r.IntN(5) == 0 {
		b.WriteByte('$')
	}
	return b.String()
}

func someSubject(r *rand.Rand) string {
	const alphabet = "aaabbbcc()x =-]1\x00\xff_A%^"
	b := make([]byte, r.IntN(14))
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

// describeMatch returns the text of evaluator for string.find(text, p).
func describeMatch(s *State, p, text string) string {
	m := new(matcher)
	m.start(s, compilePattern(p, true), text)
	begin, end := m.next(0)
	if begin < 0 {
		if m.fault != "" {
			return "boo false|str " + m.fault
		}
		return "boo true|nil nil"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "boo true|num %d|num %d", begin+1, end)
	for k := range m.captures {
		switch {
		case m.unfinished>>k&1 != 0:
			return "boo false|str unfinished capture"
		case m.positions>>k&1 != 0:
			fmt.Fprintf(&b, "|num %d", m.from[k]+1)
		default:
			fmt.Fprintf(&b, "|str %s", text[m.from[k]:m.to[k]])
		}
	}
	return b.String()
}

func TestPatternsMatchAsInLua51(t *testing.T) {
	s := New()
	r := rand.New(rand.NewPCG(9, 10))
	var patterns, texts, expressions []string
	for len(patterns) < 20000 {
		p, text := somePattern(r), someSubject(r)
		if isPlain(p) {
			continue
		}
		patterns, texts = append(patterns, p), append(texts, text)
		expressions = append(expressions, fmt.Sprintf("string.find(%s, %s)", quote(text), quote(p)))
	}
	matched := 0
	for i, want := range lua51(t, expressions) {
		got := describeMatch(s, patterns[i], texts[i])
		if strings.HasPrefix(got, "boo true|num") {
			matched++
		}
		// The message begins with a position.
		if message, ok := strings.CutPrefix(want, "boo false|str "); ok {
			if !strings.HasSuffix(got, "boo false|str "+message[strings.Index(message, ":1: ")+len(":1: "):]) {
				t.Errorf("%s: %q, in lua5.1 %q", expressions[i], got, want)
			}
		} else if got != want {
			t.Errorf("%s: %q, in lua5.1 %q", expressions[i], got, want)
		}
	}
	if matched < 4000 {
		t.Errorf("only %d patterns matched", matched)
	}
}

func TestPatternsAreTriedToTheEnd(t *testing.T) {
	s := New()
	// What the matcher knows in advance ("only", follow, first) must not lose a
	// match: shapes in which it could.
	for _, c := range []struct{ pattern, text, want string }{
		{"a*ab", "aaab", "num 1|num 4"},
		{"a-ab", "aaab", "num 1|num 4"},
		{"%w*%w=", "key=", "num 1|num 4"},
		{"%w+=", "a b=", "num 3|num 4"},
		{"(%w*)(%d)$", "ab12", "num 1|num 4|str ab1|str 2"},
		{"(.-)(%s*)$", "a b  ", "num 1|num 5|str a b|str   "},
		{"a?ab", "ab", "num 1|num 2"},
		{"x*$", "axx", "num 2|num 3"},
		{"x-$", "axx", "num 2|num 3"},
		{"x-", "xx", "num 1|num 0"},
		{"(x-)", "xx", "num 1|num 0|str "},
		{"(x*)()", "axx", "num 1|num 0|str |num 1"},
		{".*b", "abab", "num 1|num 4"},
		{".-b", "aab", "num 1|num 3"},
		{"[^,]*,", ",a,", "num 1|num 1"},
		{"(a*)%1b", "aaaab", "num 1|num 5|str aa"},
	} {
		if got := describeMatch(s, c.pattern, c.text); got != "boo true|"+c.want {
			t.Errorf("find(%q, %q) = %s, want %s", c.text, c.pattern, got, c.want)
		}
	}
}

func TestDeepPatternsAreTooComplex(t *testing.T) {
	s := New()
	// redis-server 7.0.15 finds this one.
	if got := describeMatch(s, strings.Repeat("a?", 10000), strings.Repeat("a", 10000)); got != "boo true|num 1|num 10000" {
		t.Errorf("a pattern of 10,000 items: %s", got)
	}
	// Each "a?" before an "a" is a choice.
	deep := strings.Repeat("a?", maxMatchDepth+10) + "a"
	if got := describeMatch(s, deep, strings.Repeat("a", 2*maxMatchDepth)); got != "boo false|str pattern too complex" {
		t.Errorf("a pattern of too many items: %.80s", got)
	}
}

var errOver = errors.New("the budget is spent")

// stateWithBudget returns a State that stops after about the given number of steps.
func stateWithBudget(steps int) *State {
	s := New()
	s.SetInterrupt(steps, func() error { return errOver })
	return s
}

func TestBacktrackingCanBeInterrupted(t *testing.T) {
	for _, p := range []string{".-.-.-.-.-.-.-b", "a*a*a*a*a*a*a*b", "a?" + strings.Repeat("a?a*", 20) + "b", ".-%1", "(.-)%1b",
		"%b()%b()x", "((.-)*)*b"} {
		m := new(matcher)
		m.start(stateWithBudget(100000), compilePattern(p, true), strings.Repeat("a", 2000)+strings.Repeat("(", 100000))
		if begin, _ := m.next(0); begin != stopped || m.err != errOver && m.fault == "" {
			t.Errorf("%s: %d, %v, %q", p, begin, m.err, m.fault)
		}
	}
}

// FuzzPattern: a match never panics, ends within its budget, and what it has
// captured lies in the text.
func FuzzPattern(f *testing.F) {
	r := rand.New(rand.NewPCG(13, 14))
	for range 50 {
		f.Add(somePattern(r), someSubject(r))
	}
	f.Fuzz(func(t *testing.T, p, text string) {
		compiled := compilePattern(p, true)
		m := new(matcher)
		m.start(stateWithBudget(200000), compiled, text)
		for at := 0; at <= len(text); {
			begin, end := m.next(at)
			if begin < 0 {
				if begin == stopped && m.err == nil && m.fault == "" {
					t.Fatal("stopped without a reason")
				}
				return
			}
			if begin < at || end < begin || end > len(text) {
				t.Fatalf("a match at [%d:%d] of %d bytes from %d", begin, end, len(text), at)
			}
			for k := range m.captures {
				if m.unfinished>>k&1 != 0 {
					continue
				}
				if m.positions>>k&1 == 0 && (m.from[k] > m.to[k] || m.to[k] > end) || m.from[k] < begin {
					t.Fatalf("capture %d is [%d:%d] of [%d:%d]", k, m.from[k], m.to[k], begin, end)
				}
			}
			at = max(end, begin+1)
		}
	})
}
