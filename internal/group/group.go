// Package group makes a server a member of a group, and runs a node of a group that has no data.
//
//	the directory ── Registered, Applied ─▶┌────────┐─▶ director ─▶ the server's role     Node.Lead, Rest, Follow
//	links ── Greeted, Stamped, Acked ─────▶│ shard. │─▶ Log.SetCommitted, Lease           which replies may leave
//	a ticker ── Tick ─────────────────────▶│ Node   │─▶ proposals ─▶ control.Propose
//	                                       └────────┘
//
// Member passes events to shard.Node, which has the rules, and carries out the node's output. It decides nothing by
// itself.
//
// Order of locks: shards, then Member.mu. A call that locks a shard is never made with mu held.
//
// Invariants:
//
//   - The log learns of a committed offset only while the server has the role of that offset's epoch.
//   - A member acknowledges only offsets that shard.Node knows: Acknowledge passes the end of the log first.
//
// Start reading at Member.step.
package group

import (
	"context"
	"crypto/tls"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/group/control"
	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/settings"
	"github.com/ebbdb/ebb/internal/group/shard"
	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/replication"
	"github.com/ebbdb/ebb/internal/session"
)

// ticksInLease is the number of ticks, and of a master's stamps, within one lease.
const ticksInLease = 4

// folder is the subdirectory of --dir in which a node keeps its votes, its log and group.state.
const folder = "group"

// Options configure a node. Group, Now, Dir, Random and Logger are required.
type Options struct {
	Group   *settings.Settings
	Now     func() time.Duration // monotonic time since any origin; it must advance while the machine sleeps
	Dir     string               // the server's data directory (--dir)
	Random  func() uint64
	Logger  *slog.Logger
	Clients string   // the address at which the node serves clients, host:port; "" for a witness
	Bind    []string // the directive bind: the addresses at which the group's port and sentinel-port listen
	// Password and Protected are the directives requirepass and protected-mode of a witness. A server authenticates
	// its users instead.
	Password       string
	Protected      bool
	Server, Client *tls.Config // for the group's port; nil: no TLS
	Version        string      // the Redis version that Sentinel clients are told
}

// Member is a server's membership in its group. It implements instance.Group.
type Member struct {
	opt  Options
	log  *oplog.Log
	svc  *session.Service
	db   *engine.DB
	repl *replication.Node
	part *part  // nil before Begin
	keys uint64 // the number of keys at Begin

	clock       *engineClock // nil in tests without an engine
	clockTooFar bool         // the master's time was too far off to take over; the director's own
	timed       uint64       // the epoch whose master's time was taken over; the director's own

	ctx         context.Context
	cancel      context.CancelFunc
	done        sync.WaitGroup
	wake        oplog.Signal // wakes the director
	proposals   chan directory.Command
	wakeTail    oplog.Signal // wakes tail
	steppedDown oplog.Signal // signalled when the server stops being the master
	filesSynced oplog.Signal // signalled when the files hold more of the log
	leaves      atomic.Bool  // this server is about to stop

	mu            sync.Mutex // guards the fields below
	node          *shard.Node
	passed        shard.Appended // the newest end of the log that was passed to node
	mustPass      bool           // pass the end of the log again even if it has not changed
	replicas      map[*replication.Replica]*peerLink
	byLink        map[shard.Link]*replication.Replica
	newest        shard.Link // the newest link to a replica. Links to replicas have even numbers, links to masters odd ones
	upstream      upstream
	role          role
	writable      bool
	leased        bool
	awaitsSync    bool                       // filesSynced is registered with the log
	ahead         difference                 // the lead of the master's engine time
	warnedTerms   map[directory.NodeID]terms // the directives of members that were last compared with this node's
	warnedMinSync bool                       // min-sync-replicas has been compared with the directory's
	turns         turns
}

// turns count the times at which this server became the master or ceased to be the master.
type turns struct {
	promoted, handedOver, replaced int64
	handing                        bool // a hand-over is in progress
}

// upstream is the link to the master.
type upstream struct {
	number uint64     // replication's number of the link
	link   shard.Link // the node's number of the link; 0 if the node has closed it
	epoch  uint64     // the master's epoch, from the name of its stream
	ack    shard.Ack  // the newest acknowledgement that the node wants to send
}

// peerLink is a link to a replica that is a member.
type peerLink struct {
	link  shard.Link
	from  directory.Member
	epoch uint64 // this master's epoch when the replica connected
}

// role is the role that the director has given the server.
type role struct {
	epoch   uint64 // the epoch of which it is the master; 0: a replica
	term    uint64 // the log's term
	end     int64  // the end of the log when the server became the master
	follows string // for a replica: the address at which its master serves clients; "": it follows none
}

