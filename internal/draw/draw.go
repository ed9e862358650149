// Package draw gives tests that draw at random the seed they begin with.
package draw

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Seed returns the seed of a test: given, a flag's value, if that is not 0; else the
// number in EBB_SEED, which .ci/test sets, so that a change is judged by the same
// draws on every machine; else another one each time, which is how campaigns find
// what nobody has seen yet. The test's log names it.
func Seed(t testing.TB, given uint64) uint64 {
	t.Helper()
	s := given
	if text := os.Getenv("EBB_SEED"); s == 0 && text != "" {
		var err error
		if s, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("EBB_SEED: %q is not a number", text)
		}
	}
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("seed %d", s)
	return s
}
