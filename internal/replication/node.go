package replication

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
)

// Node is a server's part in replication: a master, or the replica of one. The role
// changes while every shard is locked, so a transaction sees one role, and the offset at
// which the role changes is exact. Its methods are safe for concurrent use.
type Node struct {
	db      *engine.DB
	config  *config.Set
	log     *slog.Logger
	host    Host
	version string

	ctx        context.Context // ends with Close
	stop       context.CancelFunc
	background sync.WaitGroup // goroutines that serve replicas
	links      sync.WaitGroup // goroutines of links

	master master
	// follows is the link to the master; nil: the server is a master. It is written with
	// every shard locked.
	follows  atomic.Pointer[link]
	refused  atomic.Int64                   // number of commands of masters that could not be applied
	refusal  atomic.Pointer[refusedCommand] // the last of them
	received atomic.Int64                   // number of bytes from masters
	sent     atomic.Int64                   // number of bytes to replicas
	failover failover
	acks     atomic.Pointer[Acks] // nil: not set
	atOnce   atomic.Int32         // AckTime
	group    LinkEvents           // nil: the server is not in a group; set before Begin
	numbers  atomic.Uint64        // counts connections to masters, in a group
	quiet    atomic.Bool          // set by SetQuiet; written with all shards locked
	// syncError is the error of the last full synchronisation, "" if it succeeded, nil before the first.
	syncError atomic.Pointer[string]
	// linkError is the error that ended the last connection to the master: of the network, of TLS, of the login, or
	// of the stream. It is "" while the link is up, and nil before the first connection.
	linkError atomic.Pointer[string]
	uses      logUse // guarded by all shards

	mu     sync.Mutex // guards the fields below; comes after the shards in the order of locks
	id     string     // the stream's name
	id2    string     // the previous name
	second int64      // the first offset, as INFO counts them, that id2 does not cover; -1: no id2
	last   *link      // the newest link; the goroutine of the next link waits for that of this one
}

// noReplID is shown in INFO as the second name of a stream that has none.
const noReplID = "0000000000000000000000000000000000000000"

// New returns a master without replicas. Begin then sets the role by the configuration. Close the Node before the
// engine.
func New(o Options) *Node {
	r := &Node{db: o.DB, config: o.Config, log: o.Logger, host: o.Host, version: o.Version, id: NewID(), id2: noReplID, second: -1}
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.failover.acks = make(chan struct{}, 1)
	r.master.init(r)
	return r
}

// Close ends the link and the goroutines that serve replicas, and waits for them. All
// sessions are closed, or about to be.
func (r *Node) Close() {
	r.master.close()
	r.stop()
	r.links.Wait()
	r.background.Wait()
}

// NewID returns a name for a stream: 40 random hex digits.
func NewID() string {
	var id [20]byte
	_, _ = rand.Read(id[:])
	return hex.EncodeToString(id[:])
}

// IsReplica reports whether the server follows a master. It costs one atomic load.
func (r *Node) IsReplica() bool { return r.follows.Load() != nil }

// linked reports whether the server can serve replicas: it is a master, or a replica that
// receives its master's stream.
func (r *Node) linked() bool {
	l := r.follows.Load()
	return l == nil || l.step() == linkConnected
}

// Names returns the stream's name, its previous name, and the first offset that the previous name does not cover, as
// INFO counts offsets; -1: there is no previous name.
func (r *Node) Names() (id, id2 string, second int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.id, r.id2, r.second
}

// knows reports whether the stream called id equals this server's up to the byte before
// next. Offsets are counted as in PSYNC: the first byte has the offset 1.
func (r *Node) knows(id string, next int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.EqualFold(id, r.id) || strings.EqualFold(id, r.id2) && next <= r.second
}

// rename gives the stream a new name for the bytes after end, and keeps the old name for
// replicas that followed it.
func (r *Node) rename(id string, end int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.id2, r.second, r.id = r.id, end+1, id
}

// become gives the stream a new name, and no previous name: it shares no bytes with another stream.
func (r *Node) become(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.id, r.id2, r.second = id, noReplID, -1
}