// New returns a member. The instance calls the other methods.
func New(o Options) *Member {
	m := &Member{opt: o, wake: make(oplog.Signal, 1), proposals: make(chan directory.Command, 1), wakeTail: make(oplog.Signal, 1),
		steppedDown: make(oplog.Signal, 1), filesSynced: make(oplog.Signal, 1), replicas: map[*replication.Replica]*peerLink{},
		byLink: map[shard.Link]*replication.Replica{}, warnedTerms: map[directory.NodeID]terms{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.node = shard.New(o.Now(), shard.Config{Level: o.Group.Level, Lease: o.Group.Lease, Lag: o.Group.Lag}, shard.Log{})
	return m
}

// Attach implements instance.Group.
func (m *Member) Attach(svc *session.Service) {
	m.svc, m.db, m.repl, m.log = svc, svc.DB, svc.Replication(), svc.DB.Log()
	m.repl.AckAtOnce(replication.AckApplied)
	if m.opt.Group.Level == directory.Disk {
		m.repl.AckAtOnce(replication.AckSynced)
	}
}

// Begin implements instance.Group.
func (m *Member) Begin() error {
	o := m.opt
	m.keys = m.count()
	m.mu.Lock()
	m.step(shard.Tick{})
	m.mu.Unlock()
	p, err := open(o, partOptions{data: true, register: m.register(), report: m.report, registered: m.registered, applied: m.applied,
		heartbeat: m.heartbeat, failover: m.handOver, access: serverAccess{m.svc}})
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.part = p
	m.mu.Unlock()
	m.done.Go(m.directLoop)
	m.done.Go(m.propose)
	m.done.Go(m.tick)
	m.done.Go(m.tail)
	m.wake.Wake()
	return nil
}

// register returns the node's Register command. At level disk the node keeps its incarnation, and so its place in the
// in-sync set, if group.state says so and the append-only files were loaded to the end.
func (m *Member) register() directory.Command {
	o := m.opt
	file, err := disk.OS().ReadFile(filepath.Join(o.Dir, folder, shard.StateFile))
	if err != nil {
		file = nil
	}
	always := o.Group.Level == directory.Disk
	c := shard.Restart(o.Group.Self.ID, file, always, always && m.svc.Keeper().Whole())
	c.Process, c.Level = o.Random(), o.Group.Level
	return c
}

// save writes group.state before the node does anything else. If that fails, the old file stays. It names this
// incarnation or an older one, and what it proves is still true.
func (m *Member) save(self directory.Member) {
	if m.opt.Group.Level != directory.Disk {
		return // at level memory the file proves nothing
	}
	s := shard.Saved{Member: self, Always: true}
	if err := disk.WriteFile(disk.OS(), filepath.Join(m.opt.Dir, folder, shard.StateFile), s.Bytes()); err != nil {
		m.opt.Logger.Warn("group.state cannot be written: after a restart this node is in sync only when it has all data again", "error", err)
	}
}

// syncedTo returns the offset up to which the files hold the stream. It is 0 between a full synchronisation and the
// rewrite that puts the new data into the files. At level memory nothing depends on it.
func (m *Member) syncedTo() uint64 {
	if m.opt.Group.Level == directory.Disk && !m.svc.Keeper().AppendOnly() {
		return 0
	}
	return uint64(m.log.Synced())
}

// count returns the number of keys in all databases. It locks all shards.
func (m *Member) count() (n uint64) {
	tx := m.db.BeginAll(0)
	defer tx.Commit()
	for _, k := range tx.Keyspaces() {
		n += uint64(k.Keys)
	}
	return n
}

// Close implements instance.Group.
func (m *Member) Close() error {
	m.cancel()
	m.mu.Lock()
	p := m.part
	m.mu.Unlock()
	var err error
	if p != nil {
		err = p.close() // before done: a proposal may wait for a disk that is full, until the voter ends
	}
	m.done.Wait()
	return err
}

// step passes the end of the log and then an event to the node, and carries out the node's output. mu is held.
func (m *Member) step(e shard.Event) {
	now := m.opt.Now()
	if at := (shard.Appended{End: uint64(m.log.End()), Synced: m.syncedTo()}); at != m.passed || m.mustPass {
		m.passed, m.mustPass = at, false
		m.execute(m.node.Step(now, at))
	}
	m.execute(m.node.Step(now, e))
	m.settle(now)
}

// execute carries out an Output: it closes links, keeps the acknowledgement to send, and queues the proposal.
func (m *Member) execute(out shard.Output) {
	for _, id := range out.Close {
		if id == m.upstream.link && id != 0 {
			m.upstream.link = 0
			m.repl.Disconnect("the group has closed the link to its master")
		} else if f := m.byLink[id]; f != nil {
			f.Drop("the group has closed the link of this member: it has a newer link, or the group another master")
		}
	}
	if out.Ack != nil {
		m.upstream.ack = *out.Ack
	}
	if out.Propose != nil {
		select {
		case <-m.proposals: // replaces the previous proposal, which was not sent yet
		default:
		}
		m.proposals <- *out.Propose
	}
}

// settle tells the log the committed offset, and wakes the director if the gates or the role differ from the
// server's.
func (m *Member) settle(now shard.Time) {
	g := m.node.Gates(now)
	if g.Epoch != 0 && g.Epoch == m.role.epoch {
		m.log.SetCommitted(m.role.term, int64(g.Committed))
		if m.opt.Group.Level == directory.Disk && !m.awaitsSync {
			m.awaitsSync = !m.log.OnSynced(m.log.End(), m.filesSynced)
		}
	}
	if g.Epoch != m.role.epoch || m.isWritable(g) != m.writable || m.lease(g) != m.leased {
		m.wake.Wake()
	}
}

// isWritable reports whether the group lets the server run writes. A replica refuses them for another reason. mu is held.
func (m *Member) isWritable(g shard.Gates) bool { return g.Writable || m.role.epoch == 0 }

// lease reports whether the server may answer reads. mu is held.
func (m *Member) lease(g shard.Gates) bool {
	return g.Serving && g.Epoch == m.role.epoch && (g.Lease || m.opt.Group.StaleOK) && g.Committed >= max(g.Floor, uint64(m.role.end))
}

// Lease implements session.Group.
func (m *Member) Lease() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lease(m.node.Gates(m.opt.Now()))
}

// Info implements session.Group.
func (m *Member) Info(put func(name string, value any)) {
	m.mu.Lock()
	s := m.node.Status(m.opt.Now())
	m.mu.Unlock()
	s.Info(put)
	if p, err := m.begun(); err == nil {
		put("group_leader", int(p.control.Leader()))
		put("group_voters", len(p.control.Voters()))
	}
}

// report returns the content of the next heartbeat. It names the server as the master only once the server has that
// role. So a promoted node that cannot take its shards, because something holds them, is replaced.
func (m *Member) report() shard.Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.node.Status(m.opt.Now())
	r := shard.Report{From: s.Self, Master: m.role.epoch, End: uint64(m.log.End()), Time: m.now(),
		Stuck: s.Stuck || m.svc.FilesFail() || m.role.epoch == 0 && m.svc.StreamWaits()}
	r.Proven = s.Proven() && !r.Stuck
	if s.Shard.Epoch == 0 { // the group begins with the node that has data
		r.End = max(r.End, m.keys)
	}
	return r
}

