package crashfs_test

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/testing/crashfs"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// written is a disk with a file whose name and first bytes are safe.
func written(t *testing.T, seed uint64) (*crashfs.FS, disk.File) {
	t.Helper()
	f := crashfs.New(seed)
	must(t, f.MkdirAll("/d"))
	w, err := f.Create("/d/f")
	must(t, err)
	_, err = w.Write([]byte("safe"))
	must(t, errors.Join(err, w.Sync(), f.SyncDir("/d")))
	return f, w
}

// ends are the endings of a file that crashes with many seeds leave behind "safe".
func ends(t *testing.T, then func(f *crashfs.FS, w disk.File), next func(*crashfs.FS) *crashfs.FS) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for seed := range uint64(300) {
		f, w := written(t, seed)
		then(f, w)
		b, err := next(f).ReadFile("/d/f")
		must(t, err)
		end, ok := strings.CutPrefix(string(b), "safe")
		if !ok {
			t.Fatalf("what was synced is gone: %q", b)
		}
		all[end] = true
	}
	return all
}

func TestACrashTearsWhatWasNotSynced(t *testing.T) {
	all := ends(t, func(_ *crashfs.FS, w disk.File) {
		for _, s := range []string{"ab", "cd"} {
			_, err := w.Write([]byte(s))
			must(t, err)
		}
	}, (*crashfs.FS).Crash)
	for _, want := range []string{"", "a", "ab", "abc", "abcd", "\x00\x00", "ab\x00"} {
		if !all[want] {
			t.Errorf("%q never happens: %v", want, all)
		}
	}
	if all["cd"] || all["\x00\x00cd"] {
		t.Errorf("out of order: %v", all)
	}
}

func TestAKillLosesNothingWritten(t *testing.T) {
	all := ends(t, func(_ *crashfs.FS, w disk.File) {
		_, err := w.Write([]byte("ab"))
		must(t, err)
	}, (*crashfs.FS).Kill)
	if len(all) != 1 || !all["ab"] {
		t.Errorf("%v", all)
	}
}

func TestAFailedSyncHasDroppedItsBytes(t *testing.T) {
	all := ends(t, func(f *crashfs.FS, w disk.File) {
		_, err := w.Write([]byte("ab"))
		must(t, err)
		f.Inject(crashfs.Fault{Op: crashfs.OpSync, Err: syscall.EIO, Times: 1})
		if err := w.Sync(); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		_, err = w.Write([]byte("cd"))
		must(t, errors.Join(err, w.Sync())) // as if all were well
		if b, _ := f.ReadFile("/d/f"); string(b) != "safeabcd" {
			t.Fatalf("readers see %q", b)
		}
	}, (*crashfs.FS).Crash)
	if len(all) != 1 || !all["\x00\x00cd"] {
		t.Errorf("%v", all)
	}
}

func TestNamesThatWereNotSyncedMayBeLost(t *testing.T) {
	seen := map[bool]int{}
	for seed := range uint64(100) {
		f, _ := written(t, seed)
		must(t, f.Rename("/d/f", "/d/g"))
		f = f.Crash()
		_, oldErr := f.Stat("/d/f")
		_, newErr := f.Stat("/d/g")
		if errors.Is(oldErr, fs.ErrNotExist) == errors.Is(newErr, fs.ErrNotExist) {
			t.Fatalf("not one of the two: %v, %v", oldErr, newErr)
		}
		seen[newErr == nil]++
	}
	if len(seen) != 2 {
		t.Errorf("%v", seen)
	}
}

func TestFaultsComeOnCue(t *testing.T) {
	f, w := written(t, 1)
	heal := f.Inject(crashfs.Fault{Op: crashfs.OpWrite, Name: "/f", Skip: 1, Err: syscall.EIO, Short: 1})
	for i, want := range []int{2, 1, 1} {
		n, err := w.Write([]byte("ab"))
		if n != want || (err != nil) != (i > 0) {
			t.Errorf("write %d: %d, %v", i, n, err)
		}
	}
	heal()
	f.SetCapacity(10)
	if n, err := w.Write([]byte("abcd")); n != 2 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a full disk: %d, %v", n, err)
	}
	f.SetCapacity(-1)
	f.SetReadOnly(true)
	if err := f.Remove("/d/f"); !errors.Is(err, syscall.EROFS) {
		t.Errorf("a disk for reading: %v", err)
	}
	f.SetReadOnly(false)
	f.DieAfter(1)
	must(t, w.Sync())
	for range 2 {
		if err := w.Sync(); !errors.Is(err, crashfs.ErrDead) {
			t.Errorf("dead: %v", err)
		}
	}
	if f.Count(crashfs.OpSync) != 3 {
		t.Errorf("%d syncs", f.Count(crashfs.OpSync))
	}
}
