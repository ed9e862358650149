// Package disk is the file system as files of data need it: an interface with
// what they do to it, and the real one.
//
//	FS    names: Create, Append, Open, Rename, Remove, ReadDir, Lock, ...
//	File  bytes: Write at the end, Sync, Truncate
//
// Two promises that a file system does not give by itself have calls of their
// own, because what is written without them is gone after a power cut: File.Sync
// for the bytes of a file, and FS.SyncDir for the names in a directory. WriteFile
// and Replace do both, in the order that leaves the old file or the new one.
//
// The package crashfs has the FS for tests: it loses what was not synced.
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
	// Create makes an empty file, or empties the one that is there.
	Create(name string) (File, error)
	// Append opens a file to write at its end, and makes it if it is missing.
	Append(name string) (File, error)
	// Open opens a file for reading.
	Open(name string) (Reader, error)
	// ReadFile returns a file's bytes.
	ReadFile(name string) ([]byte, error)
	// Rename moves a file, over another one if that exists. SyncDir makes it last.
	Rename(from, to string) error
	// Remove deletes a file or an empty directory.
	Remove(name string) error
	// Truncate cuts a file to a size. It is durable when it returns.
	Truncate(name string, size int64) error
	// ReadDir returns the names in a directory, sorted.
	ReadDir(dir string) ([]string, error)
	// MkdirAll makes a directory and its parents, where they are missing, so that
	// they outlast a power cut.
	MkdirAll(dir string) error
	// SyncDir makes the names in a directory outlast a power cut.
	SyncDir(dir string) error
	// Stat describes a file.
	Stat(name string) (Info, error)
	// Lock takes a directory for this process, until the lock is closed or the
	// process ends. Errors: a *LockedError if another one has it.
	Lock(dir string) (io.Closer, error)
	// Free returns the bytes that may still be written below a directory, -1 where
	// the system does not say.
	Free(dir string) (int64, error)
}

// File is a file that is written at its end. It is used by one goroutine at a
// time, but Sync may run during Write: it covers what was written before it
// began.
type File interface {
	io.Writer
	// Sync makes the bytes outlast a power cut. After an error it is unknown which
	// of them do, and a second Sync that succeeds does not say so either.
	Sync() error
	// Truncate cuts the file; writing goes on at its new end.
	Truncate(size int64) error
	io.Closer
}

// Reader is a file that is read.
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

// LockedError says that another one has the directory.
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

// WriteFile writes a file as a whole: after a power cut there is the old one, or
// the new one with all its bytes. It costs three syncs and leaves nothing behind
// if it fails.
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
		_ = fs.Remove(temp) // it may be gone
	}
	return err
}

// Replace moves a synced file to its name, and syncs the directories of both.
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
