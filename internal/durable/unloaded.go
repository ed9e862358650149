package durable

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/rdb"
)

// This file keeps what the server has found and not loaded. A start loads either the append-only files or the RDB file. The
// files of the other kind may have data that exists nowhere else: a dump.rdb that was copied from another server, or
// append-only files from before appendonly was switched off. CONFIG SET dir and dbfilename may name an RDB file too. Before the
// Keeper writes new files in their place, it renames them. A file that this server has written beside the files that it has loaded
// holds nothing else, and is replaced.

// unloaded tells which files hold only data that was loaded or written. Keeper.mu guards it.
type unloaded struct {
	own []string // the RDB files that this server has loaded or written, the latest last
	aof string   // the directory of append-only files that were found and not loaded; "": none
}

// maxOwn is the number of RDB files that the server remembers as its own. A program may give each save a name of its own, and
// hardly saves under an old one again.
const maxOwn = 1000

// saveID is the auxiliary field with the random name of a save. The directory of the append-only files has the name of the
// latest save beside them, in the file of savedPath: this very file, and no older one, contains nothing that they lack.
const saveID = "ebb-save-id"

// noteUnloaded notes the RDB file that a start with appendonly yes has not loaded, unless it is the latest save beside the
// append-only files. A file that cannot be read may have any data.
func (k *Keeper) noteUnloaded() {
	path := k.rdbPath()
	id, err := k.saveIDIn(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if saved, err := k.fs.ReadFile(k.savedPath()); err == nil && id != "" && id == string(saved) {
		k.owns(path)
		return
	}
	about := []any{"file", path}
	if err != nil {
		about = append(about, "error", err)
	}
	k.log.Warn("the RDB file is not loaded, because appendonly is yes: a save will keep it under another name. "+
		"To take its data over, start with appendonly no, then CONFIG SET appendonly yes", about...)
}

// savedPath returns the path of the file that names the latest save beside the append-only files. k.mu is held, or nothing runs
// yet.
func (k *Keeper) savedPath() string {
	c := k.o.Config
	return filepath.Join(k.dir, c.String("appenddirname"), c.String("appendfilename")+"-saved")
}

// noteFiles notes append-only files that were opened and not loaded. k.mu is held, or nothing runs yet.
func (k *Keeper) noteFiles() {
	k.unloaded.aof = ""
	if k.aof.filesErr == nil && !k.aof.files.Empty() {
		k.unloaded.aof = k.aof.files.Dir()
	}
}

// owns notes that an RDB file has been loaded or written. k.mu is not held.
func (k *Keeper) owns(path string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	own := slices.DeleteFunc(k.unloaded.own, func(o string) bool { return o == path })
	k.unloaded.own = append(own[max(0, len(own)-maxOwn+1):], path)
}

// isOwn reports whether an RDB file is one that was loaded or written, by any name, or does not exist. A directory in its place is
// no such file, and makes the save fail. k.mu is not held.
func (k *Keeper) isOwn(path string) (bool, error) {
	info, err := k.fs.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || info.Dir {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	k.mu.Lock()
	own := slices.Clone(k.unloaded.own)
	k.mu.Unlock()
	return slices.ContainsFunc(own, func(o string) bool { return o == path || k.fs.Same(o, path) }), nil
}

// replaceRDB renames temp to the RDB file. It first renames a file there that was not loaded. k.replacing is held.
func (k *Keeper) replaceRDB(temp, path string) error {
	k.mu.Lock()
	saved := k.savedPath()
	k.mu.Unlock()
	switch own, err := k.isOwn(path); {
	case err != nil:
		return err
	case !own:
		if err := k.moveAside(path); err != nil {
			return err
		}
	}
	id, err := k.saveIDIn(temp)
	if err != nil {
		return err
	}
	if id != "" {
		if err := disk.WriteFile(k.fs, saved, []byte(id)); err != nil {
			k.log.Warn("the save is not noted beside the append-only files: the next start will keep it under another name", "error", err)
		}
	}
	if err := disk.Replace(k.fs, temp, path); err != nil {
		return err
	}
	k.owns(path)
	return nil
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
	k.log.Warn("what was found and not loaded is kept under another name, because new data takes its place", "was", path, "is", to)
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
	k.openFilesAgain()
	return k.aof.filesErr
}

// saveIDIn returns the save ID of an RDB file, "" if it has none. Errors are those of opening the file.
func (k *Keeper) saveIDIn(path string) (id string, err error) {
	f, err := k.fs.Open(path)
	if err != nil {
		return "", err
	}
	return rdbText(io.NewSectionReader(f, 0, headBytes), saveID), f.Close()
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

// newSaveID returns a name for a save, "" for a snapshot whose data the append-only files do not have.
func (k *Keeper) newSaveID(kind snapshotKind) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if kind.base || k.aof.state != aofOn || k.aof.replaced {
		return ""
	}
	return rand.Text()
}
