package lua

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// someNumbers are those at which a conversion may change its mind, and n others.
func someNumbers(r *rand.Rand, n int) []float64 {
	nan := math.Float64frombits(0x7ff8 << 48)
	fs := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 1.5, 2.5, 0.125, 9.5, 9.995, 99.5, 0.1, 0.2, 0.3, 1.0 / 3,
		1e14, 1e15, 99999999999999, 99999999999999.5, 999999999999995, 123456789012345678, 1e-4, 1e-5, 9.9999e-5,
		0.00099999999999999999, 5e-324, 2.2250738585072014e-308, math.MaxFloat64, -math.MaxFloat64,
		math.Inf(1), math.Inf(-1), nan, -nan, 1 << 31, 1<<31 - 1, -1 << 31, -(1 << 31) - 1, 1 << 32, 1 << 53,
		1<<53 + 2, 1 << 62, 1 << 63, -1 << 63, 1 << 64, -1 << 64, 1<<64 - 2048, 3e19, 1e100, 255, 256, 65, 321, -65.7, 4294967361}
	for range n {
		switch r.IntN(4) {
		case 0:
			f := math.Float64frombits(r.Uint64())
			if !math.IsNaN(f) {
				fs = append(fs, f)
			}
		case 1:
			fs = append(fs, float64(r.IntN(2000001)-1000000)/1000)
		case 2:
			fs = append(fs, float64(r.IntN(1<<20))/float64(uint64(1)<<r.IntN(30)))
		default:
			fs = append(fs, math.Trunc(r.NormFloat64()*math.Pow(10, float64(r.IntN(22)))))
		}
	}
	return fs
}

func TestNumbersPrintAsInLua51(t *testing.T) {
	fs := someNumbers(rand.New(rand.NewPCG(1, 2)), 3000)
	expressions := make([]string, len(fs))
	for i, f := range fs {
		expressions[i] = quoteNumber(f)
	}
	for i, want := range lua51(t, expressions) {
		if got := "boo true|num " + FormatNumber(fs[i]); got != want {
			t.Errorf("%s (%x) prints as %q, in lua5.1 as %q", expressions[i], math.Float64bits(fs[i]), got, want)
		}
	}
}

func TestNumbersAreReadAsByStrtod(t *testing.T) {
	for s, want := range map[string]float64{
		"0": 0, "10": 10, "-10": -10, "+10": 10, " 10 ": 10, "\t\n\v\f\r 10": 10, "0x10": 16, "0XfF": 255, "-0x10": -16,
		"0x1p4": 16, "0x.8": 0.5, "0x1.8p1": 3, "0xffffffffffffffffff": 4722366482869645213695, "1e5": 1e5, "1E+5": 1e5, ".5": 0.5,
		"5.": 5, "5.e1": 50, "inf": math.Inf(1), "-Infinity": math.Inf(-1), "1e999": math.Inf(1), "1e-999": 0,
		"10\x00abc": 10, "123456789012345678901234567890": 123456789012345678901234567890., "0x1p-1074": 5e-324,
	} {
		if f, ok := ParseNumber(s); !ok || f != want {
			t.Errorf("ParseNumber(%q) = %v, %v; want %v", s, f, ok, want)
		}
	}
	for s, negative := range map[string]bool{"nan": false, "-nan": true, "NaN(a_1)": false, "-0": true, "0": false, "-0x0": true} {
		f, ok := ParseNumber(s)
		if !ok || math.Signbit(f) != negative || math.IsNaN(f) != strings.Contains(strings.ToLower(s), "nan") {
			t.Errorf("ParseNumber(%q) = %v, %v", s, f, ok)
		}
	}
	for _, s := range []string{"", " ", "-", "+", ".", "e5", "1e", "1e+", "0x", "0x.", "0xg", "0x1p", "1 2", "1_000", "1..2",
		"--1", "- 1", "infx", "in", "nan(", "nan(-)", "0b1", "1\x80", "\x00", "1x", "abc"} {
		if f, ok := ParseNumber(s); ok {
			t.Errorf("ParseNumber(%q) = %v", s, f)
		}
	}
}

// numberText returns a text that may be a number.
func numberText(r *rand.Rand) string {
	parts := []string{"0", "1", "9", "12345", "99999999999999999999", "0x", "0X", "a", "F", "p", "e", "E", "+", "-", ".", " ",
		"\t", "inf", "INF", "inity", "nan", "(", "x1)", "\x00", "_", "308", "1024", "e-", "p+", "x"}
	var b strings.Builder
	for range 1 + r.IntN(5) {
		b.WriteString(parts[r.IntN(len(parts))])
	}
	return b.String()
}

func TestNumbersAreReadAsInLua51(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	texts := make([]string, 6000)
	expressions := make([]string, len(texts))
	for i := range texts {
		if texts[i] = numberText(r); i%4 == 0 {
			texts[i] = fmt.Sprintf("%.*g", 1+r.IntN(25), math.Float64frombits(r.Uint64()))
		}
		// "%.17g" shows every bit; a NaN's payload it does not show.
		expressions[i] = fmt.Sprintf("string.format('%%.17g', tonumber(%s) or 'no')", quote(texts[i]))
	}
	accepted := 0
	for i, want := range lua51(t, expressions) {
		f, ok := ParseNumber(texts[i])
		if !ok {
			if !strings.Contains(want, "number expected, got string") {
				t.Errorf("%q is not a number, in lua5.1 it is %s", texts[i], want)
			}
			continue
		}
		accepted++
		if got := "boo true|str " + string(AppendFormatG(nil, f, 17)); got != want {
			t.Errorf("%q is read as %q, in lua5.1 as %q", texts[i], got, want)
		}
	}
	if accepted < 1000 {
		t.Errorf("only %d texts were numbers", accepted)
	}
}

func TestFixedIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, f := range someNumbers(r, 20000) {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			continue
		}
		p := r.IntN(18)
		f = math.Abs(f)
		if got, want := string(appendFixed(nil, f, p)), fmt.Sprintf("%.*f", p, f); got != want {
			t.Fatalf("%%.%df of %v = %s, want %s", p, f, got, want)
		}
	}
}

func FuzzParseNumber(f *testing.F) {
	for _, s := range []string{"0x1.8p-3", " -12.5e+10 ", "nan(x)", "infinity", "0x", "1e", "10\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, n := ParseDouble(s)
		if n < 0 || n > len(s) {
			t.Fatalf("ParseDouble(%q) took %d bytes", s, n)
		}
		if n == 0 {
			if w, ok := ParseNumber(s); ok {
				t.Fatalf("ParseNumber(%q) = %v", s, w)
			}
			return
		}
		// What was taken is the number, and it survives being printed.
		if w, ok := ParseNumber(s[:n]); !ok || w != v && !(math.IsNaN(w) && math.IsNaN(v)) {
			t.Fatalf("ParseNumber(%q) = %v, %v; want %v", s[:n], w, ok, v)
		}
		printed := string(AppendFormatG(nil, v, 17))
		if w, ok := ParseNumber(printed); !ok || w != v && !(math.IsNaN(w) && math.IsNaN(v)) {
			t.Fatalf("%q is %v, printed as %q, which is %v", s[:n], v, printed, w)
		}
	})
}
