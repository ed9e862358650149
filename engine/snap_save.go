package engine

import (
	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/rdb"
)

// shardSnapshot is a snapshot's part in one shard, from the cut until the walk is
// through with the shard. The shard's lock guards it.
type shardSnapshot struct {
	s      *snapshot
	sh     *shard
	tx     *Tx      // to read values with
	spaces []*space // of the cut, those that the walk is not through with
	at     uint32   // the bucket of the first at which the walk stands

	dbi     int // the database of what is in buf
	buf     []byte
	version int
	keys    int
	paused  bool // something large is queued: it is to be written before the walk goes on
}

// preserve saves what a key's bucket held at the cut, if a snapshot is under way
// and it is not saved yet: the key is about to change. Without a snapshot it is one
// comparison.
func (sh *shard) preserve(sp *space, hash uint64) {
	if c := sh.snap; c != nil {
		if b := sp.tab.BucketOf(hash); !sp.tab.Saved(b) {
			c.save(sp, b)
		}
	}
}

// preserve is shard.preserve for a key that a transaction which only reads has
// found, and is about to change all the same.
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

// most is how many buckets are passed before the shard is let go of: many more
// where nothing is encoded.
func (c *shardSnapshot) most() int {
	if c.s.over.Load() {
		return 16 * snapshotBuckets
	}
	return snapshotBuckets
}

// leave ends the snapshot's interest in a space. One that a flush has left to the
// snapshot is freed.
func (c *shardSnapshot) leave(sp *space) {
	if sp.unsaved = false; sp.orphan {
		sp.release()
		c.sh.freed += considerAfter + 1 // the reclaimer gives the slabs back
		c.sh.workAt(0)
	}
}

// flushed tells the space that a flush has emptied the database that it was: its
// memory is given back, by the snapshot if that has not saved all of it yet.
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
	e.Reset(c.buf)
	e.Key = sp.key(r)
	e.Record(r.deadline(), s.idle(r), s.freq(r))
	c.tx.encodeValue(e, &hit{sh: c.sh, sp: sp, r: r})
	c.buf, c.version = e.Buf, max(c.version, e.Version())
	c.keys++
}

// flush queues what is encoded.
func (c *shardSnapshot) flush() {
	if len(c.buf) > 0 {
		c.s.push(piece{db: c.dbi, b: c.buf, version: c.version, keys: c.keys})
	}
	c.buf, c.version, c.keys = nil, 0, 0
}

// accessIs says what access clocks are good for, and so what the file tells of them.
type accessIs uint8

const (
	accessUnused accessIs = iota
	accessRecency
	accessFrequency
)

// accessKept returns what eviction needs of access clocks.
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
