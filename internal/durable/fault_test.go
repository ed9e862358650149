package durable

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/testing/crashfs"
)

const incr1 = dir + "/appendonlydir/appendonly.aof.1.incr.aof"

// settle lets the Keeper's loop look, and all that it begins end.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestAFailedSyncIsHealedByARewrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs, "appendonly", "yes", "appendfsync", "always")
		if !w.acked(w.set("a", "1")) {
			t.Fatal("not acknowledged")
		}
		heal := fs.Inject(crashfs.Fault{Op: crashfs.OpSync, Err: syscall.EIO})
		if w.acked(w.set("a", "2")) {
			t.Error("a write was acknowledged whose sync failed")
		}
		synctest.Wait()
		if !strings.HasPrefix(w.refusal(), "MISCONF Errors writing to the AOF file: ") {
			t.Errorf("refusal: %q", w.refusal())
		}
		w.clock.Advance(time.Minute)
		settle(5 * time.Second)
		if i := w.k.Info(); i.LastWriteOK || i.RewriteFailures == 0 {
			t.Errorf("%+v", i)
		}
		before := w.k.Info().Rewrites
		settle(5 * time.Second) // in engine time no pause has passed
		if n := w.k.Info().Rewrites; n != before {
			t.Errorf("%d rewrites without a pause", n-before)
		}
		heal()
		w.clock.Advance(2 * time.Minute)
		settle(2 * time.Second)
		if w.refusal() != "" || w.k.Info().RewriteFailures != 0 {
			t.Fatalf("refusal: %q, %+v", w.refusal(), w.k.Info())
		}
		if !w.acked(w.set("b", "3")) {
			t.Error("not acknowledged after the rewrite")
		}
		fs = fs.Crash()
		_ = w.close()
		w = run(t, fs, "appendonly", "yes")
		defer w.close()
		w.holds(t, "a", "2", "b", "3")
	})
}

func TestAFullDiskIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs, "appendonly", "yes", "appendfsync", "always")
		w.acked(w.set("a", "1"))
		fs.SetCapacity(0)
		if w.acked(w.set("a", "2")) {
			t.Error("a write was acknowledged that is on no disk")
		}
		synctest.Wait()
		if !strings.Contains(w.refusal(), "no space left on device") {
			t.Errorf("refusal: %q", w.refusal())
		}
		if err := w.k.Sync(t.Context()); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("sync: %v", err)
		}
		if err := w.k.Shutdown(t.Context(), ShutdownDefault, false); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("shutdown: %v", err)
		}
		if err := w.k.Save(t.Context()); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("save: %v", err)
		}
		fs.SetCapacity(-1)
		settle(2 * time.Second)
		if w.refusal() != "" || !w.acked(w.set("b", "3")) {
			t.Fatalf("refusal: %q", w.refusal())
		}
		fs = fs.Crash()
		_ = w.close()
		w = run(t, fs, "appendonly", "yes")
		defer w.close()
		w.holds(t, "a", "2", "b", "3")
	})
}

func TestAppendOnlyIsRefusedOnADiskThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs)
		defer w.close()
		fs.SetReadOnly(true)
		if err := w.k.SetAppendOnly(true); !errors.Is(err, syscall.EROFS) {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		if w.k.Info().AppendOnly || w.refusal() != "" {
			t.Errorf("%+v, %q", w.k.Info(), w.refusal())
		}
	})
}

// Whatever is left of the last record, all before it is loaded.
func TestATornRecordIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs, "appendonly", "yes")
		w.set("a", "1", "b", "1")
		if err := w.k.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		whole := w.k.Info().CurrentSize - w.k.Info().BaseSize
		w.set("a", "2", "b", "2") // a transaction: both or none
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		all, err := fs.ReadFile(incr1)
		if err != nil {
			t.Fatal(err)
		}
		for size := int(whole); size <= len(all); size++ {
			for _, load := range []string{"yes", "no"} {
				writeFile(t, fs, incr1, all[:size])
				x := newWorld(fs, clock.NewManual(start), "appendonly", "yes", "aof-load-truncated", load)
				err := x.open(t)
				torn := size > int(whole) && size < len(all)
				switch {
				case torn && load == "no":
					if err == nil || !strings.Contains(err.Error(), "good up to "+strconv.Itoa(int(whole))) {
						t.Errorf("%d of %d bytes, refused with: %v", size, len(all), err)
					}
				case err != nil:
					t.Errorf("%d of %d bytes: %v", size, len(all), err)
				default:
					want := "1"
					if size == len(all) {
						want = "2"
					}
					if x.get("a") != want || x.get("b") != want {
						t.Errorf("%d of %d bytes: a=%q b=%q", size, len(all), x.get("a"), x.get("b"))
					}
				}
				_ = x.close()
			}
		}
	})
}

