package crashfs

import (
	"strings"
	"syscall"
)

// Op is a kind of operation.
type Op uint8

// These are the operations that are counted and can fail.
const (
	OpCreate Op = iota // and Append
	OpRead             // Open, ReadFile, ReadDir, Stat
	OpWrite
	OpSync
	OpTruncate
	OpRename
	OpRemove
	OpMkdir
	OpSyncDir
	numOps
)

var opNames = [numOps]string{"Create", "Read", "Write", "Sync", "Truncate", "Rename", "Remove", "Mkdir", "SyncDir"}

func (o Op) String() string { return opNames[o] }

// changes reports whether the operation changes the disk.
func (o Op) changes() bool { return o != OpRead }

// Fault makes operations of a kind fail.
type Fault struct {
	Op    Op
	Name  string // of files whose name contains it; "": all
	Skip  int    // the number that passes before
	Times int    // the number that fails; 0: all until it is healed
	Err   error  // usually a syscall.Errno
	Short int    // of a write: the number of bytes that arrive before

	seen int
}

// Inject adds a fault, and returns the function that ends it.
func (f *FS) Inject(x Fault) (heal func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := &x
	f.faults = append(f.faults, p)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		p.Times = -1
	}
}

// SetCapacity limits the bytes of all files: writes beyond get ENOSPC after what
// fits; negative for no limit.
func (f *FS) SetCapacity(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.capacity = bytes
}

// SetReadOnly makes all changes fail with EROFS.
func (f *FS) SetReadOnly(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readOnly = on
}

// DieAfter has the process die when it begins another change after this number: all
// operations get ErrDead then. Crash or Kill show what it left.
func (f *FS) DieAfter(changes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dieAfter = changes
}

// Count returns how many operations of a kind were begun.
func (f *FS) Count(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count[op]
}

// begin counts an operation and returns its error if it fails. The caller holds the lock.
func (f *FS) begin(op Op, name string) error {
	_, err := f.beginWrite(op, name)
	return err
}

// beginWrite is begin for a write, and returns how many bytes arrive before the failure.
func (f *FS) beginWrite(op Op, name string) (short int, err error) {
	if f.dead {
		return 0, ErrDead
	}
	f.count[op]++
	if op.changes() && f.dieAfter >= 0 {
		if f.dieAfter--; f.dieAfter < 0 {
			f.dead = true
			return 0, ErrDead
		}
	}
	if f.readOnly && op.changes() {
		return 0, pathError(op, name, syscall.EROFS)
	}
	for _, x := range f.faults {
		if x.hits(op, name) {
			return x.Short, pathError(op, name, x.Err)
		}
	}
	return 0, nil
}

func (x *Fault) hits(op Op, name string) bool {
	if x.Op != op || x.Times < 0 || !strings.Contains(name, x.Name) {
		return false
	}
	x.seen++
	return x.seen > x.Skip && (x.Times == 0 || x.seen <= x.Skip+x.Times)
}
