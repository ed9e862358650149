package commands

import (
	"testing"

	"github.com/ebbdb/ebb/internal/engine"
)

// An accepted id, formatted again, must parse to the same id. No input may cause a panic in the parsing of
// ids, ranges and trimmings.
func FuzzStreamArguments(f *testing.F) {
	for _, s := range []string{"", "*", "-", "+", "1-1", "1-*", "(1-2", "007-08", "18446744073709551615-18446744073709551615",
		"18446744073709551616", "1--1", "~",
		"MAXLEN", "MINID", "LIMIT"} {
		f.Add([]byte(s), []byte("~"), []byte("5"))
	}
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		for _, x := range [][]byte{a, b, c} {
			id, ok := parseStreamID(x, 7)
			if !ok {
				continue
			}
			again, ok := parseStreamID(engine.AppendStreamID(nil, id), 0)
			if !ok || again != id {
				t.Fatalf("%q is %v, and then %v", x, id, again)
			}
		}
		_, _ = parseStart(a)
		_, _ = parseStop(a)
		var add engine.XAdd
		_ = parseNewID(&add, a)
		_, _, _ = parseDel([][]byte{a, b, c})
		var trim trimming
		if n, err := trim.option([][]byte{a, b, c}); err == nil && (n < 0 || n > 3) {
			t.Fatalf("an option of %d arguments", n)
		}
	})
}
