package engine

import (
	"bytes"
	"math/big"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

// bitString is the model: a slice of bits, one per byte.
type bitString []byte

func modelOf(v []byte) bitString {
	var m bitString
	for _, c := range v {
		for i := range 8 {
			m = append(m, c>>(7-i)&1)
		}
	}
	return m
}

func (m bitString) bytes() []byte {
	out := make([]byte, len(m)/8)
	for i, b := range m {
		out[i/8] |= b << (7 - i%8)
	}
	return out
}

func (m bitString) grow(bits int) bitString {
	for len(m) < (bits+7)/8*8 {
		m = append(m, 0)
	}
	return m
}

// place gives the bits of a range, first to last, as Redis clips it.
func (m bitString) place(r BitRange) (first, last int) {
	n := int64(len(m))
	if !r.Bits {
		n /= 8
	}
	a, b := r.First, r.Last
	if a < 0 {
		a = max(a+n, 0)
	}
	if b < 0 {
		b = max(b+n, 0)
	}
	b = min(b, n-1)
	if !r.Bits {
		return int(a * 8), int(b*8 + 7)
	}
	return int(a), int(b)
}

func bitsDB(t testing.TB) *DB {
	t.Helper()
	db := Open(Options{Clock: clock.NewManual(time.Unix(1_700_000_000, 0)), Shards: 4})
	t.Cleanup(db.Close)
	return db
}

func TestBitsAreThoseOfTheModel(t *testing.T) {
	db := bitsDB(t)
	key := []byte("{k}")
	draw.Check(t, func(t *rapid.T) {
		tx := db.BeginAll(0)
		defer tx.Commit()
		tx.Del(key)
		m := bitString(nil)
		if v := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "v"); len(v) > 0 {
			_, _, _ = tx.Set(key, v, SetOptions{}, nil)
			m = modelOf(v)
		}
		for range rapid.IntRange(1, 20).Draw(t, "n") {
			bit := rapid.IntRange(0, 1).Draw(t, "bit")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				at := rapid.IntRange(0, 1000).Draw(t, "at")
				old, err := tx.SetBit(key, int64(at), bit)
				m = m.grow(at + 1)
				if err != nil || old != int(m[at]) {
					t.Fatalf("SetBit: %d, %v", old, err)
				}
				m[at] = byte(bit)
			case 1:
				at := rapid.IntRange(0, 1000).Draw(t, "at")
				got, err := tx.GetBit(key, int64(at))
				if want := at < len(m) && m[at] == 1; err != nil || (got == 1) != want {
					t.Fatalf("GetBit(%d) = %d, %v", at, got, err)
				}
			case 2:
				checkRange(t, tx, key, m, bit)
			case 3:
				at, width := rapid.IntRange(0, 900).Draw(t, "at"), rapid.IntRange(1, 64).Draw(t, "width")
				n := rapid.Uint64().Draw(t, "n") >> (64 - width)
				o := FieldOp{Kind: FieldSet, Signed: true, Width: uint8(width), Offset: int64(at), Value: int64(n<<(64-width)) >> (64 - width)}
				if err := tx.BitField(key, []FieldOp{o}, func(int64, bool) {}); err != nil {
					t.Fatal(err)
				}
				m = m.grow(at + width)
				for i := range width {
					m[at+i] = byte(n>>(width-1-i)) & 1
				}
			}
			if v, _, _ := tx.Get(key); !bytes.Equal(v, m.bytes()) {
				t.Fatalf("value %x, want %x", v, m.bytes())
			}
		}
	})
}

func checkRange(t *rapid.T, tx *Tx, key []byte, m bitString, bit int) {
	r := BitRange{rapid.Int64Range(-900, 900).Draw(t, "first"), rapid.Int64Range(-900, 900).Draw(t, "last"), rapid.Bool().Draw(t, "bits")}
	first, last := m.place(r)
	count, pos := int64(0), int64(-1)
	for i := first; i <= last && len(m) > 0; i++ {
		count += int64(m[i])
		if pos < 0 && int(m[i]) == bit {
			pos = int64(i)
		}
	}
	if r.First < 0 && r.Last < 0 && r.First > r.Last {
		count = 0
	}
	if got, err := tx.BitCount(key, r); err != nil || got != count {
		t.Fatalf("BitCount(%+v) = %d, want %d, %v", r, got, count, err)
	}
	if len(m) == 0 {
		return
	}
	if got, err := tx.BitPos(key, bit, r, false); err != nil || got != pos {
		t.Fatalf("BitPos(%d, %+v) = %d, want %d, %v", bit, r, got, pos, err)
	}
}

