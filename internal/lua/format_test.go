package lua

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// someSpec returns a conversion for one of verbs.
func someSpec(r *rand.Rand, verbs string) string {
	var b strings.Builder
	b.WriteByte('%')
	for range r.IntN(4) {
		b.WriteByte("-+ #0"[r.IntN(5)])
	}
	if r.IntN(2) == 0 {
		fmt.Fprint(&b, r.IntN(100))
	}
	switch r.IntN(4) {
	case 0:
		b.WriteByte('.')
	case 1:
		fmt.Fprintf(&b, ".%d", r.IntN(12))
	case 2:
		if r.IntN(4) == 0 {
			fmt.Fprintf(&b, ".%d", r.IntN(100))
		}
	}
	b.WriteByte(verbs[r.IntN(len(verbs))])
	return b.String()
}

func TestConversionsAreThoseOfLua51(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var specs, expressions []string
	var values []float64
	for _, f := range someNumbers(r, 4000) {
		spec := someSpec(r, "cdiouxXeEfgG")
		if !strings.HasSuffix(quoteNumber(f), "(0/0)") || spec[len(spec)-1] != 'c' {
			specs, values = append(specs, spec), append(values, f)
			expressions = append(expressions, fmt.Sprintf("string.format(%s, %s)", quote(spec), quoteNumber(f)))
		}
	}
	for i, want := range lua51(t, expressions) {
		if got := "boo true|str " + string(parseConversion(specs[i][1:]).appendNumber(nil, values[i])); got != want {
			t.Errorf("%s = %q, in lua5.1 %q", expressions[i], got, want)
		}
	}
}
