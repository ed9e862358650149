package groupsim

import (
	"slices"

	"github.com/ebbdb/ebb/internal/group/directory"
)

// The invariants, and the functions that check them:
//
//	a member in sync has all that was acknowledged                                 checkMembers
//	after at most k losses a member is left to promote                             checkMembers
//	a master that serves has all that was acknowledged in earlier epochs           checkServing
//	one node commits in an epoch; none commits behind a later master               checkCommit
//	k other nodes have acknowledged what a master acknowledges                     checkCopies
//	what is acknowledged stays, and its tokens (epoch, offset) grow                checkCommit
//	a read under a lease sees all that was acknowledged                            checkRead

// covers reports whether a log begins with the first count acknowledged entries. It compares each entry only once.
func (w *world) covers(n *node, count int) bool {
	for n.agrees < count {
		if n.agrees >= len(n.log) || n.log[n.agrees] != w.acked[n.agrees] {
			return false
		}
		n.agrees++
	}
	return true
}

// checkMembers checks the in-sync set of the directory.
func (w *world) checkMembers(when string) {
	if len(w.states) == 0 {
		return
	}
	s := w.shard()
	whole := 0
	for _, m := range s.InSync {
		n := w.node(m.Node)
		if n.incarnation != m.Incarnation {
			continue // its data is lost, and the directory will learn of it
		}
		whole++
		if !w.covers(n, len(w.acked)) || n.kind == onDisk && n.synced < len(w.acked) {
			w.fail("%s: member %v is in sync but lacks acknowledged entries (%d acknowledged, has %d)", when, m, len(w.acked), len(n.log))
		}
	}
	switch {
	case whole == len(s.InSync) && s.Enough(whole):
		w.lost = 0
	case whole == 0 && len(w.acked) > 0 && w.lost <= s.K:
		w.fail("%s: no member is left to promote after %d losses, with k = %d", when, w.lost, s.K)
	}
}

// checkNode checks a node after a step.
func (w *world) checkNode(n *node) {
	before, g := n.gates, n.shard.Gates(w.clock(n))
	n.gates = g
	w.mix(uint64(n.id), uint64(w.now), g.Epoch, g.Committed, uint64(len(n.log)))
	if before.Epoch != g.Epoch {
		if g.Epoch == 0 {
			w.note(n, "is deposed from epoch %d", before.Epoch)
		} else {
			w.note(n, "takes epoch %d, its log ends at %d", g.Epoch, len(n.log))
		}
	}
	if g.Serving && (!before.Serving || before.Epoch != g.Epoch) {
		w.checkServing(n)
		before.Committed = 0
	}
	if g.Serving && g.Committed > before.Committed {
		w.checkCommit(n)
	}
}

// checkServing checks a master that begins to serve.
func (w *world) checkServing(n *node) {
	w.note(n, "serves in epoch %d", n.gates.Epoch)
	earlier, _ := slices.BinarySearch(w.ackedIn, n.gates.Epoch)
	if !w.covers(n, earlier) {
		w.fail("the master of epoch %d lacks entries of earlier epochs (%d acknowledged, has %d)", n.gates.Epoch, earlier, len(n.log))
	}
}

// checkCommit checks what a master acknowledges to clients.
func (w *world) checkCommit(n *node) {
	epoch, to := n.gates.Epoch, int(n.gates.Committed)
	if by, ok := w.committers[epoch]; ok && by != int(n.id) {
		w.fail("nodes %d and %d both commit in epoch %d", by, n.id, epoch)
	}
	w.committers[epoch] = int(n.id)
	if !w.covers(n, min(to, len(w.acked))) {
		w.fail("the master of epoch %d commits a history other than the acknowledged one, to %d", epoch, to)
	}
	if to <= len(w.acked) {
		return
	}
	w.checkCopies(epoch, n.gates.Committed, n.shard.Shard().K)
	for _, e := range n.log[len(w.acked):to] {
		if k := len(w.acked); k > 0 && e.epoch < w.acked[k-1].epoch {
			w.fail("the token of entry %d is not greater than the one before: epoch %d after %d", k+1, e.epoch, w.acked[k-1].epoch)
		}
		w.acked = append(w.acked, e)
		w.ackedIn = append(w.ackedIn, epoch)
	}
	w.Committed = len(w.acked)
	w.note(n, "commits to %d", to)
	for _, other := range w.nodes {
		if other.up && other.gates.Serving && other.gates.Epoch > epoch && !w.covers(other, to) {
			w.fail("the master of epoch %d commits while that of epoch %d serves", epoch, other.gates.Epoch)
		}
	}
	w.checkMembers("after a commit")
}

// checkCopies checks that k other nodes have acknowledged, in the master's epoch, all that the master acknowledges.
func (w *world) checkCopies(epoch, to uint64, k int) {
	copies := 0
	for _, offset := range w.vouched[epoch] {
		if offset >= to {
			copies++
		}
	}
	if copies < k {
		w.fail("the master of epoch %d acknowledges to %d, but only %d other nodes have acknowledged that, with k = %d", epoch, to, copies, k)
	}
}

// checkRead reads at each node that may answer reads, and checks that its log has all acknowledged entries.
func (w *world) checkRead() {
	for _, n := range w.nodes {
		if !n.up {
			continue
		}
		g := n.shard.Gates(w.clock(n))
		if !g.Serving || !g.Lease || g.Committed < uint64(len(n.log)) {
			continue
		}
		w.Reads++
		if !w.covers(n, len(w.acked)) {
			w.fail("a stale read: node %d answers with %d entries in epoch %d, but %d are acknowledged", n.id, len(n.log), g.Epoch, len(w.acked))
		}
	}
}

// mix adds numbers to Sum, the checksum of the schedule (FNV-1a).
func (w *world) mix(all ...uint64) {
	for _, n := range all {
		w.Sum = (w.Sum ^ n) * 1099511628211
	}
}

// kindText, commandText and outcome return the texts that the history shows for a command.
func kindText(k directory.Kind) string {
	return [...]string{"", "AddNode", "Create", "Register", "Expand", "Shrink", "Promote", "SetK", "RemoveNode", "Recover"}[k]
}
