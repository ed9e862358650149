package glob

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestAPreparedPatternMatchesWhatMatchDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	prepared, matched := 0, 0
	for range 40000 {
		text := random(r, 10)
		switch r.IntN(4) {
		case 0:
			text = strings.Repeat("*", setBytes) + text
		case 1:
			text = random(r, 2) + "[" + strings.Repeat("ab-c", setBytes/4) + text
		case 2:
			text += "[^" + strings.Repeat("b-c", setBytes) + "]*\x01"
		}
		p := New(text)
		if p.code != "" {
			prepared++
		}
		for range 4 {
			s := random(r, 8) + strings.Repeat("\x01", r.IntN(2))
			want := Match(text, s)
			if want {
				matched++
			}
			if p.Match([]byte(s)) != want {
				t.Fatalf("New(%q).Match(%q) = %v, and Match says %v", text, s, !want, want)
			}
		}
	}
	if prepared < 5000 || matched < 5000 {
		t.Errorf("%d patterns were prepared and %d strings matched, too few to tell", prepared, matched)
	}
}

// The work for a string is a walk over the prepared pattern, so the test looks at its length.
func TestAPreparedPatternIsAsShortAsWhatItMatches(t *testing.T) {
	for _, x := range []struct {
		pattern string
		limit   int
	}{
		{"[" + strings.Repeat("a", 1<<20) + "]", 33}, {"k[^" + strings.Repeat("a-z", 1<<18) + "]*", 35},
		{strings.Repeat("*", 1<<20), 1}, {strings.Repeat("*", 1<<20) + "a" + strings.Repeat("*", 1<<20), 3},
		{"[" + strings.Repeat("a", 1<<20), 33}, {`[\]` + strings.Repeat(`\]`, 1<<19) + "]", 33},
	} {
		if p := New(x.pattern); p.code == "" || len(p.code) > x.limit || p.String() != x.pattern {
			t.Errorf("%.20q... is %d bytes when it is prepared, want 1 to %d", x.pattern, len(p.code), x.limit)
		}
	}
}

func TestMatchingAPreparedPatternAllocatesNothing(t *testing.T) {
	p, s := New("h["+strings.Repeat("a-e", 100)+"]l*o?"), []byte("hello world!")
	if n := testing.AllocsPerRun(100, func() { p.Match(s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
