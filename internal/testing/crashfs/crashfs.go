// Package crashfs is a disk.FS in memory that behaves as badly as a real one may.
//
//	fs := crashfs.New(seed)
//	... work on fs ...
//	fs = fs.Crash()      // the power fails: what is there afterwards?
//
// A file is what its readers see and what the disk holds; between them stand the
// operations since the last Sync. A crash lets a random number of them reach the
// disk, the last one cut at a random byte; at times the size arrives without the
// bytes, which are zeros then. The names of a directory are the same: changes since
// the last SyncDir arrive up to a random one, in their order.
//
//	name ──▶ inode: data      what is read
//	                disk      what was synced
//	                pending   writes and cuts since
//
// Kill is a kill -9: the system goes on, so everything written is there, but all
// handles and locks are gone. Faults come on cue: Inject fails the nth operation
// of a kind, SetCapacity makes the disk full, SetReadOnly refuses all changes. A
// Sync that failed has dropped its bytes: a later one that succeeds does not bring
// them back.
//
// Start reading at FS.Crash, then file.go.
package crashfs

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ebbdb/ebb/internal/disk"
)

// ErrDead is the error of operations of a process that was killed.
var ErrDead = errors.New("crashfs: the process is dead")

// FS is the file system as one process sees it. Make the first with New, and the
// next with Crash or Kill. Its methods are safe for concurrent use.
type FS struct {
	mu       sync.Mutex // guards the fields below, and all inodes
	rand     *rand.Rand
	names    map[string]*inode // what is seen; the root is there without a name
	durable  map[string]*inode // what the disk holds
	changes  []change          // of names, since they were synced
	locks    map[string]bool
	faults   []*Fault
	count    map[Op]int
	capacity int64 // of all files, -1: no limit
	readOnly bool
	dead     bool
	dieAfter int   // changes, -1: never
	now      int64 // ms, given by SetTime
	syncTime time.Duration
}

// change is one change of names: the inodes of the names after it, nil for a removed name.
type change struct {
	names []string
	to    []*inode
}

// New returns an empty file system whose crashes follow from the seed.
func New(seed uint64) *FS {
	return &FS{
		rand: rand.New(rand.NewPCG(seed, 1)), names: map[string]*inode{}, durable: map[string]*inode{},
		locks: map[string]bool{}, count: map[Op]int{}, capacity: -1, dieAfter: -1,
	}
}

// Crash returns the file system as it is found after a power cut at this moment.
// For the old one the process is dead.
func (f *FS) Crash() *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.successor()
	arrived := f.rand.IntN(len(f.changes) + 1)
	for _, c := range f.changes[:arrived] {
		c.apply(f.durable)
	}
	copies := map[*inode]*inode{}
	for name, n := range f.durable {
		if !parentIsThere(f.durable, name) {
			continue
		}
		if copies[n] == nil {
			copies[n] = n.crash(f.rand)
		}
		next.names[name] = copies[n]
	}
	next.durable = maps.Clone(next.names)
	return next
}

// Kill returns the file system as the next process finds it after a kill -9.
func (f *FS) Kill() *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.successor()
	next.names, next.durable, next.changes = f.names, f.durable, f.changes
	f.names, f.durable, f.changes = nil, nil, nil
	return next
}

// successor ends this process and returns the frame for the next; faults and the
// capacity end with it.
func (f *FS) successor() *FS {
	next := New(f.rand.Uint64())
	next.now, f.dead = f.now, true
	return next
}

// parentIsThere reports whether the directories above a name are on disk.
func parentIsThere(names map[string]*inode, name string) bool {
	for dir := filepath.Dir(name); !isRoot(dir); dir = filepath.Dir(dir) {
		if names[dir] == nil {
			return false
		}
	}
	return true
}

func isRoot(dir string) bool { return dir == filepath.Dir(dir) }

func (c change) apply(names map[string]*inode) {
	for i, name := range c.names {
		if c.to[i] == nil {
			delete(names, name)
		} else {
			names[name] = c.to[i]
		}
	}
}

// rename records a change of names and makes it visible.
func (f *FS) rename(c change) {
	c.apply(f.names)
	f.changes = append(f.changes, c)
}

// SetTime sets the time, in ms since 1970, that changed files carry.
func (f *FS) SetTime(ms int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = ms
}

// SetSyncTime sets how long a Sync of a file takes.
func (f *FS) SetSyncTime(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.syncTime = d
}

// Create implements disk.FS.
func (f *FS) Create(name string) (disk.File, error) { return f.open(name, true) }

// Append implements disk.FS.
func (f *FS) Append(name string) (disk.File, error) { return f.open(name, false) }

