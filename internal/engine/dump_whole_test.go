package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/packed"
	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

// itemwise is a Builder that accepts only single items.
type itemwise struct{ rdb.Builder }

// counting counts the listpacks that a restorer accepts in one piece.
type counting struct {
	*restorer
	taken map[Kind]int
}

func (c counting) Listpack(t rdb.Type, b []byte) (bool, error) {
	done, err := c.restorer.Listpack(t, b)
	if done {
		c.taken[c.kind]++
	}
	return done, err
}

// A listpack that Restore accepts in one piece gives the same value as its items one by one, whatever the
// layout, and a damaged listpack gives the same error.
func TestAListpackAsAWholeIsTheSameAsItsItems(t *testing.T) {
	db := Open(Options{Shards: 1})
	defer db.Close()
	taken, failed := map[Kind]int{}, 0
	check := func(t *rapid.T) {
		db.SetLayout(drawnLayout(t))
		value := drawnValue(t)
		tx := db.BeginAll(0)
		defer tx.Commit()
		build := func(b func(r *restorer) rdb.Builder) (*restorer, string) {
			r, d := &restorer{tx: tx, room: bytes.Repeat([]byte{0xaa}, 100)}, rdb.Decoder{}
			if err := d.Restore(value, rdb.Version, b(r)); err != nil {
				r.discard()
				return r, err.Error()
			}
			return r, ""
		}
		whole, err := build(func(r *restorer) rdb.Builder { return counting{r, taken} })
		items, want := build(func(r *restorer) rdb.Builder { return itemwise{r} })
		if err != want {
			t.Fatalf("%q, item by item %q", err, want)
		}
		if err != "" {
			failed++
			return
		}
		same := whole.kind == items.kind && whole.items == items.items && (whole.box == nil) == (items.box == nil)
		if !same || whole.box == nil && !bytes.Equal(whole.image, items.image) {
			t.Fatalf("kind %d, %d items, image %x, item by item %d, %d, %x", whole.kind, whole.items, whole.image, items.kind, items.items,
				items.image)
		}
		for key, r := range map[string]*restorer{"whole": whole, "items": items} {
			h := tx.find([]byte(key))
			if err := tx.install(&h, []byte(key), r, 0); err != nil {
				t.Fatal(err)
			}
		}
		if a, b := show(tx, "whole"), show(tx, "items"); !slices.Equal(a, b) {
			t.Fatalf("%.2000q\n%.2000q", a, b)
		}
		tx.Del([]byte("whole"))
		tx.Del([]byte("items"))
	}
	draw.Check(t, func(t *rapid.T) {
		for range 5 {
			check(t)
		}
	})
	t.Log(taken, failed)
	for _, k := range []Kind{List, Set, Hash, ZSet} {
		if taken[k] < 3 {
			t.Errorf("%d of kind %d were taken as a whole", taken[k], k)
		}
	}
	if failed == 0 {
		t.Error("no listpack has an error")
	}
}

func drawnLayout(t *rapid.T) Layout {
	l := defaultLayout()
	entries := rapid.SampledFrom([]int{128, 512, 4, 0}).Draw(t, "entries")
	longest := rapid.SampledFrom([]int{64, 100, 10, 25}).Draw(t, "longest")
	l.HashEntries, l.SetEntries, l.ZSetEntries = entries, entries, entries
	l.HashValue, l.SetValue, l.ZSetValue = longest, longest, longest
	l.SetIntegers = rapid.SampledFrom([]int{512, 3}).Draw(t, "integers")
	l.ListSize = rapid.SampledFrom([]int{-2, -2, -1, -5, 3, 430, 0}).Draw(t, "size")
	return l
}

// drawnValue draws a value with listpacks, some of which have unusual elements or are damaged.
func drawnValue(t *rapid.T) []byte {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	odd := rapid.SampledFrom([]int{0, 0, 0, 100, 10}).Draw(t, "odd elements in 1000")
	sizes := []int{1, 2, 10, 100, 130, 600}
	switch kind := rapid.SampledFrom([]rdb.Type{rdb.TypeHashListpack, rdb.TypeZSetListpack, rdb.TypeSetListpack, 0}).Draw(t, "type"); kind {
	case 0:
		nodes := rapid.IntRange(1, 4).Draw(t, "nodes")
		b := []byte{byte(rdb.TypeQuicklist2), byte(nodes)}
		for range nodes {
			n := rapid.OneOf(rapid.SampledFrom([]int{1, 10, 100, 430}), rapid.IntRange(236, 256), rapid.IntRange(480, 495)).Draw(t, "items")
			b = appendText(append(b, 2), damaged(t, r, packOf(r, rdb.TypeQuicklist2, n, odd)))
		}
		return b
	default:
		return appendText([]byte{byte(kind)}, damaged(t, r, packOf(r, kind, rapid.SampledFrom(sizes).Draw(t, "items"), odd)))
	}
}

// packOf is a listpack of n items for a value of type t.
func packOf(r *rand.Rand, t rdb.Type, n, odd int) []byte {
	b, elements, score := make([]byte, 6), 0, 0.0
	add := func(s []byte) {
		elements++
		switch v, isInt := packed.ParseInt(s); {
		case r.IntN(1000) >= odd:
			b = packed.AppendElement(b, s)
		case isInt && r.IntN(2) == 0:
			b = append(binary.LittleEndian.AppendUint64(append(b, 0xf4), uint64(v)), 9)
		default: // a string with a 12-bit length, whatever its length
			b = append(append(b, 0xe0, byte(len(s))), s...)
			b = packed.AppendBack(b, 2+len(s))
		}
	}
	for i := range n {
		add(oneOf(r, i, odd))
		switch t {
		case rdb.TypeHashListpack:
			add(oneOf(r, r.IntN(1000), odd))
		case rdb.TypeZSetListpack:
			score += []float64{0.5, 0, 1, 1e16}[r.IntN(4)]
			text := packed.AppendScore(nil, score)
			if r.IntN(1000) < odd {
				text = []byte([]string{"nan", "-1", "inf", "1e1", "text", "9223372036854775807"}[r.IntN(6)])
			}
			add(text)
		}
	}
	b = append(b, 0xff)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	binary.LittleEndian.PutUint16(b[4:], uint16(elements))
	return b
}

// oneOf returns the string of item i. It may be any string if odd is not 0.
func oneOf(r *rand.Rand, i, odd int) []byte {
	switch {
	case r.IntN(1000) < odd:
		return []byte(strings.Repeat("x", r.IntN(140)))
	case i%7 == 5:
		return fmt.Append(nil, i*i*i*i*i-3000)
	}
	return fmt.Appendf(nil, "element:%08d", i)
}

// damaged returns a listpack, one time in three with a changed byte.
func damaged(t *rapid.T, r *rand.Rand, pack []byte) []byte {
	switch rapid.IntRange(0, 11).Draw(t, "damage") {
	case 0:
		pack[r.IntN(len(pack))] ^= 1 << r.IntN(8)
	case 1:
		pack = pack[:r.IntN(len(pack))]
	case 2:
		binary.LittleEndian.PutUint16(pack[4:], 65535)
	case 3:
		i := r.IntN(len(pack))
		pack = slices.Insert(pack, i, pack[r.IntN(len(pack))])
		binary.LittleEndian.PutUint32(pack, uint32(len(pack)))
	}
	return pack
}

// appendText appends a string of a payload.
func appendText(b, s []byte) []byte {
	return append(binary.BigEndian.AppendUint32(append(b, 0x80), uint32(len(s))), s...)
}
