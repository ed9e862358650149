package main

import (
	"strings"
	"testing"
)

func TestAMessageOfACommitFollowsTheRules(t *testing.T) {
	const small, large = "\x01\n\n3\t4\ta.go\n-\t-\ta.png\n", "\x01\n\n20\t0\ta.go\n0\t1\tb.go\n"
	long := "wheel: " + strings.Repeat("x", subjectColumns-len("wheel: "))
	for _, c := range []struct{ commit, want string }{
		{"", ""},
		{"1a\nwheel: cascade in batches\n\n" + small, ""},
		{"1a\nwheel: cascade in batches\n\n" + large, "changes 21 lines"},
		{"1a\nwheel: cascade in batches\nWhat was.\n" + large, ""},
		{"1a\nwheel: cascade in batches\nSigned-off-by: A Person <a@example.org>\n" + large, "changes 21 lines"},
		{"1a\n" + long + "\n\n" + small, ""},
		{"1a\n" + long + "x\n\n" + small, "has 73 columns"},
		{"1a\nExpiry is not empty (F1, F4)\n\n" + small, "the code (F1, F4)"},
		{"1a\nwheel: cascade; table: grow in steps\n\n" + small, "two matters are two commits"},
		{"1a\nwheel: cascade in batches\n\n\x01\n\n7\t0\tx/testdata/rapid/TestX/TestX-1.fail\n", "adds x/testdata/rapid/TestX/TestX-1.fail"},
		{"1a\nwheel: cascade in batches\n\n\x01\n\n0\t7\tx/testdata/rapid/TestX/TestX-1.fail\n", ""},
		{"1a\nwheel: what the campaign found\n\n" + small, "does not say what has changed"},
		{"1a\nqueue: how long a job waits is in Info\n\n" + small, "does not say what has changed"},
		{"1a\nqueue: Info has what a job waits for\n\n" + small, ""},
		{"1a\nresp: maps (RESP3), and PSYNC2 (2)\n\n" + small, ""},
	} {
		if got := brokenRule(c.commit); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%q: %q, want %q", c.commit, got, c.want)
		}
	}
}
