package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// peekInputs are the inputs of the parser's tests, and some more.
func peekInputs() []string {
	inputs := []string{
		"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$12\r\nabc\r\n$3\r\ndefg\r\n",
		"*2\r\n$3\r\nGET\r\n$100\r\n" + strings.Repeat("x", 100) + "\r\n", "*2\rX$3\rXGETXX$1\rXkXX",
	}
	for _, c := range requestTests {
		inputs = append(inputs, c.in)
	}
	return inputs
}

// comparePeek fails the test unless Peek returns nothing, or what Next returns for the same bytes. It returns whether Peek sees a request.
func comparePeek(t *testing.T, buf []byte) bool {
	t.Helper()
	name, key, n := Peek(buf)
	if n == 0 {
		if name != nil || key != nil {
			t.Errorf("Peek(%q) = %q %q, without a length", buf, name, key)
		}
		return false
	}
	var p Parser
	args, length, err := p.Next(buf)
	same := err == nil && n == length && bytes.Equal(name, args[0]) && len(args) > 1 == (key != nil)
	if !same || key != nil && !bytes.Equal(key, args[1]) {
		t.Errorf("Peek(%q) = %q %q, %d; Next returns %q, %d, %v", buf, name, key, n, args, length, err)
	}
	if cap(name) > len(name) || cap(key) > len(key) {
		t.Errorf("Peek(%q): an append would change the input", buf)
	}
	return true
}

func TestPeekSeesWhatNextReturns(t *testing.T) {
	seen := 0
	for _, in := range peekInputs() {
		for end := range len(in) + 1 { // also those that are not complete
			if comparePeek(t, []byte(in[:end])) {
				seen++
			}
		}
	}
	if seen < 10 {
		t.Errorf("Peek saw %d requests", seen)
	}
}

func FuzzPeek(f *testing.F) {
	for _, in := range peekInputs() {
		if len(in) < 1000 {
			f.Add([]byte(in))
		}
	}
	f.Fuzz(func(t *testing.T, buf []byte) { comparePeek(t, buf) })
}

func TestPeekLeavesOutWhatIsInlineAndWhatIsLong(t *testing.T) {
	long := AppendCommand(nil, slices.Repeat([]string{"a"}, peekArgs+1)...)
	for _, in := range []string{"", "GET k\r\n", "*0\r\n", "*-1\r\n", "*2\r\n$3\r\nGET\r\n:1\r\n", string(long)} {
		if name, key, n := Peek([]byte(in)); n != 0 || name != nil || key != nil {
			t.Errorf("Peek(%.40q) = %q %q, %d", in, name, key, n)
		}
	}
	if _, _, n := Peek(fmt.Appendf(nil, "*2\r\n$3\r\nGET\r\n$999999999\r\nx")); n != 0 {
		t.Error("Peek returned bytes that have not arrived")
	}
}
