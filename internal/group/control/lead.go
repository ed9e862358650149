package control

import (
	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/voter"
)

// leadLoop does the leader's work at each tick. Voters that do not lead watch the master too, so that a new leader
// knows at once for how long the master has been silent.
func (k *Control) leadLoop() {
	current := false // this node leads, and has applied all that earlier leaders committed
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
			k.conf.Logger.Warn("the master was silent or stuck: another node is promoted", "node", next.Node, "epoch", next.Epoch+1)
		}
	}
}

// alive returns the nodes' heartbeats of the last group-timeout, in the order of the list.
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

// admit gives a vote to nodes that are new or have lost their file, and takes the vote of nodes that were removed.
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
			k.conf.Logger.Warn("cannot take the vote of a node that was removed from the group", "node", s.String(), "error", err)
			continue
		}
		k.conf.Logger.Info("the node was removed from the group and has lost its vote", "node", s.String())
	}
	for _, b := range k.alive() {
		if known[b.server] || k.voter.Removed(b.server.Node) {
			continue
		}
		if err := k.voter.Admit(b.server); err != nil {
			k.conf.Logger.Warn("cannot give a node of the group a vote", "node", b.server.String(), "error", err)
			continue
		}
		k.conf.Logger.Info("gave a node of the group a vote", "node", b.server.String())
	}
}

// add adds nodes that are alive to the directory, in the order of the list: IDs must be added in ascending order.
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

// create creates the shard once all nodes of the list have registered and have then reported how much data they have.
// The node with data becomes the master, so a server becomes a group together with empty nodes, which receive its
// data. If two nodes have data, create creates nothing.
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
			return // this node may be the one with data
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
			k.conf.Logger.Error("the group cannot begin: several nodes have data, and only one may; empty the others")
		}
		k.warned = true
		return
	}
	if master.Node != 0 {
		k.propose(directory.Command{Kind: directory.Create, Shard: theShard, Node: master.Node, K: int(need),
			Members: []directory.Member{master}})
	}
}

// decide returns the Promote that is due, if there is one.
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

// propose proposes a command at this node, the leader, and reports whether it was applied.
func (k *Control) propose(c directory.Command) bool {
	a, err := k.voter.Propose(c)
	switch {
	case err != nil:
		k.conf.Logger.Warn("cannot change the group's directory", "error", err)
	case a.Refused != 0:
		k.conf.Logger.Info("the group's directory refused a change", "reason", a.Refused.Error())
	}
	return err == nil && a.Refused == 0
}
