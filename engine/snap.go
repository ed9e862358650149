package engine

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/rdb"
)

// A snapshot writes the keyspace as it was at one instant, the cut, while it is in
// use.
//
//	cut     all shards are locked for a moment: no bucket of any table is saved
//	walk    bucket by bucket, a shard for 15 us at a time: the records of those
//	        that are not saved yet are encoded ─────────────┐
//	find    of a transaction that may write: the key's      ├─▶ the shard's buffer
//	        bucket, if it is not saved yet, is encoded ─────┘      ─▶ queue ─▶ file
//
// So what a bucket held at the cut is in the file once, whoever comes first; what
// has come since is not. A bucket has some seven keys, which is what a first
// write costs. What is large is not encoded under the lock: a container is frozen,
// a string is pinned (snapshot_large.go). FLUSHALL leaves the tables to the walk,
// and SWAPDB does not matter: a space knows the database that it was at the cut.
//
// The queue is bounded. Beyond the bound transactions that may write wait before
// they lock anything, and whoever may not sleep finds the shards held.

// ErrSnapshotting: another snapshot is under way.
var ErrSnapshotting = errors.New("another snapshot is under way")

// ErrSnapshotBehind: what was to be written has outgrown the buffer.
var ErrSnapshotBehind = errors.New("the snapshot's reader is too slow: what it has not taken yet has outgrown the buffer")

// SnapshotOptions say what a snapshot holds. The zero value takes all that lives.
type SnapshotOptions struct {
	// AtCut is called at the instant of the cut. tx holds all shards, and must not
	// write. Everybody waits for it.
	AtCut func(tx *Tx)
	// Preamble writes what comes before the keys: the header, texts, functions.
	// version is one of the format that holds all that was there at the cut: for
	// writers that cannot correct the header. Without Preamble Snapshot writes the
	// header alone.
	Preamble func(w *rdb.Writer, version int) error
	// Plain leaves out what redis-server 7.0 does not know: keys of our own types,
	// deadlines of items, rules and tokens. Fields says which of a plain file's hash
	// fields keep their deadlines.
	Plain  bool
	Fields rdb.FieldForm
	// Hurry has the walk take no rests while others use the engine: up to three times
	// as fast, and they notice it.
	Hurry bool
	// KeepDead keeps keys whose deadline had passed at the cut. A replica always
	// keeps them, and so does a snapshot between BeginLoad and EndLoad: no log says
	// that they are gone.
	KeepDead bool
	// NoCompress writes strings as they are.
	NoCompress bool
	// Buffer is how many bytes of encoded records may wait to be written; 32 MiB if
	// 0. Beyond, writers wait, or with Abandon the snapshot ends with
	// ErrSnapshotBehind.
	Buffer  int64
	Abandon bool
	// Progress is kept up to date; may be nil.
	Progress *Progress
}

// Progress counts while a snapshot, or a load, is under way. It may be read at any
// time.
type Progress struct {
	Keys    atomic.Int64 // written, or loaded
	Total   atomic.Int64 // to be written, about; of a load, what the file says, which may be a lie
	Dropped atomic.Int64 // keys that a load has left out, because they are dead
	Short   atomic.Int64 // keys that a load has kept without items that are dead
	Offset  atomic.Int64 // bytes of the file that are used by a load
}

const (
	// snapshotBuffer is the bound of the queue unless SnapshotOptions says otherwise.
	snapshotBuffer = 32 << 20
	// snapshotChunk is how many bytes a shard collects before they are queued.
	snapshotChunk = 32 << 10
	// snapshotSlice is for how long the walk holds a shard, in us, and
	// snapshotBuckets after how many buckets at most it lets go of it.
	snapshotSlice   = 15
	snapshotBuckets = 64
	// patience is how often the walk lets others go first before it queues up for a
	// shard as they do: it has to end even where somebody always waits.
	patience = 100
)

// snapshot is one under way.
type snapshot struct {
	db    *DB
	o     SnapshotOptions
	ms    int64 // the instant of the cut
	clock accessIs
	token int64
	rules [][]byte
	timed bool // hash fields had deadlines
	over  atomic.Bool

	mu    sync.Mutex
	room  sync.Cond // on mu: there is some, or nobody needs it any more
	queue []piece
	held  int64       // bytes in queue
	full  atomic.Bool // held is beyond the bound: writers wait
	spare [][]byte
	left  []*large // that will not be written
	err   error    // why over is set, if the queue is the reason

	pace pace
	enc  rdb.Encoder // of what is large
	tx   *Tx
}

// piece is a part of the file: records, or one large one.
type piece struct {
	db      int
	b       []byte
	version int // of the format
	keys    int
	large   *large
}

// Snapshot writes the keyspace at one instant to w: the head of the file and all
// records, but not its end. One is under way at a time. It takes turns with
// transactions: none waits for it for more than some 100 us, unless w is slow and
// the buffer is full. It must have ended before Close.
//
// Errors: ErrSnapshotting, ErrSnapshotBehind, those of ctx, of w and of Preamble;
// then the file is worth nothing.
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

// snapshotTx returns a transaction that holds nothing, to read values with: the
// dead items are among them, because their removal is in the log.
func (db *DB) snapshotTx() *Tx { return &Tx{db: db, replay: true} }

// cut makes everything unsaved. O(shards).
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
	s.token, s.rules = db.fence.Load(), tx.encodeRules()
	if s.o.AtCut != nil {
		s.o.AtCut(tx)
	}
	db.snap.Store(s)
	tx.Commit()
}

// head writes what comes before the keys.
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

// walk saves what is not saved yet, shard by shard, and writes all that is queued.
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

// rest lets others have the processor.
func (s *snapshot) rest() {
	if !s.o.Hurry {
		s.pace.rest(s.db.clock)
	}
}

// saveSlice does a part of the walk through the shard, and reports whether that is
// all.
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

// write writes what is queued, until nothing is.
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

// take takes the next piece off the queue; ok is false if there is none. It makes
// room, and wakes who waits for it.
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

// size returns the bytes that a piece holds for the snapshot alone.
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

// spares is how many buffers are kept for the next chunk: what the walk and a few
// writers fill while one is written.
const spares = 16

// drop gives a piece's memory back when it is written, or never will be.
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

// release is drop for a piece that never will be written. A shard may be locked,
// as s.mu is.
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

// end leaves every table as if it were saved: after an error what is left of the
// walk is done without writing anything.
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
	for _, l := range s.left { // nobody pushes any more
		l.free()
	}
}

// awaitRoom waits until a transaction that may write may begin. The caller has
// locked nothing.
func (s *snapshot) awaitRoom() {
	s.mu.Lock()
	for s.full.Load() {
		s.room.Wait()
	}
	s.mu.Unlock()
}
