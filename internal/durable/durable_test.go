package durable

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/testing/crashfs"
)

func TestWhatIsSavedIsThereAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs)
		w.set("a", "1", "b", "2")
		if err := w.k.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.set("c", "3")
		i := w.k.Info()
		if i.Dirty != 1 || !i.LastSaveOK || i.Saves != 1 {
			t.Errorf("Info: %+v", i)
		}
		fs = fs.Crash()
		_ = w.close()
		w = run(t, fs)
		defer w.close()
		w.holds(t, "a", "1", "b", "2", "c", "")
	})
}

func TestWhatIsAcknowledgedUnderAlwaysSurvivesAPowerCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		for round := range 5 {
			w := run(t, fs, "appendonly", "yes", "appendfsync", "always")
			for i := range round {
				if got := w.get("k" + strconv.Itoa(i)); got != "v" {
					t.Fatalf("round %d: k%d is %q", round, i, got)
				}
			}
			if !w.acked(w.set("k"+strconv.Itoa(round), "v", "other", strconv.Itoa(round))) {
				t.Fatal("a write is not acknowledged")
			}
			fs = fs.Crash()
			_ = w.close()
		}
	})
}

// After a kill the system's memory has the data that was not synced. A value that a client reads
// after the restart stays.
func TestWhatIsReadAfterAKillSurvivesAPowerCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(20) {
			fs := newFS(seed)
			w := run(t, fs, "appendonly", "yes", "appendfsync", "no")
			w.set("a", "1")
			settle(time.Second)
			fs = fs.Kill()
			_ = w.close()
			w = run(t, fs, "appendonly", "yes", "appendfsync", "always")
			if w.get("a") != "1" {
				t.Fatalf("after the kill: a=%q", w.get("a"))
			}
			fs = fs.Crash()
			_ = w.close()
			w = run(t, fs, "appendonly", "yes")
			if w.get("a") != "1" {
				t.Fatalf("after the power cut: a=%q", w.get("a"))
			}
			_ = w.close()
		}
	})
}

func TestARewriteMakesOneSmallBase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs, "appendonly", "yes")
		for i := range 1000 {
			w.set("k", strconv.Itoa(i))
		}
		if err := w.k.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := w.k.Info().CurrentSize
		done, err := w.k.Turn(t.Context()) // so that the rewrite does not end meanwhile
		if err != nil {
			t.Fatal(err)
		}
		if scheduled, err := w.k.RewriteAOF(); scheduled || err != nil {
			t.Fatal(scheduled, err)
		}
		if _, err := w.k.RewriteAOF(); err != ErrRewriting {
			t.Errorf("a second rewrite: %v", err)
		}
		if _, err := w.k.BackgroundSave(false); err != ErrBusy {
			t.Errorf("BGSAVE beside a rewrite: %v", err)
		}
		if scheduled, err := w.k.BackgroundSave(true); !scheduled || err != nil {
			t.Errorf("BGSAVE SCHEDULE beside a rewrite: %v, %v", scheduled, err)
		}
		done()
		synctest.Wait()
		i := w.k.Info()
		if i.CurrentSize >= before || !i.LastRewriteOK || i.Rewriting || i.Saves != 1 || i.SaveScheduled {
			t.Errorf("from %d bytes: %+v", before, i)
		}
		w.set("l", "1")
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		w = run(t, fs, "appendonly", "yes")
		defer w.close()
		w.holds(t, "k", "999", "l", "1")
	})
}

// As redis-server 7.0.15: an RDB file is not loaded where appendonly is yes, and
// there is nothing in the new append-only files.
func TestAppendOnlyWithoutFilesLoadsNoRDB(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs)
		w.set("a", "1")
		if err := errors.Join(w.k.Save(t.Context()), w.close()); err != nil {
			t.Fatal(err)
		}
		w = run(t, fs, "appendonly", "yes")
		defer w.close()
		if got := w.get("a"); got != "" {
			t.Errorf("a is %q", got)
		}
		w.logged(t, "the RDB file is not loaded")
		names, err := fs.ReadDir(dir + "/appendonlydir")
		if want := "appendonly.aof.1.base.rdb appendonly.aof.1.incr.aof appendonly.aof.manifest"; err != nil || strings.Join(names, " ") != want {
			t.Errorf("%v, %v; want %s", names, err, want)
		}
	})
}

func TestTheRDBFileIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs)
		w.set("a", "1")
		if err := errors.Join(w.k.Save(t.Context()), w.close()); err != nil {
			t.Fatal(err)
		}
		for range 2 { // from the RDB file, and then from the append-only files
			w = newWorld(fs, w.clock, "appendonly", "yes")
			w.options.TakeRDB = true
			if err := w.open(t); err != nil || w.get("a") != "1" {
				t.Errorf("%v, a=%q", err, w.get("a"))
			}
			if err := w.close(); err != nil {
				t.Error(err)
			}
			_ = fs.Remove(dir + "/dump.rdb") // it may be gone
		}
	})
}

// A replica's data after a full synchronisation is in the files, and nothing of what
// was there before.
func TestReplacedDataGoesIntoNewFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs, "appendonly", "yes", "appendfsync", "always")
		if !w.acked(w.set("old", "1")) {
			t.Fatal("not acknowledged")
		}
		w.db.Log().Reset(5000)
		w.k.empty()
		w.tx.LockAll(0)
		w.tx.Replaying()
		_, _, _ = w.tx.Set([]byte("new"), []byte("2"), engine.SetOptions{}, nil)
		w.tx.Unlock()
		w.k.Replaced()
		synctest.Wait()
		if !w.acked(w.set("later", "3")) {
			t.Errorf("not acknowledged: %+v", w.k.Info())
		}
		fs = fs.Crash()
		_ = w.close()
		w = run(t, fs, "appendonly", "yes")
		w.holds(t, "old", "", "new", "2", "later", "3")
	})
}

func TestTheStreamGoesOnWhereTheRDBFileEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := newWorld(fs, clock.NewManual(start))
		w.options.Origin = func() (string, int64, int) { return "abc", 4711, 3 }
		if err := w.open(t); err != nil {
			t.Fatal(err)
		}
		w.set("a", "1")
		if err := errors.Join(w.k.Save(t.Context()), w.close()); err != nil {
			t.Fatal(err)
		}
		w = run(t, fs)
		if o := w.k.Origin(); o != (Origin{"abc", 4711, 3}) || w.db.Log().End() != 4711 {
			t.Errorf("%+v, the stream is at %d", o, w.db.Log().End())
		}
	})
}

func TestAppendOnlyIsSwitchedOnAndOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs, "appendfsync", "always")
		w.set("a", "1")
		if err := w.k.SetAppendOnly(true); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !w.k.AppendOnly() || !w.acked(w.set("b", "2")) {
			t.Fatal("nothing is appended")
		}
		if err := w.k.SetDir(); err != nil {
			t.Errorf("the same directory: %v", err)
		}
		fs = fs.Crash()
		_ = w.close()
		w = run(t, fs, "appendonly", "yes")
		w.holds(t, "a", "1", "b", "2")
		if err := w.k.SetAppendOnly(false); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		end := w.db.Log().End()
		w.set("c", "3")
		if w.k.AppendOnly() || w.db.Log().End() != end {
			t.Error("it still appends")
		}
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		w = run(t, fs, "appendonly", "yes")
		defer w.close()
		w.holds(t, "b", "2", "c", "")
	})
}

func TestSavePoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs, "save", "60 2")
		defer w.close()
		pass := func(d time.Duration) {
			w.clock.Advance(d)
			time.Sleep(idleTick) // the loop looks once a second
			synctest.Wait()
		}
		w.set("a", "1")
		pass(100 * time.Second)
		if n := w.k.Info().Saves; n != 0 {
			t.Errorf("%d saves for one change", n)
		}
		w.set("b", "1")
		pass(0)
		if i := w.k.Info(); i.Saves != 1 || i.Dirty != 0 || i.LastSave != w.clock.Micros()/1e6 {
			t.Errorf("%+v", i)
		}
		w.set("c", "1", "d", "1")
		pass(60 * time.Second)
		if n := w.k.Info().Saves; n != 1 {
			t.Errorf("%d saves after 60 s: more than 60 are needed", n)
		}
		heal := fs.Inject(crashfs.Fault{Op: crashfs.OpSync, Err: syscall.EIO})
		pass(time.Second)
		if i := w.k.Info(); i.LastSaveOK || i.Dirty != 2 || !strings.HasPrefix(w.refusal(), "MISCONF Redis is configured to save RDB snapshots") {
			t.Errorf("%+v, %q", i, w.refusal())
		}
		heal()
		pass(5 * time.Second)
		if n := w.k.Info().Saves; n != 1 {
			t.Error("a save began 5 s after one that failed")
		}
		pass(time.Second)
		if i := w.k.Info(); !i.LastSaveOK || i.Saves != 2 || w.refusal() != "" {
			t.Errorf("%+v, %q", i, w.refusal())
		}
	})
}

func TestWritesAreTakenWhenFailedSavesDoNotMatter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs, "save", "60 2")
		defer w.close()
		fs.SetReadOnly(true)
		if err := w.k.Save(t.Context()); !errors.Is(err, syscall.EROFS) || w.refusal() != "" {
			t.Errorf("%v; refused: %q, though SAVE has told its caller", err, w.refusal())
		}
		if _, err := w.k.BackgroundSave(false); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if w.refusal() == "" {
			t.Error("writes are taken")
		}
		if err := w.conf.Change(true, "stop-writes-on-bgsave-error", "no"); err != nil {
			t.Fatal(err)
		}
		if err := w.k.SetSavePoints(); err != nil || w.refusal() != "" { // as soon as it returns
			t.Errorf("%v; refused: %s", err, w.refusal())
		}
	})
}

// A client that waits for aof_rewrite_in_progress:0 waits for the first files.
func TestTheFirstFilesAreARewriteFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, newFS(1))
		defer w.close()
		if err := w.conf.Change(true, "appendonly", "yes"); err != nil {
			t.Fatal(err)
		}
		began := w.k.Info().Rewrites
		if err := w.k.SetAppendOnly(true); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if i := w.k.Info(); i.Rewriting || i.Rewrites != began+1 || i.BaseSize == 0 {
			t.Errorf("in the end %+v", i)
		}
	})
}

func TestGrowthStartsARewrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, newFS(1), "appendonly", "yes", "auto-aof-rewrite-min-size", "2000", "auto-aof-rewrite-percentage", "50")
		defer w.close()
		began := w.k.Info().Rewrites // the first base
		for range 100 {
			w.set("k", "v")
		}
		time.Sleep(2 * idleTick)
		if i := w.k.Info(); i.Rewrites != began+1 || !i.LastRewriteOK || i.CurrentSize > 1000 {
			t.Errorf("%+v", i)
		}
	})
}

func TestTwoKeepersOnOneDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs, "save", "3600 1")
		defer w.close()
		x := newWorld(fs, w.clock, "appendonly", "yes")
		defer x.close()
		_, err := Open(x.options)
		var locked *disk.LockedError
		if !errors.As(err, &locked) || locked.PID == 0 || !strings.Contains(err.Error(), strconv.Itoa(locked.PID)) {
			t.Errorf("%v", err)
		}
	})
}

