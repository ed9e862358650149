package durable

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/rdb"
)

// This file keeps what the start has found and not loaded. A start loads either the append-only files or the RDB file. The
// files of the other kind may have data that exists nowhere else: a dump.rdb that was copied from another server, or
// append-only files from before appendonly was switched off. Before the Keeper writes new files in their place, it renames
// them. A file that this server has written beside the files that it has loaded holds nothing else, and is replaced.

// unloaded has the paths of what the start has found and not loaded, "" for none. Keeper.mu guards it.
type unloaded struct {
	rdb string // the RDB file
	aof string // the directory of the append-only files
}

// filesID is the auxiliary field of RDB files and of bases that says which append-only files the data belongs to. An RDB file
// with the id of the loaded append-only files was saved beside them, and contains nothing that they lack.
const filesID = "ebb-files-id"

// noteUnloaded notes the files that a start with appendonly yes has not loaded: the RDB file, unless it belongs to the
// append-only files.
func (k *Keeper) noteUnloaded() {
	path := k.rdbPath()
	f, err := k.fs.Open(path)
	if err != nil {
		return // there is none, or the next save says what is wrong
	}
	defer f.Close()
	id := rdbText(io.NewSectionReader(f, 0, headBytes), filesID)
	k.mu.Lock()
	defer k.mu.Unlock()
	if id == "" || id != k.filesID {
		k.unloaded.rdb = path
		k.log.Warn("the RDB file is not loaded, because appendonly is yes: a save will keep it under another name. "+
			"To take its data over, start with appendonly no, then CONFIG SET appendonly yes", "file", path)
	}
}

// loaded notes that an RDB file has been loaded. k.mu is not held.
func (k *Keeper) loaded(path string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.unloaded.rdb == path {
		k.unloaded.rdb = ""
	}
}

// replaceRDB renames temp to the RDB file. It first renames a file there that the start has not loaded. k.replacing is held.
func (k *Keeper) replaceRDB(temp, path string) error {
	k.mu.Lock()
	keep := k.unloaded.rdb == path
	k.mu.Unlock()
	if keep {
		if err := k.moveAside(path); err != nil {
			return err
		}
		k.loaded(path)
	}
	return disk.Replace(k.fs, temp, path)
}

// moveAside renames a file or a directory to a name that begins with its own, in the same directory.
func (k *Keeper) moveAside(path string) error {
	stem := path + ".not-loaded-" + time.UnixMicro(k.now()).UTC().Format("20060102-150405")
	to := stem
	for n := 2; ; n++ {
		if _, err := k.fs.Stat(to); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return err
		}
		to = fmt.Sprintf("%s-%d", stem, n)
	}
	if err := disk.Replace(k.fs, path, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("a file that was not loaded cannot be kept under another name: %w", err)
	}
	k.log.Warn("what the start has not loaded is kept under another name, because new data takes its place", "was", path, "is", to)
	return nil
}

// keepUnloadedAOF renames the directory of append-only files that the start has not loaded, before a rewrite replaces them.
func (k *Keeper) keepUnloadedAOF() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.unloaded.aof == "" || k.aof.files == nil || k.unloaded.aof != k.aof.files.Dir() {
		return nil
	}
	if err := k.moveAside(k.unloaded.aof); err != nil {
		return err
	}
	k.unloaded.aof = ""
	k.openFilesAgain()
	return k.aof.filesErr
}

// rdbText returns an auxiliary text of an RDB file, "" if the beginning of the file does not have it. It ignores errors,
// because a load finds them.
func rdbText(r io.Reader, name string) (text string) {
	found := errors.New("found")
	_, _ = rdb.NewReader(r, rdb.ReaderOptions{Aux: func(n, t []byte) error {
		if string(n) != name {
			return nil
		}
		text = string(t)
		return found
	}}).Next()
	return text
}

// nameFiles notes the id of append-only files that were loaded. Files without one, which an older release or Redis has
// written, are named by their first part, which stays as it is until a rewrite.
func (k *Keeper) nameFiles(files *oplog.Files, id string) {
	if id == "" {
		first := files.Parts()[0]
		id = first.Name
		if i, err := k.fs.Stat(filepath.Join(files.Dir(), first.Name)); err == nil && first.Type == oplog.Base {
			id = fmt.Sprintf("%s-%d", id, i.Size)
		}
	}
	k.mu.Lock()
	k.filesID = id
	k.mu.Unlock()
}

// filesIDOf returns the id of the append-only files for the head of a snapshot: for a base a new id if there is none yet, and
// for an RDB file none unless the files have all of its data.
func (k *Keeper) filesIDOf(kind snapshotKind) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if kind.base && k.filesID == "" {
		k.filesID = rand.Text()
	}
	if !kind.base && (k.aof.state != aofOn || k.aof.replaced) {
		return ""
	}
	return k.filesID
}
