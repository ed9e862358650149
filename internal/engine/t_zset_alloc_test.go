//go:build !race

package engine

import (
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/geohash"
)

func TestCommandsOnSortedSetsAllocateNothing(t *testing.T) {
	for _, size := range []int{20, 5000} {
		db := Open(Options{Databases: 1, Shards: 1, Clock: clock.NewManual(epoch)})
		defer db.Close()
		key := []byte("z")
		fillZSet(db, key, size)
		tx := db.BeginAll(0)
		items, popped := []Scored{{0, []byte("m7")}}, []Scored{{0, make([]byte, 0, 16)}}
		scan := func(r ZRange) func() {
			return func() {
				v, _ := tx.ZSet(key, true)
				for w := v.Range(&r); w.Next(); {
					_, _ = w.Member(), w.Score()
				}
			}
		}
		n := 0.0
		for name, run := range map[string]func(){
			"ZAdd": func() {
				n++
				items[0].Score = n
				_, _, _ = tx.ZAdd(key, items, ZAddOptions{})
			},
			"ZIncrBy": func() { _, _, _ = tx.ZIncrBy(key, items[0].Member, 1, ZAddOptions{}) },
			"Score":   func() { v, _ := tx.ZSet(key, false); v.Score(items[0].Member) },
			"Rank":    func() { v, _ := tx.ZSet(key, true); v.Rank(items[0].Member) },
			"ranks":   scan(ZRange{Stop: 9}),
			"scores":  scan(ZRange{By: ByScore, Min: ScoreBound{Score: 3}, Max: ScoreBound{Score: 1e9}, Rev: true, Limited: true, Count: 10}),
			"ZPop": func() {
				_, _ = tx.ZPop(key, 1, true, func(int) {}, func(m []byte, s float64) { items[0].Score = s })
				_, _, _ = tx.ZAdd(key, items, ZAddOptions{})
			},
			"ZPopDue": func() {
				_, _ = tx.ZPopDue(key, Due{Unit: 1}, 1, func(int) {}, func(member []byte, s float64) {
					popped[0] = Scored{s, append(popped[0].Member[:0], member...)}
				})
				_, _, _ = tx.ZAdd(key, popped, ZAddOptions{})
			},
			"GeoSearch": func() {
				v, _ := tx.ZSet(key, false)
				v.GeoSearch(&GeoQuery{Shape: geohash.Circle(0, 0, 1000), Order: Nearest})
			},
		} {
			if got := testing.AllocsPerRun(100, run); got != 0 {
				t.Errorf("%s on %d members: %v allocations", name, size, got)
			}
		}
		tx.Commit()
	}
}

// fillZSet adds members m0, m1 ... with shuffled scores.
func fillZSet(db *DB, key []byte, n int) {
	tx := db.BeginAll(0)
	defer tx.Commit()
	for i := range n {
		items := []Scored{{float64(uint32(i) * 2246822519), fmt.Appendf(nil, "m%d", i)}}
		if _, _, err := tx.ZAdd(key, items, ZAddOptions{}); err != nil {
			panic(err)
		}
	}
}

func BenchmarkZSetOfAMillion(b *testing.B) {
	const n = 1 << 20
	db := Open(Options{Databases: 1, Shards: 1, Clock: clock.NewManual(epoch)})
	defer db.Close()
	key := []byte("z")
	fillZSet(db, key, n)
	tx := db.BeginAll(0)
	defer tx.Commit()
	var buf [16]byte
	member := func(i int) []byte { return fmt.Appendf(buf[:0], "m%d", uint32(i)*2654435761%n) }
	b.Run("ZAdd", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			items := [1]Scored{{float64(uint32(i) * 2654435761), member(i)}}
			_, _, _ = tx.ZAdd(key, items[:], ZAddOptions{})
		}
	})
	b.Run("Rank", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			v, _ := tx.ZSet(key, true)
			v.Rank(member(i))
		}
	})
	b.Run("Score", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			v, _ := tx.ZSet(key, false)
			v.Score(member(i))
		}
	})
	b.Run("First100", func(b *testing.B) {
		for b.Loop() {
			v, _ := tx.ZSet(key, true)
			for w := v.Range(&ZRange{Stop: 99}); w.Next(); {
				_ = w.Member()
			}
		}
	})
	b.Run("Range100", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			v, _ := tx.ZSet(key, true)
			at := int64(uint32(i) * 2654435761 % n)
			for w := v.Range(&ZRange{Start: at, Stop: at + 99}); w.Next(); {
				_ = w.Member()
			}
		}
	})
}
