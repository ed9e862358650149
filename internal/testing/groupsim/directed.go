package groupsim

import (
	"slices"
	"time"

	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/shard"
)

// directed runs one of the sequences that random steps seldom produce. The steps between its events are random, but
// without random faults.
func (w *world) directed() {
	m := w.master()
	if !m.gates.Serving {
		return
	}
	w.directing = directing{faults: true, control: true, reads: true}
	w.steps(60)
	var others []*node
	for _, n := range w.nodes {
		if n != m {
			others = append(others, n)
		}
	}
	at := w.rng.IntN(len(sequences))
	w.note(m, "directed: %s", sequences[at].name)
	w.step = pick[time.Duration](w, 4, 8, 15) * time.Millisecond
	sequences[at].run(w, m, pick(w, others...), others)
	w.directing = directing{}
	w.heal()
	w.step = 20 * time.Millisecond
}

// sequences are the directed ones: m is the master, r another node, others are all nodes except m.
var sequences = []struct {
	name string
	run  func(w *world, m, r *node, others []*node)
}{
	{"a master does not hear what came of an Expand", (*world).unheardExpand},
	{"a master keeps its lease as long as it may", func(w *world, m, r *node, others []*node) { w.oldLease(m, r, others, false) }},
	{"the same, and the next master has restarted", func(w *world, m, r *node, others []*node) { w.oldLease(m, r, others, true) }},
	{"acknowledgements arrive when the promises are over", (*world).lateAcks},
	{"a master restarts before another is promoted", (*world).masterRestarts},
	{"a node is master, replica, and master again", (*world).masterAgain},
	{"a restart just after an acknowledgement", (*world).ackAndRestart},
	{"a promotion while a master removes a member", (*world).removedIsPromoted},
	{"a replica connects to a master of an older epoch", (*world).oldMaster},
	{"a hand-over", (*world).handsOver},
}

// until runs steps until so returns true, at most count of them.
func (w *world) until(count int, so func() bool) {
	for ; count > 0 && !so(); count-- {
		w.stepOnce()
	}
}

// offers reports whether a master has a proposal of a kind in flight.
func offers(m *node, kind directory.Kind) bool {
	return m.up && m.shard.Proposal() != nil && m.shard.Proposal().Kind == kind
}

func (w *world) unheardExpand(m, r *node, others []*node) {
	if s := w.shard(); w.chance(0.5) && s.In(r.member()) {
		w.send(m, shard.Leaving{Member: r.member()})
		w.until(100, func() bool { return !w.shard().In(r.member()) })
	}
	if m.writes = w.chance(0.5); w.shard().K == 0 && w.chance(0.5) { // a master that is alone in sync has its lease without any promise
		for _, n := range others {
			w.send(m, shard.Leaving{Member: n.member()})
			w.until(60, func() bool { return !w.shard().In(n.member()) })
		}
	}
	w.until(150, func() bool { return offers(m, directory.Expand) })
	if offers(m, directory.Expand) {
		r = w.node(m.shard.Proposal().Node)
	}
	w.apart[m.id-1] = true
	w.until(w.rng.IntN(40), func() bool { return w.shard().In(r.member()) })
	w.cutOff(m, r, true)
	w.directing.leaving = w.chance(0.5)
	w.step = pick[time.Duration](w, 6, 30) * time.Millisecond
	if m.writes {
		w.steps(50 + w.rng.IntN(100))
	} else {
		w.wait(w.config.Lease)
	}
	w.directing.control = w.chance(0.7)
	w.step = pick[time.Duration](w, 6, 20) * time.Millisecond
	epoch := w.shard().Epoch
	w.promoteNow(r, w.chance(0.6))
	w.until(250, func() bool { return w.ackedSince(epoch) })
	w.steps(50)
}

// wait runs steps until d has passed.
func (w *world) wait(d time.Duration) {
	for end := w.now + d; w.now < end; {
		w.stepOnce()
	}
}

func (w *world) oldLease(m, r *node, others []*node, restart bool) {
	m.writes = w.chance(0.2)
	w.steps(40)
	for _, n := range others {
		if restart && n.kind == onDisk && w.shard().In(n.member()) {
			r = n
		}
	}
	w.apart[m.id-1] = true
	for _, n := range others {
		w.cutOff(n, m, w.chance(0.5) || restart && n == r)
	}
	if restart && r.up {
		w.crash(r, false)
		w.start(r)
		w.registerNow(r)
	}
	w.steps(w.rng.IntN(60))
	w.promoteNow(r, w.chance(0.7))
	w.directing.control = w.chance(0.7)
	w.steps(60 + w.rng.IntN(240))
	w.heal()
	w.steps(100)
}

// ackedSince reports whether a master of an epoch later than epoch has acknowledged a write.
func (w *world) ackedSince(epoch uint64) bool {
	return len(w.ackedIn) > 0 && w.ackedIn[len(w.ackedIn)-1] > epoch
}

