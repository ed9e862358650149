package durable

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ebbdb/ebb/internal/disk/crashfs"
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
				kept := aside(t, fs)
				if len(kept) != 1 || !strings.HasPrefix(kept[0], "dump.rdb.not-loaded-") {
					t.Fatalf("kept are %q", kept)
				}
				w.logged(t, kept[0])
				if now, err := fs.ReadFile(dir + "/" + kept[0]); err != nil || !bytes.Equal(now, before) {
					t.Errorf("the kept file differs: %v", err)
				}

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
