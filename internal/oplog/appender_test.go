package oplog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/testing/crashfs"
)

// bench is a log that is appended to files.
type bench struct {
	*testing.T
	fs    disk.FS
	log   *Log
	files *Files
	a     *Appender
	n     int
}

// appending runs f in virtual time, with an appender on a disk.
func appending(t *testing.T, o AppenderOptions, f func(b *bench, fs *crashfs.FS)) {
	synctest.Test(t, func(t *testing.T) {
		fs := crashfs.New(1)
		b := &bench{T: t, fs: fs, log: New(100)}
		b.files = b.open()
		b.a = NewAppender(b.log, b.files, o)
		x, err := b.a.Start(b.log.Cut())
		b.must(err)
		b.must(x.Wait(context.Background()))
		f(b, fs)
		_ = b.a.Close()
	})
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) crash(fs *crashfs.FS) {
	b.fs = fs.Crash()
	b.files = b.open()
}

func (b *bench) open() *Files {
	b.Helper()
	files, err := OpenFiles(b.fs, worldDir, "a.aof")
	b.must(err)
	return files
}

// set appends SET key n, and waits until all goroutines are idle. It returns the offset after it.
func (b *bench) set() (end int64) {
	end, _ = b.log.Append(Unit{Commands: 1, Bytes: request(fmt.Sprint("SET key ", b.n))})
	b.n++
	synctest.Wait()
	return end
}

// base writes and commits a base.
func (b *bench) base(commands ...string) error {
	f, err := b.fs.Create("/data/temp-base")
	b.must(err)
	_, err = f.Write(request(commands...))
	b.must(errors.Join(err, f.Sync(), f.Close()))
	return b.a.CommitRewrite("/data/temp-base")
}

// loaded returns the commands in the files.
func (b *bench) loaded() string {
	b.Helper()
	var all []string
	time.Sleep(2 * pause) // until the content of the log is written
	_, err := b.files.Load(Loader{CutTail: true, Command: func(args [][]byte, _ Place) error {
		all = append(all, string(bytes.Join(args, []byte(" "))))
		return nil
	}})
	b.must(err)
	return strings.Join(all, "; ")
}

func (b *bench) wantLoaded(want string) {
	b.Helper()
	if got := b.loaded(); got != want {
		b.Errorf("the files hold %q, want %q", got, want)
	}
}

// woken counts its calls of Wake.
type woken struct{ n atomic.Int64 }

func (w *woken) Wake() { w.n.Add(1) }

func TestAlwaysOneSyncCoversAllThatWait(t *testing.T) {
	appending(t, AppenderOptions{Policy: Always}, func(b *bench, fs *crashfs.FS) {
		if !b.log.Always() {
			t.Error("the log does not know that nothing may be said")
		}
		before := fs.Count(crashfs.OpSync)
		fs.SetSyncTime(time.Millisecond)
		var w woken
		var last int64
		for i := range 100 {
			last, _ = b.log.Append(Unit{Commands: 1, Bytes: request(fmt.Sprint("SET key ", i))})
			b.log.OnSynced(last, &w)
		}
		time.Sleep(3 * time.Millisecond)
		if n := fs.Count(crashfs.OpSync) - before; n < 1 || n > 2 || w.n.Load() != 100 {
			t.Errorf("%d syncs for 100 transactions at once, %d woken", n, w.n.Load())
		}
		if b.log.Synced() != last || b.log.Written() != last {
			t.Errorf("synced %d and written %d of %d", b.log.Synced(), b.log.Written(), last)
		}
	})
}