func (w *world) lateAcks(m, r *node, others []*node) {
	epoch := w.shard().Epoch
	m.writes = false
	w.until(100, func() bool { return m.gates.Committed >= uint64(len(m.log)) })
	w.apart[m.id-1] = true
	for _, n := range others {
		w.cutOff(n, m, false)
	}
	w.steps(10 + w.rng.IntN(30))
	for _, n := range others {
		w.cutOff(m, n, false)
	}
	w.promoteNow(r, true)
	w.step = 20 * time.Millisecond
	w.until(400, func() bool { return w.ackedSince(epoch) })
	for _, n := range others {
		w.cut[n.id-1][m.id-1] = false
	}
	w.steps(80)
}

func (w *world) oldMaster(m, _ *node, others []*node) {
	epoch := w.shard().Epoch
	next := pick(w, others...)
	w.until(200, func() bool { return w.shard().In(next.member()) && len(w.shard().InSync) > w.shard().K+1 })
	w.apart[m.id-1] = true
	w.cutOff(m, next, true)
	w.promoteNow(next, true)
	w.step = 20 * time.Millisecond
	w.until(400, func() bool { return w.ackedSince(epoch) })
	for _, n := range others {
		if n.up && n.registered && n.gates.Epoch == 0 {
			w.connectTo(n, m)
			for c, i := n.conn, 0; i < 10 && n.conn == c; i++ {
				w.carryOn(c, 0.5)
			}
		}
	}
	w.steps(50)
}

func (w *world) masterRestarts(m, r *node, others []*node) {
	w.directing.lazy = true
	w.steps(w.rng.IntN(60))
	if w.chance(0.3) { // no other node has its last writes
		for _, n := range others {
			w.cutOff(m, n, false)
		}
		w.steps(w.rng.IntN(40))
	}
	w.crash(m, w.chance(0.1))
	w.directing.lazy = false
	w.heal()
	w.start(m)
	if w.chance(0.7) {
		w.registerNow(m)
	}
	w.step = 40 * time.Millisecond
	if end := len(m.log) + 2; w.chance(0.5) { // it writes before it reaches other nodes again
		for _, n := range others {
			w.cutOff(m, n, true)
		}
		w.until(150, func() bool { return len(m.log) >= end })
		w.heal()
	}
	w.steps(150)
	w.directing.control = w.chance(0.5)
	w.steps(100)
}

func (w *world) masterAgain(m, _ *node, others []*node) {
	next, third := pick(w, others...), pick(w, others...)
	w.cutOff(third, m, false) // acknowledgements of third stay on their way
	w.cutOff(m, next, false)
	w.apart[third.id-1] = w.chance(0.7)
	w.steps(60)
	w.cutOff(third, m, true)
	w.cut[m.id-1][next.id-1] = false
	for _, n := range w.nodes {
		w.cutOff(third, n, true)
	}
	w.propose(w.shard(), next)
	w.step = 40 * time.Millisecond
	w.steps(200)
	w.propose(w.shard(), m)
	w.steps(150)
	w.cut[third.id-1][m.id-1] = false
	w.steps(100)
}

func (w *world) ackAndRestart(m, r *node, _ []*node) {
	before := len(w.acked)
	w.until(100, func() bool { return len(w.acked) > before })
	if r.up {
		w.crash(r, w.chance(0.2))
	}
	w.apart[m.id-1] = w.chance(0.6)
	w.until(30, func() bool { return w.chance(0.1) })
	w.start(r)
	w.directing.control = w.chance(0.6)
	w.steps(w.rng.IntN(120))
	if w.chance(0.5) && m.up {
		w.crash(m, w.chance(0.5))
	}
	w.propose(w.shard(), r)
	w.steps(150)
}

func (w *world) removedIsPromoted(m, r *node, others []*node) {
	w.cutOff(m, r, true)
	if w.chance(0.5) {
		w.send(m, shard.Leaving{Member: r.member()})
	}
	w.until(150, func() bool { return offers(m, directory.Shrink) })
	if w.chance(0.6) { // the Shrink gets lost
		w.requests = slices.DeleteFunc(w.requests, func(q request) bool { return q.from == m })
		w.apart[m.id-1] = true
	}
	w.steps(w.rng.IntN(60))
	w.propose(w.shard(), r)
	for _, n := range others {
		if n != r && w.chance(0.3) {
			w.cutOff(m, n, true)
		}
	}
	w.directing.control = w.chance(0.7)
	w.steps(250)
}

func (w *world) handsOver(m, r *node, others []*node) {
	epoch := w.shard().Epoch
	w.until(100, func() bool { return w.shard().In(r.member()) })
	w.directing.leaving = true
	w.send(m, shard.HandOver{To: r.id})
	w.until(100, func() bool { return offers(m, directory.Promote) })
	w.steps(w.rng.IntN(20))
	w.apart[m.id-1] = w.chance(0.7)
	if w.chance(0.3) {
		w.cutOff(r, m, w.chance(0.5))
	}
	if w.chance(0.8) {
		w.promoteNow(r, w.chance(0.5))
	} else {
		w.promoteNow(pick(w, others...), w.chance(0.5))
	}
	w.directing.leaving = false
	w.until(200, func() bool { return w.ackedSince(epoch) })
	w.steps(50)
}
