package disk_test

import (
	"errors"
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/testing/crashfs"
)

// systems are the file systems that have to behave alike, each with a directory.
func systems(t *testing.T) map[string]struct {
	fs  disk.FS
	dir string
} {
	return map[string]struct {
		fs  disk.FS
		dir string
	}{
		"the system's": {disk.OS(), t.TempDir()},
		"crashfs":      {crashfs.New(1), "/data"},
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFilesAreWrittenAtTheirEnd(t *testing.T) {
	for name, s := range systems(t) {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(s.dir, "a", "b")
			must(t, s.fs.MkdirAll(dir))
			must(t, s.fs.MkdirAll(dir))
			path := filepath.Join(dir, "f")
			write := func(open func(string) (disk.File, error), text string, cut int64) {
				f, err := open(path)
				must(t, err)
				_, err = f.Write([]byte(text))
				must(t, err)
				if cut >= 0 {
					must(t, f.Truncate(cut))
					_, err = f.Write([]byte("!"))
					must(t, err)
				}
				must(t, errors.Join(f.Sync(), f.Close()))
			}
			want := func(text string) {
				t.Helper()
				if b, err := s.fs.ReadFile(path); err != nil || string(b) != text {
					t.Fatalf("%q, %v; want %q", b, err, text)
				}
			}
			write(s.fs.Append, "one", -1)
			write(s.fs.Append, "two", 4)
			want("onet!")
			must(t, s.fs.Truncate(path, 2))
			want("on")
			write(s.fs.Create, "three", -1)
			want("three")
			i, err := s.fs.Stat(path)
			if err != nil || i.Size != 5 || i.Dir {
				t.Errorf("%+v, %v", i, err)
			}
			must(t, disk.WriteFile(s.fs, path, []byte("four")))
			want("four")
			must(t, disk.Replace(s.fs, path, filepath.Join(s.dir, "g")))
			names, err := s.fs.ReadDir(s.dir)
			if err != nil || strings.Join(names, " ") != "a g" {
				t.Errorf("%q, %v", names, err)
			}
			if _, err := s.fs.Open(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Open of nothing: %v", err)
			}
			must(t, s.fs.Remove(filepath.Join(s.dir, "g")))
			if err := s.fs.Remove(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Remove of nothing: %v", err)
			}
			if _, err := s.fs.Create(filepath.Join(s.dir, "nowhere", "f")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Create in no directory: %v", err)
			}
		})
	}
}

func TestADirectoryHasOneOwner(t *testing.T) {
	for name, s := range systems(t) {
		t.Run(name, func(t *testing.T) {
			must(t, s.fs.MkdirAll(s.dir))
			l, err := s.fs.Lock(s.dir)
			must(t, err)
			var locked *disk.LockedError
			if _, err := s.fs.Lock(s.dir); !errors.As(err, &locked) || locked.PID == 0 || locked.Dir != s.dir {
				t.Fatalf("a second lock: %v", err)
			}
			must(t, l.Close())
			l, err = s.fs.Lock(s.dir)
			must(t, err)
			must(t, l.Close())
		})
	}
}

// The other process is this test, run again with the directory in its environment.
func TestALockEndsWithItsProcess(t *testing.T) {
	const env = "EBB_LOCK_DIR"
	if dir := os.Getenv(env); dir != "" {
		if _, err := disk.OS().Lock(dir); err != nil {
			t.Fatal(err)
		}
		return // without a Close
	}
	dir := t.TempDir()
	l, err := disk.OS().Lock(dir)
	must(t, err)
	again := func() (string, error) {
		c := osexec.Command(os.Args[0], "-test.run=^TestALockEndsWithItsProcess$")
		c.Env = append(os.Environ(), env+"="+dir)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := again(); err == nil || !strings.Contains(out, "is in use by process ") {
		t.Errorf("another process got it as well: %s", out)
	}
	must(t, l.Close())
	if out, err := again(); err != nil {
		t.Errorf("another process does not get it: %s", out)
	}
	l, err = disk.OS().Lock(dir)
	must(t, err)
	must(t, l.Close())
}

func TestFreeSpaceIsKnown(t *testing.T) {
	if n, err := disk.OS().Free(t.TempDir()); err != nil || n == 0 || n < -1 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestTwoNamesOfOneFileAreTheSame(t *testing.T) {
	dir := t.TempDir()
	a, b, link := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "link")
	for _, name := range []string{a, b} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(a, link); err != nil {
		t.Fatal(err)
	}
	same := disk.OS().Same
	if !same(a, link) || same(a, b) || same(a, filepath.Join(dir, "none")) {
		t.Error("Same compares names, or takes two files for one")
	}
}
