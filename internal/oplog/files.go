package oplog

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/disk"
)

// Files are the append-only files of a directory, as Redis 7 lays them out:
//
//	appendonlydir/appendonly.aof.2.base.rdb   a snapshot
//	appendonlydir/appendonly.aof.2.incr.aof   the effects after it
//	appendonlydir/appendonly.aof.manifest     the list of the valid files
//
// Only files that the manifest lists are data. The manifest is replaced atomically, and so is every
// change. A rewrite changes it twice: it adds the next increment after the others before it writes
// to it, and later it replaces all files that the new base covers with the base.
//
// An Appender writes them; Load reads them. Methods are safe for concurrent use.
type Files struct {
	fs   disk.FS
	dir  string
	name string

	mu       sync.Mutex // guards the fields below, and is held while the manifest is written
	manifest *Manifest
	listed   bool             // there is a manifest
	sizes    map[string]int64 // the sizes of the parts that are closed for appending, by name
	begun    *begun           // a rewrite that is under way; nil: none

	total atomic.Int64 // the value of Size
}

// begun is a rewrite between its cut and its commit or abort.
type begun struct {
	incr  Part
	fresh bool // the increment is not listed yet, and has a temporary name
}

// tempPrefix begins the names of files that are useless after a crash.
const tempPrefix = "temp-"

// OpenFiles reads the manifest of dir (appenddirname), for files whose names begin with name (appendfilename).
// Without the directory or the manifest, Files is empty. A single append-only file from before Redis 7, which lies
// beside the directory, is moved into it as the base. OpenFiles removes the files of an interrupted rewrite.
//
// Errors: ErrManifest; fs.ErrNotExist, wrapped, if a listed file is missing.
func OpenFiles(fsys disk.FS, dir, name string) (*Files, error) {
	f := &Files{fs: fsys, dir: dir, name: name, manifest: &Manifest{}, sizes: map[string]int64{}}
	text, err := fsys.ReadFile(f.ManifestPath())
	switch {
	case err == nil:
		f.listed = true
		if f.manifest, err = ParseManifest(text); err != nil {
			return nil, fmt.Errorf("%s: %w", f.ManifestPath(), err)
		}
		if err := f.refuseItself(); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if err := f.upgrade(); err != nil {
		return nil, err
	}
	if err := f.measure(); err != nil {
		return nil, err
	}
	if !f.listed {
		if err := f.refuseStrays(); err != nil {
			return nil, err
		}
	}
	return f, f.sweep()
}

// refuseItself returns an error if the manifest lists itself: sweep would then remove it with the history.
func (f *Files) refuseItself() error {
	own := filepath.Base(f.ManifestPath())
	for _, p := range append(f.manifest.Parts(), f.manifest.History...) {
		if p.Name == own {
			return fmt.Errorf("%s: %w: the manifest lists itself as a file of type %c", f.ManifestPath(), ErrManifest, p.Type)
		}
	}
	return nil
}

// Dir returns the directory.
func (f *Files) Dir() string { return f.dir }

// ManifestPath returns the manifest's path.
func (f *Files) ManifestPath() string { return f.path(f.name + ".manifest") }

func (f *Files) path(name string) string { return filepath.Join(f.dir, name) }

// Parts returns the files with data, in the order in which to load them.
func (f *Files) Parts() []Part {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.manifest.Parts()
}

// Empty reports whether there are no files.
func (f *Files) Empty() bool { return len(f.Parts()) == 0 }

// Size returns the bytes of all parts that are closed for appending. It takes no lock, because Files holds its lock
// during disk operations.
func (f *Files) Size() int64 { return f.total.Load() }

// Same reports whether o, which may be nil, lists the same parts with the same sizes. No appender may be active on
// either.
func (f *Files) Same(o *Files) bool {
	if f == nil || o == nil {
		return f == o
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Equal(f.manifest.Parts(), o.manifest.Parts()) && maps.Equal(f.sizes, o.sizes)
}

// count stores the sum of the sizes in total. The lock is held.
func (f *Files) count() {
	var sum int64
	for _, p := range f.manifest.Parts() {
		sum += f.sizes[p.Name]
	}
	f.total.Store(sum)
}

// upgrade makes the single file of older versions the base. It writes the manifest before it moves the file. If the
// power fails in between, the next start repeats the upgrade.
func (f *Files) upgrade() error {
	old := filepath.Join(filepath.Dir(f.dir), f.name)
	i, err := f.fs.Stat(old)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || i.Dir {
		return err
	}
	if !f.manifest.Empty() && !f.halfUpgraded() {
		return nil
	}
	if err := f.fs.MkdirAll(f.dir); err != nil {
		return err
	}
	m := &Manifest{Base: &Part{Name: f.name, Seq: 1, Type: Base}}
	if err := disk.WriteFile(f.fs, f.ManifestPath(), m.Format()); err != nil {
		return err
	}
	f.manifest, f.listed = m, true
	return disk.Replace(f.fs, old, f.path(f.name))
}

// halfUpgraded reports whether the manifest is from an upgrade that has not moved the file yet.
func (f *Files) halfUpgraded() bool {
	m := f.manifest
	if m.Base == nil || m.Base.Name != f.name || len(m.Incrs) > 0 {
		return false
	}
	_, err := f.fs.Stat(f.path(f.name))
	return errors.Is(err, fs.ErrNotExist)
}

// measure records the sizes of all parts. It returns an error if one is missing.
func (f *Files) measure() error {
	for _, p := range f.manifest.Parts() {
		i, err := f.fs.Stat(f.path(p.Name))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the append-only file %s is missing, but the manifest %s lists it: put it back, or remove its line if you can do without its data: %w",
				f.path(p.Name), f.ManifestPath(), err)
		}
		if err != nil {
			return err
		}
		f.sizes[p.Name] = i.Size
	}
	f.count()
	return nil
}