// Servers whose configuration does not say where they keep their data share the working directory,
// as redis-server's do: a harness starts many of them.
func TestServersThatShareADirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		shared := func() *world {
			w := newWorld(fs, clock.NewManual(start), "save", "60 1")
			w.options.Shared = true
			t.Cleanup(func() { _ = w.close() })
			if err := w.open(t); err != nil {
				t.Fatal(err)
			}
			return w
		}
		a, b := shared(), shared()
		for _, w := range []*world{a, b, a} {
			w.set("k", "v")
			if err := w.k.Save(t.Context()); err != nil {
				t.Errorf("SAVE: %v", err)
			}
			w.tx.LockAll(0)
			w.k.Emptied(w.tx)
			w.tx.Unlock()
			if i := w.k.Info(); !i.LastSaveOK || i.Dirty != 0 {
				t.Errorf("behind FLUSHALL: %+v", i)
			}
		}

		owner := run(t, fs, "save", "3600 1") // it has a lock, and the shared ones leave their saves out
		a.set("k", "v")
		a.clock.Advance(61 * time.Second)
		time.Sleep(idleTick)
		synctest.Wait()
		if i := a.k.Info(); i.LastSaveOK || i.Dirty != 1 || a.refusal() != "" {
			t.Errorf("a save point: %+v, %q", i, a.refusal())
		}
		if !a.logs.has("is in use by process") {
			t.Error("the log does not say that the save was left out")
		}
		if err := a.k.Shutdown(t.Context(), ShutdownDefault, false); err != nil {
			t.Errorf("the end: %v", err)
		}
		if err := owner.close(); err != nil {
			t.Error(err)
		}
		a.clock.Advance(6 * time.Second)
		time.Sleep(idleTick)
		synctest.Wait()
		if i := a.k.Info(); !i.LastSaveOK || i.Dirty != 0 {
			t.Errorf("the owner has gone: %+v", i)
		}
	})
}

// A directory in which nothing is kept by itself is shared, and what then wants to write
// there has it for itself.
func TestADirectoryIsLockedWhileSomethingIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		a, b := run(t, fs), run(t, fs)
		set := func(w *world, name, value string, apply func() error) error {
			if err := w.conf.Change(true, name, value); err != nil {
				t.Fatal(err)
			}
			return apply()
		}
		free := func() bool {
			l, err := fs.Lock(dir)
			return err == nil && l.Close() == nil
		}
		refused := func(what string, err error) {
			t.Helper()
			var locked *disk.LockedError
			if !errors.As(err, &locked) {
				t.Errorf("%s of the other: %v", what, err)
			}
		}
		a.set("k", "a")
		if !free() {
			t.Error("a directory in which nothing is kept is locked")
		}
		if err := a.k.Save(t.Context()); err != nil || !free() {
			t.Errorf("SAVE: %v, and the directory stays locked", err)
		}
		if err := b.k.Save(t.Context()); err != nil {
			t.Errorf("SAVE of the other: %v", err)
		}

		if err := set(a, "save", "3600 1", a.k.SetSavePoints); err != nil || free() {
			t.Errorf("save points: %v", err)
		}
		refused("SAVE", b.k.Save(t.Context()))
		_, err := b.k.BackgroundSave(false)
		refused("BGSAVE", err)
		_, err = b.k.RewriteAOF()
		refused("BGREWRITEAOF", err)
		refused("appendonly", set(b, "appendonly", "yes", func() error { return b.k.SetAppendOnly(true) }))
		_ = set(b, "appendonly", "no", func() error { return b.k.SetAppendOnly(false) })
		refused("save points", set(b, "save", "1 1", b.k.SetSavePoints))
		_ = set(b, "save", "", b.k.SetSavePoints)

		if err := set(a, "save", "", a.k.SetSavePoints); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if !free() {
			t.Error("the directory stays locked")
		}
		if err := set(b, "appendonly", "yes", func() error { return b.k.SetAppendOnly(true) }); err != nil || free() {
			t.Errorf("appendonly: %v", err)
		}
		time.Sleep(2 * idleTick)
		if !b.k.AppendOnly() {
			t.Error("nothing is appended")
		}
		refused("save points", set(a, "save", "1 1", a.k.SetSavePoints))
		_ = set(a, "save", "", a.k.SetSavePoints)
		if err := set(b, "appendonly", "no", func() error { return b.k.SetAppendOnly(false) }); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * idleTick)
		if !free() {
			t.Error("the directory stays locked behind appendonly no")
		}
	})
}

func TestAMissingFileIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := newFS(1)
		w := run(t, fsys, "appendonly", "yes")
		w.set("a", "1")
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		if err := fsys.Remove(dir + "/appendonlydir/appendonly.aof.1.incr.aof"); err != nil {
			t.Fatal(err)
		}
		x := newWorld(fsys, w.clock, "appendonly", "yes")
		defer x.close()
		_, err := Open(x.options)
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "appendonly.aof.1.incr.aof is missing") {
			t.Errorf("%v", err)
		}
		if _, err := fsys.Lock(dir); err != nil {
			t.Errorf("the directory stays locked: %v", err)
		}
	})
}

func TestAReadOnlyDirectoryCanBeLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs)
		w.set("a", "1")
		if err := errors.Join(w.k.Save(t.Context()), w.close()); err != nil {
			t.Fatal(err)
		}
		x := newWorld(fs, w.clock, "appendonly", "yes")
		fs.SetReadOnly(true)
		if err := x.open(t); !errors.Is(err, syscall.EROFS) {
			t.Errorf("appendonly yes: %v", err)
		}
		_ = x.close()
	})
}

func TestAClockThatIsBehindTheFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs)
		token := w.token()
		if err := errors.Join(w.k.Save(t.Context()), w.close()); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			back   time.Duration
			accept bool
			want   time.Time // engine time after the start
			err    error
		}{
			{0, false, start, nil},
			{10 * time.Minute, false, start, nil},
			{2 * time.Hour, false, start.Add(-2 * time.Hour), ErrClockBehind},
			{2 * time.Hour, true, start.Add(-2 * time.Hour), nil},
			{-2 * time.Hour, false, start.Add(2 * time.Hour), nil},
		} {
			x := newWorld(fs, clock.NewManual(start.Add(-c.back)))
			x.options.AcceptClock = c.accept
			err := x.open(t)
			if !errors.Is(err, c.err) || x.clock.Micros() != c.want.UnixMicro() {
				t.Errorf("%v behind: %v, engine time %v", c.back, err, time.UnixMicro(x.clock.Micros()).UTC())
			}
			if err != nil && !strings.Contains(err.Error(), "--accept-clock yes") {
				t.Errorf("%v", err)
			}
			if next := x.token(); err == nil && next <= token+tokenLeap {
				t.Errorf("%v behind: a token of %d after one of %d", c.back, next, token)
			}
			_ = x.close()
		}
	})
}

// token takes a fencing token.
func (w *world) token() int64 {
	w.tx.Lock(0, nil)
	defer w.tx.Unlock()
	return w.tx.NextToken()
}

func TestLeftoversAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		for _, n := range []string{"temp-12.rdb", "temp-ebb-sync-12.rdb", "temp-rewriteaof-12.aof", "temp-rewriteaof-bg-12.aof",
			"temp-mine.rdb", "temp-12.aof",
			"dump.rdb.bak"} {
			f, err := fs.Create(dir + "/" + n)
			if err != nil {
				t.Fatal(err)
			}
			_ = f.Close()
		}
		w := run(t, fs, "save", "3600 1")
		defer w.close()
		names, _ := fs.ReadDir(dir)
		if got := strings.Join(names, " "); !strings.Contains(got, "dump.rdb.bak") || strings.Contains(got, "-12.rdb") ||
			strings.Contains(got, "rewriteaof") ||
			!strings.Contains(got, "temp-mine.rdb temp-12.aof") && !strings.Contains(got, "temp-12.aof temp-mine.rdb") {
			t.Errorf("%s", got)
		}
	})
}

func TestReloadAndLoadAOF(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, newFS(1), "appendonly", "yes")
		defer w.close()
		var gate []bool
		w.k.o.SetLoading = func(on bool) { gate = append(gate, on) }
		w.set("a", "1", "b", "2")
		if err := w.k.Reload(t.Context(), ReloadOptions{}); err != nil || w.get("a") != "1" {
			t.Errorf("reload: %v, a=%q", err, w.get("a"))
		}
		if len(gate) == 0 || !gate[0] || gate[len(gate)-1] {
			t.Errorf("the gate: %v", gate)
		}
		w.set("b", "3")
		if err := w.k.LoadAOF(t.Context()); err != nil || w.get("a") != "1" || w.get("b") != "3" {
			t.Errorf("load: %v, a=%q b=%q", err, w.get("a"), w.get("b"))
		}
		if i := w.k.Info(); i.Loading || i.Dirty != 0 {
			t.Errorf("%+v", i)
		}
	})
}

func TestWithoutADirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(newFS(1), clock.NewManual(start))
		w.options.Memory = true
		if err := w.open(t); err != nil {
			t.Fatal(err)
		}
		defer w.close()
		var gate []bool
		w.k.o.SetLoading = func(on bool) { gate = append(gate, on) }
		w.set("a", "1")
		_, err1 := w.k.BackgroundSave(false)
		_, err2 := w.k.RewriteAOF()
		for _, err := range []error{err1, err2, w.k.Save(t.Context()), w.k.SetAppendOnly(true), w.k.LoadAOF(t.Context()),
			w.k.Shutdown(t.Context(),
				ShutdownSave, false)} {
			if err != ErrNoDirectory {
				t.Errorf("%v", err)
			}
		}
		var b bytes.Buffer
		if err := w.k.Backup(t.Context(), &b); err != nil || !bytes.HasPrefix(b.Bytes(), []byte("REDIS")) {
			t.Errorf("%v, %q", err, b.Bytes())
		}
		if err := w.k.Reload(t.Context(), ReloadOptions{}); err != nil || w.get("a") != "1" {
			t.Errorf("%v, a=%q", err, w.get("a"))
		}
		if len(gate) == 0 || !gate[0] || gate[len(gate)-1] {
			t.Errorf("the gate: %v", gate)
		}
		if err := errors.Join(w.k.Sync(t.Context()), w.k.Shutdown(t.Context(), ShutdownDefault, false)); err != nil {
			t.Error(err)
		}
	})
}

func TestATurnIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, newFS(1))
		defer w.close()
		done, err := w.k.Turn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.k.BackgroundSave(false); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if i := w.k.Info(); !i.Saving || i.Saves != 0 {
			t.Errorf("%+v", i)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.k.Turn(ctx); err != context.DeadlineExceeded {
			t.Errorf("%v", err)
		}
		done()
		done() // once is enough
		synctest.Wait()
		if i := w.k.Info(); i.Saving || i.Saves != 1 {
			t.Errorf("%+v", i)
		}
	})
}

func TestAShutdownSavesWhereThereAreSavePoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			save string
			mode ShutdownMode
			want int64
		}{{"", ShutdownDefault, 0}, {"60 1", ShutdownDefault, 1}, {"60 1", ShutdownNoSave, 0}, {"", ShutdownSave, 1}} {
			w := run(t, newFS(1), "save", c.save)
			w.set("a", "1")
			if err := w.k.Shutdown(t.Context(), c.mode, false); err != nil || w.k.Info().Saves != c.want {
				t.Errorf("%+v: %v, %d saves", c, err, w.k.Info().Saves)
			}
			_ = w.close()
		}
	})
}

// What a shutdown calls off has not failed, and it waits for nothing that it could
// call off.
func TestAShutdownCallsTheJobUnderWayOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, newFS(1), "save", "60 1")
		w.set("a", "1")
		done, err := w.k.Turn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.k.BackgroundSave(false); err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(time.Hour) // a save point is due all the time
		ended := make(chan error, 1)
		go func() { ended <- w.k.Shutdown(t.Context(), ShutdownSave, false) }()
		synctest.Wait()
		if i := w.k.Info(); !i.LastSaveOK || !i.Saving || w.refusal() != "" {
			t.Errorf("%+v, refused: %q", i, w.refusal())
		}
		done()
		if err := <-ended; err != nil || w.k.Info().Saves != 1 {
			t.Errorf("%v, %d saves", err, w.k.Info().Saves)
		}
	})
}

