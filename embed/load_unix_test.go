//go:build unix

package embed_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/drivertest"
)

// While one engine loads its files, which may take minutes, others open and close; an Open of the same directory waits for as long
// as its context lasts.
func TestAnOpenWaitsForNoOtherEngine(t *testing.T) {
	dir := t.TempDir()
	files := filepath.Join(dir, "appendonlydir")
	base := filepath.Join(files, "appendonly.aof.1.base.rdb")
	if err := errors.Join(os.Mkdir(files, 0o755), syscall.Mkfifo(base, 0o600), // reading blocks until a program writes
		os.WriteFile(filepath.Join(files, "appendonly.aof.manifest"), []byte("file "+filepath.Base(base)+" seq 1 type b\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	url := "file://" + filepath.ToSlash(dir)
	loaded := make(chan error, 1)
	go func() {
		_, err := ebb.Open(context.Background(), url)
		loaded <- err
	}()
	writer := awaitReader(t, base)
	for range 2 {
		c, err := ebb.Open(t.Context(), "mem://other")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := ebb.Open(short, url); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an Open of the directory that is being loaded: %v", err)
	}
	end := func(f *os.File) { // the file has no data that an engine can read
		if _, err := f.WriteString("nonsense"); err != nil {
			t.Error(err)
		}
		_ = f.Close()
	}
	end(writer) // the load may open the file again
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-loaded:
			if !errors.Is(err, ebb.ErrFiles) || ebb.Temporary(err) {
				t.Errorf("the file with nonsense: %v", err)
			}
			return
		case <-tick.C:
			if f, err := os.OpenFile(base, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
				end(f)
			}
		}
	}
}

// awaitReader opens a pipe for writing as soon as a program reads it.
func awaitReader(t *testing.T, name string) (f *os.File) {
	t.Helper()
	drivertest.Until(t, "a program reads the file", func() bool {
		var err error
		f, err = os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil
	})
	return f
}

// A mistake that stays is not temporary.
func TestFilesThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(dir, "damaged")
	if err := errors.Join(os.MkdirAll(filepath.Join(damaged, "appendonlydir"), 0o755),
		os.WriteFile(filepath.Join(damaged, "appendonlydir", "appendonly.aof.manifest"), []byte("nonsense\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{file, filepath.Join(file, "below"), damaged} {
		if _, err := ebb.Open(t.Context(), "file://"+filepath.ToSlash(at)); !errors.Is(err, ebb.ErrFiles) || ebb.Temporary(err) {
			t.Errorf("%s: %v", at, err)
		}
	}
}
