package control

import (
	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/voter"
)

// leadLoop does at each tick what the leader of the directory has to do. Another voter watches the master as well, so that it knows for how
// long the master has been silent when it becomes the leader.
func (k *Control) leadLoop() {
	current := false // this node leads, and has applied what was committed before
	for k.sleep() {
		if err := k.receive(k.heartbeat()); err != nil {
			k.conf.Logger.Warn("this node is not in the list of the group", "error", err)
		}
		if k.voter.Yield() {
			current = false
			continue
		}
		current = k.voter.Leading() && (current || k.voter.Barrier() == nil)
		next, due := k.decide()
		if !current {
			continue
		}
		k.admit()
		k.add()
		k.create()
		if due && k.propose(next) {
			k.conf.Logger.Warn("the master was silent, or could not acknowledge writes: another node is promoted", "node", next.Node, "epoch", next.Epoch+1)
		}
	}
}

// alive returns the heartbeats of the last group-timeout, in the order of the list.
func (k *Control) alive() (all []heartbeat) {
	now := k.conf.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, n := range k.conf.Group.Nodes {
		if h, ok := k.newest[n.ID]; ok && now-h.at < k.conf.Group.Timeout {
			all = append(all, h.heartbeat)
		}
	}
	return all
}

// admit gives a vote to nodes that have none: to one that is new, and to one that has lost its file. A node that was removed loses it.
func (k *Control) admit() {
	voters, err := k.voter.Voters()
	if err != nil {
		return
	}
	known := map[voter.Server]bool{}
	for _, s := range voters {
		known[s] = true
		if !k.voter.Removed(s.Node) {
			continue
		}
		if err := k.voter.Dismiss(s.Node); err != nil {
			k.conf.Logger.Warn("a node that was removed from the group keeps its vote", "node", s.String(), "error", err)
			continue
		}
		k.conf.Logger.Info("a node that was removed from the group has no vote any longer", "node", s.String())
	}
	for _, b := range k.alive() {
		if known[b.server] || k.voter.Removed(b.server.Node) {
			continue
		}
		if err := k.voter.Admit(b.server); err != nil {
			k.conf.Logger.Warn("a node of the group does not get a vote", "node", b.server.String(), "error", err)
			continue
		}
		k.conf.Logger.Info("a node of the group has a vote", "node", b.server.String())
	}
}

// add adds nodes to the directory once they are alive: in the order of the list, because their numbers have to grow.
func (k *Control) add() {
	known := map[directory.NodeID]bool{}
	for _, n := range k.voter.Nodes() {
		known[n.ID] = true
	}
	alive := map[directory.NodeID]heartbeat{}
	for _, b := range k.alive() {
		alive[b.server.Node] = b
	}
	for _, n := range k.conf.Group.Nodes {
		if known[n.ID] || k.voter.Removed(n.ID) {
			continue
		}
		b, ok := alive[n.ID]
		if !ok || !k.propose(directory.Command{Kind: directory.AddNode, Node: n.ID, Address: n.Address, Voter: true, Data: b.data}) {
			return
		}
	}
}

// create makes the shard when all nodes of the list have registered, and have said since how much data they have. Its master is the node
// that has some: a server becomes a group together with empty ones, which get its data. If two have some, none is created.
func (k *Control) create() {
	if len(k.voter.Shards()) > 0 {
		return
	}
	registered := map[directory.NodeID]directory.Node{}
	for _, n := range k.voter.Nodes() {
		if n.Incarnation != 0 {
			registered[n.ID] = n
		}
	}
	heartbeats := map[directory.NodeID]heartbeat{}
	for _, b := range k.alive() {
		heartbeats[b.server.Node] = b
	}
	master, longest, holders, need := directory.Member{}, uint64(0), 0, uint64(0)
	for _, n := range k.conf.Group.Nodes {
		b, alive := heartbeats[n.ID]
		switch r := registered[n.ID]; {
		case r.ID == 0:
			return
		case !r.Data:
		case !alive || b.report.From.Incarnation != r.Incarnation:
			return // it may be the one with the data
		default:
			if b.report.End > 0 {
				holders++
			}
			if master.Node == 0 || b.report.End > longest {
				master, longest, need = b.report.From, b.report.End, b.k
			}
		}
	}
	if holders > 1 {
		if !k.warned {
			k.conf.Logger.Error("the group cannot begin: several of its nodes have data, and it begins with the data of one; empty the others")
		}
		k.warned = true
		return
	}
	if master.Node != 0 {
		k.propose(directory.Command{Kind: directory.Create, Shard: theShard, Node: master.Node, K: int(need),
			Members: []directory.Member{master}})
	}
}

// decide returns the Promote that is due, if one is.
func (k *Control) decide() (c directory.Command, ok bool) {
	for _, s := range k.voter.Shards() {
		if s.ID == theShard {
			now := k.conf.Now()
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.controller.Decide(now, s)
		}
	}
	return c, false
}

// propose proposes a command as the leader, and reports whether it was applied.
func (k *Control) propose(c directory.Command) bool {
	a, err := k.voter.Propose(c)
	switch {
	case err != nil:
		k.conf.Logger.Warn("the group's directory has not changed", "error", err)
	case a.Refused != 0:
		k.conf.Logger.Info("the group's directory has refused a change", "reason", a.Refused.Error())
	}
	return err == nil && a.Refused == 0
}