// Clients that were let in before what they write goes into files would lose it.
func TestTheGateOpensWhenWritesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs, "appendonly", "yes")
		w.set("a", "1")
		_ = w.close()
		w = newWorld(fs, clock.NewManual(start), "appendonly", "yes")
		defer w.close()
		closed := 0
		w.options.SetLoading = func(on bool) {
			if on {
				closed++
			} else if !w.k.AppendOnly() {
				t.Error("opened before anything is appended")
			}
		}
		if err := w.open(t); err != nil || closed != 1 {
			t.Errorf("%v, closed %d times", err, closed)
		}
	})
}

// A shutdown in the middle of a load saves nothing: the file has more than the engine.
func TestAShutdownDoesNotSaveAPartOfTheData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs, "save", "60 1")
		w.set("a", "1")
		if err := w.k.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		_ = w.close()

		w = newWorld(fs, clock.NewManual(start), "save", "60 1")
		defer w.close()
		shut := 0
		w.options.SetLoading = func(on bool) {
			for _, mode := range []ShutdownMode{ShutdownDefault, ShutdownSave} {
				if shut++; !on || shut > 2 {
					return
				}
				if err := w.k.Shutdown(t.Context(), mode, false); err != nil {
					t.Error(err)
				}
			}
		}
		if err := w.open(t); err != nil || w.get("a") != "1" {
			t.Errorf("%v; a is %q", err, w.get("a"))
		}

		done, err := w.k.Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.del("a")
		w.clock.Advance(time.Hour) // a save point is due
		time.Sleep(3 * idleTick)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.k.Shutdown(ctx, ShutdownSave, false); err != nil || w.k.Info().Saves != 0 {
			t.Errorf("while the data is replaced: %v, %d saves", err, w.k.Info().Saves)
		}
		done()
		time.Sleep(3 * idleTick)
		if n := w.k.Info().Saves; n != 1 {
			t.Errorf("%d saves", n)
		}
	})
}

// A caller that is about to replace all data does not wait for the job under way.
func TestAReplacementOfTheDataCallsJobsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, newFS(1), "appendonly", "yes")
		first, err := w.k.Turn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.k.RewriteAOF(); err != nil {
			t.Fatal(err)
		}
		held := make(chan func(), 1)
		go func() {
			done, err := w.k.Hold(t.Context())
			if err != nil {
				t.Error(err)
			}
			held <- done
		}()
		synctest.Wait()
		if i := w.k.Info(); i.Rewriting || !i.LastRewriteOK {
			t.Errorf("%+v", i)
		}
		first()
		(<-held)()
	})
}

// The engine may be closed when Close has returned: no goroutine still reads it.
func TestCloseWaitsForABackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, newFS(1))
		w.set("a", "1")
		r, out := io.Pipe() // which takes nothing yet
		backup, closed := make(chan error, 1), make(chan error, 1)
		go func() { backup <- w.k.Backup(t.Context(), out) }()
		synctest.Wait()
		go func() { closed <- w.k.Close() }()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("closed while a backup is under way")
		default:
		}
		go func() { _, _ = io.Copy(io.Discard, r) }()
		if err := <-backup; err != nil && !errors.Is(err, ErrClosed) { // all may have been written by then
			t.Errorf("the backup ends with %v", err)
		}
		_ = out.Close()
		if err := w.k.Backup(t.Context(), io.Discard); !errors.Is(err, ErrClosed) {
			t.Errorf("a backup of closed files: %v", err)
		}
	})
}

// What is read ahead, and read again, counts twice: a load was at 104 %.
func TestALoadIsNeverMoreThanWhole(t *testing.T) {
	for _, x := range []struct{ read, total, want int64 }{{50, 100, 50}, {104, 100, 100}, {104, 0, 104}} {
		l := loading{run: &loadRun{}}
		l.run.read.Store(x.read)
		l.run.total.Store(x.total)
		var i Info
		l.info(&i, 10_000_000)
		if i.LoadingLoaded != x.want || i.LoadingETA < 0 {
			t.Errorf("%d of %d bytes: %+v", x.read, x.total, i)
		}
	}
}
