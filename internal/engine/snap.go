package engine

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/rdb"
)

// A snapshot writes the keyspace as it was at one instant, the cut, while it is in use.
//
//	cut     all shards are locked for a moment: no bucket of any table is saved
//	walk    bucket by bucket, a shard for 15 us at a time: the records of those
//	        that are not saved yet are encoded ─────────────┐
//	find    of a transaction that may write: the key's      ├─▶ the shard's buffer
//	        bucket, if it is not saved yet, is encoded ─────┘      ─▶ queue ─▶ file
//
// So the file has the contents of each bucket at the cut exactly once, whether the walk or a
// transaction saves it first; it has no later changes. A bucket has some seven keys: a first write
// costs their encoding. The snapshot does not encode large values under the lock: it freezes a
// container, and pins a string (snap_large.go). FLUSHALL leaves the tables to the walk. SWAPDB
// needs no special care, because a space remembers its database at the cut.
//
// The queue is bounded. Beyond the bound, transactions that may write wait before they lock
// anything; a transaction that may not sleep acts as if the shards were held.

// ErrSnapshotting: another snapshot is under way.
var ErrSnapshotting = errors.New("another snapshot is under way")

// ErrSnapshotBehind: the bytes that wait for the writer exceed SnapshotOptions.Buffer, and Abandon
// is set.
var ErrSnapshotBehind = errors.New("the snapshot's reader is too slow: the data that waits for it exceeds the buffer")

// SnapshotOptions configure a snapshot. The zero value takes all living keys.
type SnapshotOptions struct {
	// The snapshot calls AtCut at the instant of the cut. tx holds all shards, and AtCut must not
	// write. All other transactions wait until it returns.
	AtCut func(tx *Tx)
	// Preamble writes the part of the file before the keys: the header, texts, functions. version
	// is the version of a format that can hold all keys of the cut; a writer that cannot correct
	// the header later needs it. Without Preamble, Snapshot writes the header alone.
	Preamble func(w *rdb.Writer, version int) error
	// Plain leaves out the data that redis-server 7.0 does not know: keys of ebb's own types,
	// deadlines of items, rules and tokens. Fields selects the hash fields of a plain file that
	// keep their deadlines.
	Plain  bool
	Fields rdb.FieldForm
	// Hurry makes the walk take no rests while transactions use the engine. The snapshot is then up
	// to three times as fast, and transactions wait longer.
	Hurry bool
	// KeepDead keeps keys whose deadline had passed at the cut. A replica always keeps them, and so does a
	// snapshot between BeginLoad and EndLoad, because no log contains their removal.
	KeepDead bool
	// NoCompress writes strings without compression.
	NoCompress bool
	// Buffer is the number of bytes of encoded records that may wait for the writer; 32 MiB if 0.
	// Above it, transactions that write wait; with Abandon, the snapshot ends with
	// ErrSnapshotBehind instead.
	Buffer  int64
	Abandon bool
	// The snapshot keeps Progress up to date; may be nil.
	Progress *Progress
}

// Progress counts the keys of a running snapshot or load. It is safe for concurrent use.
type Progress struct {
	Keys    atomic.Int64 // keys written, or loaded
	Total   atomic.Int64 // keys to write, an estimate; in a load, the number in the file, which may be wrong
	Dropped atomic.Int64 // dead keys that a load has left out
	Short   atomic.Int64 // keys that a load has kept without their dead items
	Offset  atomic.Int64 // bytes of the file that a load has read
}

const (
	// snapshotBuffer is the default bound of the queue, in bytes.
	snapshotBuffer = 32 << 20
	// snapshotChunk is the number of bytes that a shard collects before it queues them.
	snapshotChunk = 32 << 10
	// snapshotSlice is the time for which the walk holds a shard, in us. It unlocks the
	// shard after snapshotBuckets buckets at most.
	snapshotSlice   = 15
	snapshotBuckets = 64
	// patience is the number of times that the walk yields to transactions before it waits in a shard's line as
	// they do. Without a bound, the walk might never end while transactions always wait.
	patience = 100
)

