package groupsim

import (
	"slices"

	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/shard"
)

// request is a command on its way to the directory. from is nil for the controller and the operator.
type request struct {
	from    *node
	process uint64
	command directory.Command
}

// answer is an answer on its way back. Only the answer to a Register carries more than a state.
type answer struct {
	to      *node
	process uint64
	command directory.Command
	answer  directory.Answer
}

// ask sends a command to the directory. It drops the command if 12 are on their way.
func (w *world) ask(n *node, c directory.Command) {
	if len(w.requests) >= 12 {
		return
	}
	r := request{from: n, command: c}
	if n != nil {
		r.process = n.process
	}
	w.requests = append(w.requests, r)
}

// decide lets the directory apply a command, usually not the oldest one. Commands get lost, arrive twice, and lose
// their answers.
func (w *world) decide() {
	if len(w.requests) == 0 {
		return
	}
	at := 0
	if w.chance(0.6) {
		at = w.rng.IntN(len(w.requests))
	}
	r := w.requests[at]
	if r.from != nil && w.apart[r.from.id-1] && w.chance(0.5) {
		return // not delivered yet
	}
	if !w.chance(0.1) {
		w.requests = slices.Delete(w.requests, at, at+1) // otherwise it arrives a second time
	}
	if w.chance(0.08) {
		return // lost
	}
	a := w.applyCommand(r.command)
	if r.from != nil && w.chance(0.7) {
		w.answers = append(w.answers, answer{r.from, r.process, r.command, a})
	}
}

// applyCommand applies a command, and checks the new state.
func (w *world) applyCommand(c directory.Command) directory.Answer {
	a := w.directory.Apply(c)
	s := w.present()
	changed := s.Version != w.shard().Version
	if changed || a.Refused != 0 {
		w.note(nil, "%s: %s", commandText(c), outcome(a.Refused, s))
	}
	if !changed {
		return a
	}
	w.states = append(w.states, s)
	if c.Kind == directory.Expand && a.Refused == 0 && w.node(c.Node).incarnation != c.Incarnation {
		w.lost++ // the node lost its data between its acknowledgement and the Expand
		w.Losses++
	}
	w.checkMembers("after " + kindText(c.Kind))
	return a
}

// reply delivers a random answer.
func (w *world) reply() {
	if len(w.answers) == 0 {
		return
	}
	at := w.rng.IntN(len(w.answers))
	a := w.answers[at]
	if w.apart[a.to.id-1] {
		return
	}
	w.answers = slices.Delete(w.answers, at, at+1)
	if a.to.up && a.to.process == a.process {
		w.answered(a.to, a.command, a.answer)
	}
}

// answered delivers an answer to a node. An answer to a Register other than the newest is late or a duplicate, and is
// ignored.
func (w *world) answered(n *node, c directory.Command, a directory.Answer) {
	register := c.Kind == directory.Register
	if register && c.Incarnation != n.register.Incarnation {
		return
	}
	if n.registered {
		if register && a.Refused == 0 {
			n.incarnation = c.Incarnation // only now, because the node may have acted before (ActUnregistered)
		}
		if len(a.Shards) > 0 {
			w.send(n, shard.Applied{Shard: a.Shards[0]})
		}
		return
	}
	if !register {
		return
	}
	if a.Refused != 0 {
		n.register = shard.Again(n.register, a)
		w.ask(n, n.register)
		return
	}
	n.registered = true
	n.incarnation = n.register.Incarnation
	n.file, n.recent = shard.Saved{Member: n.register.Member(), Always: n.kind == onDisk || w.fault.BelieveClean}.Bytes(), true
	e := shard.Registered{Self: n.register.Member()}
	if len(a.Shards) > 0 {
		e.Shard = a.Shards[0]
	}
	w.note(n, "is registered as %v", e.Self)
	w.checkMembers("after a restart")
	w.send(n, e)
}

// apply delivers the state with an index to a node, if it is newer than the node's.
func (w *world) apply(n *node, to int) {
	if !n.up || !n.registered || to <= n.applied || to >= len(w.states) {
		return
	}
	n.applied = to
	w.send(n, shard.Applied{Shard: w.states[to]})
}

// promote proposes a Promote like a controller whose state may be old and whose view of the nodes may be wrong.
func (w *world) promote() {
	s := w.shard()
	if w.chance(0.15) {
		s = w.states[max(0, len(w.states)-2)]
	}
	m := w.node(s.Master.Node)
	well := m.up && m.member() == s.Master && m.gates.Epoch == s.Epoch && !w.apart[m.id-1]
	if well && w.chance(0.85) {
		return
	}
	var all []*node
	for _, n := range w.nodes {
		in := s.In(n.member()) || w.fault.Directory.PromoteOutside && n.registered
		if in && n.up && n.registered || w.chance(0.1) {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		return
	}
	n := pick(w, all...)
	if w.chance(0.3) {
		n = slices.MaxFunc(all, func(a, b *node) int { return len(a.log) - len(b.log) })
	}
	w.propose(s, n)
}

// setK proposes a new k, as an operator.
func (w *world) setK() {
	s := w.shard()
	w.ask(nil, directory.Command{Kind: directory.SetK, Shard: 1, Epoch: s.Epoch, Version: s.Version, K: w.rng.IntN(w.Nodes)})
}

// promoteNow promotes a node and delivers the state to it at once. With drop the old master leaves the in-sync set if
// enough members remain.
func (w *world) promoteNow(n *node, drop bool) {
	s := w.shard()
	w.applyCommand(directory.Command{Kind: directory.Promote, Shard: 1, Epoch: s.Epoch, Version: s.Version, Node: n.id, Drop: drop})
	w.apply(n, len(w.states)-1)
}

// registerNow registers a node that has started, without delay.
func (w *world) registerNow(n *node) {
	for range 3 {
		if n.up && !n.registered {
			c := n.register
			w.answered(n, c, w.applyCommand(c))
		}
	}
}

// propose proposes the Promote of a node.
func (w *world) propose(s directory.Shard, n *node) {
	w.ask(nil, directory.Command{Kind: directory.Promote, Shard: 1, Epoch: s.Epoch, Version: s.Version, Node: n.id, Drop: w.chance(0.3)})
}
