package replication

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/config"
)

// Replication.
//
//	transactions ─▶ oplog.Log ─┬─▶ append-only files
//	                           ├─▶ replicas            master*.go, replica.go
//	  a master's stream ─▶ link ─▶ the same log, the same bytes at the same offsets
//	                               link*.go, apply.go
//
// A server has one stream of effects with one name (the replication id) and one
// offset. A replica takes over its master's name, bytes and offsets, so what
// follows it cannot tell the two apart: chained replicas, files, and whoever the
// replica is promoted before. A promotion gives the stream a new name and
// remembers the old one with the offset up to which both are the same.

// Node is what a server is in the eyes of others: a master, or the replica of one. The
// role changes while every shard is locked, so a transaction sees one role, and the
// offset at which it changes is exact. Its methods are safe for concurrent use.
type Node struct {
	db      *engine.DB
	config  *config.Set
	log     *slog.Logger
	host    Host
	version string

	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	beside sync.WaitGroup // goroutines of the master's side
	links  sync.WaitGroup // the goroutines of links

	master masterSide
	// follows is the link to the master; nil: this is a master. It is written with
	// every shard locked.
	follows  atomic.Pointer[link]
	refused  atomic.Int64                   // commands of masters that could not be applied
	refusal  atomic.Pointer[refusedCommand] // the last of them
	received atomic.Int64                   // bytes that masters have sent
	failover failover
	// syncError is why the last full synchronisation failed, "" if it did not, nil
	// before the first.
	syncError atomic.Pointer[string]
	uses      logUse // guarded by all shards

	mu     sync.Mutex // guards what follows. Taken with shards held; nobody who has it waits for one.
	id     string     // the stream's name
	id2    string     // the name that it had before
	second int64      // the first offset, as INFO counts them, that id2 does not cover; -1: there is no id2
	last   *link      // the newest link, whose goroutine the next one waits for
}

// noReplID stands where there is no second name.
const noReplID = "0000000000000000000000000000000000000000"

// New returns a master without replicas, or, if the directive replicaof names a
// master, a replica whose link waits for Start. Close it before the engine.
func New(o Options) *Node {
	r := &Node{db: o.DB, config: o.Config, log: o.Logger, host: o.Host, version: o.Version, id: NewID(), id2: noReplID, second: -1}
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.failover.acks = make(chan struct{}, 1)
	r.master.init(r)
	return r
}

// Close ends the link and all that is done for replicas, and waits for it.
func (r *Node) Close() {
	r.master.close()
	r.stop()
	r.links.Wait()
	r.beside.Wait()
}

// NewID returns 40 random hex digits, as streams are named.
func NewID() string {
	var id [20]byte
	_, _ = rand.Read(id[:])
	return hex.EncodeToString(id[:])
}

// IsReplica reports whether the service follows a master.
func (r *Node) IsReplica() bool { return r.follows.Load() != nil }

// linked reports whether the service is a master, or a replica that receives its
// master's stream: whether it can serve replicas of its own.
func (r *Node) linked() bool {
	l := r.follows.Load()
	return l == nil || l.step() == linkConnected
}

// Names returns the stream's name, the one before, and the first offset that that
// one does not cover.
func (r *Node) Names() (id, id2 string, second int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.id, r.id2, r.second
}

// knows reports whether a stream called id is ours up to the byte before next, as
// PSYNC counts: the first byte has the offset 1.
func (r *Node) knows(id string, next int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.EqualFold(id, r.id) || strings.EqualFold(id, r.id2) && next <= r.second
}

// rename gives the stream a new name from the offset on that end is before, and
// keeps the old one for those who followed it.
func (r *Node) rename(id string, end int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.id2, r.second, r.id = r.id, end+1, id
}

// become takes over the name of a stream that ours has nothing in common with.
func (r *Node) become(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.id, r.id2, r.second = id, noReplID, -1
}

