package instance

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// infoLine matches a line of INFO: the head of a section, or a name and a value.
var infoLine = regexp.MustCompile(`^(# [A-Za-z]+|[!-9;-~é]+:.*|)$`)

// The text of a script's error is one field of INFO and adds no line: a Sentinel would take role:slave for a demoted
// master.
func TestWhatAScriptRaisesAddsNoLineToINFO(t *testing.T) {
	c := dialTCP(t, startNode(t))
	for _, raised := range []string{"x\r\nrole:slave y", "caf\xe9 x", "a:b#c d", "\x00\x1b[2J", " leading", "\r\n",
		strings.Repeat("z", 40), "é"} {
		if v := c.ask("EVAL", "return {err=ARGV[1]}", "0", raised); v.Err() == nil {
			t.Errorf("%q is answered by %v", raised, v)
		}
		if v := c.ask("EVAL", "return redis.call('x' .. ARGV[1])", "0", raised); v.Err() == nil {
			t.Errorf("%q is answered by %v", raised, v)
		}
	}
	c.must("CLIENT", "SETNAME", "plain")
	info := c.must("INFO", "everything").Str
	if !utf8.ValidString(info) {
		t.Error("INFO is not UTF-8")
	}
	roles := 0
	for line := range strings.SplitSeq(info, "\r\n") {
		if !infoLine.MatchString(line) || strings.ContainsAny(line, "\r\n") {
			t.Errorf("INFO has the line %q", line)
		}
		if strings.HasPrefix(line, "role:") {
			roles++
		}
	}
	if roles != 1 || !strings.Contains(info, "\r\nrole:master\r\n") {
		t.Errorf("INFO has %d roles", roles)
	}
	for _, want := range []string{"errorstat_x:count=", "errorstat_caf_:count=", "errorstat_a_b_c:count="} {
		if !strings.Contains(info, want) {
			t.Errorf("INFO lacks %s", want)
		}
	}
}
