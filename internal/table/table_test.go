package table

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

// store keeps keys as records: one byte of length, then the key.
type store struct {
	*arena.Arena
	seed maphash.Seed
}

func (s store) key(r arena.Ref) []byte {
	n := int(s.Bytes(r, 1)[0])
	return s.Bytes(r, n+1)[1:]
}
func (s store) Equal(r arena.Ref, key []byte) bool { return string(s.key(r)) == string(key) }
func (s store) Hash(r arena.Ref) uint64            { return maphash.Bytes(s.seed, s.key(r)) }
func (s store) Touch(r arena.Ref) byte             { return s.Bytes(r, 1)[0] }
func (s store) add(key string) arena.Ref {
	r := s.Alloc(len(key) + 1)
	b := s.Bytes(r, len(key)+1)
	b[0] = byte(len(key))
	copy(b[1:], key)
	return r
}

func newStore() (store, *Table) {
	pool := arena.NewPool()
	s := store{arena.New(pool), maphash.MakeSeed()}
	return s, New(pool, s)
}

func TestTableIsAMap(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		s, tab := newStore()
		defer s.Release()
		defer tab.Release()
		model := map[string]arena.Ref{}
		keys := rapid.IntRange(1, 3000).Draw(t, "keys")
		steps := rapid.IntRange(1, 4000).Draw(t, "steps")
		bias := rapid.IntRange(1, 9).Draw(t, "bias")
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for range steps {
			key := fmt.Sprint("key:", rnd.IntN(keys))
			h := maphash.String(s.seed, key)
			pos, ok := tab.Find(h, []byte(key))
			want, exists := model[key]
			if ok != exists || ok && pos.Ref() != want {
				t.Fatalf("Find(%q) = %v, model has %v", key, ok, exists)
			}
			switch {
			case !ok && rnd.IntN(10) < bias:
				r := s.add(key)
				tab.Insert(h, r)
				model[key] = r
			case ok && rnd.IntN(10) >= bias:
				tab.Delete(h, pos)
				s.Free(want)
				delete(model, key)
			}
		}
		if err := tab.Check(); err != nil {
			t.Fatal(err)
		}
		if tab.Len() != len(model) {
			t.Fatalf("Len %d, want %d", tab.Len(), len(model))
		}
	})
}

func TestScanMissesNothingThatStays(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		s, tab := newStore()
		defer s.Release()
		defer tab.Release()
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		stay := rapid.IntRange(0, 500).Draw(t, "stay")
		flood := rapid.IntRange(0, 3000).Draw(t, "flood")
		insert := func(key string) { tab.Insert(maphash.String(s.seed, key), s.add(key)) }
		remove := func(key string) {
			h := maphash.String(s.seed, key)
			if p, ok := tab.Find(h, []byte(key)); ok {
				tab.Delete(h, p)
			}
		}
		for i := range stay {
			insert(fmt.Sprint("stay:", i))
		}
		grown := 0
		if rnd.IntN(2) == 0 { // start large, shrink
			for ; grown < flood; grown++ {
				insert(fmt.Sprint("flood:", grown))
			}
		}
		up := grown == 0
		seen := map[string]bool{}
		var b Batch
		for cursor, rounds := uint64(0), 0; ; rounds++ {
			if rnd.IntN(2) == 0 {
				cursor = tab.Scan(cursor, func(r arena.Ref) { seen[string(s.key(r))] = true })
			} else {
				cursor = gathers(t, tab, cursor, &b, rnd)
				for _, r := range b.Refs {
					seen[string(s.key(r))] = true
				}
			}
			if cursor == 0 {
				break
			}
			for range rnd.IntN(60) {
				if up && grown < flood {
					insert(fmt.Sprint("flood:", grown))
					grown++
				} else if grown > 0 {
					grown--
					remove(fmt.Sprint("flood:", grown))
				}
				if rnd.IntN(200) == 0 {
					up = !up
				}
			}
			if rounds > 100000 {
				t.Fatal("the walk does not end")
			}
		}
		for i := range stay {
			if k := fmt.Sprint("stay:", i); !seen[k] {
				t.Fatalf("%s was missed", k)
			}
		}
	})
}

