package cleantext

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestALineIsOneLineOfUTF8(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"plain text", "plain text"},
		{"x\r\nrole:slave", "x__role:slave"},
		{"caf\233 x", "caf_ x"},
		{"café 日本", "café 日本"},
		{"a\x00b\x1b[2Jc\u2028d\u202ee", "a_b_[2Jc_d_e"},
		{strings.Repeat("a", 39) + "é", strings.Repeat("a", 39)},
		{strings.Repeat("a", 38) + "é", strings.Repeat("a", 38) + "é"},
		{strings.Repeat("\xff", 50), strings.Repeat("_", 40)},
		{"a\ufffdb", "a_b"},
	} {
		if got := Line(c.text, 40); got != c.want {
			t.Errorf("Line(%q) = %q, want %q", c.text, got, c.want)
		}
	}
	if got := Word("a:b #c\nd", 40); got != "a_b__c_d" {
		t.Errorf("Word: %q", got)
	}
}

func TestAReplyIsOneLineOfTheSameBytes(t *testing.T) {
	for text, want := range map[string]string{"": "", "plain": "plain", "x\r\n+OK": "x  +OK", "\n": " ",
		"caf\233\x00 é\n": "caf\233\x00 é "} {
		if got := Reply(text); got != want {
			t.Errorf("Reply(%q) = %q, want %q", text, got, want)
		}
	}
	if n := testing.AllocsPerRun(10, func() { Reply("plain") }); n != 0 {
		t.Errorf("a clean text costs %v allocations", n)
	}
}

func FuzzLine(f *testing.F) {
	for _, s := range []string{"", "a\r\nb", "caf\233", "日本", "\xe6\x97"} {
		f.Add(s, 2)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 0 {
			return
		}
		got := Line(text, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsAny(got, "\r\n\x00") {
			t.Errorf("Line(%q, %d) = %q", text, limit, got)
		}
		if again := Line(got, limit); again != got {
			t.Errorf("Line of %q is %q", got, again)
		}
	})
}
