package glob

import (
	"strings"
	"testing"
)

func TestPatternsMatchAsInRedis(t *testing.T) {
	for _, x := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "anything", true}, {"a*", "abc", true}, {"*c", "abc", true},
		{"a*c", "abbc", true}, {"a*c", "abb", false}, {"*a*b*", "xxaxxbxx", true}, {"**", "a", true}, {"a**", "a", true},
		{"?", "a", true}, {"?", "", false}, {"h?llo", "hello", true}, {"h?llo", "hllo", false},
		{"h[ae]llo", "hallo", true}, {"h[ae]llo", "hillo", false}, {"h[^e]llo", "hello", false}, {"h[^e]llo", "hbllo", true},
		{"h[a-b]llo", "hbllo", true}, {"h[b-a]llo", "hallo", true}, {"h[a-b]llo", "hcllo", false},
		{`\*`, "*", true}, {`\*`, "a", false}, {`h\?`, "h?", true}, {`[\]]`, "]", true}, {`a\`, `a\`, true},
		{"[abc", "b", true}, {"[abc", "d", false}, {"[a-", "-", true}, {"[]", "a", false}, {"[^]", "a", true},
		{"A", "a", false}, {"é?", "éx", true},
	} {
		if got := Match(x.pattern, x.s); got != x.want {
			t.Errorf("Match(%q, %q) = %v", x.pattern, x.s, got)
		}
		if got := Match([]byte(x.pattern), []byte(x.s)); got != x.want {
			t.Errorf("Match of bytes (%q, %q) = %v", x.pattern, x.s, got)
		}
	}
}

func TestFoldingIgnoresTheCaseOfLetters(t *testing.T) {
	for _, x := range []struct {
		pattern, s string
		want       bool
	}{{"ABC*", "abcd", true}, {"[A-C]", "b", true}, {"[a]", "A", true}, {`\A`, "a", true}, {"@", "`", false}} {
		if got := MatchFold(x.pattern, x.s); got != x.want {
			t.Errorf("MatchFold(%q, %q) = %v", x.pattern, x.s, got)
		}
	}
}

func TestHostilePatternsStayQuadratic(t *testing.T) {
	pattern, s := strings.Repeat("a*", 2000)+"b", strings.Repeat("a", 20000)
	if Match(pattern, s) {
		t.Fatal("matched")
	}
}
