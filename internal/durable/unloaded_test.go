package durable

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/testing/crashfs"
)

// aside returns the names in a directory that tell of a file that was not loaded.
func aside(t *testing.T, fs *crashfs.FS) (names []string) {
	t.Helper()
	all, err := fs.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range all {
		if strings.Contains(n, ".not-loaded-") {
			names = append(names, n)
		}
	}
	return names
}

// wantAside checks that one file was kept under another name, with the bytes that it had.
func wantAside(t *testing.T, fs *crashfs.FS, before []byte) (name string) {
	t.Helper()
	kept := aside(t, fs)
	if len(kept) != 1 || !strings.HasPrefix(kept[0], "dump.rdb.not-loaded-") {
		t.Fatalf("kept are %q", kept)
	}
	if now, err := fs.ReadFile(dir + "/" + kept[0]); err != nil || !bytes.Equal(now, before) {
		t.Errorf("the kept file differs: %v", err)
	}
	return kept[0]
}

// ending closes a world as a server ends: with a save, where there are save points.
func ending(t *testing.T, w *world) {
	t.Helper()
	if err := errors.Join(w.k.Shutdown(t.Context(), ShutdownDefault, false), w.close()); err != nil {
		t.Fatal(err)
	}
}

func TestAnRDBFileThatTheStartHasNotLoadedIsKept(t *testing.T) {
	const loadedBefore, never = true, false
	for name, c := range map[string]struct {
		files bool // there are append-only files, which win
		save  func(t *testing.T, w *world) error
	}{
		"shutdown":             {never, func(*testing.T, *world) error { return nil }},
		"SAVE":                 {never, func(t *testing.T, w *world) error { return w.k.Save(t.Context()) }},
		"FLUSHALL":             {never, func(_ *testing.T, w *world) error { tx := w.db.BeginAll(0); w.k.Emptied(tx); tx.Commit(); return nil }},
		"SAVE beside files":    {loadedBefore, func(t *testing.T, w *world) error { return w.k.Save(t.Context()) }},
		"shutdown with files":  {loadedBefore, func(*testing.T, *world) error { return nil }},
		"a start, then a kill": {loadedBefore, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs := newFS(1)
				if c.files {
					w := run(t, fs, "appendonly", "yes", "save", "")
					w.set("in", "files")
					ending(t, w)
				}
				w := run(t, fs, "save", "3600 1")
				w.set("only", "here")
				ending(t, w)
				before, err := fs.ReadFile(dir + "/dump.rdb")
				if err != nil {
					t.Fatal(err)
				}

				w = run(t, fs, "appendonly", "yes", "save", "3600 1")
				w.logged(t, "the RDB file is not loaded")
				w.holds(t, "only", "")
				if c.save == nil {
					_ = w.close()
					if now, err := fs.ReadFile(dir + "/dump.rdb"); err != nil || !bytes.Equal(now, before) {
						t.Errorf("the file has changed without a save: %v", err)
					}
					return
				}
				if err := c.save(t, w); err != nil {
					t.Fatal(err)
				}
				ending(t, w)
				w.logged(t, wantAside(t, fs, before))

				// The file that was saved beside the append-only files holds nothing else: it is replaced.
				for range 2 {
					w = run(t, fs, "appendonly", "yes", "save", "3600 1")
					w.set("more", "data")
					ending(t, w)
				}
				if again := aside(t, fs); len(again) != 1 {
					t.Errorf("kept are %q, after starts that had loaded the same data", again)
				}
			})
		})
	}
}

func TestAppendOnlyFilesThatTheStartHasNotLoadedAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs, "appendonly", "yes", "save", "")
		w.set("only", "there")
		ending(t, w)
		w = run(t, fs, "save", "")
		w.set("other", "data")
		if err := w.k.SetAppendOnly(true); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !w.k.AppendOnly() {
			t.Fatalf("nothing is appended: %+v", w.k.Info())
		}
		ending(t, w)
		kept := aside(t, fs)
		if len(kept) != 1 || !strings.HasPrefix(kept[0], "appendonlydir.not-loaded-") {
			t.Fatalf("kept are %q", kept)
		}
		w.logged(t, kept[0])
		w = run(t, fs, "appendonly", "yes", "save", "")
		w.holds(t, "only", "", "other", "data")
		ending(t, w)
		if again := aside(t, fs); len(again) != 1 {
			t.Errorf("kept are %q", again)
		}
		err := errors.Join(fs.Rename(dir+"/appendonlydir", dir+"/new"), fs.Rename(dir+"/"+kept[0], dir+"/appendonlydir"))
		if err != nil {
			t.Fatal(err)
		}
		w = run(t, fs, "appendonly", "yes", "save", "")
		w.holds(t, "only", "there", "other", "")
		ending(t, w)
	})
}

// Two files that are kept within a second get different names.
func TestWhatIsKeptReplacesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		for n := range 3 {
			w := run(t, fs, "save", "3600 1")
			w.set("n", string(rune('a'+n)))
			ending(t, w)
			_ = fs.Rename(dir+"/appendonlydir", dir+"/old-"+string(rune('a'+n)))
			w = run(t, fs, "appendonly", "yes", "save", "3600 1")
			ending(t, w)
			_ = fs.Rename(dir+"/appendonlydir", dir+"/away-"+string(rune('a'+n)))
		}
		if kept := aside(t, fs); len(kept) != 3 {
			t.Errorf("kept are %q", kept)
		}
	})
}

