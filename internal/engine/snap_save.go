package engine

import (
	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/rdb"
)

// shardSnapshot is the state of a snapshot in one shard, from the cut until the walk has saved the
// shard. The shard's lock guards it.
type shardSnapshot struct {
	s      *snapshot
	sh     *shard
	tx     *Tx      // reads values
	spaces []*space // the spaces at the cut that the walk has not finished
	at     uint32   // the walk's next bucket in the first of spaces

	dbi     int // the database of the records in buf
	buf     []byte
	version int
	keys    int
	paused  bool // a large value is queued, and the snapshot writes it before the walk continues
}

// preserve saves the bucket of a key that is about to change, if a snapshot is running and has not
// saved the bucket yet. Without a snapshot it costs one comparison.
func (sh *shard) preserve(sp *space, hash uint64) {
	if c := sh.snap; c != nil {
		if b := sp.tab.BucketOf(hash); !sp.tab.Saved(b) {
			c.save(sp, b)
		}
	}
}

// preserve is shard.preserve for a key that a read-only transaction has found and is about to
// change, for instance to remove it.
func (h *hit) preserve() { h.sp.sh.preserve(h.sp, h.h) }

// Save implements table.Saver.
func (sp *space) Save(bucket uint32) { sp.sh.snap.save(sp, bucket) }

// walk saves buckets for a while, and reports whether all are saved.
func (c *shardSnapshot) walk() (done bool) {
	clock := c.s.db.clock
	end := clock.Micros() + snapshotSlice
	c.paused = false
	for looked := 1; len(c.spaces) > 0; looked++ {
		sp := c.spaces[0]
		if int(c.at) >= sp.tab.Buckets() {
			c.leave(sp)
			c.spaces, c.at = c.spaces[1:], 0
			continue
		}
		if !sp.tab.Saved(c.at) {
			c.save(sp, c.at)
		}
		c.at++
		if c.paused || c.sh.lock.Contended() || looked == c.most() || looked%4 == 0 && clock.Micros() >= end {
			return false
		}
	}
	return true
}

// most returns the number of buckets that the walk visits before it unlocks the shard: many more if it
// encodes nothing.
func (c *shardSnapshot) most() int {
	if c.s.over.Load() {
		return 16 * snapshotBuckets
	}
	return snapshotBuckets
}

// leave detaches a space from the snapshot. It frees a space that a flush has handed over to the
// snapshot.
func (c *shardSnapshot) leave(sp *space) {
	if sp.unsaved = false; sp.orphan {
		sp.release()
		c.sh.freed += considerAfter + 1 // the reclaimer returns the slabs to the system
		c.sh.workAt(0)
	}
}

// flushed frees the memory of a space after a flush of its database. If a snapshot has not saved all of the
// space yet, the snapshot frees it later.
func (sp *space) flushed() {
	if sp.unsaved {
		sp.orphan = true
		return
	}
	sp.release()
}

// save encodes a bucket.
func (c *shardSnapshot) save(sp *space, bucket uint32) {
	if c.s.over.Load() {
		c.buf, c.keys = nil, 0
		sp.tab.SetSaved(bucket)
		return
	}
	if c.dbi != sp.cut {
		c.flush()
		c.dbi = sp.cut
	}
	d := dumpers.Get().(*dumper)
	e := &d.enc
	e.Compress, e.Plain, e.Fields = !c.s.o.NoCompress, c.s.o.Plain, c.s.o.Fields
	sp.tab.EachIn(bucket, func(ref arena.Ref) { c.record(e, sp, ref) })
	e.Reset(nil)
	e.Compress, e.Plain, e.Fields, e.Key = true, false, rdb.NoFields, nil
	dumpers.Put(d)
	sp.tab.SetSaved(bucket)
	if len(c.buf) >= snapshotChunk {
		c.flush()
	}
}

// record encodes one key.
func (c *shardSnapshot) record(e *rdb.Encoder, sp *space, ref arena.Ref) {
	s, r := c.s, sp.rec(ref)
	if !s.o.KeepDead && r.expired(s.ms) || s.o.Plain && r.Kind() >= Limiter {
		return
	}
	if r.has(flagExt) {
		if l := c.large(sp, r); l != nil {
			c.flush()
			s.push(piece{db: sp.cut, keys: 1, large: l})
			c.paused = true
			return
		}
	}
	if c.buf == nil {
		c.buf = s.buffer()
	}
	if r.has(flagSlide) && !s.o.Plain {
		c.buf = r.appendSlide(c.buf)
	}
	if r.hasFresh() && !s.o.Plain {
		c.buf = r.appendFresh(c.buf)
	}
	e.Reset(c.buf)
	e.Key = sp.key(r)
	e.Record(r.deadline(), s.idle(r), s.freq(r))
	c.tx.encodeValue(e, &hit{sh: c.sh, sp: sp, r: r})
	c.buf, c.version = e.Buf, max(c.version, e.Version())
	c.keys++
}

// flush queues the encoded records.
func (c *shardSnapshot) flush() {
	if len(c.buf) > 0 {
		c.s.push(piece{db: c.dbi, b: c.buf, version: c.version, keys: c.keys})
	}
	c.buf, c.version, c.keys = nil, 0, 0
}

// accessIs is the use that eviction makes of the access clocks, which determines their part in the file.
type accessIs uint8

const (
	accessUnused accessIs = iota
	accessRecency
	accessFrequency
)

// accessKept returns the use that eviction makes of the access clocks.
func (db *DB) accessKept() accessIs {
	switch e := db.eviction.Load(); {
	case e.Keys == EvictNone:
	case e.By == ByRecency:
		return accessRecency
	case e.By == ByFrequency:
		return accessFrequency
	}
	return accessUnused
}

// idle returns the seconds since the last access of a key, -1 if the file does not need
// them.
func (s *snapshot) idle(r *rec) int64 {
	if s.clock != accessRecency {
		return -1
	}
	return int64((uint32(s.ms/1000) - r.access()) & lruMask)
}

// freq returns a key's access counter, -1 if the file does not need it.
func (s *snapshot) freq(r *rec) int64 {
	if s.clock != accessFrequency {
		return -1
	}
	return int64(r.access() & 0xff)
}
