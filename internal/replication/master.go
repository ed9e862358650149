package replication

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/config"
)

// A master and its replicas.
//
//	PSYNC ─┬─ CONTINUE: the stream from there on is in memory ───────────▶ stream
//	       └─ FULLRESYNC: join the queue ─▶ one snapshot for all who wait ─▶ stream
//	                                        master_sync.go                   replica.go
//
// A replica is a connection that was taken out of its transport: one goroutine
// writes to it, another reads what it acknowledges. The rest happens once a
// second (attend): pings, newlines for those who wait, timeouts, limits.
//
// Locks: shards, masterSide.mu, Replica.wmu.

// masterSide is what a service is to those who replicate it. A replica has one as
// well: its replicas follow the same stream.
type masterSide struct {
	r    *Node
	n    atomic.Int32  // followers
	kick chan struct{} // cap 1: attend is to look at once
	ask  atomic.Bool   // attend is to ask all for an acknowledgement
	lack atomic.Bool   // GateNoReplicas is closed

	full, partial, refused atomic.Int64 // synchronisations

	mu        sync.Mutex // guards what follows
	followers []*Replica
	syncs     []*Replica   // those that wait for a snapshot
	syncing   bool         // the goroutine of snapshots runs
	file      *fullSyncJob // is being written to a file; others may join it
	joined    chan struct{}
	waits     []*AckWait
	attended  bool // the goroutine of attend runs
	closed    bool
	backlog   bool  // the stream is kept for those who come back
	alone     int64 // us: since when there are no followers
	seconds   int64 // that attend has seen
}

func (m *masterSide) init(r *Node) {
	m.r, m.kick, m.joined = r, make(chan struct{}, 1), make(chan struct{}, 1)
	m.require()
}

// require follows min-replicas-to-write. Who has no use for replicas has no
// goroutine that wakes every second.
func (m *masterSide) require() {
	if m.r.config.Int("min-replicas-to-write") > 0 {
		m.begin()
	}
	m.judge()
}

// begin has attend run from here on.
func (m *masterSide) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.attended || m.closed || m.r.ctx.Err() != nil {
		return
	}
	m.attended = true
	m.r.beside.Go(m.attend)
}

// close begins nothing more; the service's context is about to end.
func (m *masterSide) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

// nudge has attend look soon.
func (m *masterSide) nudge() { notify(m.kick) }

// attend does what time brings, once a second, and what others ask for.
func (m *masterSide) attend() {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	m.judge()
	for {
		select {
		case <-m.r.ctx.Done():
			return
		case <-m.kick:
			if m.ask.Swap(false) {
				m.control(getAck)
			}
		case <-t.C:
			m.second()
		}
		m.settleWaits()
	}
}

// ping is what masters say when there is nothing to say.
const ping = "*1\r\n$4\r\nPING\r\n"

// second is a second's work.
func (m *masterSide) second() {
	c := m.r.config
	now := m.r.db.Clock().Micros()
	all := m.everybody()
	m.mu.Lock()
	m.seconds++
	pings := m.seconds%c.Int("repl-ping-replica-period") == 0
	m.mu.Unlock()
	if pings && len(all) > 0 {
		m.control(ping)
	}
	for _, f := range all {
		f.keepAlive()
		f.bound(now)
	}
	m.judge()
	if len(all) == 0 {
		m.expireBacklog(now)
	}
}

// control appends a command to the stream that is for replicas alone. A replica's
// stream is its master's, who does that. With a shard locked the role stays.
func (m *masterSide) control(command string) {
	if m.n.Load() == 0 {
		return
	}
	tx := m.r.db.Begin(0, []byte("role"))
	defer tx.Commit()
	if !m.r.IsReplica() {
		m.r.db.Log().AppendControl([]byte(command))
	}
}

func (m *masterSide) everybody() []*Replica {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.followers)
}

func (m *masterSide) add(f *Replica) {
	m.mu.Lock()
	m.followers = append(m.followers, f)
	m.n.Store(int32(len(m.followers)))
	m.mu.Unlock()
	m.begin()
}

func (m *masterSide) remove(f *Replica) {
	m.mu.Lock()
	if i := slices.Index(m.followers, f); i >= 0 {
		m.followers = slices.Delete(m.followers, i, i+1)
	}
	if i := slices.Index(m.syncs, f); i >= 0 {
		m.syncs = slices.Delete(m.syncs, i, i+1)
	}
	m.n.Store(int32(len(m.followers)))
	m.alone = m.r.db.Clock().Micros()
	m.mu.Unlock()
	m.judge()
	m.r.acked()
}

// judge closes the gate for writes where there are fewer good replicas than
// min-replicas-to-write, and opens it where there are enough.
func (m *masterSide) judge() {
	c := m.r.config
	need, lag := c.Int("min-replicas-to-write"), c.Int("min-replicas-max-lag")
	lack := need > 0 && lag > 0 && !m.r.IsReplica() && int64(m.good(lag)) < need
	m.lack.Store(lack)
	m.r.host.SetGate(GateNoReplicas, lack)
}

// good is the number of replicas that were heard of in the last lag seconds.
func (m *masterSide) good(lag int64) (n int) {
	now := m.r.db.Clock().Micros()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.followers {
		if f.at() == followOnline && (now-f.ackAt.Load())/1e6 <= lag {
			n++
		}
	}
	return n
}

// The backlog.

// keepBacklog has the stream be kept from here on, for replicas that are there or
// come back. A stream that nobody has needed before begins under a new name. tx
// holds all shards.
func (m *masterSide) keepBacklog(tx *engine.Tx) {
	m.mu.Lock()
	was := m.backlog
	m.backlog, m.alone = true, tx.Now()
	m.mu.Unlock()
	if was {
		return
	}
	m.begin() // lets it go
	r := m.r
	if !r.db.LogNeeded() && r.uses&logFollows == 0 {
		r.become(NewID())
	}
	r.useLog(tx, logBacklog, true)
	r.db.Log().Keep(backlogSize(r.config))
}

// keeps reports whether the stream is kept: else what is written may be in none.
func (m *masterSide) keeps() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.backlog
}

func backlogSize(c *config.Set) int64 { return max(c.Int("repl-backlog-size"), 1) }

// ResizeBacklog follows the directive repl-backlog-size.
func (r *Node) ResizeBacklog(c *config.Set) {
	m := &r.master
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.backlog {
		r.db.Log().Keep(backlogSize(c))
	}
}

// SetRequired follows the directives min-replicas-to-write and min-replicas-max-lag.
func (r *Node) SetRequired() { r.master.require() }

// expireBacklog lets the backlog go when there were no replicas for
// repl-backlog-ttl. Those of a replica may come back to whoever is promoted.
func (m *masterSide) expireBacklog(now int64) {
	ttl := m.r.config.Int("repl-backlog-ttl")
	m.mu.Lock()
	over := m.backlog && ttl > 0 && now-m.alone > ttl*1e6
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
		m.r.become(NewID()) // what is written from here on is in no stream
	}
	m.r.log.Info("the replication backlog is let go: there were no replicas", "seconds", ttl)
}

// dropReplicas closes the connections of all replicas: they are to ask again for
// what they lack.
func (r *Node) dropReplicas(why string) {
	for _, f := range r.master.everybody() {
		f.drop(why)
	}
}

// AwaitReplicas waits until all replicas have what was written, for a time; an error
// says only that the wait was aborted.
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
		r.log.Warn("not all replicas have what was written last")
	}
	return ctx.Err()
}
