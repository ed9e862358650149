package engine

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// waiting is a writer that blocks until the test frees it.
type waiting struct{ reached, free chan struct{} }

func (w waiting) Write(b []byte) (int, error) {
	select {
	case w.reached <- struct{}{}:
	case <-w.free:
	}
	<-w.free
	return len(b), nil
}

// TestAFreezeUnderASnapshotCopiesNothing: the first write to a large container during a snapshot freezes the
// container under the shard's lock, whatever its kind. The freeze allocates a directory, but no memory for
// items: the two share their chunks. The write itself copies the chunk that it changes.
func TestAFreezeUnderASnapshotCopiesNothing(t *testing.T) {
	db := Open(Options{Databases: 16, Shards: 1, Clock: clock.NewManual(epoch)})
	defer db.Close()
	tx := db.BeginAll(0)
	rng := rand.New(rand.NewPCG(1, 2))
	all := boxes(tx)
	changes := 20_000
	if tier.Short() {
		changes = 5_000
	}
	for kind, x := range all {
		for range changes {
			x.change(rng)
		}
		tx.Select(int(kind)) // each kind has buckets of its own
		h := tx.find([]byte("k"))
		if err := tx.putBox(&h, []byte("k"), x.box, spec{flags: uint8(kind)}); err != nil {
			t.Fatal(err)
		}
	}
	tx.Commit()
	for range 2 { // the second snapshot runs on the state that the first has left
		w := waiting{make(chan struct{}), make(chan struct{})}
		done := make(chan error)
		go func() {
			out := rdb.NewWriter(w, rdb.WriterOptions{})
			done <- db.Snapshot(context.Background(), out, SnapshotOptions{Preamble: func(out *rdb.Writer, _ int) error {
				out.Header(0)
				return out.Flush()
			}})
		}()
		<-w.reached
		for kind, x := range all {
			shares := x.box.(interface{ Frozen() bool }).Frozen
			if shares() {
				t.Errorf("kind %v: it is frozen before the write", kind)
			}
			tx := db.Begin(int(kind), []byte("k"))
			var before, after runtime.MemStats
			live := db.chunks.Live()
			runtime.ReadMemStats(&before)
			tx.find([]byte("k"))
			runtime.ReadMemStats(&after)
			chunks, heap := db.chunks.Live()-live, int(after.TotalAlloc-before.TotalAlloc)
			if !shares() || chunks != 0 || heap > x.Size()/8 {
				t.Errorf("kind %v: shared %v, %d bytes of chunks and %d others taken for a container of %d", kind, shares(), chunks, heap, x.Size())
			}
			x.change(rng)
			t.Logf("kind %v: %d KiB: the freeze takes %d bytes, the first change copies %d KiB", kind, x.Size()>>10, heap, (db.chunks.Live()-live)>>10)
			tx.Commit()
		}
		close(w.free)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}
