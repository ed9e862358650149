package engine

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

// The expected results are those of redis-server 7.0.15.
func TestFloatsAreAddedAsRedisAddsThem(t *testing.T) {
	db := bitsDB(t)
	for _, x := range []struct{ old, by, want string }{
		{"0.1", "0.2", "0.3"},
		{"3", "0", "3"},
		{"10.50", "0.1", "10.6"},
		{"1e3", "-1e3", "0"},
		{"-0.0", "-0", "0"},
		{"0x1p4", "0x.8", "16.5"},
		{"1e30", "1", "1000000000000000000024696061952"},
		{"5.0e3", "2.0e2", "5200"},
		{"1", "1e-18", "1"},
		{"9223372036854775807", "1", "9223372036854775808"},
		{".5", "5.", "5.5"},
	} {
		tx := db.BeginAll(0)
		_, _, _ = tx.Set([]byte("k"), []byte(x.old), SetOptions{}, nil)
		got, err := tx.IncrByFloat([]byte("k"), []byte(x.by))
		if err != nil || string(got) != x.want {
			t.Errorf("%s + %s = %s, want %s, %v", x.old, x.by, got, x.want, err)
		}
		tx.Commit()
	}
}

func TestWhatIsNoNumberIsRefused(t *testing.T) {
	for _, s := range []string{"", " 1", "1 ", "nan", "-NAN", "1_0", "0b1", "0o7", "0x", "0xp1", "1e", "1e+", ".", "-", "+-1",
		"1e5000", "1e-5000", "0x1p20000", "1e99999999999999999999", "1\x00", "infi", "1,5", "0x1.8q3"} {
		if f, err := parseFloat([]byte(s)); !errors.Is(err, ErrNotFloat) {
			t.Errorf("%q is %v", s, f)
		}
	}
	for _, s := range []string{"inf", "-Infinity", "+inf"} {
		if f, err := parseFloat([]byte(s)); err != nil || !f.IsInf() {
			t.Errorf("%q is %v, %v", s, f, err)
		}
	}
}

func TestIncrementsStayWithinTheirBounds(t *testing.T) {
	db := bitsDB(t)
	draw.Check(t, func(t *rapid.T) {
		tx := db.BeginAll(0)
		defer tx.Commit()
		key := []byte("k")
		tx.Del(key)
		small := rapid.Int64Range(-20, 20)
		low, high := small.Draw(t, "low"), small.Draw(t, "high")
		if low > high {
			low, high = high, low
		}
		old, by, saturate := small.Draw(t, "old"), small.Draw(t, "by"), rapid.Bool().Draw(t, "saturate")
		_, _ = tx.IncrBy(key, old)
		n, added, err := tx.IncrBounded(key, by, IncrOptions{Low: low, High: high, Saturate: saturate})
		want := old + by
		switch {
		case want >= low && want <= high:
		case saturate:
			want = max(low, min(high, want))
		default:
			want = old
		}
		if err != nil || n != want || added != want-old {
			t.Fatalf("%d + %d in %d..%d: %d, %d, %v; want %d", old, by, low, high, n, added, err, want)
		}
		if v, _ := tx.IncrBy(key, 0); v != want {
			t.Fatalf("%d is stored, want %d", v, want)
		}
	})
}

func TestAnOverflowIsRefusedOrSaturated(t *testing.T) {
	db := bitsDB(t)
	tx := db.BeginAll(0)
	defer tx.Commit()
	key := []byte("k")
	_, _ = tx.IncrBy(key, math.MaxInt64)
	if _, err := tx.IncrBy(key, 1); !errors.Is(err, ErrOverflow) {
		t.Error(err)
	}
	free := IncrOptions{Low: math.MinInt64, High: math.MaxInt64}
	if n, added, err := tx.IncrBounded(key, 1, free); n != math.MaxInt64 || added != 0 || err != nil {
		t.Error(n, added, err)
	}
	free.Saturate = true
	_, _ = tx.IncrBy(key, -5)
	if n, added, err := tx.IncrBounded(key, 100, free); n != math.MaxInt64 || added != 5 || err != nil {
		t.Error(n, added, err)
	}
}

// commonLen is the textbook definition.
func commonLen(a, b []byte) int {
	switch {
	case len(a) == 0 || len(b) == 0:
		return 0
	case a[0] == b[0]:
		return 1 + commonLen(a[1:], b[1:])
	}
	return max(commonLen(a[1:], b), commonLen(a, b[1:]))
}

func TestTheCommonSubsequenceIsLongestAndInBoth(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		word := rapid.SliceOfN(rapid.ByteRange('a', 'c'), 0, 9)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		seq, runs := Common(a, b)
		if want := commonLen(a, b); len(seq) != want || CommonLen(a, b) != want {
			t.Fatalf("%q, %d, want %d", seq, CommonLen(a, b), want)
		}
		var joined []byte
		for i := len(runs) - 1; i >= 0; i-- {
			r := runs[i]
			part := a[r.FirstA : r.LastA+1]
			if !bytes.Equal(part, b[r.FirstB:r.LastB+1]) {
				t.Fatalf("%+v did not match", r)
			}
			joined = append(joined, part...)
		}
		if !bytes.Equal(joined, seq) {
			t.Fatalf("runs %q, sequence %q", joined, seq)
		}
	})
}

// The bits of a row are written a word at a time, for strings of all lengths.
func TestTheCommonSubsequenceOfLongStringsIsTheOneOfAWholeTable(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		text := rapid.ByteRange('a', 'd')
		a := rapid.SliceOfN(text, 50, 90).Draw(t, "a")
		n := rapid.SampledFrom([]int{1, 63, 64, 65, 127, 128, 129}).Draw(t, "length of b")
		b := rapid.SliceOfN(text, n, n).Draw(t, "b")
		lens := make([][]int, len(a)+1)
		lens[0] = make([]int, n+1)
		for i := range a {
			lens[i+1] = make([]int, n+1)
			for j := range b {
				lens[i+1][j+1] = max(lens[i][j+1], lens[i+1][j])
				if a[i] == b[j] {
					lens[i+1][j+1] = lens[i][j] + 1
				}
			}
		}
		var want []byte
		for i, j := len(a), n; i > 0 && j > 0; {
			switch {
			case a[i-1] == b[j-1]:
				want = append(want, a[i-1])
				i, j = i-1, j-1
			case lens[i-1][j] > lens[i][j-1]:
				i--
			default:
				j--
			}
		}
		slices.Reverse(want)
		if seq, _ := Common(a, b); !bytes.Equal(seq, want) {
			t.Fatalf("%q, want %q", seq, want)
		}
	})
}