func (f *FS) open(name string, empty bool) (disk.File, error) {
	name = filepath.Clean(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(OpCreate, name); err != nil {
		return nil, err
	}
	n := f.names[name]
	switch {
	case n != nil && n.dir:
		return nil, pathError(OpCreate, name, syscall.EISDIR)
	case n == nil:
		if err := f.needDir(OpCreate, filepath.Dir(name)); err != nil {
			return nil, err
		}
		n = &inode{modified: f.now}
		f.rename(change{[]string{name}, []*inode{n}})
	case empty:
		n.truncate(0)
	}
	return &file{f, n, name, false}, nil
}

// needDir reports an error if a directory is missing.
func (f *FS) needDir(op Op, dir string) error {
	if n := f.names[dir]; !isRoot(dir) && (n == nil || !n.dir) {
		return pathError(op, dir, fs.ErrNotExist)
	}
	return nil
}

// find returns a file or directory.
func (f *FS) find(op Op, name string) (*inode, error) {
	if n := f.names[name]; n != nil {
		return n, nil
	}
	return nil, pathError(op, name, fs.ErrNotExist)
}

// Open implements disk.FS. The reader sees the file as it is now.
func (f *FS) Open(name string) (disk.Reader, error) {
	b, err := f.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return newReader(b), nil
}

// ReadFile implements disk.FS.
func (f *FS) ReadFile(name string) ([]byte, error) {
	name = filepath.Clean(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(OpRead, name); err != nil {
		return nil, err
	}
	n, err := f.find(OpRead, name)
	if err != nil {
		return nil, err
	}
	return slices.Clone(n.data), nil
}

// Rename implements disk.FS. What is in a directory moves with it.
func (f *FS) Rename(from, to string) error {
	from, to = filepath.Clean(from), filepath.Clean(to)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(OpRename, to); err != nil {
		return err
	}
	n, err := f.find(OpRename, from)
	if err == nil {
		err = f.needDir(OpRename, filepath.Dir(to))
	}
	if err == nil {
		c := change{[]string{from, to}, []*inode{nil, n}}
		for name, inode := range f.names {
			if rest, below := strings.CutPrefix(name, from+string(filepath.Separator)); below {
				c.names, c.to = append(c.names, name, filepath.Join(to, rest)), append(c.to, nil, inode)
			}
		}
		f.rename(c)
	}
	return err
}

// Remove implements disk.FS.
func (f *FS) Remove(name string) error {
	name = filepath.Clean(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(OpRemove, name); err != nil {
		return err
	}
	n, err := f.find(OpRemove, name)
	if err != nil {
		return err
	}
	if n.dir && len(f.list(name)) > 0 {
		return pathError(OpRemove, name, syscall.ENOTEMPTY)
	}
	f.rename(change{[]string{name}, []*inode{nil}})
	return nil
}

// Truncate implements disk.FS.
func (f *FS) Truncate(name string, size int64) error {
	name = filepath.Clean(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(OpTruncate, name); err != nil {
		return err
	}
	n, err := f.find(OpTruncate, name)
	if err == nil {
		n.truncate(size)
		n.modified = f.now
		n.sync(len(n.pending))
	}
	return err
}

// ReadDir implements disk.FS.
func (f *FS) ReadDir(dir string) ([]string, error) {
	dir = filepath.Clean(dir)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(OpRead, dir); err != nil {
		return nil, err
	}
	if err := f.needDir(OpRead, dir); err != nil {
		return nil, err
	}
	return f.list(dir), nil
}

func (f *FS) list(dir string) []string {
	var all []string
	for name := range f.names {
		if filepath.Dir(name) == dir {
			all = append(all, filepath.Base(name))
		}
	}
	slices.Sort(all)
	return all
}

// MkdirAll implements disk.FS.
func (f *FS) MkdirAll(dir string) error {
	dir = filepath.Clean(dir)
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.names[dir]; n != nil && n.dir || isRoot(dir) {
		return nil
	}
	if err := f.begin(OpMkdir, dir); err != nil {
		return err
	}
	for d := dir; !isRoot(d); d = filepath.Dir(d) {
		switch n := f.names[d]; {
		case n == nil:
			f.names[d] = &inode{dir: true, modified: f.now}
			f.durable[d] = f.names[d]
		case !n.dir:
			return pathError(OpMkdir, d, syscall.ENOTDIR)
		}
	}
	return nil
}

// SyncDir implements disk.FS. Names are journalled: what came before in other
// directories arrives with them.
func (f *FS) SyncDir(dir string) error {
	dir = filepath.Clean(dir)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(OpSyncDir, dir); err != nil {
		return err
	}
	last := -1
	for i, c := range f.changes {
		if slices.ContainsFunc(c.names, func(n string) bool { return filepath.Dir(n) == dir }) {
			last = i
		}
	}
	for _, c := range f.changes[:last+1] {
		c.apply(f.durable)
	}
	f.changes = slices.Delete(f.changes, 0, last+1)
	return nil
}

// Stat implements disk.FS.
func (f *FS) Stat(name string) (disk.Info, error) {
	name = filepath.Clean(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(OpRead, name); err != nil {
		return disk.Info{}, err
	}
	if isRoot(name) {
		return disk.Info{Dir: true}, nil
	}
	n, err := f.find(OpRead, name)
	if err != nil {
		return disk.Info{}, err
	}
	return disk.Info{Size: int64(len(n.data)), Modified: n.modified, Dir: n.dir}, nil
}

// Same implements disk.FS.
func (f *FS) Same(a, b string) bool { return filepath.Clean(a) == filepath.Clean(b) }

// Lock implements disk.FS. The owner's pid is 1.
func (f *FS) Lock(dir string) (io.Closer, error) {
	dir = filepath.Clean(dir)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(OpRead, dir); err != nil {
		return nil, err
	}
	if err := f.needDir(OpRead, dir); err != nil {
		return nil, err
	}
	if f.locks[dir] {
		return nil, &disk.LockedError{Dir: dir, PID: 1}
	}
	f.locks[dir] = true
	return unlock{f, dir}, nil
}

type unlock struct {
	f   *FS
	dir string
}

func (u unlock) Close() error {
	u.f.mu.Lock()
	defer u.f.mu.Unlock()
	delete(u.f.locks, u.dir)
	return nil
}

// Free implements disk.FS.
func (f *FS) Free(string) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.capacity < 0 {
		return -1, nil
	}
	return f.capacity - f.used(), nil
}

func (f *FS) used() int64 {
	var sum int64
	for _, n := range f.names {
		sum += int64(len(n.data))
	}
	return sum
}

func pathError(op Op, name string, err error) error {
	return &fs.PathError{Op: strings.ToLower(op.String()), Path: name, Err: err}
}
