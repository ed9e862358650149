package engine

import (
	"math"
	"math/rand/v2"

	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/packed"
)

// The access clock of a record has 24 bits, as in Redis: the seconds since 1970 of the last access
// (LRU), or 16 bits of minutes and 8 bits of a logarithmic counter (LFU).
const (
	lruMask  = 1<<24 - 1
	lfuInit  = 5  // a new key's counter; it is above 0, so that the key is not evicted at once
	lfuLog   = 10 // the growth factor, unless SetLFU has changed it
	lfuDecay = 1  // the minutes after which a counter falls by one, unless SetLFU has changed them
)

func (r *rec) access() uint32 {
	return uint32(r.clock[0]) | uint32(r.clock[1])<<8 | uint32(r.clock[2])<<16
}

func (r *rec) setAccess(c uint32) {
	r.clock = [3]uint8{uint8(c), uint8(c >> 8), uint8(c >> 16)}
}

// stamp sets the access clock of a record that was written.
func (tx *Tx) stamp(r *rec) {
	if tx.db.lfu.Load() {
		if r.access() == 0 {
			r.setAccess(uint32(tx.ms/60000)&0xffff<<8 | lfuInit)
		}
		return
	}
	r.setAccess(uint32(tx.ms/1000) & lruMask)
}

// touch updates the access clock of a key that was read.
func (tx *Tx) touch(h *hit) {
	if tx.client {
		return
	}
	if tx.db.lfu.Load() {
		n := tx.lfuCount(h.r.access())
		if n < 255 {
			base := max(0, float64(n)-lfuInit)
			if rand.Float64() < 1/(base*float64(tx.db.lfuLog.Load())+1) {
				n++
			}
		}
		h.r.setAccess(uint32(tx.ms/60000)&0xffff<<8 | n)
		return
	}
	// The clock has a resolution of a second, so most reads find it up to date and write nothing.
	if c := uint32(tx.ms/1000) & lruMask; c != h.r.access() {
		h.r.setAccess(c)
	}
}

// lfuCount returns a clock's counter, reduced by its decay since the last access.
func (tx *Tx) lfuCount(clock uint32) uint32 {
	minutes := (uint32(tx.ms/60000) - clock>>8) & 0xffff
	n := clock & 0xff
	decay := uint32(tx.db.lfuDecay.Load())
	if decay == 0 {
		return n
	}
	return n - min(n, minutes/decay)
}

// SetLFU sets the growth factor of frequency counters (with 10, a counter reaches 255 after about a million
// accesses), and the minutes without an access after which a counter falls by one; 0 for never.
func (db *DB) SetLFU(growth, decay int64) {
	db.lfuLog.Store(growth)
	db.lfuDecay.Store(decay)
}

// UseLFU makes access clocks count frequency (true) or recency (false, the
// default).
func (db *DB) UseLFU(on bool) { db.lfu.Store(on) }

// LFU reports whether access clocks count frequency.
func (db *DB) LFU() bool { return db.lfu.Load() }

// IdleTime returns the seconds since a key was last accessed; ok is false if there is no such key.
// It does not count as an access.
func (tx *Tx) IdleTime(key []byte) (seconds int64, ok bool) {
	h := tx.find(key)
	if h.r == nil {
		return 0, false
	}
	return int64((uint32(tx.ms/1000) - h.r.access()) & lruMask), true
}

// Frequency returns a key's logarithmic access counter, 0 to 255.
func (tx *Tx) Frequency(key []byte) (n int64, ok bool) {
	h := tx.find(key)
	if h.r == nil {
		return 0, false
	}
	return int64(tx.lfuCount(h.r.access())), true
}

// embeddedMax is the longest string that Redis stores together with its object.
const embeddedMax = 44

// largeForms has the names of the layouts that Redis uses for large containers.
var largeForms = [...]string{List: "quicklist", Set: "hashtable", ZSet: "skiplist", Hash: "hashtable", Stream: "stream",
	DelayQueue: "dict", Bloom: "blocks"}

// Encoding returns the name of the layout that Redis 7.2 would use for a key's
// value; "" if there is no such key.
func (tx *Tx) Encoding(key []byte) string {
	h := tx.find(key)
	switch {
	case h.r == nil:
		return ""
	case h.r.Kind() == String:
		return h.stringForm()
	case h.r.Kind().plain():
		return "raw"
	case h.box() != nil:
		return largeForms[h.r.Kind()]
	case h.image().Kind() == packed.KindIntSet:
		return "intset"
	}
	return "listpack"
}

func (h *hit) stringForm() string {
	if h.r.has(flagRaw) {
		return "raw"
	}
	v := h.sp.value(h.r)
	if _, err := parseInt(v); err == nil {
		return "int"
	}
	if len(v) <= embeddedMax {
		return "embstr"
	}
	return "raw"
}

// Redis keeps one object for each integer below sharedInts, and reports sharedRefs references to
// it.
const (
	sharedInts = 10000
	sharedRefs = 1<<31 - 1
)

// RefCount returns the number of references that Redis would report: 1, or 2^31 - 1 for a small
// integer, whose object Redis shares. ok is false if there is no such key.
func (tx *Tx) RefCount(key []byte) (n int64, ok bool) {
	h := tx.find(key)
	if h.r == nil {
		return 0, false
	}
	if h.r.Kind() == String && !h.r.has(flagRaw) {
		if v, err := parseInt(h.sp.value(h.r)); err == nil && v >= 0 && v < sharedInts {
			return sharedRefs, true
		}
	}
	return 1, true
}

// recordOverhead is the memory of a key besides its record, in bytes: its share of a bucket.
const recordOverhead = 64 / 6.5

// MemoryUsage returns the memory of a key and its value in bytes, including their share of the table; ok is
// false if there is no such key. O(1).
func (tx *Tx) MemoryUsage(key []byte) (n int64, ok bool) {
	h := tx.find(key)
	if h.r == nil {
		return 0, false
	}
	return h.sp.usage(h.r, h.ref()), true
}

// MemoryUsage is Tx.MemoryUsage. O(1).
func (k Key) MemoryUsage() int64 { return k.sp.usage(k.r, k.ref) }

// usage returns the bytes of a record, of its value, and of its share of the table.
func (sp *space) usage(r *rec, ref arena.Ref) int64 {
	n := int64(sp.mem.SlotOf(ref)) + int64(math.Ceil(recordOverhead))
	if r.has(flagExt) {
		n += int64(sp.exts[handleOf(r.inlineValue())].size)
	}
	if r.klen&bigKey != 0 {
		n += int64(cap(sp.exts[handleOf(r.inlineKey())].bytes))
	}
	return n
}