// A file that the process may not read can have any data.
func TestAnRDBFileThatCannotBeReadIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs, "save", "3600 1")
		w.set("only", "here")
		ending(t, w)
		before, err := fs.ReadFile(dir + "/dump.rdb")
		if err != nil {
			t.Fatal(err)
		}
		heal := fs.Inject(crashfs.Fault{Op: crashfs.OpRead, Name: "/dump.rdb", Times: 1, Err: syscall.EACCES})
		w = run(t, fs, "appendonly", "yes", "save", "3600 1")
		heal()
		w.logged(t, "permission denied")
		w.set("more", "data")
		ending(t, w)
		wantAside(t, fs, before)
	})
}

// Of the files that a server saves beside its append-only files, only the latest has nothing that they lack: what an older one
// has may have been deleted since.
func TestAnOlderSaveThatWasPutBackIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs, "appendonly", "yes", "save", "3600 1")
		w.set("old", "data")
		ending(t, w)
		backup, err := fs.ReadFile(dir + "/dump.rdb")
		if err != nil {
			t.Fatal(err)
		}
		w = run(t, fs, "appendonly", "yes", "save", "3600 1")
		w.del("old")
		w.set("new", "data")
		ending(t, w)
		if err := disk.WriteFile(fs, dir+"/dump.rdb", backup); err != nil {
			t.Fatal(err)
		}

		w = run(t, fs, "appendonly", "yes", "save", "3600 1")
		w.logged(t, "the RDB file is not loaded")
		w.holds(t, "old", "", "new", "data")
		w.set("newer", "data")
		ending(t, w)
		wantAside(t, fs, backup)
	})
}

// other returns a directory with the append-only files of another server.
func other(t *testing.T, fs *crashfs.FS) string {
	t.Helper()
	there := t.TempDir() // CONFIG SET looks whether it exists
	if err := fs.MkdirAll(there); err != nil {
		t.Fatal(err)
	}
	w := newWorld(fs, clock.NewManual(start), "appendonly", "yes", "save", "")
	w.options.Dir = there
	if err := w.open(t); err != nil {
		t.Fatal(err)
	}
	w.set("only", "there")
	ending(t, w)
	return there
}

// protectedWorld opens a world without save points, whose clients may set protected directives.
func protectedWorld(t *testing.T, fs *crashfs.FS) *world {
	t.Helper()
	conf, err := config.Load([]string{"--enable-protected-configs", "yes", "--save", ""}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(fs, clock.NewManual(start))
	w.conf, w.options.Config = conf, conf
	t.Cleanup(func() { _ = w.close() })
	if err := w.open(t); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestAppendOnlyFilesOfANewDirectoryAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		there := other(t, fs)
		w := protectedWorld(t, fs)
		w.set("other", "data")
		if err := errors.Join(w.conf.Change(false, "dir", there), w.k.SetDir(), w.k.SetAppendOnly(true)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ending(t, w)
		names, err := fs.ReadDir(there)
		if err != nil || !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "appendonlydir.not-loaded-") }) {
			t.Errorf("the directory has %q (%v)", names, err)
		}
	})
}

// CONFIG SET dir and dbfilename may name a file that is there. A save keeps it, and replaces those that this server has loaded or written.
func TestAnRDBFileThatConfigSetNamesIsKept(t *testing.T) {
	for _, changes := range []string{"dbfilename", "dir"} {
		t.Run(changes, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs := newFS(1)
				there, home, name := dir, dir, "other.rdb"
				if changes == "dir" {
					there, home, name = t.TempDir(), t.TempDir(), "dump.rdb" // CONFIG SET looks whether they exist
					if err := errors.Join(fs.MkdirAll(there), fs.MkdirAll(home)); err != nil {
						t.Fatal(err)
					}
				}
				path := there + "/" + name
				if err := disk.WriteFile(fs, path, []byte("data that exists nowhere else")); err != nil {
					t.Fatal(err)
				}
				w := protectedWorld(t, fs)
				w.set("some", "data")
				for range 2 { // there, and back to its own file
					for _, to := range map[string][]string{"dbfilename": {name, "dump.rdb"}, "dir": {there, home}}[changes] {
						err := errors.Join(w.k.Save(t.Context()), w.conf.Change(false, changes, to), w.k.SetDir(), w.k.Save(t.Context()))
						if err != nil {
							t.Fatal(err)
						}
					}
				}
				var kept []string
				for _, d := range []string{dir, there, home} {
					names, err := fs.ReadDir(d)
					if err != nil {
						t.Fatal(err)
					}
					for _, n := range names {
						if n = d + "/" + n; strings.Contains(n, ".not-loaded-") && !slices.Contains(kept, n) {
							kept = append(kept, n)
						}
					}
				}
				if len(kept) != 1 || !strings.HasPrefix(kept[0], path+".not-loaded-") {
					t.Fatalf("kept are %q", kept)
				}
				if now, err := fs.ReadFile(kept[0]); err != nil || string(now) != "data that exists nowhere else" {
					t.Errorf("the kept file has %q, %v", now, err)
				}
			})
		})
	}
}

// Files that were appended to, and to which nothing is appended now, are this server's own.
func TestOwnAppendOnlyFilesAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFS(1)
		w := run(t, fs, "appendonly", "yes", "save", "")
		w.set("n", "1")
		for _, on := range []bool{false, true, false, true} {
			if err := w.k.SetAppendOnly(on); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			if w.k.AppendOnly() != on {
				t.Fatalf("appending: %+v", w.k.Info())
			}
			w.set("n", "2")
		}
		ending(t, w)
		if kept := aside(t, fs); len(kept) != 0 {
			t.Errorf("kept are %q", kept)
		}
	})
}
