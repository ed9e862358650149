package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/group/control"
	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/sentinel"
)

// Operators change a group by the command GROUP at a server, or by Sentinel's protocol at any node. Each change is a
// command of the directory, which refuses any that would lose an acknowledged write. Only RECOVER may lose some, and
// logs it.

// maxTries bounds the proposals of one change. A proposal fails if the shard changes meanwhile, which it does at
// failures and joins.
const maxTries = 5

var errNotBegun = errors.New("the group has not begun yet: start all nodes of its list, then run the command again")

// change proposes a command about the shard. command returns the command for a state of the shard, or an error if
// that state rules it out. If the state has changed meanwhile, change asks command again, maxTries times in all.
func (p *part) change(ctx context.Context, command func(directory.Shard) (directory.Command, error)) error {
	s := p.shard()
	for range maxTries {
		if s.ID == 0 {
			return errNotBegun
		}
		c, err := command(s)
		if err != nil {
			return err
		}
		c.Shard, c.Epoch, c.Version = s.ID, s.Epoch, s.Version
		a, err := p.control.Propose(ctx, c)
		switch {
		case err != nil:
			return err
		case a.Refused == 0:
			return nil
		case a.Refused != directory.Stale:
			return a.Refused
		}
		for _, newer := range a.Shards {
			s = newer
		}
	}
	return directory.Stale
}

// failover begins to promote some other member in sync.
func (p *part) failover(ctx context.Context) error {
	s := p.shard()
	for _, peer := range p.control.Peers() {
		if !peer.Silent && peer.ID != s.Master.Node && s.In(peer.Report.From) {
			p.opt.Logger.Warn("a client of sentinel-port asks for a failover", "node", peer.ID)
			if err := p.promote(ctx, peer.ID); !errors.Is(err, errHandsOver) {
				return err
			}
			return sentinel.ErrUnderWay
		}
	}
	return sentinel.ErrNoReplica
}

// promote begins to make a member the master: by a hand-over if this node is the master, otherwise by the directory
// at once. Neither loses acknowledged writes.
func (p *part) promote(ctx context.Context, to directory.NodeID) error {
	check := func(s directory.Shard) (directory.Command, error) {
		switch _, in := s.Member(to); {
		case s.Master.Node == to:
			return directory.Command{}, fmt.Errorf("node %d is the master already", to)
		case !in:
			return directory.Command{}, fmt.Errorf("node %d is not in sync: it may lack acknowledged writes", to)
		}
		return directory.Command{Kind: directory.Promote, Node: to}, nil
	}
	if _, err := check(p.shard()); err == nil && p.handOver != nil {
		if err = p.handOver(to); !errors.Is(err, errKeeps) {
			return err
		}
	}
	return p.change(ctx, check)
}

// setK changes min-sync-replicas.
func (p *part) setK(ctx context.Context, k int) error {
	return p.change(ctx, func(s directory.Shard) (directory.Command, error) {
		if k < 0 || k > s.K && k > len(s.InSync)-1 {
			return directory.Command{}, fmt.Errorf("min-sync-replicas %d needs %d nodes in sync, and %d are", k, max(k+1, 1), len(s.InSync))
		}
		return directory.Command{Kind: directory.SetK, K: k}, nil
	})
}

// remove removes a node for ever. The node must have ended: a running one would go on as if it belonged to the group.
func (p *part) remove(ctx context.Context, id directory.NodeID) error {
	if p.shard().ID == 0 {
		return errNotBegun // a group that lacks a node would never begin
	}
	return p.propose(ctx, directory.Command{Kind: directory.RemoveNode, Node: id})
}

// recover makes a node the master that is not in sync. Acknowledged writes that the node lacks are lost. It is for a
// group that has no node in sync any longer. which selects the node, and what describes it in errors.
func (p *part) recover(ctx context.Context, which func(control.Peer) bool, what string) error {
	peers := p.control.Peers()
	i := slices.IndexFunc(peers, func(peer control.Peer) bool { return !peer.Silent && which(peer) })
	if i < 0 {
		return fmt.Errorf("%s is not alive", what)
	}
	err := p.change(ctx, func(directory.Shard) (directory.Command, error) {
		return directory.Command{Kind: directory.Recover, Node: peers[i].ID, AcceptLoss: true}, nil
	})
	if err == nil {
		p.opt.Logger.Error("an operator has made a node the master that was not in sync: writes that were acknowledged may be lost",
			"node", peers[i].ID)
	}
	return err
}

