package command

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/engine"
)

// Replication.
//
//	transactions ─▶ oplog.Log ─┬─▶ append-only files
//	                           ├─▶ replicas            repl_master*.go, repl_send.go
//	  a master's stream ─▶ link ─▶ the same log, the same bytes at the same offsets
//	                               repl_replica*.go, repl_apply.go
//
// A server has one stream of effects with one name (the replication id) and one
// offset. A replica takes over its master's name, bytes and offsets, so what
// follows it cannot tell the two apart: chained replicas, files, and whoever the
// replica is promoted before. A promotion gives the stream a new name and
// remembers the old one with the offset up to which both are the same.

// replication is what a service is in the eyes of others: a master, or the
// replica of one. The role changes while every shard is locked, so a transaction
// sees one role, and the offset at which it changes is exact.
type replication struct {
	svc *Service
	// follows is the link to the master; nil: this is a master. It is written with
	// every shard locked.
	follows atomic.Pointer[link]
	links   sync.WaitGroup                 // the goroutines of links
	refused atomic.Int64                   // commands of masters that could not be applied
	refusal atomic.Pointer[refusedCommand] // the last of them
	// onReplaced is called when a full synchronisation has replaced all data: files
	// hold another history. nil: there are none.
	onReplaced func()
	failover   failover
	// syncError is why the last full synchronisation failed, "" if it did not, nil
	// before the first.
	syncError atomic.Pointer[string]

	mu     sync.Mutex // guards what follows. Taken with shards held; nobody who has it waits for one.
	id     string     // the stream's name
	id2    string     // the name that it had before
	second int64      // the first offset, as INFO counts them, that id2 does not cover; -1: there is no id2
	last   *link      // the newest link, whose goroutine the next one waits for
}

// noReplID stands where there is no second name.
const noReplID = "0000000000000000000000000000000000000000"

func (r *replication) init(s *Service) {
	r.svc, r.id, r.id2, r.second = s, randomID(), noReplID, -1
	r.failover.acks = make(chan struct{}, 1)
}

// isReplica reports whether the service follows a master.
func (r *replication) isReplica() bool { return r.follows.Load() != nil }

// linked reports whether the service is a master, or a replica that receives its
// master's stream: whether it can serve replicas of its own.
func (r *replication) linked() bool {
	l := r.follows.Load()
	return l == nil || l.step() == linkConnected
}

// names returns the stream's name, the one before, and the first offset that that
// one does not cover.
func (r *replication) names() (id, id2 string, second int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.id, r.id2, r.second
}

// knows reports whether a stream called id is ours up to the byte before next, as
// PSYNC counts: the first byte has the offset 1.
func (r *replication) knows(id string, next int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.EqualFold(id, r.id) || strings.EqualFold(id, r.id2) && next <= r.second
}

// rename gives the stream a new name from the offset on that end is before, and
// keeps the old one for those who followed it.
func (r *replication) rename(id string, end int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.id2, r.second, r.id = r.id, end+1, id
}

// become takes over the name of a stream that ours has nothing in common with.
func (r *replication) become(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.id, r.id2, r.second = id, noReplID, -1
}

// RestoreReplication notes that the data which was loaded is a stream's at an
// offset, where the log stands, and which database that has selected, -1 for none:
// as files say with repl-id, repl-offset and repl-stream-db. A replica goes on from
// there, if its master can; a master's replicas may, so what comes is kept for them.
// Call it before StartReplication.
func (s *Service) RestoreReplication(id string, offset int64, db int) {
	r := &s.repl
	tx := s.DB.BeginAll(0)
	defer tx.Commit()
	replica := r.isReplica()
	if replica {
		s.DB.AppendVerbatim(nil, db) // the master does not select it again
	} else {
		s.master.keepBacklog(tx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if replica {
		r.id = id
		return
	}
	r.id2, r.second = id, offset+1
}

// beginAs has the service be what the directive replicaof says. The link to the
// master waits for StartReplication.
func (r *replication) beginAs() {
	host, port, ok := r.configured()
	if !ok {
		return
	}
	tx := r.svc.DB.BeginAll(0)
	defer tx.Commit()
	r.demote(tx)
	l := newLink(r, host, port)
	r.follows.Store(l)
	r.setGates()
	r.last = l
}

// configured is the master that the directive replicaof names.
func (r *replication) configured() (host string, port int, ok bool) {
	host, p, ok := strings.Cut(r.svc.Config.String("replicaof"), " ")
	if !ok {
		return "", 0, false
	}
	port, err := strconv.Atoi(p)
	return host, port, err == nil
}

// StartReplication connects to the master that the directive replicaof names, if
// it does. Call it once all data is loaded; Close ends it.
func (s *Service) StartReplication() {
	r := &s.repl
	tx := s.DB.BeginAll(0)
	defer tx.Commit()
	if l := r.follows.Load(); l != nil && !l.started {
		r.start(l, nil)
	}
}

// close ends the link and waits for it. The service's context has ended.
func (r *replication) close() {
	r.links.Wait()
}

// follow makes the service a replica of a master, or of another one. handOver: the
// master is to become one only now, in the middle of a FAILOVER. All shards are
// locked.
func (r *replication) follow(tx *engine.Tx, host string, port int, handOver bool) {
	old := r.follows.Load()
	if old == nil {
		r.demote(tx)
	}
	l := newLink(r, host, port)
	l.handOver = handOver
	r.follows.Store(l)
	r.setGates()
	if old != nil {
		old.stop()
	}
	r.start(l, r.last)
	r.note(host + " " + strconv.Itoa(port))
}

// start runs a link's goroutine, behind that of the link before.
func (r *replication) start(l, before *link) {
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
func (r *replication) demote(tx *engine.Tx) {
	s := r.svc
	tx.SetReplica(true)
	s.useLog(tx, logFollows, true)
	s.master.keepBacklog(tx)
	for _, c := range s.clients.everybody() {
		if w := c.view.waiting.Load(); w != nil {
			w.end(tx, func(*Ctx) { w.fail(errDemoted); w.last = true })
		}
	}
}

const errDemoted = ReplyError("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)")

// tokenGap is by how much fencing tokens are raised where grants may have been in
// nobody's log, in us: no master hands out as many in what a replica can lack.
const tokenGap = 60e6

// promote makes a replica a master, whose stream goes on at the same offset under
// a new name. All shards are locked.
func (r *replication) promote(tx *engine.Tx) {
	l := r.follows.Swap(nil)
	if l == nil {
		return
	}
	l.stop()
	r.rename(randomID(), r.svc.DB.Log().End())
	r.svc.DB.Log().Unselect() // a master that was handed over to us knows no database selected
	tx.SetReplica(false)
	r.svc.master.keepBacklog(tx) // who followed it may come back
	r.svc.useLog(tx, logFollows, false)
	tx.SawToken(tx.NextToken() + tokenGap)
	r.setGates()
	r.note("")
	r.svc.dropReplicas("the stream has another name: this replica has become a master")
}

// note has CONFIG GET and CONFIG REWRITE show the master.
func (r *replication) note(master string) { r.svc.Config.Note("replicaof", master) }

// setGates closes what a replica keeps clients from, as the configuration says. One
// at a time: who comes last, whether a link, a client or a directive has changed,
// sees all that changed before.
func (r *replication) setGates() {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, l := r.svc.Config, r.follows.Load()
	r.svc.gates.set(gateReadOnly, l != nil && c.Bool("replica-read-only"))
	r.svc.gates.set(gateStale, l != nil && l.step() != linkConnected && !c.Bool("replica-serve-stale-data"))
}
