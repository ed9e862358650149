package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// OS returns the file system of the operating system.
func OS() FS { return system{} }

type system struct{}

func (system) Create(name string) (File, error) {
	return open(name, os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_WRONLY)
}

func (system) Append(name string) (File, error) {
	return open(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY)
}

func open(name string, flags int) (File, error) {
	f, err := os.OpenFile(name, flags, 0o644)
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

// file implements File. Write continues at the end that Truncate has set, because the file is open
// for appending.
type file struct{ *os.File }

// Truncate implements File. Windows does not truncate a file that is open for appending, so
// Truncate opens it again there.
func (f file) Truncate(size int64) error {
	if runtime.GOOS == "windows" {
		return os.Truncate(f.Name(), size)
	}
	return f.File.Truncate(size)
}

// Sync implements File.
func (f file) Sync() error { return syncData(f.File) }

func (system) Open(name string) (Reader, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (system) ReadFile(name string) ([]byte, error) { return os.ReadFile(name) }
func (system) Rename(from, to string) error         { return os.Rename(from, to) }
func (system) Remove(name string) error             { return os.Remove(name) }

func (system) Truncate(name string, size int64) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = f.Truncate(size)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (system) ReadDir(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

// MkdirAll syncs the parent of each directory that it makes.
func (s system) MkdirAll(dir string) error {
	i, err := os.Stat(dir)
	if err == nil && !i.IsDir() {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: errors.New("a file is in the way")}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := s.MkdirAll(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return s.SyncDir(parent)
}

func (system) SyncDir(dir string) error { return syncDir(dir) }

func (system) Stat(name string) (Info, error) {
	i, err := os.Stat(name)
	if err != nil {
		return Info{}, err
	}
	return Info{Size: i.Size(), Modified: i.ModTime().UnixMilli(), Dir: i.IsDir()}, nil
}

func (system) Same(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}

func (system) Free(dir string) (int64, error) { return free(dir) }

// Lock keeps the lock file open: the system releases it when the process ends, however it ends. The
// file stays, empty: a process that removed it would race with another process that has it open.
func (system) Lock(dir string) (io.Closer, error) {
	name := filepath.Join(dir, LockFile)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("nothing can be kept in the directory %s: %w; let the user who runs this write there, or name another", dir, err)
	}
	held, err := tryLock(f)
	if err == nil && held {
		err = sign(f)
	}
	if err == nil && !held {
		err = &LockedError{Dir: dir, PID: owner(name)}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return lock{f}, nil
}

type lock struct{ f *os.File }

// Close truncates the file, so that it names no process, and releases the lock.
func (l lock) Close() error {
	return errors.Join(l.f.Truncate(0), l.f.Close())
}

// sign writes the pid of this process to the lock file. It ignores a full disk.
func sign(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return nil
}

// owner reads the pid in a lock file, 0 if there is none.
func owner(name string) int {
	b, _ := os.ReadFile(name)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}