func writeFile(t *testing.T, fs *crashfs.FS, name string, b []byte) {
	t.Helper()
	f, err := fs.Create(name)
	if err == nil {
		_, err = f.Write(b)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestABrokenFileIsNamedWithTheOffset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs)
		w.set("a", strings.Repeat("x", 100))
		if err := errors.Join(w.k.Save(t.Context()), w.close()); err != nil {
			t.Fatal(err)
		}
		b, err := fs.ReadFile(dir + "/dump.rdb")
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, fs, dir+"/dump.rdb", b[:len(b)-9])
		x := newWorld(fs, w.clock)
		defer x.close()
		if err := x.open(t); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), dir+"/dump.rdb: at offset ") {
			t.Errorf("%v", err)
		}
	})
}

func TestACommandThatIsRefusedIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs, "appendonly", "yes")
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		writeFile(t, fs, incr1, []byte("*2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n*2\r\n$6\r\nNOSUCH\r\n$1\r\nk\r\n"))
		x := newWorld(fs, w.clock, "appendonly", "yes")
		defer x.close()
		err := x.open(t)
		if want := fmt.Sprintf("load: the append-only file %s: "+
			"the command", incr1); err == nil || !strings.Contains(err.Error(),
			`the command ["NOSUCH" "k"] of database 2 was refused: unknown command NOSUCH`) {
			t.Errorf("got %v\nwant %s...", err, want)
		}
	})
}

// The data after a reload that failed is neither served nor saved; the files are
// as they were.
func TestAReloadThatFailsIsNotSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs, "appendonly", "yes", "save", "60 1")
		var gate bool
		w.k.o.SetLoading = func(on bool) { gate = on }
		w.set("a", "1")
		writeFile(t, fs, dir+"/dump.rdb", []byte("garbage"))
		if err := w.k.Reload(t.Context(), ReloadOptions{NoSave: true}); !errors.Is(err, ErrPartial) || !gate {
			t.Errorf("%v, the gate is %v", err, gate)
		}
		_, err := w.k.RewriteAOF()
		synctest.Wait()
		if i := w.k.Info(); err != nil || i.LastRewriteOK {
			t.Errorf("%v, %+v", err, i)
		}
		if err := w.k.Save(t.Context()); !errors.Is(err, ErrPartial) {
			t.Errorf("save: %v", err)
		}
		w.clock.Advance(time.Hour)
		settle(2 * time.Second)
		if err := w.close(); err != nil {
			t.Error(err)
		}
		w = run(t, fs, "appendonly", "yes")
		if w.get("a") != "1" {
			t.Errorf("a=%q", w.get("a"))
		}
	})
}

// A load through several workers gives what one gives: commands of a key in their
// order, others when all before them are done.
func TestAParallelLoadKeepsTheOrderOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs, "appendonly", "yes")
		for i := range 3000 {
			w.set("k"+strconv.Itoa(i%7), strconv.Itoa(i))
			if i%100 == 50 {
				w.set("x{k1}", strconv.Itoa(i), "k2", strconv.Itoa(i))
			}
			if i%13 == 0 {
				w.del("k" + strconv.Itoa(i%7)) // waits for the workers
			}
			if i == 1000 {
				w.tx.LockAll(0)
				w.tx.Flush(-1)
				w.tx.Unlock()
			}
		}
		w.set("k4", "last")
		w.del("k4")
		w.del("k5")
		want := map[string]string{}
		for _, k := range []string{"k0", "k1", "k2", "k3", "k4", "k5", "k6", "x{k1}"} {
			want[k] = w.get(k)
		}
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		x := newWorld(fs, w.clock, "appendonly", "yes")
		defer x.close()
		x.options.Route = func(args [][]byte) ([]byte, bool) {
			if string(args[0]) == "SET" {
				return args[1], true
			}
			return nil, false
		}
		if err := x.open(t); err != nil {
			t.Fatal(err)
		}
		for k, v := range want {
			if got := x.get(k); got != v {
				t.Errorf("%s is %q, was %q", k, got, v)
			}
		}
	})
}
