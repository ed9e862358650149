// Package disk is the file system that data files use: an interface with the operations that they
// need, and its implementation by the operating system.
//
//	FS    names: Create, Append, Open, Rename, Remove, ReadDir, Lock, ...
//	File  bytes: Write at the end, Sync, Truncate
//
// A file system does not make writes durable by itself. Two calls do: File.Sync for the bytes of a
// file, and FS.SyncDir for the names in a directory. Without them a power cut loses writes.
// WriteFile and Replace make both calls, in the order that leaves either the old file or the new
// one.
//
// Package crashfs has the FS for tests, which loses writes that were not synced.
//
// Start reading at FS.
package disk

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// FS is a file system. Names are paths of the operating system. Errors are those
// of the os package: errors.Is with fs.ErrNotExist and system errors (ENOSPC)
// works. Methods are safe for concurrent use.
type FS interface {
	// Create creates an empty file, or truncates an existing one.
	Create(name string) (File, error)
	// Append opens a file to write at its end, and creates it if it is missing.
	Append(name string) (File, error)
	// Open opens a file for reading.
	Open(name string) (Reader, error)
	// ReadFile returns a file's bytes.
	ReadFile(name string) ([]byte, error)
	// Rename moves a file, and replaces an existing one. SyncDir makes the change durable.
	Rename(from, to string) error
	// Remove deletes a file or an empty directory.
	Remove(name string) error
	// Truncate cuts a file to a size in bytes. The change is durable when it returns.
	Truncate(name string, size int64) error
	// ReadDir returns the names in a directory, sorted.
	ReadDir(dir string) ([]string, error)
	// MkdirAll creates a directory and its missing parents. They are durable when it returns.
	MkdirAll(dir string) error
	// SyncDir makes the names in a directory durable.
	SyncDir(dir string) error
	// Stat describes a file.
	Stat(name string) (Info, error)
	// Same reports whether two names are those of one file.
	Same(a, b string) bool
	// Lock locks a directory for this process, until the caller closes the lock or the process
	// ends. Errors: *LockedError if another process has locked it.
	Lock(dir string) (io.Closer, error)
	// Free returns the free bytes of the file system of a directory, -1 if the system does not
	// report them.
	Free(dir string) (int64, error)
}

// File is a file that is written at its end. One goroutine at a time uses it, but Sync may run
// during Write: it covers the bytes that were written before it began.
type File interface {
	io.Writer
	// Sync makes the bytes durable. After an error it is unknown which bytes are durable, even if a
	// second Sync succeeds.
	Sync() error
	// Truncate cuts the file to a size in bytes; Write then continues at the new end.
	Truncate(size int64) error
	io.Closer
}

// Reader is a file that is open for reading.
type Reader interface {
	io.Reader
	io.ReaderAt
	io.Closer
}

// Info describes a file.
type Info struct {
	Size     int64 // bytes
	Modified int64 // ms since 1970
	Dir      bool
}

// LockFile is the file in a locked directory that holds the owner's pid.
const LockFile = "ebb.lock"

// LockedError: another process has locked the directory.
type LockedError struct {
	Dir string
	PID int // 0 if unknown
}

func (e *LockedError) Error() string {
	who := "another process"
	if e.PID > 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("the directory %s is in use by %s (it holds the lock of %s): stop it, or use another directory",
		e.Dir, who, filepath.Join(e.Dir, LockFile))
}

// WriteFile writes a file atomically: after a power cut there is the old file, or the complete new
// one. It costs three syncs, and leaves no temporary file if it fails.
func WriteFile(fs FS, name string, data []byte) error {
	temp := filepath.Join(filepath.Dir(name), "temp-"+filepath.Base(name))
	f, err := fs.Create(temp)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = Replace(fs, temp, name)
	}
	if err != nil {
		_ = fs.Remove(temp) // the file may not exist
	}
	return err
}

// Replace renames a synced file, and syncs the directories of both names.
func Replace(fs FS, from, to string) error {
	if err := fs.Rename(from, to); err != nil {
		return err
	}
	if a, b := filepath.Dir(from), filepath.Dir(to); a != b {
		if err := fs.SyncDir(a); err != nil {
			return err
		}
	}
	return fs.SyncDir(filepath.Dir(to))
}
