package engine

import (
	"bytes"
	"errors"
	"hash/maphash"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/oplog"
)

// Options configure a DB. The zero value works.
type Options struct {
	// Databases is the number of databases; 16 if 0.
	Databases int
	// Shards is the number of shards, a power of two up to 64. The default is four for each
	// processor, and at least 16. Files and replicas do not depend on it.
	Shards int
	// Clock is the source of engine time; a new clock.System if nil.
	Clock clock.Clock
	// Hooks receives the events of the engine; may be nil.
	Hooks Hooks
	// RecordEffects keeps effects for Drain, for tests; without it the engine encodes no
	// effects before NeedLog.
	RecordEffects bool
	// Reclaimers is the number of Reclaimers that share the shards, for callers that run
	// them between other work (see DB.Reclaimer). If it is 0, the DB runs one in a
	// goroutine of its own, or within clock.Manual.Advance.
	Reclaimers int
}

// DB is an engine. Its methods are safe for concurrent use. Close returns its memory to the system.
type DB struct {
	clock  clock.Clock
	steady clock.Clock
	hooks  Hooks
	seed   maphash.Seed
	pool   *arena.Pool
	chunks *arena.Chunks // chunks of the large containers of all shards
	layout atomic.Pointer[Layout]
	shards []*shard
	turns  turnstile // orders the waiters of the shards' locks
	ndb    int

	reclaimers []*Reclaimer
	txs        sync.Pool
	log        *oplog.Log    // the stream of effects, for files and replicas
	drain      *oplog.Reader // reads the log for Drain; nil unless RecordEffects
	drainDB    int           // the database that is selected at the end of the part that Drain has read
	drainSeq   uint64
	fence      atomic.Int64             // the newest fencing token
	book       atomic.Pointer[ruleBook] // the expiry rules; nil: there are no rules
	logging    atomic.Bool              // effects are encoded; it changes with all shards locked
	logUsers   int                      // the number of users of the log; guarded, like
	logMuted   bool                     // logMuted (the log is off for all users), by the locks of all shards
	used       atomic.Int64             // used bytes: each shard's as of its last publish, and the bytes of Charge
	charged    atomic.Int64             // the part of used that Charge added
	apart      atomic.Int64             // the part of charged that ChargeApart added: the limit does not count it
	limiters   atomic.Int64             // the part of used that limiters take up
	limit      atomic.Int64             // the memory limit in bytes; 0: none. With a limit, shards publish with every write
	unpackable atomic.Int64             // the limit of LimitUnpacked
	unpacking  ration                   // of all RESTOREs under way
	eviction   atomic.Pointer[Eviction]
	evicting   atomic.Bool              // the reclaimers have to evict
	watches    atomic.Int64             // watched keys of all clients; at zero a change looks up no watches
	waits      atomic.Int64             // places in lines; at zero a change looks up no lines
	leases     atomic.Int64             // refresh leases; at zero a change looks up none
	notify     atomic.Uint32            // classes of events that Hooks receives
	noActive   atomic.Bool              // active expiry is off
	still      atomic.Bool              // expiration and eviction are suspended; see SetStill
	snap       atomic.Pointer[snapshot] // the current snapshot; nil: none
	snapping   atomic.Bool              // a snapshot is under way, or is about to be
	loadSpan   int64                    // the span of the sliding deadline of the next key that Load stores
	loadFresh  int64                    // the fresh deadline of the next key that Load stores
	replica    atomic.Bool              // the master decides what expires; this changes with all shards locked, as do
	filling    atomic.Bool              // filling (a file or a log is being loaded) and
	passive    atomic.Bool              // passive (replica or filling): reads hide dead items and do not remove them
	maxAhead   atomic.Int64             // us; see SetMaxAhead
	seen       atomic.Int64             // us; see SawTime
	loads      int                      // calls of BeginLoad without their EndLoad; the locks of all shards guard it
	ownEvict   atomic.Bool              // a replica evicts too
	lfu        atomic.Bool              // access clocks count frequency
	lfuLog     atomic.Int64
	lfuDecay   atomic.Int64
	longest    atomic.Int64 // the longest string, in bytes; 0: maxString
	closed     atomic.Bool
	stop       func()
}

// These bound the number of shards: minShards those that Open chooses by the processors, maxShards all, because a set of shards
// is a uint64.
const (
	minShards = 16
	maxShards = 64
)

// ErrClosed is returned by calls after Close.
var ErrClosed = errors.New("the engine is closed")

