package oplog

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/internal/testing/crashfs"
)

// batching is appending under Always after some syncs without delay, so a batch is synced at its end.
func batching(t *testing.T, f func(b *bench, fs *crashfs.FS)) {
	appending(t, AppenderOptions{Policy: Always}, func(b *bench, fs *crashfs.FS) {
		for range 10 {
			b.set()
		}
		b.n = 0
		f(b, fs)
	})
}

// begin begins a batch and runs SET key n in it.
func (b *bench) begin() (end int64) {
	b.Helper()
	if !b.log.BeginBatch() {
		b.Fatal("the files do not wait for the batch, though syncs are fast")
	}
	return b.set()
}

func TestABatchIsSyncedAtItsEnd(t *testing.T) {
	batching(t, func(b *bench, fs *crashfs.FS) {
		var w woken
		writes, syncs := fs.Count(crashfs.OpWrite), fs.Count(crashfs.OpSync)
		var last int64
		for range 3 {
			last = b.begin()
			if b.log.OnBatchSettled(last, &w) {
				t.Error("synced before the end of the batch")
			}
		}
		if n := fs.Count(crashfs.OpSync) - syncs; n != 0 || w.n.Load() != 0 {
			t.Errorf("%d syncs before the end of the batch, %d woken", n, w.n.Load())
		}
		b.log.EndBatch() // the first loop's batch; it also covers the bytes of the others
		if b.log.Synced() != last || b.log.Written() != last || w.n.Load() != 3 {
			t.Errorf("after the batch: synced %d, written %d of %d, %d woken", b.log.Synced(), b.log.Written(), last, w.n.Load())
		}
		b.log.EndBatch()
		b.log.EndBatch()
		if n, m := fs.Count(crashfs.OpWrite)-writes, fs.Count(crashfs.OpSync)-syncs; n != 1 || m != 1 {
			t.Errorf("%d writes and %d syncs for three batches at once", n, m)
		}
		if last = b.set(); b.log.Synced() != last {
			t.Error("without a batch the goroutine does not sync")
		}
	})
}

func TestAWaiterOutsideOfABatchDoesNotWaitForItsEnd(t *testing.T) {
	batching(t, func(b *bench, _ *crashfs.FS) {
		var w woken
		last := b.begin()
		if b.log.OnSynced(last, &w) {
			t.Error("synced before the first question")
		}
		if synctest.Wait(); b.log.Synced() != last || w.n.Load() != 1 {
			t.Errorf("synced %d of %d in a batch that goes on, %d woken", b.log.Synced(), last, w.n.Load())
		}
		b.log.EndBatch()
	})
}

func TestSlowSyncsAreNotForBatches(t *testing.T) {
	appending(t, AppenderOptions{Policy: Always}, func(b *bench, fs *crashfs.FS) {
		if b.log.BeginBatch() {
			t.Error("a batch began before a sync was measured as fast")
		}
		for _, x := range []struct {
			took  time.Duration
			quick bool
		}{{100 * time.Microsecond, true}, {5 * time.Millisecond, false}, {100 * time.Microsecond, true}} {
			fs.SetSyncTime(x.took)
			for range 40 {
				b.set()
				time.Sleep(3 * x.took)
			}
			if on := b.log.BeginBatch(); on != x.quick {
				t.Errorf("with syncs of %v: %v", x.took, on)
			} else if on {
				b.log.EndBatch()
			}
		}
		fs.SetSyncTime(20 * time.Millisecond)
		b.set()
		time.Sleep(time.Second)
		if !b.log.BeginBatch() {
			t.Error("one sync took long, and they no longer count as fast")
		}
		fs.SetSyncTime(0)
		b.log.EndBatch()
		b.a.SetPolicy(EverySec)
		if b.log.BeginBatch() {
			t.Error("a batch began although no client waits for syncs")
		}
	})
}

func TestAFailedSyncAtTheEndOfABatchIsNeverTriedAgain(t *testing.T) {
	batching(t, func(b *bench, fs *crashfs.FS) {
		var w woken
		last := b.begin()
		b.log.OnBatchSettled(last, &w)
		fs.Inject(crashfs.Fault{Op: crashfs.OpSync, Err: syscall.EIO, Times: 1})
		before := b.log.Synced()
		b.log.EndBatch()
		if !errors.Is(b.log.Failure(), syscall.EIO) || b.log.Synced() != before || w.n.Load() != 1 {
			t.Errorf("%v; synced %d of %d; %d woken", b.log.Failure(), b.log.Synced(), last, w.n.Load())
		}
		syncs := fs.Count(crashfs.OpSync)
		for range 5 { // the disk refuses everything but the operation under way
			if b.log.BeginBatch() {
				b.set()
				b.log.EndBatch()
			}
			time.Sleep(time.Second)
		}
		if n := fs.Count(crashfs.OpSync) - syncs; n != 0 || b.log.Synced() != before || b.log.Failure() == nil || !b.a.Stats().Holes {
			t.Errorf("%d syncs more, synced %d, %v", n, b.log.Synced(), b.log.Failure())
		}
		b.a.BeginRewrite(b.log.Cut())
		synctest.Wait()
		b.must(b.base("SET base 1"))
		last = b.begin()
		b.log.EndBatch()
		if b.log.Failure() != nil || b.log.Synced() != last {
			t.Errorf("after a rewrite: %v, synced %d of %d", b.log.Failure(), b.log.Synced(), last)
		}
		b.crash(fs)
		b.wantLoaded(fmt.Sprint("SET base 1; SELECT 0; SET key ", b.n-1))
	})
}

func TestAFailedWriteAtTheEndOfABatchIsTriedAgain(t *testing.T) {
	batching(t, func(b *bench, fs *crashfs.FS) {
		var w woken
		b.begin()
		last := b.set()
		b.log.OnBatchSettled(last, &w)
		fs.Inject(crashfs.Fault{Op: crashfs.OpWrite, Err: syscall.ENOSPC, Times: 1, Short: 5})
		b.log.EndBatch()
		for range 2 {
			if !errors.Is(b.log.Failure(), syscall.ENOSPC) || b.log.Synced() >= last || w.n.Load() != 1 {
				t.Errorf("%v; synced %d of %d; %d woken", b.log.Failure(), b.log.Synced(), last, w.n.Load())
			}
			time.Sleep(retryAfter - time.Millisecond) // no goroutine uses the files before that
		}
		synctest.Wait()
		if b.log.Failure() != nil || b.log.Synced() != last {
			t.Errorf("there is room again: %v; synced %d of %d", b.log.Failure(), b.log.Synced(), last)
		}
		b.begin()
		b.log.EndBatch()
		b.crash(fs)
		if got, want := b.loaded(), "SET key 9; SET key 0; SET key 1; SET key 2"; len(got) < len(want) || got[len(got)-len(want):] != want {
			t.Errorf("the files end in %q", got)
		}
	})
}

func TestABatchStopsAtACut(t *testing.T) {
	batching(t, func(b *bench, fs *crashfs.FS) {
		b.begin()
		x := b.a.BeginRewrite(b.log.Cut())
		end, _ := b.log.Append(Unit{Commands: 1, Bytes: request("SET after cut")})
		b.log.EndBatch() // before the goroutine can run
		b.must(x.Wait(context.Background()))
		synctest.Wait()
		if b.log.Synced() != end {
			t.Errorf("synced %d of %d", b.log.Synced(), end)
		}
		b.must(b.base("SET base 1"))
		b.crash(fs)
		b.wantLoaded("SET base 1; SELECT 0; SET after cut")
	})
}