// heartbeat handles the heartbeat of another node. Only the master's is used: it carries the engine's time.
func (m *Member) heartbeat(r shard.Report) {
	if m.clock == nil {
		return
	}
	machine := m.clock.machine.Micros()
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.node.Shard()
	if r.Time != 0 && r.Master != 0 && r.Master == s.Epoch && r.From == s.Master && m.role.epoch == 0 {
		m.ahead.add(r.Master, r.Time-machine)
	}
}

// registered handles the directory's answer to the node's Register.
func (m *Member) registered(self directory.Member, all []directory.Shard) {
	m.save(self)
	m.mu.Lock()
	defer m.mu.Unlock()
	e := shard.Registered{Self: self}
	for _, s := range all {
		e.Shard = s
		m.compare(s)
	}
	m.step(e)
	m.wake.Wake()
}

// applied passes new states of the directory to the node, and drops the links of removed members.
func (m *Member) applied(all []directory.Shard) {
	m.mu.Lock()
	defer m.mu.Unlock()
	version := m.node.Shard().Version
	for _, s := range all {
		m.compare(s)
		m.step(shard.Applied{Shard: s})
	}
	if m.node.Shard().Version != version && m.repl != nil {
		m.repl.RetryLink()
	}
	for f, l := range m.replicas {
		if m.removed(l.from.Node) {
			f.Drop(errRemoved.Error())
		}
	}
	m.wake.Wake()
	m.wakeTail.Wake()
}

// compare logs once if this node's min-sync-replicas differs from the group's. mu is held.
func (m *Member) compare(s directory.Shard) {
	if s.Epoch == 0 || m.warnedMinSync {
		return
	}
	m.warnedMinSync = true
	if k := m.opt.Group.K; s.K != k {
		m.opt.Logger.Warn("min-sync-replicas of this node differs from the group's, and has no effect", "this node", k,
			"group", s.K)
	}
}

// peers returns the nodes of the group as their heartbeats describe them, or nil before Begin.
func (m *Member) peers() []control.Peer {
	p, err := m.begun()
	if err != nil {
		return nil
	}
	return p.control.Peers()
}
