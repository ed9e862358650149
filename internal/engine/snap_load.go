package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/rdb"
)

// A load fills an engine with the keys of a file.
//
//	Load: Reader.Next ─▶ a batch for each shard ─▶ the shard's worker: decodes,
//	                                               locks the shard, installs
//
// All entries of a key go to the same worker in the file's order, so the worker detects a second
// entry. The load logs and reports nothing, and reserves no memory for sizes that a file only
// claims.

// LoadOptions configure a load. The zero value leaves out keys and items that have expired.
type LoadOptions struct {
	// KeepExpired keeps keys and items whose deadlines have passed. It is for a file that is
	// followed by a log, which contains their removal, and for replicas.
	KeepExpired bool
	// Workers is the number of goroutines that decode and install; GOMAXPROCS if 0.
	Workers int
	// The load keeps Progress up to date; may be nil.
	Progress *Progress

	into loadTarget
}

// loadTarget selects where a load stores its keys.
type loadTarget uint8

const (
	loadHere    loadTarget = iota // into the engine's own spaces
	loadBeside                    // into the spaces of a Staging
	loadNowhere                   // the load builds values, and discards them
)

var (
	// ErrTwice: the file contains a key twice, or the engine already has it.
	ErrTwice = errors.New("the key is in the file already")
	// errDatabase: the file has a database that the engine does not have.
	errDatabase = errors.New("no such database")
)

const (
	// loadBatch is the number of keys of a shard, and loadBytes the number of bytes of
	// values, that a worker installs under one lock: some 30 us of work if values are
	// small.
	loadBatch = 64
	loadBytes = 64 << 10
	// loadAhead is the number of batches that wait for a worker, and loadPending the number of bytes
	// of values above which the reader waits for the workers: one value may be as large as all.
	loadAhead   = 64
	loadPending = 16 << 20
)

// Load installs the keys of a file that r reads. The caller that made r passes its texts to
// LoadAux. The engine may hold other keys, but none of the file's. Load locks a shard for a batch
// of keys at a time. It takes O(file) of time, and a few MiB of memory beside the keys that it
// installs and the largest values. Compressed data may unpack to the memory limit (LimitMemory, or
// LimitUnpacked), or to 255 times the bytes of the file.
//
// Errors: the errors of r; *rdb.FileError for a key that is invalid or exists already (ErrTwice), and for
// data that unpacks to more than allowed (ErrUnpacks); ErrFull; the error of ctx. Keys that were installed
// before the error stay.
func (db *DB) Load(ctx context.Context, r *rdb.Reader, o LoadOptions) error {
	if o.Progress == nil {
		o.Progress = new(Progress)
	}
	n := o.Workers
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	l := &loading{db: db, o: o, batches: make([]*batch, len(db.shards)), workers: make([]chan *batch, min(n, len(db.shards))),
		limit: db.maxUnpacked(false), done: make(chan struct{}, 1)}
	r.Bound(l.limit)
	var done sync.WaitGroup
	for i := range l.workers {
		l.workers[i] = make(chan *batch, loadAhead)
		done.Go(func() { newLoader(l).run(l.workers[i]) })
	}
	err := l.split(ctx, r)
	for _, w := range l.workers {
		close(w)
	}
	done.Wait()
	db.loadSpan, db.loadFresh = 0, 0
	db.UsedMemory()
	if failed := l.failed.Load(); failed != nil {
		return *failed
	}
	return err
}

// loading is a running load.
type loading struct {
	db      *DB
	o       LoadOptions
	batches []*batch // by shard, the batches that the reader fills
	workers []chan *batch
	idle    sync.Pool // of batches
	failed  atomic.Pointer[error]
	ration  ration
	limit   int64         // bytes of the ration
	pending atomic.Int64  // bytes of values that the workers have yet to install
	done    chan struct{} // a worker has made pending less
}

// batch holds some keys of a shard.
type batch struct {
	sh      *shard
	entries []loadEntry
	bytes   int
}

// loadEntry is a key, and its data as the reader returned them.
type loadEntry struct {
	rdb.Entry
	hash  uint64
	span  int64 // ms: the span of a sliding deadline
	fresh int64 // ms: the fresh deadline of a string
}

// split passes the keys that r reads to the workers.
func (l *loading) split(ctx context.Context, r *rdb.Reader) error {
	db := l.db
	for n := 0; ; n++ {
		e, err := r.Next()
		if err == io.EOF {
			l.o.Progress.Offset.Store(r.Offset())
			return l.flush(ctx)
		}
		if err != nil {
			return err
		}
		if e.DB >= db.ndb {
			return e.Wrong(fmt.Errorf("%w: there are %d", errDatabase, db.ndb))
		}
		l.ration.read.Store(r.Offset())
		if err := l.ration.spend(int64(len(e.Key)+len(e.Value)), l.limit); err != nil {
			return e.Wrong(err)
		}
		s, hash := db.shardOf(e.Key)
		b := l.batches[s]
		if b == nil {
			b = l.newBatch(db.shards[s])
			l.batches[s] = b
		}
		b.entries = append(b.entries, loadEntry{*e, hash, db.loadSpan, db.loadFresh})
		db.loadSpan, db.loadFresh = 0, 0
		if b.bytes += len(e.Value); len(b.entries) < loadBatch && b.bytes < loadBytes {
			continue
		}
		l.batches[s] = nil
		l.o.Progress.Offset.Store(r.Offset())
		if err := l.give(ctx, b); err != nil {
			return err
		}
	}
}