// Restore notes that the data which was loaded is a stream's at an
// offset, where the log stands, and which database that has selected, -1 for none:
// as files say with repl-id, repl-offset and repl-stream-db. A replica goes on from
// there, if its master can; a master's replicas may, so what comes is kept for them.
// Call it before Start.
func (r *Node) Restore(id string, offset int64, db int) {
	tx := r.db.BeginAll(0)
	defer tx.Commit()
	replica := r.IsReplica()
	if replica {
		r.db.AppendVerbatim(nil, db) // the master does not select it again
	} else {
		r.master.keepBacklog(tx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if replica {
		r.id = id
		return
	}
	r.id2, r.second = id, offset+1
}

// Begin makes the server what the directive replicaof says. The link to the
// master waits for Start.
func (r *Node) Begin() {
	host, port, ok := r.configured()
	if !ok {
		return
	}
	tx := r.db.BeginAll(0)
	defer tx.Commit()
	r.demote(tx)
	l := newLink(r, host, port)
	r.follows.Store(l)
	r.SetGates()
	r.last = l
}

// configured is the master that the directive replicaof names.
func (r *Node) configured() (host string, port int, ok bool) {
	host, p, ok := strings.Cut(r.config.String("replicaof"), " ")
	if !ok {
		return "", 0, false
	}
	port, err := strconv.Atoi(p)
	return host, port, err == nil
}

// Start connects to the master that the directive replicaof names, if
// it does. Call it once all data is loaded; Close ends it.
func (r *Node) Start() {
	tx := r.db.BeginAll(0)
	defer tx.Commit()
	if l := r.follows.Load(); l != nil && !l.started {
		r.start(l, nil)
	}
}

// Follow makes the server a replica of a master, or of another one. tx holds all
// shards. The link is made afterwards.
func (r *Node) Follow(tx *engine.Tx, host string, port int) { r.follow(tx, host, port, false) }

// follow is Follow. handOver: the master is to become one only now, in the middle of a
// FAILOVER.
func (r *Node) follow(tx *engine.Tx, host string, port int, handOver bool) {
	old := r.follows.Load()
	if old == nil {
		r.demote(tx)
	}
	l := newLink(r, host, port)
	l.handOver = handOver
	r.follows.Store(l)
	r.SetGates()
	if old != nil {
		old.stop()
	}
	r.start(l, r.last)
	r.note(host + " " + strconv.Itoa(port))
}

// start runs a link's goroutine, behind that of the link before.
func (r *Node) start(l, before *link) {
	l.started = true
	r.mu.Lock()
	r.last = l
	r.mu.Unlock()
	r.links.Go(func() {
		if before != nil && before.started {
			<-before.gone
		}
		l.run()
	})
}

// demote makes a master a replica: nothing expires by itself any more, what is
// written here is in no stream, and nobody waits for what only a master gives.
func (r *Node) demote(tx *engine.Tx) {
	tx.SetReplica(true)
	r.useLog(tx, logFollows, true)
	r.master.keepBacklog(tx)
	r.host.Demoted(tx)
}

// tokenGap is by how much fencing tokens are raised where grants may have been in
// nobody's log, in us: no master hands out as many in what a replica can lack.
const tokenGap = 60e6

// Promote makes a replica a master, whose stream goes on at the same offset under
// a new name. It does nothing on a master. tx holds all shards.
func (r *Node) Promote(tx *engine.Tx) {
	l := r.follows.Swap(nil)
	if l == nil {
		return
	}
	l.stop()
	r.rename(NewID(), r.db.Log().End())
	r.db.Log().Unselect() // a master that was handed over to us knows no database selected
	tx.SetReplica(false)
	r.master.keepBacklog(tx) // who followed it may come back
	r.useLog(tx, logFollows, false)
	tx.SawToken(tx.NextToken() + tokenGap)
	r.SetGates()
	r.note("")
	r.dropReplicas("the stream has another name: this replica has become a master")
}

// note has CONFIG GET and CONFIG REWRITE show the master.
func (r *Node) note(master string) { r.config.Note("replicaof", master) }

// SetGates closes what a replica keeps clients from, as the configuration says. One
// at a time: who comes last, whether a link, a client or a directive has changed,
// sees all that changed before.
func (r *Node) SetGates() {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, l := r.config, r.follows.Load()
	r.host.SetGate(GateReadOnly, l != nil && c.Bool("replica-read-only"))
	r.host.SetGate(GateStale, l != nil && l.step() != linkConnected && !c.Bool("replica-serve-stale-data"))
}

// logUse says who wants the stream of effects, beside the files.
type logUse uint8

const (
	logBacklog logUse = 1 << iota // replicas, and those that may come back
	logFollows                    // nobody: the stream is the master's
)

// useLog notes who wants the stream: effects are encoded for somebody only. tx
// holds all shards, which guard r.uses.
func (r *Node) useLog(tx *engine.Tx, which logUse, on bool) {
	if on == (r.uses&which != 0) {
		return
	}
	r.uses ^= which
	switch {
	case which == logFollows:
		tx.MuteLog(on)
	case on:
		tx.NeedLog(1)
	default:
		tx.NeedLog(-1)
	}
	r.takeMessages()
}

// takeMessages has PUBLISH be in the stream of a master that replicas follow, and in
// no other: a replica's is its master's. All shards are held.
func (r *Node) takeMessages() { r.db.Log().TakeMessages(r.uses == logBacklog) }

// Distrust gives the stream a new name, because memory and the stream may differ, and
// makes all replicas ask for all data. why is logged.
func (r *Node) Distrust(why string) {
	r.ChangeID()
	r.dropReplicas(why)
}

// ChangeID gives the stream a new name, so that replicas which connect again need all
// data.
func (r *Node) ChangeID() { r.become(NewID()) }

// rewriteFiles has files made anew of what is in memory, which has another history.
func (r *Node) rewriteFiles() {
	if k := r.host.Keeper(); k != nil {
		k.Replaced()
	}
}

// notify leaves a token in a channel of capacity 1.
func notify(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// is reports whether b is a word, in any case.
func is(b []byte, word string) bool {
	return len(b) == len(word) && strings.EqualFold(string(b), word)
}

// head returns at most n bytes of b.
func head(b []byte, n int) []byte { return b[:min(n, len(b))] }