// Open returns an empty engine, which the caller closes.
func Open(o Options) *DB {
	db := &DB{clock: o.Clock, hooks: o.Hooks, ndb: o.Databases, seed: maphash.MakeSeed(), pool: arena.NewPool(), log: oplog.New(0)}
	db.chunks = arena.NewChunks(db.pool)
	db.SetLayout(defaultLayout())
	db.eviction.Store(&Eviction{})
	db.SetLFU(lfuLog, lfuDecay)
	db.SetMaxAhead(defaultAhead)
	if o.RecordEffects {
		db.drain, _ = db.log.ReaderAt(0, oplog.ForFile)
		db.needLog(1)
	}
	if db.clock == nil {
		db.clock = clock.NewSystem()
	}
	db.steady = clock.SteadyOf(db.clock)
	if db.hooks == nil {
		db.hooks = noHooks{}
	}
	if db.ndb == 0 {
		db.ndb = 16
	}
	db.txs.New = func() any { return &Tx{db: db} }
	n := o.Shards
	if n == 0 {
		n = min(maxShards, max(minShards, 4*runtime.GOMAXPROCS(0)))
	}
	n = 1 << bits.Len(uint(min(max(n, 1), maxShards)-1))
	now := db.clock.Micros()
	all := make([]paddedShard, n) // a large allocation begins at a page
	for i := range all {
		sh := &all[i].shard
		sh.db, sh.id, sh.last, sh.spaces = db, i, now, make([]*space, db.ndb)
		sh.lock.turns = &db.turns
		sh.next.Store(never)
		db.shards = append(db.shards, sh)
	}
	db.startReclaimers(o.Reclaimers)
	return db
}

// Close stops the engine's goroutine and frees all memory. No transaction may be open,
// and none may begin.
func (db *DB) Close() {
	if db.closed.Swap(true) {
		return
	}
	db.stop()
	for _, sh := range db.shards {
		sh.lock.Lock()
		defer sh.lock.Unlock()
		clear(sh.spaces)
	}
	db.pool.Close()
}

// Databases returns the number of databases.
func (db *DB) Databases() int { return db.ndb }

// Shards returns the number of shards.
func (db *DB) Shards() int { return len(db.shards) }

// Clock returns the engine's clock.
func (db *DB) Clock() clock.Clock { return db.clock }

// Steady returns the clock for intervals: timeouts, pauses, links and idle clients. The engine's clock
// follows the wall clock, jumps ahead when data is loaded, and is set on a member of a group. The steady
// clock does none of that, if the engine's clock has a method Steady that returns one. Otherwise Steady
// returns the engine's clock.
func (db *DB) Steady() clock.Clock { return db.steady }

// UsedMemory returns the bytes in use by records, values and tables, plus the bytes of Charge. It
// locks the shards one after the other.
func (db *DB) UsedMemory() int64 {
	for _, sh := range db.shards {
		sh.lock.Lock()
		sh.publish()
		sh.lock.Unlock()
	}
	return db.used.Load()
}

// Charge adds n bytes, which may be negative, to the used memory. The caller charges memory that it
// keeps beside the data, such as libraries of functions. The bytes count against
// LimitMemory at once. Charge is safe for concurrent use and takes no lock.
func (db *DB) Charge(n int64) {
	db.charged.Add(n)
	db.used.Add(n)
}

// ChargeApart charges memory that no write uses: the buffers of clients' connections, users, and cached
// scripts. LimitMemory does not count it, because neither an eviction nor a refused write could reduce it.
// ApartFull bounds it.
func (db *DB) ChargeApart(n int64) {
	db.apart.Add(n)
	db.Charge(n)
}

// Apart returns the number of bytes that ChargeApart has added.
func (db *DB) Apart() int64 { return db.apart.Load() }

// leastApart is the number of bytes up to which ApartFull is false under any limit. A server keeps
// 16 MiB of scripts by itself.
const leastApart = 32 << 20

// ApartFull reports whether the memory of ChargeApart is above its own limit, which is as large as that of
// the data. The caller then refuses requests that would add to it.
func (db *DB) ApartFull() bool { return !db.apartFits(0) }

// ApartGrows reports whether the memory of ChargeApart may grow by n bytes under its own limit. It may
// always shrink.
func (db *DB) ApartGrows(n int64) bool { return n <= 0 || db.apartFits(n) }

func (db *DB) apartFits(n int64) bool {
	limit := db.limit.Load()
	return limit <= 0 || db.apart.Load()+n <= max(limit, leastApart)
}

// Charged returns the number of bytes that Charge and ChargeApart have added.
func (db *DB) Charged() int64 { return db.charged.Load() }

