package groupsim

import (
	"slices"
	"time"

	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/shard"
)

// steps runs random steps.
func (w *world) steps(count int) {
	for range count {
		w.stepOnce()
	}
}

// stepOnce advances the time a little and runs a random action.
func (w *world) stepOnce() {
	if pause := 1500 * time.Millisecond; !w.directing.reads && w.chance(0.03) {
		w.now += time.Duration(w.rng.Int64N(int64(pause)))
	} else {
		w.now += time.Duration(w.rng.Int64N(int64(w.step)))
	}
	if w.directing.reads {
		w.checkRead()
	}
	n := pick(w, w.nodes...)
	at := w.rng.Float64()
	for _, a := range actions {
		if at -= a.share; at < 0 {
			a.do(w, n)
			return
		}
	}
	w.carry(3)
}

// actions are the actions of a step with their probabilities. The remaining steps carry messages.
var actions = []struct {
	share float64
	do    func(w *world, n *node)
}{
	{0.045, (*world).breakSomething},
	{0.05, (*world).restartOrConnect},
	{0.05, (*world).reconnect},
	{0.08, func(w *world, _ *node) { w.decide() }},
	{0.06, func(w *world, _ *node) { w.reply() }},
	{0.05, (*world).learn},
	{0.03, func(w *world, _ *node) {
		switch {
		case w.directing.control:
		case w.chance(0.1):
			w.setK()
		default:
			w.promote()
		}
	}},
	{0.13, (*world).write},
	{0.05, func(w *world, _ *node) { w.checkRead() }},
	{0.08, (*world).tick},
}

// breakSomething cuts a network, crashes a node, or heals all cuts.
func (w *world) breakSomething(n *node) {
	if w.directing.faults {
		w.tick(n)
		return
	}
	switch b := w.rng.Float64(); {
	case b < 0.25:
		w.cutOff(n, pick(w, w.nodes...), false)
	case b < 0.4:
		for _, other := range w.nodes {
			if w.chance(0.9) {
				w.cutOff(n, other, true)
			}
		}
		w.apart[n.id-1] = w.apart[n.id-1] || w.chance(0.5)
		n.writes = w.chance(0.3)
	case b < 0.6:
		w.heal()
		for _, n := range w.nodes {
			n.writes = w.chance(0.8)
		}
	case b < 0.68:
		w.apart[n.id-1] = true
	case b < 0.8:
		if n.conn != nil {
			w.note(n, "loses its link to node %d", n.conn.master.id)
			c := n.conn
			w.disconnect(c)
			w.send(n, shard.Closed{Link: c.at})
		}
	default:
		if n.up {
			w.crash(n, w.chance(0.1))
		}
	}
}

// cutOff holds back messages from one node to another, and with both those in the other direction too.
func (w *world) cutOff(from, to *node, both bool) {
	if from == to {
		return
	}
	w.cut[from.id-1][to.id-1] = true
	if both {
		w.cut[to.id-1][from.id-1] = true
	}
}

// heal ends all cuts.
func (w *world) heal() {
	w.cut, w.apart = [maxNodes][maxNodes]bool{}, [maxNodes]bool{}
}

// restartOrConnect starts a node that is down, repeats a Register, or connects a replica.
func (w *world) restartOrConnect(n *node) {
	switch {
	case !n.up:
		w.start(n)
	case !n.registered || w.chance(0.1):
		w.ask(n, n.register)
	case n.conn == nil:
		w.connect(n)
	}
}

// reconnect reconnects a replica whose connection has ended or leads to a node other than the master.
func (w *world) reconnect(n *node) {
	switch c := n.conn; {
	case !n.up:
	case c == nil || c.closed || !c.alive():
		w.connect(n)
	case w.chance(0.1):
		w.connect(n)
	case c.master.id != n.shard.Master() && w.chance(0.5):
		w.connect(n)
	}
}

// learn delivers a state of the directory to a node: the next one or the newest.
func (w *world) learn(n *node) {
	if w.apart[n.id-1] {
		return
	}
	to := n.applied + 1
	if w.chance(0.5) {
		to = len(w.states) - 1
	}
	w.apply(n, to)
}

// write appends a client's write at a node, if it is a master, or at the master of the newest state.
func (w *world) write(n *node) {
	if n.gates.Epoch == 0 {
		n = w.master()
	}
	if n.up {
		w.send(n, shard.Tick{})
		w.append(n)
	}
}