// Restore sets the stream to which the loaded data belongs: its name, the offset of the end of the log, and the
// selected database, -1 for none. RDB files have these as repl-id, repl-offset and repl-stream-db. A replica
// continues from there if its master still has the following bytes. A master keeps its stream from there on, because
// its replicas may continue too. Call it before Start.
func (r *Node) Restore(id string, offset int64, db int) {
	tx := r.db.BeginAll(0)
	defer tx.Commit()
	replica := r.IsReplica()
	if replica {
		r.db.AppendVerbatim(nil, db) // so that the stream does not have a second SELECT
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

// Begin gives the server the role of the directive replicaof. The link to the master starts with Start. Call it once.
func (r *Node) Begin() {
	host, port, ok := r.configured()
	if !ok && r.group == nil {
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

// configured returns the master that the directive replicaof names.
func (r *Node) configured() (host string, port int, ok bool) {
	host, p, ok := strings.Cut(r.config.String("replicaof"), " ")
	if !ok {
		return "", 0, false
	}
	port, err := strconv.Atoi(p)
	return host, port, err == nil
}

// Start connects to the master that the directive replicaof names, if it names one. Call
// it once all data is loaded; Close ends the link.
func (r *Node) Start() {
	tx := r.db.BeginAll(0)
	defer tx.Commit()
	if l := r.follows.Load(); l != nil && !l.started && !l.rests() {
		r.start(l, nil)
	}
}

// Follow makes the server a replica of a master, or of a different one than before. tx holds all shards. It does not
// wait for the link.
func (r *Node) Follow(tx *engine.Tx, host string, port int) { r.follow(tx, host, port, false) }

// follow makes the server a replica, as Follow says. With handOver the link requests that
// the other server become a master, which is the second half of a FAILOVER.
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

// start runs a link's goroutine once that of the previous link has ended.
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

// demote makes a master a replica. It turns active expiration off, takes clients' writes out of the stream, and ends
// commands that wait for an event that only a master has. In a group, replies that wait become errors.
func (r *Node) demote(tx *engine.Tx) {
	tx.SetReplica(true)
	r.db.Log().Depose()
	r.useLog(tx, logFollows, true)
	r.master.keepBacklog(tx)
	r.host.Demoted(tx)
}

// tokenGap is the number, in us, by which a promotion raises fencing tokens. The old
// master may have made grants that did not reach this replica, but always fewer.
const tokenGap = 60e6

// tokenSpread returns a random number of us, up to 18 minutes, that a promotion adds to tokenGap. The old master may
// restart and continue as a master until it is demoted; it raises its tokens by a minute, too. Without the random
// number both could grant the same tokens, and a token of one would be valid on the other.
func tokenSpread() int64 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // rand.Read never fails
	return int64(binary.LittleEndian.Uint32(b[:]) >> 2)
}

// Promote makes a replica a master. Its stream continues at the same offset under a new
// name. It does nothing on a master. tx holds all shards.
func (r *Node) Promote(tx *engine.Tx) { r.promote(tx, NewID()) }

// promote promotes the server, and gives its stream a name.
func (r *Node) promote(tx *engine.Tx, name string) {
	l := r.follows.Swap(nil)
	if l == nil {
		return
	}
	l.stop()
	r.rename(name, r.db.Log().End())
	r.db.Log().Unselect() // the stream begins with a SELECT
	tx.SetReplica(false)
	r.master.keepBacklog(tx) // its former replicas may connect again
	r.useLog(tx, logFollows, false)
	tx.SawToken(tx.NextToken() + tokenGap + tokenSpread())
	r.SetGates()
	r.note("")
	r.dropReplicas("this replica has become a master: its stream has a new name")
}

// note stores the master for CONFIG GET and CONFIG REWRITE. It does nothing in a group, which chooses the master
// after each start.
func (r *Node) note(master string) {
	if r.group == nil {
		r.config.Note("replicaof", master)
	}
}

// SetGates opens or closes GateReadOnly and GateStale according to the role, the link, and the directives
// replica-read-only and replica-serve-stale-data. Call it after a change of one of these. Calls run one after
// another, so the last one sees every change. In a group a replica runs no write, whatever its directive says,
// because the group would not have the write. Without a link it answers reads only with sync-reads local: it may have
// been the master, and have data that was never acknowledged.
func (r *Node) SetGates() {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, l := r.config, r.follows.Load()
	grouped := r.group != nil
	readOnly := grouped || c.Bool("replica-read-only")
	stale := c.Bool("replica-serve-stale-data") && (!grouped || c.String("sync-reads") == "local")
	r.host.SetGate(GateReadOnly, l != nil && readOnly)
	r.host.SetGate(GateStale, l != nil && l.step() != linkConnected && !stale)
}

// logUse is a use of the stream of effects, besides the files.
type logUse uint8

const (
	logBacklog logUse = 1 << iota // replicas read it, or may reconnect and read it
	logFollows                    // the stream is a copy of the master's: transactions append nothing
)

// useLog begins or ends a use of the stream. The engine encodes effects only if the stream
// has a use. tx holds all shards, which guard r.uses.
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

// takeMessages decides whether the stream contains PUBLISH: only if this server is a
// master and keeps the stream for replicas. All shards are locked.
func (r *Node) takeMessages() { r.db.Log().TakeMessages(r.uses == logBacklog && !r.quiet.Load()) }

// Distrust gives the stream a new name, because memory and the stream may differ, and
// makes all replicas request all data. why is for the log.
func (r *Node) Distrust(why string) {
	r.ChangeID()
	r.dropReplicas(why)
}

// ChangeID gives the stream a new name, so that replicas which connect again need all
// data.
func (r *Node) ChangeID() { r.become(r.newName()) }

// newName returns a new name for the stream. The name of a group's master is one that the members accept.
func (r *Node) newName() string {
	if r.group != nil {
		if name := r.group.StreamName(); name != "" {
			return name
		}
	}
	return NewID()
}

// rewriteFiles makes the server rewrite its files, because the data in memory has another history.
func (r *Node) rewriteFiles() {
	if k := r.host.Keeper(); k != nil {
		k.Replaced()
	}
}

// notify puts a token into a channel of capacity 1, unless it has one.
func notify(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// is reports whether b equals word, ignoring case.
func is(b []byte, word string) bool {
	return len(b) == len(word) && strings.EqualFold(string(b), word)
}

// head returns at most n bytes of b.
func head(b []byte, n int) []byte { return b[:min(n, len(b))] }
