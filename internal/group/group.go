// Package group makes a server a member of a group, and runs a node of a group that has no data.
//
//	the directory ── Registered, Applied ─▶┌────────┐─▶ director ─▶ the server's role     Node.Lead, Rest, Follow
//	links ── Greeted, Stamped, Acked ─────▶│ shard. │─▶ Log.SetCommitted, Lease           which replies may leave
//	a ticker ── Tick ─────────────────────▶│ Node   │─▶ proposals ─▶ control.Propose
//	                                       └────────┘
//
// Member passes events to shard.Node, which has the rules, and does what comes out. It decides nothing by itself.
//
// Order of locks: shards, Member.mu. Nothing that takes a shard is called with mu held: the director changes the role.
//
// Invariants:
//
//   - Committed offsets are told to the log only while the server has the role of the epoch that they belong to.
//   - A member acknowledges nothing that shard.Node does not know of: Acknowledge passes the end of the log first.
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

// ticksInLease is the number of ticks, and of stamps of a master, in a lease.
const ticksInLease = 4

// folder is the folder of a node in the directory of the data: it holds what the node must not forget.
const folder = "group"

// Options say how a node takes part. Group, Now, Dir, Random and Logger are required.
type Options struct {
	Group   *settings.Settings
	Now     func() time.Duration // a monotonic clock, from any origin, which also counts while the machine sleeps
	Dir     string               // of the data
	Random  func() uint64
	Logger  *slog.Logger
	Clients string   // where the node serves clients, host:port; "" for a witness
	Bind    []string // the directive bind: addresses of the group's port and of sentinel-port
	// Password and Protected are the directives requirepass and protected-mode of a witness. A server has its users.
	Password       string
	Protected      bool
	Server, Client *tls.Config // of the group's port; nil: no TLS
	Version        string      // of Redis, for clients of Sentinel's protocol
}

// Member is a server's part in its group: instance.Group.
type Member struct {
	opt  Options
	log  *oplog.Log
	svc  *session.Service
	db   *engine.DB
	repl *replication.Node
	part *part  // nil before Begin
	keys uint64 // how many there were at Begin

	clock       *engineClock // nil in tests without an engine
	clockTooFar bool         // its shift would be too great; of the director
	timed       uint64       // the epoch whose master's time it has taken over; of the director

	ctx         context.Context
	cancel      context.CancelFunc
	done        sync.WaitGroup
	wake        oplog.Signal // the director looks
	proposals   chan directory.Command
	wakeTail    oplog.Signal // tail looks
	steppedDown oplog.Signal // the server is no longer the master
	filesSynced oplog.Signal // the files hold more
	leaves      atomic.Bool  // this server is about to stop

	mu            sync.Mutex // guards what follows
	node          *shard.Node
	passed        shard.Appended // the newest that node knows
	mustPass      bool           // it is to be passed again
	replicas      map[*replication.Replica]*peerLink
	byLink        map[shard.Link]*replication.Replica
	newest        shard.Link // of links to replicas: even numbers; those to masters are odd
	upstream      upstream
	role          role
	writable      bool
	leased        bool
	awaitsSync    bool                       // the log will wake filesSynced
	ahead         difference                 // of the master's engine
	warnedTerms   map[directory.NodeID]terms // what the log has said of the directives of members
	warnedMinSync bool                       // the log has compared min-sync-replicas
	turns         turns
}

// turns count how often this server has become the master, and has ended being it.
type turns struct {
	promoted, handedOver, replaced int64
	handing                        bool // it hands the group over
}

// upstream is the link to the master.
type upstream struct {
	number uint64     // replication's number of it
	link   shard.Link // node's; 0 if node has closed it
	epoch  uint64     // of the master, as its stream is named
	ack    shard.Ack  // the newest that node wants to send
}

// peerLink is a link to a replica that is a member.
type peerLink struct {
	link  shard.Link
	from  directory.Member
	epoch uint64 // of this master, when it connected
}

