//go:build unix

package cli

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A snapshot is written to a device or a pipe, and does not take its place; a link stays a link.
func TestASnapshotReplacesFilesAlone(t *testing.T) {
	dir := t.TempDir()
	save := func(name string) error {
		_, err := saveStream(name, func(f *os.File) (int64, error) {
			n, err := f.WriteString("REDIS")
			return int64(n), err
		})
		return err
	}

	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	end, err := os.OpenFile(pipe, os.O_RDWR, 0) // both ends, so that no opening waits
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	if err := save(pipe); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Fatalf("the pipe has become %v, %v", info.Mode(), err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(end, got); err != nil || string(got) != "REDIS" {
		t.Errorf("the pipe gives %q, %v", got, err)
	}

	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("a longer text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := save(link); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link has become %v, %v", info.Mode(), err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "REDIS" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if err := save(dir); err == nil {
		t.Error("a directory takes a snapshot")
	}
}
