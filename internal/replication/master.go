package replication

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
)

// A master and its replicas.
//
//	PSYNC ─┬─ CONTINUE: the stream from there on is in memory ─────────────▶ stream
//	       └─ FULLRESYNC: join the queue ─▶ one snapshot for all that wait ─▶ stream
//	                                        master_sync.go                    replica.go
//
// A replica is a connection that was taken out of its transport. One goroutine writes to it, and in a group also the
// loops (replica_push.go). A loop, or a second goroutine, reads its acknowledgements. Once a second attend does the rest:
// pings, newlines for waiting replicas, timeouts, limits.
//
// Locks: shards, master.mu, Replica.wmu.

// master serves the replicas of this server. A server that is a replica has one too, and
// serves the same stream to replicas of its own.
type master struct {
	r          *Node
	n          atomic.Int32               // the number of followers
	gate       sync.Mutex                 // held by setGate
	wakeAttend chan struct{}              // capacity 1; makes attend check the waits at once
	askAcks    atomic.Bool                // makes attend request acknowledgements from all replicas
	gateClosed atomic.Bool                // GateNoReplicas is closed
	pushes     atomic.Pointer[[]*Replica] // see pushedTo; written with mu held

	full, partial, refused atomic.Int64 // synchronisations

	mu        sync.Mutex // guards the fields below
	followers []*Replica
	syncs     []*Replica   // the replicas that wait for a snapshot
	syncing   bool         // the goroutine of snapshots runs
	file      *fullSyncJob // the snapshot that is being written to a file, which more replicas may join; nil: none
	joined    chan struct{}
	waits     []*AckWait
	attended  bool // the goroutine of attend runs
	closed    bool
	backlog   bool  // the stream is kept for replicas that reconnect
	alone     int64 // us; since then there are no followers
	seconds   int64 // the number of seconds for which attend has run
}

func (m *master) init(r *Node) {
	m.r, m.wakeAttend, m.joined = r, make(chan struct{}, 1), make(chan struct{}, 1)
	m.require()
}

// require starts attend if min-replicas-to-write needs it. A server without replicas and
// without that directive has no goroutine that wakes every second.
func (m *master) require() {
	if m.r.config.Int("min-replicas-to-write") > 0 {
		m.begin()
	}
	m.setGate()
}

// begin starts attend, unless it runs already.
func (m *master) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.attended || m.closed || m.r.ctx.Err() != nil {
		return
	}
	m.attended = true
	m.r.background.Go(m.attend)
}

// close prevents new goroutines; the Node's context is about to end.
func (m *master) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

// nudge makes attend check the waits soon.
func (m *master) nudge() { notify(m.wakeAttend) }

// attend does the work of each second, and settles waits when it is nudged.
func (m *master) attend() {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	m.setGate()
	for {
		select {
		case <-m.r.ctx.Done():
			return
		case <-m.wakeAttend:
			if m.askAcks.Swap(false) && m.observed() {
				m.control(getAck)
			}
		case <-t.C:
			m.second()
		}
		m.settleWaits()
	}
}

// ping is the command that a master appends to an idle stream.
const ping = "*1\r\n$4\r\nPING\r\n"

// second does the work of one second.
func (m *master) second() {
	c := m.r.config
	now := m.r.db.Steady().Micros()
	all := m.all()
	m.mu.Lock()
	m.seconds++
	pings := m.seconds%c.Int("repl-ping-replica-period") == 0
	m.mu.Unlock()
	if pings && m.observedBelow() {
		m.control(ping)
	}
	for _, f := range all {
		f.keepAlive()
		f.bound(now)
	}
	m.setGate()
	if len(all) == 0 {
		m.expireBacklog(now)
	}
}

// control appends to the stream a command that is for replicas only. It does nothing on a replica, whose stream is a
// copy of its master's. It holds a shard, so the role cannot change meanwhile.
func (m *master) control(command string) {
	if m.n.Load() == 0 {
		return
	}
	tx := m.r.db.Begin(0, []byte("role"))
	defer tx.Commit()
	if !m.r.IsReplica() && !m.r.quiet.Load() {
		m.r.db.Log().AppendControl([]byte(command))
	}
}

// all returns the replicas, in the order in which they connected.
func (m *master) all() []*Replica {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.followers)
}

func (m *master) add(f *Replica) {
	m.mu.Lock()
	m.followers = append(m.followers, f)
	m.n.Store(int32(len(m.followers)))
	m.mu.Unlock()
	m.begin()
}

func (m *master) remove(f *Replica) {
	m.mu.Lock()
	if i := slices.Index(m.followers, f); i >= 0 {
		m.followers = slices.Delete(m.followers, i, i+1)
	}
	if i := slices.Index(m.syncs, f); i >= 0 {
		m.syncs = slices.Delete(m.syncs, i, i+1)
	}
	m.endPushes(f)
	m.n.Store(int32(len(m.followers)))
	m.alone = m.r.db.Steady().Micros()
	m.mu.Unlock()
	m.setGate()
	m.r.acked()
}