// tick passes a Tick to a master. Sometimes a member announces its stop, or the master is asked to hand over.
func (w *world) tick(n *node) {
	if n.gates.Epoch == 0 {
		n = w.master()
	}
	if !n.up {
		return
	}
	w.send(n, shard.Tick{})
	s := w.states[max(0, n.applied)]
	if !w.directing.leaving && len(s.InSync) > 0 {
		member := pick(w, s.InSync...)
		switch b := w.rng.Float64(); {
		case b < 0.3:
			w.send(n, shard.Leaving{Member: member})
		case b < 0.35 && member.Node != n.id:
			w.note(n, "is to hand over to node %d", member.Node)
			w.send(n, shard.HandOver{To: member.Node})
		}
	}
	if !w.directing.lazy {
		w.sync(n)
	}
}

// carry sends and delivers messages on limit random connections.
func (w *world) carry(limit int) {
	for range min(limit, len(w.conns)) {
		c := pick(w, w.conns...)
		if c.slow && w.chance(0.85) {
			continue
		}
		w.carryOn(c, w.rng.Float64())
	}
}

func (w *world) carryOn(c *conn, b float64) {
	if b < 0.4 {
		w.pump(c)
	}
	if b < 0.7 && (len(c.down) > 0 || c.loading) && w.reaches(c.master, c.replica) {
		w.toReplica(c)
	}
	if b > 0.3 && len(c.up) > 0 && w.reaches(c.replica, c.master) {
		w.toMaster(c)
	}
}

// live returns the nodes that stay alive after the faults: a member in sync that has all acknowledged entries, and at
// least k others.
func (w *world) live() []*node {
	s := w.shard()
	var good []*node
	for _, n := range w.nodes {
		if s.In(n.member()) {
			good = append(good, n)
		}
	}
	if len(good) == 0 {
		good = w.nodes
	}
	all := []*node{pick(w, good...)}
	for want := s.K + 1 + w.rng.IntN(w.Nodes-s.K); len(all) < want; {
		if n := pick(w, w.nodes...); !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}

// calm ends the faults: the nodes that do not stay stop for good, and the others have ten seconds to acknowledge a
// write.
func (w *world) calm() {
	w.heal()
	w.requests, w.directing = nil, directing{faults: true}
	live := w.live()
	for _, n := range w.nodes {
		n.writes = true
		switch stays := slices.Contains(live, n); {
		case stays:
			w.start(n)
		case n.up:
			w.crash(n, false)
		}
	}
	w.note(nil, "the faults end, %d nodes live", len(live))
	c := shard.NewController(2 * time.Second)
	ended, last := w.now, w.entries
	const round = 20 * time.Millisecond
	for w.now < ended+10*time.Second {
		w.now += round
		w.round(c, live)
		if n := len(w.acked); n > 0 && w.acked[n-1].number > last {
			w.Quiet = w.now - ended
			return
		}
	}
	w.fail("no write was acknowledged within 10 s after the faults, with %d nodes alive; in sync are %v", len(live), w.shard().InSync)
}

// round delivers all messages, and lets each node and the controller do its work.
func (w *world) round(c *shard.Controller, live []*node) {
	s := w.shard()
	if !slices.ContainsFunc(s.InSync, func(m directory.Member) bool { return w.node(m.Node).incarnation == m.Incarnation }) {
		w.accept(live)
	}
	for _, n := range live {
		switch {
		case !n.registered && len(w.requests) == 0:
			w.ask(n, n.register)
		case n.registered && (n.conn == nil || n.conn.closed || !n.conn.alive() || n.conn.master.id != n.shard.Master()):
			w.connect(n)
		}
		w.apply(n, len(w.states)-1)
		w.write(n)
		w.sync(n)
		if n.registered {
			s := n.shard.Status(w.now)
			c.Receive(w.now, shard.Report{From: n.member(), Master: n.gates.Epoch, End: uint64(len(n.log)), Stuck: s.Stuck, Proven: s.Proven()})
		}
	}
	for range len(w.requests) {
		r := w.requests[0]
		w.requests = w.requests[1:]
		if a := w.applyCommand(r.command); r.from != nil && r.from.up && r.from.process == r.process {
			w.answered(r.from, r.command, a)
		}
	}
	if command, ok := c.Decide(w.now, w.shard()); ok {
		w.ask(nil, command)
	}
	for _, c := range w.conns {
		c.slow = false
		w.carryOn(c, 0.35)
		w.carryOn(c, 0.5)
	}
	w.checkRead()
}

// accept runs Recover as an operator would after all members in sync have lost data. From then on the entries of the
// recovered node are the acknowledged ones.
func (w *world) accept(live []*node) {
	s, n := w.shard(), pick(w, live...)
	if n.incarnation == 0 {
		return // not registered
	}
	w.sync(n)
	w.Recovered = true
	w.acked, w.ackedIn = slices.Clone(n.log), make([]uint64, len(n.log))
	for _, other := range w.nodes {
		other.agrees = 0
	}
	w.lost = 0
	w.applyCommand(directory.Command{Kind: directory.Recover, Shard: 1, Epoch: s.Epoch, Version: s.Version, Node: n.id, AcceptLoss: true})
}