func TestEverySecSyncsWithinASecondAndNotMoreOften(t *testing.T) {
	appending(t, AppenderOptions{}, func(b *bench, fs *crashfs.FS) {
		before := fs.Count(crashfs.OpSync)
		var ends []int64
		for range 50 { // 5 s
			ends = append(ends, b.set())
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if n := len(ends); n > 11 && b.log.Synced() < ends[n-11] {
				t.Fatalf("not synced after 1.1 s: %d of %v", b.log.Synced(), ends)
			}
		}
		if n := fs.Count(crashfs.OpSync) - before; n < 4 || n > 6 {
			t.Errorf("%d syncs in 5 s", n)
		}
		if s := b.a.Stats(); s.Buffered != 0 || s.Delayed != 0 || s.PendingSync != 0 || s.WriteErr != nil || s.CurrentSize == 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestASlowSyncHoldsUpNoWriteAndIsCounted(t *testing.T) {
	appending(t, AppenderOptions{}, func(b *bench, fs *crashfs.FS) {
		b.set()
		time.Sleep(syncInterval)
		fs.SetSyncTime(3 * time.Second)
		b.set()
		time.Sleep(syncInterval)
		end := b.set()
		time.Sleep(syncInterval)
		if s := b.a.Stats(); b.log.Written() != end || b.log.Synced() == end || s.PendingSync != 1 {
			t.Errorf("written %d, synced %d of %d, %+v", b.log.Written(), b.log.Synced(), end, s)
		}
		time.Sleep(6 * time.Second)
		if s := b.a.Stats(); b.log.Synced() != end || s.PendingSync != 0 || s.Delayed == 0 {
			t.Errorf("synced %d of %d, %+v", b.log.Synced(), end, s)
		}
		b.a.ResetDelayed()
		if s := b.a.Stats(); s.Delayed != 0 {
			t.Errorf("after ResetDelayed %+v", s)
		}
	})
}

func TestNoPolicyNeverSyncsBeforeTheEnd(t *testing.T) {
	appending(t, AppenderOptions{Policy: No}, func(b *bench, fs *crashfs.FS) {
		before := fs.Count(crashfs.OpSync)
		end := b.set()
		time.Sleep(time.Minute)
		if fs.Count(crashfs.OpSync) != before || b.log.Written() != end {
			t.Error("synced, or not written")
		}
		b.must(b.a.Close())
		b.crash(fs)
		b.wantLoaded("SELECT 0; SET key 0")
	})
}

func TestWritesOfAMillisecondAreOne(t *testing.T) {
	appending(t, AppenderOptions{}, func(b *bench, fs *crashfs.FS) {
		before := fs.Count(crashfs.OpWrite)
		for range 1000 { // 100 ms
			b.set()
			time.Sleep(100 * time.Microsecond)
		}
		if n := fs.Count(crashfs.OpWrite) - before; n > 110 {
			t.Errorf("%d writes in 100 ms", n)
		}
	})
}

func TestAFullDiskFailsTheLogUntilThereIsRoom(t *testing.T) {
	appending(t, AppenderOptions{Policy: Always}, func(b *bench, fs *crashfs.FS) {
		b.set()
		size := b.a.Stats().CurrentSize
		fs.SetCapacity(int64(len(b.files.manifest.Format())) + size + 10) // space for a part of the next command
		end := b.set()
		if err := b.log.Failure(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("the log does not fail: %v", err)
		}
		if err := b.a.Stats().WriteErr; !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Stats: %v", err)
		}
		b.wantLoaded("SELECT 0; SET key 0")
		if i, _ := fs.Stat(b.files.path("a.aof.1.incr.aof")); i.Size != size {
			t.Errorf("%d bytes of %d: the piece is still there", i.Size, size)
		}
		fs.SetCapacity(-1)
		time.Sleep(retryAfter)
		synctest.Wait()
		if b.log.Failure() != nil || b.log.Synced() != end {
			t.Errorf("after there was room: %v, synced %d of %d", b.log.Failure(), b.log.Synced(), end)
		}
		b.wantLoaded("SELECT 0; SET key 0; SET key 1")
	})
}

func TestARewriteDoesNotSkipWhatCannotBeWritten(t *testing.T) {
	appending(t, AppenderOptions{}, func(b *bench, fs *crashfs.FS) {
		b.set()
		time.Sleep(2 * pause)
		heal := fs.Inject(crashfs.Fault{Op: crashfs.OpWrite, Err: syscall.EIO})
		b.set()
		if err := b.a.BeginRewrite(b.log.Cut()).Wait(b.Context()); !errors.Is(err, syscall.EIO) {
			t.Errorf("the rewrite begins: %v", err)
		}
		if err := b.a.Flush(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Flush: %v", err)
		}
		heal()
		b.must(b.a.Flush())
		b.wantLoaded("SELECT 0; SET key 0; SET key 1")
		b.must(b.a.BeginRewrite(b.log.Cut()).Wait(b.Context()))
		b.must(b.base("SET key base"))
		b.wantLoaded("SET key base; SELECT 0")
	})
}

func TestTheOwnerIsToldThatTheFilesFail(t *testing.T) {
	var told atomic.Int64
	appending(t, AppenderOptions{Policy: Always, Changed: func() { told.Add(1) }}, func(b *bench, fs *crashfs.FS) {
		b.set()
		fs.Inject(crashfs.Fault{Op: crashfs.OpWrite, Err: syscall.EIO, Times: 3})
		b.set()
		time.Sleep(10 * retryAfter)
		if n := told.Load(); n != 2 {
			t.Errorf("told %d times, want 2: it fails, and is well again", n)
		}
	})
}

func TestAPieceThatCannotBeCutOffIsCutOffLater(t *testing.T) {
	appending(t, AppenderOptions{Policy: Always}, func(b *bench, fs *crashfs.FS) {
		b.set()
		fs.Inject(crashfs.Fault{Op: crashfs.OpWrite, Err: syscall.EIO, Times: 1, Short: 5})
		fs.Inject(crashfs.Fault{Op: crashfs.OpTruncate, Err: syscall.EIO, Times: 1})
		b.set()
		if b.log.Failure() == nil {
			t.Error("the log does not fail")
		}
		time.Sleep(retryAfter)
		synctest.Wait()
		if b.log.Failure() != nil {
			t.Error(b.log.Failure())
		}
		b.wantLoaded("SELECT 0; SET key 0; SET key 1")
	})
}

func TestAFailedSyncIsNeverTriedAgain(t *testing.T) {
	appending(t, AppenderOptions{Policy: Always}, func(b *bench, fs *crashfs.FS) {
		synced := b.set()
		fs.Inject(crashfs.Fault{Op: crashfs.OpSync, Err: syscall.EIO, Times: 1})
		b.set()
		count := fs.Count(crashfs.OpSync)
		for range 3 {
			b.set()
			time.Sleep(time.Second)
		}
		if err := b.a.Flush(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Flush: %v", err)
		}
		if n := fs.Count(crashfs.OpSync); n != count {
			t.Errorf("%d more syncs", n-count)
		}
		if s := b.a.Stats(); b.log.Failure() == nil || b.log.Synced() != synced || !s.Holes {
			t.Errorf("failure %v, synced %d instead of %d, %+v", b.log.Failure(), b.log.Synced(), synced, s)
		}
		// A rewrite completes the files, but only at its end.
		b.must(b.a.BeginRewrite(b.log.Cut()).Wait(b.Context()))
		end := b.set()
		if b.log.Failure() == nil || b.log.Synced() == end {
			t.Error("well before the base is there")
		}
		b.must(b.base("SET key base"))
		if b.log.Failure() != nil || b.log.Synced() != end {
			t.Errorf("after the rewrite: %v, synced %d of %d", b.log.Failure(), b.log.Synced(), end)
		}
		b.crash(fs)
		b.wantLoaded("SET key base; SELECT 0; SET key 5")
	})
}

func TestASyncThatFailsAfterTheCutIsNotHealedByItsBase(t *testing.T) {
	appending(t, AppenderOptions{Policy: Always}, func(b *bench, fs *crashfs.FS) {
		b.set()
		b.must(b.a.BeginRewrite(b.log.Cut()).Wait(b.Context()))
		fs.Inject(crashfs.Fault{Op: crashfs.OpSync, Err: syscall.EIO, Times: 1})
		lost := b.set()
		_ = b.base("SET key base")
		if b.log.Failure() == nil || b.log.Synced() >= lost {
			t.Errorf("healed: %v, synced %d", b.log.Failure(), b.log.Synced())
		}
		b.must(b.a.BeginRewrite(b.log.Cut()).Wait(b.Context()))
		b.must(b.base("SET key base2"))
		if b.log.Failure() != nil {
			t.Error(b.log.Failure())
		}
	})
}

// The increment of a completing rewrite gets its final name at the end. If the rename fails, the next rewrite
// completes the files.
func TestAnIncrementThatGetsNoNameIsGivenUp(t *testing.T) {
	appending(t, AppenderOptions{Policy: Always}, func(b *bench, fs *crashfs.FS) {
		fs.Inject(crashfs.Fault{Op: crashfs.OpSync, Err: syscall.EIO, Times: 1})
		b.set()
		b.must(b.a.BeginRewrite(b.log.Cut()).Wait(b.Context()))
		fs.Inject(crashfs.Fault{Op: crashfs.OpRename, Err: syscall.EIO, Times: 1})
		if err := b.base("SET key base"); !errors.Is(err, syscall.EIO) {
			t.Fatalf("the rename: %v", err)
		}
		b.a.AbortRewrite()
		b.set()
		b.must(b.a.BeginRewrite(b.log.Cut()).Wait(b.Context()))
		b.must(b.base("SET key base2"))
		if end := b.set(); b.log.Failure() != nil || b.log.Synced() != end {
			t.Errorf("after the second rewrite: %v, synced %d of %d", b.log.Failure(), b.log.Synced(), end)
		}
		b.crash(fs)
		b.wantLoaded("SET key base2; SELECT 0; SET key 2")
	})
}

func TestARewriteReplacesWhatItCovers(t *testing.T) {
	appending(t, AppenderOptions{}, func(b *bench, fs *crashfs.FS) {
		b.set()
		x := b.a.BeginRewrite(b.log.Cut())
		b.set() // after the cut, whichever goroutine writes it and when
		b.must(x.Wait(b.Context()))
		b.wantLoaded("SELECT 0; SET key 0; SELECT 0; SET key 1")
		b.must(b.base("SET key base"))
		b.set()
		b.wantLoaded("SET key base; SELECT 0; SET key 1; SET key 2")
		names, _ := fs.ReadDir(worldDir)
		if want := "[a.aof.1.base.aof a.aof.2.incr.aof a.aof.manifest]"; fmt.Sprint(names) != want {
			t.Errorf("%v, want %s", names, want)
		}
		if s := b.a.Stats(); s.CurrentSize <= s.BaseSize || s.BaseSize == 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestAnAbortedRewriteLosesNothing(t *testing.T) {
	appending(t, AppenderOptions{}, func(b *bench, fs *crashfs.FS) {
		b.set()
		b.a.BeginRewrite(b.log.Cut())
		b.a.AbortRewrite()
		b.set()
		b.wantLoaded("SELECT 0; SET key 0; SELECT 0; SET key 1")
		b.a.BeginRewrite(b.log.Cut())
		if err := b.a.BeginRewrite(b.log.Cut()).Wait(b.Context()); !errors.Is(err, ErrRewriting) {
			t.Errorf("a second rewrite at the same time: %v", err)
		}
	})
}

func TestFreshFilesCountWithTheirBase(t *testing.T) {
	appending(t, AppenderOptions{Policy: Always}, func(b *bench, fs *crashfs.FS) {
		b.set()
		b.must(b.a.Close())
		b.n = 10
		b.a = NewAppender(b.log, b.files, AppenderOptions{Policy: Always})
		x, err := b.a.StartFresh(b.log.Cut())
		b.must(err)
		b.must(x.Wait(b.Context()))
		before := b.log.Synced()
		end := b.set()
		if b.log.Always() || b.log.Synced() != before {
			t.Error("a client would wait for a base")
		}
		b.wantLoaded("SELECT 0; SET key 0")
		b.must(b.base("SET key fresh"))
		if !b.log.Always() || b.log.Synced() != end {
			t.Errorf("with the base: synced %d of %d", b.log.Synced(), end)
		}
		b.crash(fs)
		b.wantLoaded("SET key fresh; SELECT 0; SET key 10")
	})
}

func TestNoReplyWaitsWhileSyncsAreSuspended(t *testing.T) {
	appending(t, AppenderOptions{Policy: Always}, func(b *bench, fs *crashfs.FS) {
		b.a.SuspendSync(true)
		before := fs.Count(crashfs.OpSync)
		end := b.set()
		if b.log.Always() || fs.Count(crashfs.OpSync) != before || b.log.Written() != end {
			t.Error("the appender syncs, or a client waits")
		}
		b.a.SuspendSync(false)
		synctest.Wait()
		if !b.log.Always() || b.log.Synced() != end {
			t.Error("the appender does not sync again")
		}
	})
}

func TestTimeIsAnnotatedOnceASecondBetweenTransactions(t *testing.T) {
	start := time.Now()
	now := func() int64 { return 5000 + time.Since(start).Milliseconds() }
	synctest.Test(t, func(*testing.T) { start = time.Now() })
	appending(t, AppenderOptions{Now: now}, func(b *bench, fs *crashfs.FS) {
		for range 6 {
			b.set()
			time.Sleep(400 * time.Millisecond)
		}
		b.must(b.a.Flush())
		file, err := fs.ReadFile(b.files.path("a.aof.1.incr.aof"))
		b.must(err)
		want := "#TS:5\r\n" + string(request("SELECT 0", "SET key 0", "SET key 1", "SET key 2")) +
			"#TS:6\r\n" + string(request("SET key 3", "SET key 4")) + "#TS:7\r\n" + string(request("SET key 5"))
		if string(file) != want {
			t.Errorf("%q, want %q", file, want)
		}
	})
}

func TestControlBytesCountAndAreNotInFiles(t *testing.T) {
	appending(t, AppenderOptions{Policy: Always}, func(b *bench, fs *crashfs.FS) {
		b.set()
		b.log.AppendControl(request("PING"))
		synctest.Wait()
		if b.log.Synced() != b.log.End() {
			t.Errorf("synced %d of %d", b.log.Synced(), b.log.End())
		}
		b.log.AppendControl(request("PING"))
		b.set()
		b.wantLoaded("SELECT 0; SET key 0; SET key 1")
	})
}

// A message locks no shard. So it may arrive, and be skipped, between the reading of the stream's end and the rewrite
// that uses that offset.
func TestARewriteMayBeginBehindAMessage(t *testing.T) {
	appending(t, AppenderOptions{Policy: Always}, func(b *bench, fs *crashfs.FS) {
		b.set()
		b.log.TakeMessages(true)
		offset, db := b.log.Cut()
		b.log.AppendMessage(request("PUBLISH channel message"))
		synctest.Wait()
		x := b.a.BeginRewrite(offset, db)
		b.set()
		b.must(x.Wait(b.Context()))
		b.must(b.base("SET key base"))
		b.wantLoaded("SET key base; SELECT 0; SET key 1")
	})
}

func TestCloseWritesAndSyncsAll(t *testing.T) {
	appending(t, AppenderOptions{}, func(b *bench, fs *crashfs.FS) {
		for i := range 100 {
			b.log.Append(Unit{Commands: 1, Bytes: request(fmt.Sprintf("SET key%d %s", i, strings.Repeat("x", 100<<10)))})
		}
		b.must(b.a.Close())
		b.crash(fs)
		if n := strings.Count(b.loaded(), "SET"); n != 100 {
			t.Errorf("%d of 100", n)
		}
	})
}

func TestAReadOnlyDirectoryIsSaidAtTheStart(t *testing.T) {
	fs := crashfs.New(1)
	fs.SetReadOnly(true)
	files, err := OpenFiles(fs, worldDir, "a.aof")
	if err != nil {
		t.Fatal(err)
	}
	a := NewAppender(New(0), files, AppenderOptions{})
	x, err := a.Start(0, -1)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Wait(t.Context()); !errors.Is(err, syscall.EROFS) {
		t.Errorf("got %v", err)
	}
	if err := a.Flush(); !errors.Is(err, errNoFile) {
		t.Errorf("Flush: %v", err)
	}
	a.Close()
}
