package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/bloom"
	"github.com/ebbdb/ebb/internal/delayq"
	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/stream"
)

// boxes makes a large container of each kind, and a function that changes it.
func boxes(tx *Tx) map[Kind]struct {
	box
	change func(rng *rand.Rand)
} {
	h, s, z, l := tx.newHashTable(), tx.newSetTable(), tx.newZSetTree(), tx.newListBox()
	x, q := tx.newStream(), tx.newQueue()
	g := x.AddGroup([]byte("g"), stream.ID{}, 0)
	c, _ := g.AddConsumer([]byte("c"), 1)
	f, _ := bloom.New(tx.db.chunks, bloom.Config{Error: 0.001, Capacity: 200_000, Expansion: 2})
	name := func(rng *rand.Rand) []byte { return fmt.Append(nil, rng.IntN(5000)) }
	token := int64(0)
	type made = struct {
		box
		change func(rng *rand.Rand)
	}
	return map[Kind]made{
		Hash: {h, func(rng *rand.Rand) {
			h.Put(name(rng), make([]byte, rng.IntN(40)), rng.Int64N(100), 0)
			h.Delete(name(rng), 0)
			h.Reap(rng.Int64N(3), 2, func(dict.Item) {})
		}},
		Set: {s, func(rng *rand.Rand) {
			s.Put(name(rng), nil, rng.Int64N(2)*50, 0)
			s.Delete(name(rng), 0)
		}},
		ZSet: {z, func(rng *rand.Rand) {
			z.Put(name(rng), rng.Float64(), rng.Int64N(2)*50, 0)
			z.Delete(name(rng), 0)
		}},
		List: {l, func(rng *rand.Rand) {
			l.PushBack(name(rng), rng.Int64N(2)*50)
			l.PushFront(name(rng), 0)
			if it, ok := l.Seek(rng.IntN(l.Stored()), 0); ok && it.Next() && l.Stored() > 3000 {
				l.Remove(&it)
			}
		}},
		Stream: {x, func(rng *rand.Rand) {
			id := stream.ID{Ms: x.Last.Ms + 1}
			_ = x.Append(id, [][]byte{[]byte("f"), name(rng)}, stream.Node{Entries: 100})
			some := stream.ID{Ms: rng.Uint64N(id.Ms)}
			x.Delete(some)
			_ = g.Put(stream.Pending{ID: id, Consumer: c})
			g.Remove(some)
		}},
		DelayQueue: {queueBox{q}, func(rng *rand.Rand) {
			token++
			_ = q.Add(&delayq.Job{ID: fmt.Append(nil, "j", token), Payload: name(rng), Due: rng.Int64N(100)}, 1)
			if ref, ok := q.Next(100); ok && rng.IntN(2) == 0 {
				_ = q.Take(ref, token, 500)
			}
			if ref, ok := q.Find(fmt.Append(nil, "j", rng.Int64N(token)+1)); ok {
				q.Remove(ref)
			}
		}},
		Bloom: {bloomBox{f}, func(rng *rand.Rand) {
			_, _ = f.Add(bloom.HashOf(fmt.Append(nil, rng.Uint64())), 0)
		}},
	}
}

// boxText writes the whole content of a container.
func boxText(b box) string {
	var out []byte
	switch b := b.(type) {
	case walker:
		b.walk(0, func(it Item) { out = fmt.Appendf(out, "%s %s %v %d\n", it.Key, it.Value, it.Score, it.Deadline) })
	case streamBox:
		for it := b.Iter(stream.ID{}); it.Next(); {
			it.Fields()
			_, v := it.Field()
			out = fmt.Appendln(out, it.ID(), v.String())
		}
		for _, g := range b.Groups() {
			for it := g.PendingFrom(stream.ID{}); it.Next(); {
				out = fmt.Appendln(out, it.Pending().ID, it.Pending().Consumer.Name())
			}
		}
	case queueBox:
		b.Each(func(j Job) bool {
			out = fmt.Appendf(out, "%s %s %d %v\n", j.ID, j.Payload, j.Due, j.Leased)
			return true
		})
	case bloomBox:
		out = b.AppendDump(nil)
	}
	return string(out)
}

func TestAFrozenContainerIsReadWhileTheLiveOneGoesOn(t *testing.T) {
	db := Open(Options{Databases: 1, Shards: 1, Clock: clock.NewManual(epoch)})
	defer db.Close()
	tx := db.BeginAll(0)
	defer tx.Commit()
	before := db.chunks.Live()
	rng := rand.New(rand.NewPCG(1, 2))
	for kind, x := range boxes(tx) {
		for range 4000 {
			x.change(rng)
		}
		for turn := range 6 {
			want := boxText(x.box)
			f, err := x.Freeze(tx)
			if err != nil {
				t.Fatal(err)
			}
			read := make(chan string)
			go func() { read <- boxText(f) }()
			for range 300 {
				x.change(rng)
				x.Compact(20)
			}
			again, err := x.Freeze(tx)
			if err != nil || len(boxText(again)) != len(boxText(x.box)) {
				t.Fatalf("kind %v: a second copy, %v", kind, err)
			}
			discard(again)
			if turn == 5 {
				discard(x.box)
			}
			if got := <-read; got != want || boxText(f) != want {
				t.Fatalf("kind %v: the frozen copy has changed", kind)
			}
			discard(f)
		}
	}
	if n := db.chunks.Live() - before; n != 0 {
		t.Errorf("%d bytes of chunks left", n)
	}
}