// role is the role of the server, which the director gives it.
type role struct {
	epoch   uint64 // it is the master of it; 0: a replica
	term    uint64 // of the log
	end     int64  // of the log when it became master
	follows string // of a replica: where its master serves clients; "": it follows none
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

// stateFile is the file of shard.Saved in the folder of a node.
const stateFile = "group.state"

// register returns the node's Register. At level disk the node keeps its incarnation, and with it its place in the in-sync set, if its
// file says so and the append-only files were loaded to the end.
func (m *Member) register() directory.Command {
	o := m.opt
	file, err := disk.OS().ReadFile(filepath.Join(o.Dir, folder, stateFile))
	if err != nil {
		file = nil
	}
	always := o.Group.Level == directory.Disk
	c := shard.Restart(o.Group.Self.ID, file, always, always && m.svc.Keeper().Whole())
	c.Process, c.Level = o.Random(), o.Group.Level
	return c
}

// save writes the file, before the node does anything else. If that fails, the file that is there names an older incarnation, or this
// one, and what it says of it is still true.
func (m *Member) save(self directory.Member) {
	if m.opt.Group.Level != directory.Disk {
		return // it proves nothing
	}
	s := shard.Saved{Member: self, Always: true}
	if err := disk.WriteFile(disk.OS(), filepath.Join(m.opt.Dir, folder, stateFile), s.Bytes()); err != nil {
		m.opt.Logger.Warn("group.state cannot be written: after a restart this node is in sync only when it has all data again", "error", err)
	}
}

// syncedTo returns up to where the files hold the stream. Where a full synchronisation has replaced the data, they hold none of it until
// they are written again. At level memory nothing depends on it.
func (m *Member) syncedTo() uint64 {
	if m.opt.Group.Level == directory.Disk && !m.svc.Keeper().AppendOnly() {
		return 0
	}
	return uint64(m.log.Synced())
}

// count returns the number of keys.
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

// step passes an event to the node, after the end of the log, and does what comes out. mu is held.
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
			m.repl.Disconnect("the group wants another link")
		} else if f := m.byLink[id]; f != nil {
			f.Drop("the group wants another link of this member, or another master")
		}
	}
	if out.Ack != nil {
		m.upstream.ack = *out.Ack
	}
	if out.Propose != nil {
		select {
		case <-m.proposals: // the one before has not been sent
		default:
		}
		m.proposals <- *out.Propose
	}
}

// settle tells the log what is committed, and the director of what has changed.
func (m *Member) settle(now shard.Time) {
	g := m.node.Gates(now)
	if g.Epoch != 0 && g.Epoch == m.role.epoch {
		m.log.SetCommitted(m.role.term, int64(g.Committed))
		if m.opt.Group.Level == directory.Disk && !m.awaitsSync {
			m.awaitsSync = !m.log.OnSynced(m.log.End(), m.filesSynced)
		}
	}
	lease := m.lease(g)
	if g.Epoch != m.role.epoch || g.Writable != m.writable || lease != m.leased {
		m.wake.Wake()
	}
}

// lease reports whether reads may be answered. mu is held.
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

// report returns the Report of the next heartbeat. A node that was promoted and could not become the master, because something holds
// its shards, is not the master, and is replaced.
func (m *Member) report() shard.Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.node.Status(m.opt.Now())
	r := shard.Report{From: s.Self, Master: m.role.epoch, End: uint64(m.log.End()), Time: m.now(),
		Stuck: s.Stuck() || m.log.Failure() != nil}
	if s.Shard.Epoch == 0 { // the group begins with the node that has data
		r.End = max(r.End, m.keys)
	}
	return r
}

// heartbeat takes the heartbeat of another node. That of the master tells the time.
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

// registered takes the answer to the Register.
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

// applied takes states of the directory.
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

// compare says once if min-sync-replicas of this node is different from the number that the directory keeps. mu is held.
func (m *Member) compare(s directory.Shard) {
	if s.Epoch == 0 || m.warnedMinSync {
		return
	}
	m.warnedMinSync = true
	if k := m.opt.Group.K; s.K != k {
		m.opt.Logger.Warn("min-sync-replicas of this node is not the group's, and counts at the group's first start alone", "this node", k,
			"group", s.K)
	}
}

// peers returns the nodes of the group, as their heartbeats describe them; none before Begin.
func (m *Member) peers() []control.Peer {
	p, err := m.begun()
	if err != nil {
		return nil
	}
	return p.control.Peers()
}
