package numeral

import (
	"math"
	"strconv"
	"testing"
)

func TestParseIntIsStrict(t *testing.T) {
	for _, n := range []int64{0, 1, -1, 9, 10, -10, 1<<53 + 1, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, 1e18} {
		text := strconv.FormatInt(n, 10)
		if got, ok := ParseInt(text); !ok || got != n {
			t.Errorf("%s: %d, %v", text, got, ok)
		}
		if got, ok := ParseInt([]byte(text)); !ok || got != n {
			t.Errorf("%s as bytes: %d, %v", text, got, ok)
		}
	}
	for _, s := range []string{
		"", "-", "+1", "01", "-0", "-01", "00", " 1", "1 ", "1a", "a", "1.0", "0x1", "--1",
		"9223372036854775808", "-9223372036854775809", "9999999999999999999", "10000000000000000000", "18446744073709551617",
	} {
		if n, ok := ParseInt(s); ok {
			t.Errorf("%q is %d", s, n)
		}
	}
}

// Which texts are numbers was observed with ZADD on redis-server 7.0.15.
func TestParseDoubleTakesWhatRedisTakes(t *testing.T) {
	for s, want := range map[string]float64{
		"0": 0, "1": 1, "-1": -1, "+1": 1, "1.": 1, ".5": .5, "3.1": 3.1, "1e5": 1e5, "1E-5": 1e-5, "007": 7,
		"inf": math.Inf(1), "+inf": math.Inf(1), "-inf": math.Inf(-1), "INF": math.Inf(1), "-Infinity": math.Inf(-1),
		"0x10": 16, "0x1p4": 16, "0x.8": .5, "0XFF": 255, "1e-320": 1e-320, "0e-999": 0, "0x0p-9999": 0,
		"9007199254740993": 9007199254740992, "1.7976931348623157e308": math.MaxFloat64,
	} {
		if f, ok := ParseDouble(s); !ok || f != want {
			t.Errorf("%q: %v, %v, want %v", s, f, ok, want)
		}
		if f, ok := ParseDouble([]byte(s)); !ok || f != want {
			t.Errorf("%q as bytes: %v, %v, want %v", s, f, ok, want)
		}
	}
	for _, s := range []string{
		"", " 1", "1 ", "nan", "NaN", "-nan", "1e400", "-1e400", "1e-400", "1_0", "0x1_0", "infin", "--1", "+-1",
		".", "e5", "1e", "1e+", "0x", "0x1p", "0x.p1", "1..2", "1.2.3", "1,5", "x", "1e99999999999999999999", "0x1p99999", "1\x00",
	} {
		if f, ok := ParseDouble(s); ok {
			t.Errorf("%q is %v", s, f)
		}
	}
	if f, ok := ParseDouble("-0"); !ok || !math.Signbit(f) {
		t.Errorf("-0: %v, %v", f, ok)
	}
}

// The texts were observed with ZSCORE on redis-server 8.0.2.
func TestAppendDoubleSpellsAsRedis(t *testing.T) {
	for _, tt := range []struct {
		f    float64
		want string
	}{
		{0, "0"}, {math.Copysign(0, -1), "-0"}, {1, "1"}, {-0.5, "-0.5"}, {3.1, "3.1"}, {0.1, "0.1"}, {0.3, "0.3"}, {99.99, "99.99"},
		{1e-7, "1e-7"}, {1.5e-7, "1.5e-7"}, {0.000001, "0.000001"}, {0.0000015, "1.5e-6"}, {0.00001234, "1.234e-5"}, {1e-5, "0.00001"},
		{1.1e-6, "1.1e-6"}, {9.87654321e-4, "9.87654321e-4"}, {0.001234567, "0.001234567"}, {0.0012345678901, "0.0012345678901"},
		{12345678901234568, "12345678901234568"}, {123456789012345678, "123456789012345680"}, {1e17, "100000000000000000"},
		{4e18, "4000000000000000000"}, {1 << 62, "4611686018427387904"}, {-1 << 62, "-4611686018427387904"},
		{-4611686018427388928, "-4611686018427389000"}, {5e18, "5e+18"}, {1e19, "1e+19"}, {1.5e19, "1.5e+19"},
		{12345678901234567890, "12345678901234567000"}, {1234567890123456789012, "1234567890123456800000"},
		{1e21, "1e+21"}, {12345678901234567e8, "1.2345678901234568e+24"}, {1e100, "1e+100"}, {-1e100, "-1e+100"}, {-1.5e-300, "-1.5e-300"},
		{1234.12345678, "1234.12345678"}, {12345.12345678, "1.234512345678e+4"}, {123456789.123456789, "1.2345678912345679e+8"},
		{math.MaxFloat64, "1.7976931348623157e+308"}, {math.SmallestNonzeroFloat64, "5e-324"}, {1.0000000000000002, "1.0000000000000002"},
		{math.Inf(1), "inf"}, {math.Inf(-1), "-inf"}, {math.NaN(), "nan"},
	} {
		if got := AppendDouble(nil, tt.f); string(got) != tt.want {
			t.Errorf("%s: %s, want %s", strconv.FormatFloat(tt.f, 'g', -1, 64), got, tt.want)
		}
	}
}

func FuzzDouble(f *testing.F) {
	f.Add(uint64(0x4009_21fb_5444_2d18), "1.5")
	f.Add(uint64(1), "0x1.8p3")
	f.Fuzz(func(t *testing.T, bits uint64, text string) {
		want := math.Float64frombits(bits)
		if want == want {
			spelled := AppendDouble(nil, want)
			if got, ok := ParseDouble(spelled); !ok || got != want {
				t.Errorf("%v is spelled %s and read as %v, %v", want, spelled, got, ok)
			}
		}
		ParseDouble(text) // must not panic
	})
}
