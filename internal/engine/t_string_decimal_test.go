package engine

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

// TestDecimalsAddAsLongDoublesDo compares the fast path of INCRBYFLOAT with the slow one.
func TestDecimalsAddAsLongDoublesDo(t *testing.T) {
	db := Open(Options{Clock: clock.NewManual(epoch)})
	defer db.Close()
	tx := db.NewTx()
	short := 0
	number := func(t *rapid.T) []byte {
		sign := rapid.SampledFrom([]string{"", "", "-", "+"}).Draw(t, "sign")
		whole := rapid.SampledFrom([]int64{0, 1, 9, 15, 16, 17, 40, 1e4, 1e9, 1e15, 1e17}).Draw(t, "whole")
		if whole > 1 {
			whole = rapid.Int64Range(0, whole).Draw(t, "below")
		}
		text := fmt.Sprintf("%s%d", sign, whole)
		switch behind := rapid.IntRange(0, 19).Draw(t, "behind"); rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
		case 1:
			text += fmt.Sprintf("%.3f", float64(rapid.IntRange(0, 7).Draw(t, "eighths"))/8)[1:]
		case 2:
			text += "." + fmt.Sprintf("%019d", rapid.Int64Range(0, 1e18).Draw(t, "digits"))[:behind]
		case 3:
			text += rapid.SampledFrom([]string{".", ".5", ".25", ".1", "e1", "x", ".0.", ".99999999999999999", ".00000000000000001"}).Draw(t, "end")
		}
		return []byte(text)
	}
	draw.Check(t, func(t *rapid.T) {
		x, y := number(t), number(t)
		got, ok := tx.addDecimals(x, y)
		if !ok {
			return
		}
		short++
		a, err := parseFloat(x)
		if err != nil {
			t.Fatalf("%s: %v", x, err)
		}
		b, err := parseFloat(y)
		if err != nil {
			t.Fatalf("%s: %v", y, err)
		}
		sum, err := addFloat(a, b)
		if err != nil {
			t.Fatal(err)
		}
		if want := formatFloat(sum); string(got) != string(want) {
			t.Fatalf("%s + %s = %s, want %s", x, y, got, want)
		}
	})
	if short == 0 {
		t.Error("no sum was short")
	}
	for _, x := range []struct{ a, b, sum string }{{"0.1", "0.2", "0.3"}, {"5.0", "-5", "0"}, {"-0.25", "0.125", "-0.125"}, {"-0", "0", "0"},
		{"1000000", "0.5", "1000000.5"}, {".5", "1.", "1.5"}, {"0", "0.05", "0.05"}} {
		if sum, ok := tx.addDecimals([]byte(x.a), []byte(x.b)); !ok || string(sum) != x.sum {
			t.Errorf("%s + %s = %q, %v, want %s", x.a, x.b, sum, ok, x.sum)
		}
	}
	for _, s := range []string{"", "-", ".", "1e1", "0x1", "inf", "1.1.1", " 1", "123456789012345678"} {
		if sum, ok := tx.addDecimals([]byte(s), []byte("0")); ok {
			t.Errorf("%q is read as %s", s, sum)
		}
	}
	if sum, ok := tx.addDecimals([]byte("10000.1"), []byte("0.2")); ok {
		t.Errorf("10000.1 + 0.2 = %s, of which long doubles differ", sum)
	}
}
