package engine

import (
	"strings"
	"testing"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/packed"
)

// TestAnIndexFindsExactlyItsMembers adds integers, and strings of all lengths around the limits of the hash, to an index that grows.
func TestAnIndexFindsExactlyItsMembers(t *testing.T) {
	db := Open(Options{Clock: clock.NewManual(epoch)})
	defer db.Close()
	tx := db.NewTx()
	x := tx.borrowIndex()
	has := func(s packed.Str, want int) {
		t.Helper()
		if at := x.find(s); at != want {
			t.Fatalf("%q is at %d, want %d", s.String(), at, want)
		}
	}
	n := 0
	for length := range 70 {
		for _, c := range "abcdefghijklmnop" {
			for _, s := range []packed.Str{packed.StrOf([]byte(strings.Repeat(string(c), length))), {N: int64(length) * int64(c)}} {
				want := x.find(s)
				first := want < 0
				if first {
					want, n = n, n+1
				}
				if at, added := x.add(s); at != want || added != first {
					t.Fatalf("add(%q) = %d, %v, want %d", s.String(), at, added, want)
				}
				has(s, want)
			}
		}
	}
	for at, s := range x.items {
		has(s, at)
	}
	has(packed.StrOf([]byte(strings.Repeat("a", 70))), -1)
	has(packed.StrOf([]byte("ab")), -1)
	has(packed.Str{N: -1}, -1)
	tx.returnIndex(x)
	x = tx.borrowIndex()
	has(packed.StrOf([]byte("a")), -1)
}