// snapshot is a running snapshot.
type snapshot struct {
	db     *DB
	o      SnapshotOptions
	ms     int64 // the instant of the cut
	clock  accessIs
	token  int64
	rules  [][]byte
	leases []byte
	timed  bool // hash fields had deadlines
	over   atomic.Bool

	mu    sync.Mutex
	room  sync.Cond // with mu: signals that the queue has room, or that the snapshot is over
	queue []piece
	held  int64       // bytes in queue
	full  atomic.Bool // held is above the bound: transactions that write wait
	spare [][]byte
	left  []*large // values that the snapshot will not write
	err   error    // the reason for over, if it is the queue

	pace pace
	enc  rdb.Encoder // encodes large values
	tx   *Tx
}

// piece is a part of the file: several records, or one large record.
type piece struct {
	db      int
	b       []byte
	version int // the version of the format
	keys    int
	large   *large
}

// Snapshot writes the keyspace at one instant to w: the head of the file and all records, but not
// its end. A DB runs one snapshot at a time. It alternates with transactions: a transaction waits
// for it for at most some 100 us, unless w is slow and the buffer is full. The caller must not
// close the DB before Snapshot returns.
//
// Errors: ErrSnapshotting, ErrSnapshotBehind, and the errors of ctx, of w and of Preamble. After an
// error the file is unusable.
func (db *DB) Snapshot(ctx context.Context, w *rdb.Writer, o SnapshotOptions) error {
	if !db.snapping.CompareAndSwap(false, true) {
		return ErrSnapshotting
	}
	defer db.snapping.Store(false)
	s := newSnapshot(db, o)
	s.cut()
	err := s.head(w)
	if err == nil {
		err = s.walk(ctx, w)
	}
	s.end(err)
	return err
}

func newSnapshot(db *DB, o SnapshotOptions) *snapshot {
	if o.Progress == nil {
		o.Progress = new(Progress)
	}
	if o.Buffer == 0 {
		o.Buffer = snapshotBuffer
	}
	s := &snapshot{db: db, o: o, clock: db.accessKept(), tx: db.snapshotTx()}
	s.room.L = &s.mu
	s.enc = rdb.Encoder{Compress: !o.NoCompress, Plain: o.Plain, Fields: o.Fields}
	return s
}

// snapshotTx returns a transaction that holds no shard, for reading values. It sees dead items,
// because the log contains their removal.
func (db *DB) snapshotTx() *Tx { return &Tx{db: db, replay: true} }

// cut marks all buckets as unsaved. O(shards).
func (s *snapshot) cut() {
	db := s.db
	parts := make([]*shardSnapshot, len(db.shards))
	for i, sh := range db.shards {
		parts[i] = &shardSnapshot{s: s, sh: sh, tx: db.snapshotTx(), spaces: make([]*space, 0, db.ndb)}
	}
	tx := db.BeginAll(0)
	s.ms = tx.ms
	s.o.KeepDead = s.o.KeepDead || db.passive.Load()
	for i, sh := range db.shards {
		for dbi, sp := range sh.spaces {
			if sp == nil {
				continue
			}
			sp.tab.Cut(sp)
			sp.cut, sp.unsaved = dbi, true
			s.timed = s.timed || sp.timedFields
			s.o.Progress.Total.Add(int64(sp.tab.Len()))
			parts[i].spaces = append(parts[i].spaces, sp)
		}
		sh.snap = parts[i]
	}
	s.token, s.rules, s.leases = db.fence.Load(), tx.encodeRules(), tx.encodeLeases()
	if s.o.AtCut != nil {
		s.o.AtCut(tx)
	}
	db.snap.Store(s)
	tx.Commit()
}

// head writes the part of the file before the keys.
func (s *snapshot) head(w *rdb.Writer) error {
	version := rdb.PlainVersion
	switch {
	case !s.timed:
	case s.o.Plain:
		version = s.o.Fields.Version()
	default:
		version = rdb.Version
	}
	if s.o.Preamble == nil {
		w.Header(0)
	} else if err := s.o.Preamble(w, version); err != nil {
		return err
	}
	if !s.o.Plain {
		s.writeAux(w)
	}
	return w.Err()
}

// walk saves the unsaved buckets, shard by shard, and writes all queued pieces.
func (s *snapshot) walk(ctx context.Context, w *rdb.Writer) error {
	s.pace.from = s.db.clock.Micros()
	for _, sh := range s.db.shards {
		for done := false; !done; {
			if err := ctx.Err(); err != nil {
				return err
			}
			done = sh.saveSlice()
			if err := s.write(ctx, w); err != nil {
				return err
			}
			s.rest()
		}
	}
	return nil
}

