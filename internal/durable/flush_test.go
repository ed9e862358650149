package durable

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/testing/crashfs"
)

// flushAll does what FLUSHALL does.
func (w *world) flushAll() {
	w.tx.LockAll(0)
	w.tx.Flush(-1)
	w.k.Emptied(w.tx)
	w.tx.Unlock()
}

// after starts again on what a crash leaves.
func after(t *testing.T, w *world, pairs ...string) *world {
	t.Helper()
	return run(t, w.fs.Crash(), pairs...)
}

func TestWhatFlushAllRemovesDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		points := []string{"save", "3600 1"}
		w := run(t, newFS(1), points...)
		w.set("a", "1")
		if err := w.k.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.flushAll()
		if i := w.k.Info(); i.Dirty != 0 || !i.LastSaveOK || i.Saves != 2 {
			t.Errorf("%+v", i)
		}
		x := after(t, w, points...)
		x.holds(t, "a", "")
		x.set("b", "2")
		if err := x.k.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Without save points the file stays, as in Redis.
		y := after(t, x)
		y.flushAll()
		after(t, y).holds(t, "b", "2")
	})
}

// A save that began before has older data.
func TestASaveUnderWayDoesNotUndoFlushAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		points := []string{"save", "3600 1"}
		w := run(t, newFS(1), points...)
		w.set("a", "1")
		w.fs.SetSyncTime(time.Second)
		if _, err := w.k.BackgroundSave(false); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the file is written, and being synced
		w.flushAll()
		time.Sleep(10 * time.Second)
		if i := w.k.Info(); i.Saving || !i.LastSaveOK {
			t.Errorf("%+v", i)
		}
		after(t, w, points...).holds(t, "a", "")
	})
}

func TestAFlushAllThatCannotBeSavedIsAFailedSave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, newFS(1), "save", "3600 1")
		heal := w.fs.Inject(crashfs.Fault{Op: crashfs.OpSync, Err: syscall.EIO})
		w.flushAll()
		synctest.Wait()
		if i := w.k.Info(); i.LastSaveOK || w.refusal() == "" {
			t.Errorf("%+v, refusal %q", i, w.refusal())
		}
		heal()
		w.flushAll()
		synctest.Wait()
		if i := w.k.Info(); !i.LastSaveOK || w.refusal() != "" {
			t.Errorf("%+v, refusal %q", i, w.refusal())
		}
	})
}

// While data is being loaded, or replaced, FLUSHALL is a part of that.
func TestAFlushAllOfALoadSavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, newFS(1), "save", "3600 1")
		w.set("a", "1")
		if err := w.k.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		x := newWorld(w.fs.Crash(), clock.NewManual(start), "save", "3600 1")
		defer x.close()
		var err error
		if x.k, err = Open(x.options); err != nil {
			t.Fatal(err)
		}
		x.flushAll() // Start has not been called
		after(t, x).holds(t, "a", "1")
	})
}

// A save whose caller hears that it has failed refuses nothing: a shutdown that could not
// save leaves the server as it was, as in Redis.
func TestASaveThatACallerWaitsForDoesNotRefuseWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, newFS(1), "save", "3600 1")
		heal := w.fs.Inject(crashfs.Fault{Op: crashfs.OpCreate, Err: syscall.ENOSPC})
		if err := w.k.Shutdown(t.Context(), ShutdownDefault, false); !errors.Is(err, syscall.ENOSPC) {
			t.Error(err)
		}
		if err := w.k.Save(t.Context()); !errors.Is(err, syscall.ENOSPC) {
			t.Error(err)
		}
		synctest.Wait()
		if i := w.k.Info(); !i.LastSaveOK || w.refusal() != "" {
			t.Errorf("%+v, refusal %q", i, w.refusal())
		}
		if _, err := w.k.BackgroundSave(false); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if w.refusal() == "" {
			t.Error("a background save that has failed refuses nothing")
		}
		heal()
		if err := w.k.Save(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if w.refusal() != "" {
			t.Errorf("a save that has succeeded does not end the refusal: %q", w.refusal())
		}
	})
}