// setGate closes GateNoReplicas if there are fewer good replicas than min-replicas-to-write, and opens it otherwise.
// Calls read the directive and set the gate one at a time, so a call with an old value does not come last.
func (m *master) setGate() {
	m.gate.Lock()
	defer m.gate.Unlock()
	c := m.r.config
	need, lag := c.Int("min-replicas-to-write"), c.Int("min-replicas-max-lag")
	closed := need > 0 && lag > 0 && !m.r.IsReplica() && int64(m.good(lag)) < need
	m.gateClosed.Store(closed)
	m.r.host.SetGate(GateNoReplicas, closed)
}

// good returns the number of replicas that acknowledged something in the last lag seconds.
func (m *master) good(lag int64) (n int) {
	now := m.r.db.Steady().Micros()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.followers {
		if f.at() == followOnline && (now-f.ackAt.Load())/1e6 <= lag {
			n++
		}
	}
	return n
}

// The functions below manage the backlog.

// keepBacklog keeps the stream from here on, for replicas that are connected or reconnect.
// If nothing used the stream before, it begins under a new name. tx holds all shards.
func (m *master) keepBacklog(tx *engine.Tx) {
	m.mu.Lock()
	was := m.backlog
	m.backlog, m.alone = true, tx.Now()
	m.mu.Unlock()
	if was {
		return
	}
	m.begin() // attend releases it later
	r := m.r
	if !r.db.LogNeeded() && r.uses&logFollows == 0 {
		r.become(r.newName())
	}
	r.useLog(tx, logBacklog, true)
	r.db.Log().Keep(backlogSize(r.config))
}

// keeps reports whether the stream is kept. If it is not, it may lack effects.
func (m *master) keeps() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.backlog
}

func backlogSize(c *config.Set) int64 { return max(c.Int("repl-backlog-size"), 1) }

// ResizeBacklog applies the directive repl-backlog-size.
func (r *Node) ResizeBacklog(c *config.Set) {
	m := &r.master
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.backlog {
		r.db.Log().Keep(backlogSize(c))
	}
}

// SetRequired applies the directives min-replicas-to-write and min-replicas-max-lag.
func (r *Node) SetRequired() { r.master.require() }

// expireBacklog releases the backlog after repl-backlog-ttl without replicas. A server
// that is a replica keeps its backlog, because the replicas of its master connect to it
// after its promotion.
func (m *master) expireBacklog(now int64) {
	ttl := m.r.config.Int("repl-backlog-ttl")
	m.mu.Lock()
	over := m.backlog && ttl > 0 && now-m.alone > ttl*1e6 && m.r.group == nil // a group counts by the offsets of the stream, and keeps it
	m.mu.Unlock()
	if !over {
		return
	}
	tx := m.r.db.BeginAll(0)
	defer tx.Commit()
	if m.r.IsReplica() {
		return
	}
	m.mu.Lock()
	if over = len(m.followers) == 0; over {
		m.backlog = false
	}
	m.mu.Unlock()
	if !over {
		return
	}
	m.r.db.Log().Keep(0)
	m.r.useLog(tx, logBacklog, false)
	if !m.r.db.LogNeeded() {
		m.r.become(m.r.newName()) // the stream lacks the effects from here on
	}
	m.r.log.Info("the replication backlog is released: no replica was connected for repl-backlog-ttl", "seconds", ttl)
}

// dropReplicas closes the connections of all replicas. They connect again and request the
// bytes that they lack. why is for the log.
func (r *Node) dropReplicas(why string) {
	for _, f := range r.master.all() {
		f.drop(why)
	}
}

// AwaitReplicas waits until all replicas have acknowledged all effects, for patience at most. It logs a warning if a
// replica lacks effects at the end. Its error is that of ctx.
func (r *Node) AwaitReplicas(ctx context.Context, patience time.Duration) error {
	m, log := &r.master, r.db.Log()
	if m.n.Load() == 0 || patience <= 0 || r.IsReplica() {
		return ctx.Err()
	}
	ctx2, stop := context.WithTimeout(ctx, patience)
	defer stop()
	done := make(chan struct{})
	end := log.End()
	m.wait(&AckWait{
		Over: func() bool { return ctx2.Err() != nil },
		Met:  func() bool { return m.count(end, nil) >= m.online() },
		End:  func() { close(done) },
	})
	select {
	case <-done:
	case <-ctx2.Done():
		r.log.Warn("some replicas have not acknowledged the last writes")
	}
	return ctx.Err()
}