// gathers checks that Gather finds what Scan finds, and ends where it should.
func gathers(t *rapid.T, tab *Table, cursor uint64, b *Batch, rnd *rand.Rand) (next uint64) {
	size, count := 1+rnd.IntN(100), 1+rnd.IntN(100)
	left := count
	next = tab.Gather(cursor, b, size, &left)
	var want []arena.Ref
	for at := cursor; ; {
		before := len(want)
		at = tab.Scan(at, func(r arena.Ref) { want = append(want, r) })
		if count -= max(1, len(want)-before); at == next {
			break
		}
		if at == 0 || count <= 0 || len(want) >= size {
			t.Fatalf("Gather(%d) did not end at %d", cursor, at)
		}
	}
	if !slices.Equal(b.Refs, want) || left != count {
		t.Fatalf("Gather(%d) found %d entries and left %d, want %d and %d", cursor, len(b.Refs), left, len(want), count)
	}
	if next != 0 && left > 0 && len(want) < size {
		t.Fatalf("Gather(%d) ended early: %d entries of %d, %d left", cursor, len(want), size, left)
	}
	return next
}

// touched is a store that remembers the record that was touched last.
type touched struct {
	store
	last *arena.Ref
}

func (s touched) Touch(r arena.Ref) byte {
	*s.last = r
	return s.store.Touch(r)
}

func TestTouchRecordReadsTheRecordThatFindFinds(t *testing.T) {
	plain, _ := newStore()
	s := touched{plain, new(arena.Ref)}
	tab := New(arena.NewPool(), s)
	const n = 10_000
	refs := make([]arena.Ref, n)
	for i := range refs {
		key := fmt.Sprint(i)
		refs[i] = s.add(key)
		tab.Insert(maphash.String(s.seed, key), refs[i])
	}
	own, others := 0, 0
	for i := range 2 * n {
		*s.last = 0
		tab.TouchRecord(maphash.String(s.seed, fmt.Sprint(i)))
		switch {
		case i < n && *s.last == refs[i]:
			own++
		case i >= n && *s.last != 0:
			others++
		}
	}
	// The rest is in overflow buckets, or behind a record with the same tag.
	if own < n*9/10 || others > n/10 {
		t.Errorf("of %d keys, %d touched their records; of as many missing ones, %d touched one", n, own, others)
	}
}

func TestRandomIsFair(t *testing.T) {
	s, tab := newStore()
	const n, draws = 100, 200000
	for i := range n {
		key := fmt.Sprint(i)
		tab.Insert(maphash.String(s.seed, key), s.add(key))
	}
	got, rng := map[arena.Ref]int{}, rand.NewPCG(1, 2)
	for range draws {
		got[tab.Random(rng.Uint64)]++
	}
	for r, c := range got {
		if c < draws/n*7/10 || c > draws/n*13/10 {
			t.Errorf("%s was drawn %d times of %d", s.key(r), c, draws/n)
		}
	}
	if len(got) != n {
		t.Errorf("%d of %d entries were drawn", len(got), n)
	}
}

func BenchmarkFind(b *testing.B) {
	s, tab := newStore()
	const n = 1 << 20
	for i := range n {
		key := fmt.Sprint("key:", i)
		tab.Insert(maphash.String(s.seed, key), s.add(key))
	}
	b.ReportMetric(float64(tab.Bytes())/n, "B/entry")
	var buf []byte
	for i := 0; b.Loop(); i++ {
		buf = fmt.Appendf(buf[:0], "key:%d", i*7919%n)
		if _, ok := tab.Find(maphash.Bytes(s.seed, buf), buf); !ok {
			b.Fatal("lost")
		}
	}
}