func TestCombinationsAreThoseOfTheModel(t *testing.T) {
	db := bitsDB(t)
	draw.Check(t, func(t *rapid.T) {
		tx := db.BeginAll(0)
		defer tx.Commit()
		o := BitOperation(rapid.IntRange(0, 3).Draw(t, "o"))
		n := 1
		if o != BitNot {
			n = rapid.IntRange(1, 5).Draw(t, "n")
		}
		var vals, keys [][]byte
		longest := 0
		for i := range n {
			v := rapid.SliceOfN(rapid.Byte(), 0, 70).Draw(t, "v")
			if rapid.IntRange(0, 30).Draw(t, "long") == 0 {
				v = bytes.Repeat(append(v, 1), 900)
			}
			vals, keys = append(vals, v), append(keys, []byte{'k', byte(i)})
			_, _, _ = tx.Set(keys[i], v, SetOptions{}, nil)
			longest = max(longest, len(v))
		}
		want := make([]byte, longest)
		for i := range want {
			for j, v := range vals {
				c := byte(0)
				if i < len(v) {
					c = v[i]
				}
				switch {
				case o == BitNot:
					want[i] = ^c
				case j == 0:
					want[i] = c
				case o == BitAnd:
					want[i] &= c
				case o == BitOr:
					want[i] |= c
				default:
					want[i] ^= c
				}
			}
		}
		got, err := tx.BitOp(o, []byte("dst"), keys)
		v, ok, _ := tx.Get([]byte("dst"))
		if err != nil || got != longest || ok != (longest > 0) || !bytes.Equal(v, want) {
			t.Fatalf("%v of %x: %x, want %x, %v", o, vals, v, want, err)
		}
	})
}

// A field that overflows has the value of its policy; the model calculates without bounds.
func TestFieldsOverflowAsTheirPolicySays(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		o := FieldOp{Kind: FieldIncrBy, Signed: rapid.Bool().Draw(t, "signed"), Overflow: Overflow(rapid.IntRange(0, 2).Draw(t, "policy"))}
		o.Width = uint8(rapid.IntRange(1, 63).Draw(t, "width"))
		if o.Signed && rapid.IntRange(0, 3).Draw(t, "full") == 0 {
			o.Width = 64
		}
		o.Offset = rapid.Int64Range(0, 9).Draw(t, "offset")
		o.Value = rapid.Int64().Draw(t, "by")
		v := rapid.SliceOfN(rapid.Byte(), 10, 10).Draw(t, "v")
		old := o.field(v)

		low, high := big.NewInt(0), new(big.Int).Lsh(big.NewInt(1), uint(o.Width))
		modulus := new(big.Int).Set(high)
		if o.Signed {
			high.Rsh(high, 1)
			low.Neg(high)
		}
		sum := new(big.Int).Add(big.NewInt(old), big.NewInt(o.Value))
		fits := sum.Cmp(low) >= 0 && sum.Cmp(high) < 0
		if !fits {
			switch {
			case o.Overflow == Wrap:
				sum.Sub(sum, low).Mod(sum, modulus).Add(sum, low)
			case sum.Cmp(low) < 0:
				sum = low
			default:
				sum = high.Sub(high, big.NewInt(1))
			}
		}
		n, ok := o.run(v)
		switch {
		case !fits && o.Overflow == Fail:
			if ok || o.field(v) != old {
				t.Fatalf("%+v on %d was done: %d", o, old, n)
			}
		case !ok || n != sum.Int64() || o.field(v) != n:
			t.Fatalf("%+v on %d: %d, want %v", o, old, n, sum)
		}
	})
}

func TestIncrementsInPlaceAllocateNothing(t *testing.T) {
	db := bitsDB(t)
	tx := db.BeginAll(0)
	defer tx.Commit()
	key, flags, pairs := []byte("n"), []byte("bits"), [][]byte{[]byte("a"), []byte("1"), []byte("b"), []byte("2")}
	run := func() {
		_, _ = tx.IncrBy(key, 1)
		_, _ = tx.SetBit(flags, 7, int(tx.ms&1))
		_, _ = tx.SetMany(pairs, SetOptions{})
		_, _, _ = tx.Get(key)
	}
	run()
	if n := testing.AllocsPerRun(200, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkBitCount(b *testing.B) {
	v := bytes.Repeat([]byte{0xa5}, 1<<20)
	b.SetBytes(int64(len(v)))
	for b.Loop() {
		countBits(v)
	}
}