// HeldMemory returns the bytes of the slabs in use, and those of the idle slabs that keep
// their physical pages.
func (db *DB) HeldMemory() (used, idle int) { return db.pool.Used(), db.pool.Idle() }

// LimitMemory sets the number of bytes above which OverLimit reports true; 0 means no limit.
func (db *DB) LimitMemory(bytes int64) {
	db.limit.Store(bytes)
	db.UsedMemory()
	db.evictSoon()
}

// OverLimit reports whether the engine uses more memory than LimitMemory allows. On a replica that
// leaves eviction to its master, it reports false. It costs three atomic reads: every transaction
// that writes keeps the sum up to date.
func (db *DB) OverLimit() bool {
	limit := db.limit.Load()
	return limit > 0 && db.used.Load()-db.apart.Load() > limit && !db.spared()
}

// SetActiveExpiry switches the reclaimers on (the default) or off. Expired keys and items
// stay invisible either way.
func (db *DB) SetActiveExpiry(on bool) {
	db.noActive.Store(!on)
	if on {
		for _, sh := range db.shards {
			sh.lock.Lock()
			sh.workAt(0)
			sh.lock.Unlock()
		}
	}
}

// SetStill suspends expiration and eviction, or resumes them. While they are suspended, the engine reclaims
// and evicts nothing, does not serve a waiter merely because time has passed, and reads hide dead items
// without removing them. Writes still remove the expired items that they meet. SetStill locks nothing, costs
// O(shards), and any goroutine may call it.
func (db *DB) SetStill(on bool) {
	if db.still.Swap(on) == on || on {
		return
	}
	for _, sh := range db.shards {
		sh.workAt(0) // see Reclaimer.slice
	}
	db.evictSoon()
}

// hashTag returns the part of a key that decides its shard: the bytes between the first
// '{' and the next '}', if there are any, else the key.
func hashTag(key []byte) []byte {
	i := bytes.IndexByte(key, '{')
	if i < 0 {
		return key
	}
	if j := bytes.IndexByte(key[i+1:], '}'); j > 0 {
		return key[i+1 : i+1+j]
	}
	return key
}

// shardOf returns the number of the shard that holds key, and the key's hash.
func (db *DB) shardOf(key []byte) (int, uint64) {
	h := maphash.Bytes(db.seed, key)
	if tag := hashTag(key); len(tag) != len(key) {
		return db.shardOfHash(maphash.Bytes(db.seed, tag)), h
	}
	return db.shardOfHash(h), h
}

func (db *DB) shardOfHash(h uint64) int { return int(h>>32) & (len(db.shards) - 1) }

func (db *DB) hashOf(key string) uint64 { return maphash.String(db.seed, key) }

// maxString is the length of the longest string, in bytes, without SetMaxString.
const maxString = 512 << 20

// MaxString returns the greatest length of a string, in bytes.
func (db *DB) MaxString() int {
	if n := db.longest.Load(); n > 0 {
		return int(n)
	}
	return maxString
}

// SetMaxString sets the greatest length of a string, in bytes. The directive proto-max-bulk-len
// sets it.
func (db *DB) SetMaxString(n int) { db.longest.Store(int64(n)) }

// Layout sets the sizes up to which containers are small, which means packed into one run of bytes.
// Directives such as hash-max-listpack-entries set it. A container that exceeds it becomes large
// with the next write.
type Layout struct {
	HashEntries, HashValue int // fields; bytes of the longest field or value
	SetIntegers            int // members of a set of integers
	SetEntries, SetValue   int // members; bytes of the longest
	ZSetEntries, ZSetValue int // members; bytes of the longest
	ListSize               int // list-max-listpack-size: elements, or -1 to -5 for 4, 8, 16, 32, 64 KiB
	StreamBytes            int // of a stream's node; 0: no bound
	StreamEntries          int // of a stream's node; 0: no bound
	HyperLogLogSparse      int // bytes of a sparse HyperLogLog
}

// defaultLayout returns the layout of Redis 7.2.
func defaultLayout() Layout {
	return Layout{
		HashEntries: 512, HashValue: 64,
		SetIntegers: 512,
		SetEntries:  128, SetValue: 64,
		ZSetEntries: 128, ZSetValue: 64,
		ListSize:    -2,
		StreamBytes: 4096, StreamEntries: 100,
		HyperLogLogSparse: 3000,
	}
}

// SetLayout changes the layout. Later writes follow it.
func (db *DB) SetLayout(l Layout) { db.layout.Store(&l) }

// Layout returns the layout in force.
func (db *DB) Layout() Layout { return *db.layout.Load() }