// refuseStrays returns an error if there are files with data but no manifest, because new files
// would overwrite them.
func (f *Files) refuseStrays() error {
	names, err := f.fs.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, n := range names {
		if !strings.HasPrefix(n, f.name+".") || n == f.name+".manifest" {
			continue
		}
		if i, err := f.fs.Stat(f.path(n)); err == nil && i.Size > 0 {
			return fmt.Errorf("the manifest %s is missing, but there is the append-only file %s: put the manifest back, or move the directory away",
				f.ManifestPath(), f.path(n))
		}
	}
	return err
}

// sweep removes the files of an interrupted rewrite: history files and ebb's temporary files. It
// ignores errors, because files on a read-only disk can still be loaded.
func (f *Files) sweep() error {
	names, err := f.fs.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, n := range names {
		if strings.HasPrefix(n, tempPrefix+f.name) {
			_ = f.fs.Remove(f.path(n))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropHistory()
	return err
}

// dropHistory removes replaced files, and then their lines. The order matters: a line without its file does no harm,
// but a file without its line would stay for ever. The lock is held.
func (f *Files) dropHistory() {
	if len(f.manifest.History) == 0 {
		return
	}
	for _, p := range f.manifest.History {
		if err := f.fs.Remove(f.path(p.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return // the next start or rewrite tries again
		}
	}
	m := f.manifest.clone()
	m.History = nil
	_ = f.save(m) // the next start or rewrite tries again
}

// save writes a manifest and makes it the current one. If only the sync of the directory fails, the new manifest is
// current anyway, and save returns the error. The lock is held.
func (f *Files) save(m *Manifest) error {
	if base, incr := m.lastSeqs(); max(base, incr) > maxSeq { // the next start would refuse the manifest
		return fmt.Errorf("%s: the number of the next append-only file is above %d: start with appendonly no, move %s away, then "+
			"CONFIG SET appendonly yes", f.ManifestPath(), int64(maxSeq), f.dir)
	}
	if err := f.fs.MkdirAll(f.dir); err != nil {
		return err
	}
	err := disk.WriteFile(f.fs, f.ManifestPath(), m.Format())
	if err != nil {
		if now, readErr := f.fs.ReadFile(f.ManifestPath()); readErr != nil || string(now) != string(m.Format()) {
			return err
		}
	}
	f.manifest, f.listed = m, true
	return err
}