// recoverAt calls recover for the node that serves clients at an address.
func (p *part) recoverAt(ctx context.Context, address string) error {
	return p.recover(ctx, func(peer control.Peer) bool { return peer.Clients == address }, "a node that serves clients at "+address)
}

// status calls put with one line for each node, from the directory and the node's heartbeats.
func (p *part) status(put func(name string, value any)) {
	nodes := map[directory.NodeID]directory.Node{}
	for _, n := range p.control.Nodes() {
		nodes[n.ID] = n
	}
	voters := map[directory.NodeID]bool{}
	for _, id := range p.control.Voters() {
		voters[id] = true
	}
	for i, peer := range p.control.Peers() {
		put("group_peer"+strconv.Itoa(i), line(peer, nodes[peer.ID], voters[peer.ID], p.control.Removed(peer.ID)))
	}
}

// line returns the value of a node's line. n is the node in the directory, or zero. The directory knows the kind of a node that has sent
// no heartbeat to this one.
func line(peer control.Peer, n directory.Node, voter, removed bool) string {
	level := "memory"
	if n.Level == directory.Disk {
		level = "disk"
	}
	return fmt.Sprintf("node=%d,address=%s,clients=%s,voter=%d,data=%d,incarnation=%d,level=%s,removed=%d,silent=%d,heard_ms=%d,"+
		"master_of_epoch=%d,offset=%d", peer.ID, peer.Address, peer.Clients, bit(voter), bit(peer.Data || n.Data), n.Incarnation, level,
		bit(removed), bit(peer.Silent), peer.SinceHeartbeat.Milliseconds(), peer.Report.Master, peer.Report.End)
}

func bit(on bool) int {
	if on {
		return 1
	}
	return 0
}

// begun returns the node's part in the group. It returns an error until the data is loaded.
func (m *Member) begun() (*part, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.part == nil {
		return nil, errors.New("this node has not loaded its data yet")
	}
	return m.part, nil
}

// operate runs an operator's request with a limit of twice group-timeout, in which the group may elect a new leader.
func (m *Member) operate(ctx context.Context, run func(context.Context, *part) error) error {
	p, err := m.begun()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*m.opt.Group.Timeout)
	defer cancel()
	return run(ctx, p)
}

// Promote implements session.GroupOperator.
func (m *Member) Promote(ctx context.Context, node uint32) error {
	return m.operate(ctx, func(ctx context.Context, p *part) error { return p.promote(ctx, directory.NodeID(node)) })
}

// SetK implements session.GroupOperator.
func (m *Member) SetK(ctx context.Context, k int) error {
	return m.operate(ctx, func(ctx context.Context, p *part) error { return p.setK(ctx, k) })
}

// Remove implements session.GroupOperator.
func (m *Member) Remove(ctx context.Context, node uint32) error {
	return m.operate(ctx, func(ctx context.Context, p *part) error { return p.remove(ctx, directory.NodeID(node)) })
}

// Recover implements session.GroupOperator.
func (m *Member) Recover(ctx context.Context, node uint32) error {
	return m.operate(ctx, func(ctx context.Context, p *part) error {
		return p.recover(ctx, func(peer control.Peer) bool { return peer.ID == directory.NodeID(node) }, fmt.Sprintf("node %d", node))
	})
}

// Status implements session.GroupOperator.
func (m *Member) Status(put func(name string, value any)) {
	m.Info(put)
	if p, err := m.begun(); err == nil {
		p.status(put)
	}
}

// Numbers implements session.GroupOperator.
func (m *Member) Numbers() (n admin.GroupNumbers) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.node.Shard()
	return admin.GroupNumbers{Epoch: s.Epoch, InSync: len(s.InSync), Promoted: m.turns.promoted, HandedOver: m.turns.handedOver,
		Replaced: m.turns.replaced}
}