// rest yields the processor to other goroutines.
func (s *snapshot) rest() {
	if !s.o.Hurry {
		s.pace.rest(s.db.clock)
	}
}

// saveSlice does a part of the walk through the shard, and reports whether the walk is
// done.
func (sh *shard) saveSlice() (done bool) {
	for range patience {
		if !sh.lock.Contended() {
			break
		}
		runtime.Gosched()
	}
	sh.lock.Lock()
	defer sh.lock.Unlock()
	c := sh.snap
	if c == nil {
		return true
	}
	if done = c.walk(); done {
		c.flush()
		sh.snap = nil
	}
	return done
}

// write writes the queued pieces until the queue is empty.
func (s *snapshot) write(ctx context.Context, w *rdb.Writer) error {
	for {
		p, ok, err := s.take()
		if !ok {
			return err
		}
		if err := ctx.Err(); err != nil {
			s.drop(p)
			return err
		}
		if p.large != nil {
			err = s.writeLarge(ctx, w, p)
		} else {
			if p.version > rdb.PlainVersion {
				_ = w.Raise(p.version)
			}
			err = w.Records(p.db, p.b)
		}
		s.drop(p)
		if err != nil {
			return err
		}
		s.o.Progress.Keys.Add(int64(p.keys))
	}
}

// take takes the next piece off the queue; ok is false if there is none. It wakes the transactions
// that wait for room in the queue.
func (s *snapshot) take() (p piece, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return p, false, s.err
	}
	p = s.queue[0]
	s.queue[0] = piece{}
	if s.queue = s.queue[1:]; len(s.queue) == 0 {
		s.queue = nil
	}
	s.held -= int64(p.size())
	if s.held <= s.o.Buffer/2 && s.full.Load() {
		s.full.Store(false)
		s.room.Broadcast()
		s.db.turns.turn()
	}
	return p, true, nil
}

// size returns the bytes of a piece that only the snapshot keeps in memory.
func (p *piece) size() int {
	if p.large != nil {
		return cap(p.large.image)
	}
	return cap(p.b)
}

// push queues a piece. A shard is locked.
func (s *snapshot) push(p piece) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over.Load() {
		s.release(p)
		return
	}
	s.queue = append(s.queue, p)
	if s.held += int64(p.size()); s.held <= s.o.Buffer {
		return
	}
	if s.o.Abandon {
		s.err = ErrSnapshotBehind
		s.over.Store(true)
		s.clear()
		return
	}
	s.full.Store(true)
}

// spares is the number of buffers that the snapshot keeps for reuse. The walk and a few transactions fill
// about that number while the snapshot writes one.
const spares = 16

// drop frees the memory of a piece that is written, or will not be.
func (s *snapshot) drop(p piece) {
	if p.large != nil {
		p.large.free()
	} else if cap(p.b) <= 4*snapshotChunk {
		s.mu.Lock()
		if len(s.spare) < spares {
			s.spare = append(s.spare, p.b[:0])
		}
		s.mu.Unlock()
	}
}

// release is drop for a piece that will not be written. The caller may hold a shard, and holds
// s.mu.
func (s *snapshot) release(p piece) {
	if p.large != nil {
		s.left = append(s.left, p.large)
	}
}

// clear empties the queue. s.mu is locked.
func (s *snapshot) clear() {
	for _, p := range s.queue {
		s.release(p)
	}
	s.queue, s.held = nil, 0
	s.full.Store(false)
	s.room.Broadcast()
	s.db.turns.turn()
}

// buffer returns an empty buffer for a chunk.
func (s *snapshot) buffer() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.spare); n > 0 {
		b := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return b
	}
	return make([]byte, 0, snapshotChunk+snapshotChunk/4)
}

// end marks every bucket of every table as saved. After an error it finishes the walk without
// writing anything.
func (s *snapshot) end(err error) {
	if err != nil {
		s.mu.Lock()
		s.over.Store(true)
		s.clear()
		s.mu.Unlock()
		for _, sh := range s.db.shards {
			for !sh.saveSlice() {
			}
		}
	}
	s.db.snap.Store(nil)
	for _, l := range s.left { // the list is final: no shard still pushes
		l.free()
	}
}

// awaitRoom waits until a transaction that may write can begin. The caller has locked
// nothing.
func (s *snapshot) awaitRoom() {
	s.mu.Lock()
	for s.full.Load() {
		s.room.Wait()
	}
	s.mu.Unlock()
}
