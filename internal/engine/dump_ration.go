package engine

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
)

// A few bytes of a payload or a file can stand for very many bytes of memory: a byte of LZF stands for up to
// 88, one of Zstandard for up to 40,000. A ration counts the bytes that values unpack to while they are built
// outside of the data, and ends the work before they take more memory than the server has.
//
//	RESTORE  all that are under way share one ration: the memory limit, or the machine's memory
//	Load     one ration for the file: the same number, or 255 times the bytes read so far if that
//	         is more. Honest data passes, whatever its size: LZ4 cannot give more
//
// A replay of the log, and a replica that leaves eviction to its master, may use more than the memory
// limit. For their RESTORE the ration is the machine's memory.

// ErrUnpacks: a value or a file unpacks to more bytes than the ration. The error that wraps it contains the
// numbers.
var ErrUnpacks = errors.New("compressed data takes more memory than there is")

// honest is the number of bytes that a byte of a file may always unpack to, whatever the memory limit: the
// ratio that LZ4 can reach; LZF reaches less.
const honest = 255

// ration bounds the memory of all values of a load, or of all RESTOREs.
type ration struct {
	spent atomic.Int64
	read  atomic.Int64 // bytes of the file up to now; 0 for RESTORE
}

// spend takes n bytes of a ration of limit bytes. Error: ErrUnpacks.
func (r *ration) spend(n, limit int64) error {
	spent := r.spent.Add(n)
	if spent <= limit || spent <= honest*r.read.Load() {
		return nil
	}
	if read := r.read.Load(); read > 0 {
		return fmt.Errorf("%w: %d bytes of the file unpack to %d or more; at most %d are allowed (a higher maxmemory allows more)",
			ErrUnpacks, read, spent, max(limit, honest*read))
	}
	return fmt.Errorf("%w: the value unpacks to %d bytes or more; at most %d are allowed", ErrUnpacks, spent, limit)
}

// LimitUnpacked sets the number of bytes that the values of a payload or a file may unpack to while
// LimitMemory sets no limit: the memory of the machine. 0 means no limit.
func (db *DB) LimitUnpacked(bytes int64) { db.unpackable.Store(bytes) }

// maxUnpacked returns the bytes of a ration. free means that the memory limit does not apply.
func (db *DB) maxUnpacked(free bool) int64 {
	if n := db.limit.Load(); n > 0 && !free {
		return n
	}
	if n := db.unpackable.Load(); n > 0 {
		return n
	}
	return math.MaxInt64
}

// portion is the part of a ration that one value takes.
type portion struct {
	from  *ration // nil: the value has no ration
	limit int64
	had   int64 // bytes that need no ration, because the payload itself is already in memory
	took  int64 // bytes of the ration
}

// Unpacks implements rdb.Meter: the value gets n more bytes.
func (p *portion) Unpacks(n int) error {
	if p.from == nil {
		return nil
	}
	p.took += int64(n)
	return p.from.spend(int64(n), p.limit)
}

// setHeld records that the value now takes size bytes.
func (p *portion) setHeld(size int) error {
	return p.Unpacks(int(max(int64(size)-p.had-p.took, 0)))
}

// settle returns the value's part of the ration.
func (p *portion) settle() {
	if p.from != nil {
		p.from.spent.Add(-p.took)
		p.took = 0
	}
}

// weighEvery is the number of items of a large container between two checks of its size.
const weighEvery = 1024

// weigh checks the size of a growing large container.
func (r *restorer) weigh() error {
	if r.box == nil || r.items%weighEvery != 0 {
		return nil
	}
	return r.setHeld(r.box.Size())
}
