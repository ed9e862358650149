package groupsim

import (
	"slices"

	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/shard"
)

// conn is a replica's connection to a node. Messages of one direction arrive in order, perhaps late, or never.
type conn struct {
	replica, master         *node
	replicaProcess, process uint64     // processes of the two nodes; the connection ends with either
	at, back                shard.Link // its link number at the replica, and at the master
	down                    []any      // messages on their way to the replica: resync, part
	up                      []any      // messages on their way to the master: greeting, shard.Ack
	closed                  bool
	sends                   bool   // the master has answered the greeting and sends its stream
	epoch                   uint64 // the epoch of that stream
	next                    int    // the index of the next entry to send
	slow                    bool

	loading  bool // the replica loads the snapshot
	snapshot []entry
	history  history // the master's, from its answer
}

// greeting is the first message of a replica on a connection.
type greeting struct {
	from    directory.Member
	epoch   uint64
	end     uint64 // the end of its log
	history history
}

// resync is the master's answer to a greeting.
type resync struct {
	epoch    uint64
	full     bool
	snapshot []entry // of a full one
	history  history
}

// part is a piece of the stream; without entries it is a heartbeat.
type part struct {
	from    int
	entries []entry
	stamp   shard.Stamp
}

// alive reports whether the processes of both ends still run.
func (c *conn) alive() bool {
	return c.replica.up && c.replica.process == c.replicaProcess && c.master.up && c.master.process == c.process
}

// reaches reports whether the network delivers from one node to another.
func (w *world) reaches(from, to *node) bool { return !w.cut[from.id-1][to.id-1] }

// connect connects a replica to the node that it takes for the master, or sometimes to a wrong one.
func (w *world) connect(n *node) {
	if !n.up || !n.registered {
		return
	}
	to := n.shard.Master()
	if to != 0 && !w.directing.faults && w.chance(0.1) {
		to = pick(w, w.nodes...).id
	}
	if to != 0 && to != n.id && w.node(to).up {
		w.connectTo(n, w.node(to))
	}
}

// connectTo connects a replica to a node.
func (w *world) connectTo(n, m *node) {
	w.links += 2
	c := &conn{replica: n, master: m, replicaProcess: n.process, process: m.process, at: w.links, back: w.links + 1}
	if n.conn != nil {
		n.conn.slow = w.chance(0.7)
	}
	n.conn, n.newest = c, c
	w.conns = slices.DeleteFunc(w.conns, func(c *conn) bool { return !c.alive() || c.closed && len(c.up) == 0 })
	w.conns = append(w.conns, c)
	if len(w.conns) > 3*w.Nodes {
		w.conns = slices.Delete(w.conns, 0, 1)
	}
	w.send(n, shard.Connected{Link: c.at})
	if !c.closed && n.registered {
		c.up = append(c.up, greeting{n.shard.Self(), n.shard.Epoch(), uint64(len(n.log)), n.history})
	}
}

// acknowledge sends a replica's acknowledgement on its newest connection.
func (w *world) acknowledge(n *node, a shard.Ack) {
	n.newest.up = append(n.newest.up, a)
	all := w.vouched[a.Epoch]
	all[n.id-1] = max(all[n.id-1], a.Offset)
	w.vouched[a.Epoch] = all
}

// answer sends a master's answer to a greeting that its rules have accepted.
func (w *world) answer(c *conn, g greeting) {
	m := c.master
	full := !m.history.begins(g.history, uint64(len(m.log)), g.end)
	if w.fault.ByOffset {
		full = g.end > uint64(len(m.log))
	}
	full = full || w.chance(0.1) // the master's backlog no longer reaches back far enough
	c.sends, c.epoch, c.next = true, m.shard.Gates(w.clock(m)).Epoch, int(g.end)
	r := resync{epoch: c.epoch, full: full, history: m.history}
	if full {
		r.snapshot = slices.Clone(m.log)
		c.next = len(m.log)
	}
	c.down = append(c.down, r)
}

// closeLink closes a connection. Messages on their way to the master may still arrive.
func (w *world) closeLink(n *node, id shard.Link) {
	for _, c := range w.conns {
		if c.closed || (c.replica != n || c.at != id) && (c.master != n || c.back != id) {
			continue
		}
		w.disconnect(c)
	}
}

// disconnect ends a connection; both ends learn of that sooner or later.
func (w *world) disconnect(c *conn) {
	c.closed, c.loading = true, false
	if c.replica.conn == c {
		c.replica.conn = nil
	}
}

