package table

import (
	"fmt"
	"hash/maphash"
	"maps"
	"testing"

	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

// saver keeps the keys that it was given.
type saver struct {
	store
	t    *Table
	seen map[string]int
}

func (s *saver) Save(bucket uint32) {
	s.t.EachIn(bucket, func(r arena.Ref) { s.seen[string(s.key(r))]++ })
	s.t.SetSaved(bucket)
}

// A change of a key saves its bucket first, and a walk saves the others: then each key of
// the cut is saved once, and no other.
func TestEachKeyOfTheCutIsSavedOnce(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		s, tab := newStore()
		defer s.Release()
		defer tab.Release()
		keys := map[string]bool{}
		change := func(n int, add bool, before func(h uint64)) {
			for i := range n {
				key := fmt.Sprint("key:", i)
				h := maphash.String(s.seed, key)
				before(h)
				pos, there := tab.Find(h, []byte(key))
				switch {
				case add && !there:
					tab.Insert(h, s.add(key))
					keys[key] = true
				case !add && there:
					tab.Delete(h, pos)
					delete(keys, key)
				}
			}
		}
		for range 3 {
			change(rapid.IntRange(0, 2000).Draw(t, "n"), rapid.Bool().Draw(t, "add"), func(uint64) {})
			want := maps.Clone(keys)
			save := &saver{s, tab, map[string]int{}}
			tab.Cut(save)
			at := uint32(0)
			walk := func(n int) {
				for ; n > 0 && int(at) < tab.Buckets(); n-- {
					if !tab.Saved(at) {
						save.Save(at)
					}
					at++
				}
			}
			for range 3 {
				change(rapid.IntRange(0, 2000).Draw(t, "n"), rapid.Bool().Draw(t, "add"), func(h uint64) {
					if b := tab.BucketOf(h); !tab.Saved(b) {
						save.Save(b)
					}
				})
				walk(rapid.IntRange(0, 100).Draw(t, "walk"))
			}
			walk(1 << 20)
			for key := range want {
				if save.seen[key] != 1 {
					t.Fatalf("%s was saved %d times", key, save.seen[key])
				}
			}
			if len(save.seen) != len(want) {
				t.Fatalf("%d keys were saved of %d", len(save.seen), len(want))
			}
			if err := tab.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