// flush passes all batches to the workers.
func (l *loading) flush(ctx context.Context) error {
	for _, b := range l.batches {
		if b != nil {
			if err := l.give(ctx, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// give passes a batch to the worker of its shard.
func (l *loading) give(ctx context.Context, b *batch) error {
	for l.pending.Load() > 0 && l.pending.Load()+int64(b.bytes) > loadPending {
		select {
		case <-l.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if failed := l.failed.Load(); failed != nil {
		return *failed
	}
	l.pending.Add(int64(b.bytes))
	select {
	case l.workers[b.sh.id%len(l.workers)] <- b:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// portion is the part of the load's ration for an entry, whose own bytes split has taken.
func (l *loading) portion(e *loadEntry) portion {
	return portion{from: &l.ration, limit: l.limit, had: int64(len(e.Value))}
}

func (l *loading) newBatch(sh *shard) *batch {
	b, _ := l.idle.Get().(*batch)
	if b == nil {
		b = &batch{entries: make([]loadEntry, 0, loadBatch)}
	}
	b.sh = sh
	return b
}

// loader installs keys. It is an rdb.Builder: it installs a string at once; its restorer
// first builds all other values.
type loader struct {
	restorer
	l     *loading
	dec   rdb.Decoder
	entry *loadEntry
	h     hit    // the position of the entry in its table
	at    int64  // the instant, in ms, that decides which items are dead; 0: none is
	buf   []byte // for images
	sum   uint64 // the sum of the bytes that touch has read; it keeps the compiler from removing the reads
}

func newLoader(l *loading) *loader {
	db := l.db
	x := &loader{l: l, dec: rdb.Decoder{MaxString: max(db.MaxString(), maxString)}}
	x.tx = &Tx{db: db}
	x.dec.Meter = x
	return x
}

// run installs batches until there are no more. After an error it receives batches and ignores them.
func (x *loader) run(batches chan *batch) {
	for b := range batches {
		if x.l.failed.Load() == nil {
			if err := x.install(b); err != nil {
				x.l.failed.CompareAndSwap(nil, &err)
			}
		}
		clear(b.entries)
		x.l.pending.Add(-int64(b.bytes))
		select {
		case x.l.done <- struct{}{}:
		default: // the reader checks again
		}
		b.entries, b.bytes = b.entries[:0], 0
		x.l.idle.Put(b)
	}
}

// install installs a batch under its shard's lock.
func (x *loader) install(b *batch) error {
	if x.l.o.into == loadNowhere {
		return x.check(b)
	}
	tx := x.tx
	tx.begin(0, 1<<b.sh.id, true)
	defer tx.finish()
	tx.replay = true
	if x.at = tx.ms; x.l.o.KeepExpired {
		x.at = 0
	}
	x.touch(b)
	keys, dropped := 0, 0
	for i := range b.entries {
		switch kept, err := x.key(b.sh, &b.entries[i]); {
		case err != nil:
			return err
		case kept:
			keys++
		default:
			dropped++
		}
	}
	x.l.o.Progress.Keys.Add(int64(keys))
	x.l.o.Progress.Dropped.Add(int64(dropped))
	return nil
}

// spaces returns the spaces for a shard's keys.
func (x *loader) spaces(sh *shard) []*space {
	if x.l.o.into != loadBeside {
		return sh.spaces
	}
	if sh.staged == nil {
		sh.staged = make([]*space, len(sh.spaces))
	}
	return sh.staged
}

// touch reads the buckets of a batch, so that they are in the cache when install needs them.
func (x *loader) touch(b *batch) {
	for i := range b.entries {
		e := &b.entries[i]
		if sp := x.spaces(b.sh)[e.DB]; sp != nil {
			x.sum += sp.tab.Touch(e.hash)
		}
	}
}

// key installs one key, and reports whether it did; it does not install a dead key.
func (x *loader) key(sh *shard, e *loadEntry) (kept bool, err error) {
	if x.at != 0 && e.Deadline != 0 && x.at > e.Deadline {
		return false, nil
	}
	sp := sh.spaceOf(x.spaces(sh), e.DB)
	x.tx.dbi, x.entry, x.h = e.DB, e, hit{sh: sh, sp: sp, h: e.hash}
	if _, there := sp.tab.Find(e.hash, e.Key); there {
		return false, e.wrong(ErrTwice)
	}
	x.portion = x.l.portion(e)
	if e.Type() == rdb.TypeString {
		err = x.dec.Entry(&e.Entry, x)
		return true, e.wrong(err)
	}
	x.restorer = restorer{portion: x.portion, tx: x.tx, now: x.at, room: x.buf}
	if err = x.dec.Entry(&e.Entry, x); err == nil && x.box != nil {
		err = x.setHeld(x.box.Size())
	}
	if err == nil && !x.empty() {
		err = x.place(x.image, x.box)
		kept = err == nil
	}
	if kept && x.left {
		x.l.o.Progress.Short.Add(1)
	}
	if !kept {
		x.discard()
	} else if x.box == nil && cap(x.image) <= keepDump {
		x.buf = x.image
	}
	return kept, e.wrong(err)
}

// check builds the values of a batch, and discards them. It locks nothing.
func (x *loader) check(b *batch) error {
	x.tx.at(0, 0)
	x.tx.replay = true
	for i := range b.entries {
		e := &b.entries[i]
		x.entry, x.restorer = e, restorer{portion: x.l.portion(e), tx: x.tx, room: x.buf}
		err := x.dec.Entry(&e.Entry, x)
		if err == nil && x.box != nil {
			err = x.setHeld(x.box.Size())
		}
		x.discard()
		if err != nil {
			return e.wrong(err)
		}
		if x.box == nil && x.kind != String && cap(x.image) <= keepDump {
			x.buf = x.image
		}
	}
	x.l.o.Progress.Keys.Add(int64(len(b.entries)))
	return nil
}

// String implements rdb.Builder.
func (x *loader) String(val []byte) error {
	x.kind = String
	if x.l.o.into == loadNowhere {
		return nil
	}
	return x.place(val, nil)
}

// place puts a value into the table. Errors: ErrFull.
func (x *loader) place(val []byte, b box) error {
	e, tx, sp := x.entry, x.tx, x.h.sp
	s := spec{flags: uint8(x.kind), deadline: min(e.Deadline, MaxDeadline)}
	if s.deadline != 0 {
		s.span = e.span
	}
	if x.kind == String {
		s.fresh = e.fresh
	}
	handle := uint32(0)
	if b != nil {
		handle = sp.addBox(nil, b)
	}
	ref, r := sp.buildSpec(&s, e.Key, val, handle)
	if r == nil {
		if handle != 0 {
			sp.yield(handle)
		}
		return ErrFull
	}
	x.h.pos, x.h.r = sp.tab.Insert(e.hash, ref), r
	sp.entered(e.hash, ref, x.kind)
	if s.span != 0 {
		*r.slide() = s.slide()
	}
	if s.deadline != 0 {
		sp.schedule(ref, s.deadline)
	}
	if s.fresh != 0 {
		tx.scheduleFresh(sp, ref, s.fresh)
	}
	tx.setAccess(r, RestoreOptions{Idle: max(e.Idle, 0), Freq: e.Freq, SetFreq: e.Freq >= 0})
	tx.date(&x.h)
	return nil
}

// wrong adds the entry's position in the file to an error.
func (e *loadEntry) wrong(err error) error {
	var known *rdb.FileError
	if err == nil || errors.As(err, &known) {
		return err
	}
	return e.Wrong(err)
}

// While a file or a log fills an engine, the engine does not decide on expirations. Either the log that it
// reads contains them later, or the log that will contain them is not open yet. So the engine removes nothing
// during the load:
//
//	replays     (Tx.Replaying, Load) see everything and apply the file's content
//	others      a client's WATCH, DEBUG OBJECT, EXEC: the engine hides dead items from
//	            them, removes and logs nothing, fires no rule, and evicts nothing
//	waiters     are not served: the log would not contain the items that they take
//	reclaimers  keep the wheels' time, and remove nothing
//
// A replica treats the decisions of its master in the same way (effect_replica.go); DB.passive covers both.

// BeginLoad marks the engine as being filled until EndLoad: the engine does not expire or evict anything, and
// does not serve waiting clients. Calls nest. BeginLoad locks all shards for a moment: transactions that
// began before have settled when it returns. O(shards).
func (db *DB) BeginLoad() {
	db.lockAll()
	db.loads++
	db.settlePassive()
	db.unlock(db.all())
}

// EndLoad ends the load of a BeginLoad. Before the call, the caller connects all users of the
// stream of effects (NeedLog, an appender at its offset), because from then on the engine removes
// due items, with effects. EndLoad breaks all watches, because the data behind them may be
// different, and serves the clients that wait for keys. O(watches + waiting lines).
func (db *DB) EndLoad() {
	tx := db.BeginAll(0)
	if db.loads--; db.loads == 0 {
		db.settlePassive()
		for _, sh := range db.shards {
			for _, l := range sh.watched {
				l.touched()
			}
		}
		tx.signalAll(-1)
	}
	tx.Commit()
	db.evictSoon()
}

// settlePassive computes DB.passive: whether the engine leaves the removal of dead items to a
// master or a log. All shards are locked.
func (db *DB) settlePassive() {
	db.filling.Store(db.loads > 0)
	on := db.loads > 0 || db.replica.Load()
	if db.passive.Swap(on) == on {
		return
	}
	for _, sh := range db.shards {
		sh.workAt(0)
	}
}