// pump makes a master send a piece of its stream, or a heartbeat.
func (w *world) pump(c *conn) {
	m := c.master
	g := m.shard.Gates(w.clock(m))
	if !c.alive() || c.closed || !c.sends || g.Epoch != c.epoch || len(c.down) >= 4 || c.next > len(m.log) {
		return
	}
	n := min(w.rng.IntN(4), len(m.log)-c.next)
	c.down = append(c.down, part{from: c.next, entries: m.log[c.next : c.next+n : c.next+n], stamp: m.shard.Stamp(w.clock(m))})
	c.next += n
}

// toMaster delivers the first message on its way to the master. An acknowledgement may arrive twice, or after its
// connection has ended.
func (w *world) toMaster(c *conn) {
	p := c.up[0]
	if !c.master.up || c.master.process != c.process {
		c.up = c.up[1:]
		return
	}
	switch p := p.(type) {
	case greeting:
		c.up = c.up[1:]
		if c.closed {
			return
		}
		w.send(c.master, shard.Greeted{Link: c.back, From: p.from, Epoch: p.epoch})
		if !c.closed {
			w.answer(c, p)
		}
	case shard.Ack:
		if c.master.gates.Epoch == 0 && w.chance(0.8) {
			return // it waits in the queue of a node that is no longer the master
		}
		c.up = c.up[1:]
		w.send(c.master, shard.Acked{Link: c.back, Ack: p})
		if w.chance(0.05) {
			c.up = append(c.up, p)
		}
	}
}

// toReplica delivers the first message on its way to the replica.
func (w *world) toReplica(c *conn) {
	r := c.replica
	if !r.up || r.process != c.replicaProcess || c.closed {
		c.down = nil
		return
	}
	if c.loading {
		w.finishLoad(c)
		return
	}
	p := c.down[0]
	c.down = c.down[1:]
	switch p := p.(type) {
	case resync:
		w.resynchronise(c, p)
	case part:
		w.receive(c, p)
	}
}

// resynchronise delivers a master's answer to a greeting.
func (w *world) resynchronise(c *conn, a resync) {
	r := c.replica
	c.snapshot, c.history = a.snapshot, a.history
	w.send(r, shard.Answered{Link: c.at, Epoch: a.epoch, Full: a.full})
	switch {
	case r.shard.Loading(c.at):
		w.load(r)
	case r.shard.Accepts(c.at):
		r.history.adopt(a.history.newest, uint64(len(r.log)))
	}
}

// receive delivers a piece of the stream.
func (w *world) receive(c *conn, p part) {
	r := c.replica
	if !r.shard.Accepts(c.at) {
		return
	}
	if p.from != len(r.log) {
		w.disconnect(c)
		w.send(r, shard.Closed{Link: c.at})
		return
	}
	r.log = append(r.log, p.entries...)
	if r.kind == inMemory || w.chance(r.kind.syncs()) {
		r.synced = len(r.log)
	}
	w.send(r, shard.Streamed{Link: c.at, Stamp: p.stamp, End: uint64(len(r.log)), Synced: uint64(r.synced)})
}

// syncs returns the probability that a node syncs the entries that it has just written.
func (k kind) syncs() float64 {
	if k == lazily {
		return 0.2
	}
	return 0.8
}

// load starts a full resynchronisation on a replica.
func (w *world) load(n *node) {
	n.conn.loading = true
	w.note(n, "loads %d entries of node %d", len(n.conn.snapshot), n.conn.master.id)
	if w.fault.DropFirst {
		n.log, n.synced, n.agrees, n.history = nil, 0, 0, history{}
		w.checkMembers("while a snapshot is loaded")
	}
}

// finishLoad replaces the old data by the new data, if that is complete.
func (w *world) finishLoad(c *conn) {
	n := c.replica
	if w.chance(0.5) {
		return
	}
	c.loading = false
	if !n.shard.Loading(c.at) {
		return
	}
	n.log, n.agrees = slices.Clone(c.snapshot), 0
	n.synced, n.history = len(n.log), c.history
	w.send(n, shard.Loaded{Link: c.at, End: uint64(len(n.log)), Synced: uint64(n.synced)})
}

// member returns the member whose acknowledged entries a node has.
func (n *node) member() directory.Member {
	return directory.Member{Node: n.id, Incarnation: n.incarnation}
}
