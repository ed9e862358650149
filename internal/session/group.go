package session

import (
	"context"
	"errors"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/replication"
)

// Group answers a server about the group that it belongs to. Besides, the group calls Log.SetCommitted when its members have
// acknowledged more of the stream, and Log.Alarm when the lease is back, and once a second while replies wait. Its methods are safe for
// concurrent use, and do not block.
type Group interface {
	// Lease reports whether no other node can serve as master now, and all that this one had when it became master is committed.
	Lease() bool
	// Info calls put for the lines of INFO replication about the group.
	Info(put func(name string, value any))
}

// Member is a server's group: it answers questions about the lease, and receives the events of replication links.
type Member interface {
	Group
	GroupOperator
	replication.LinkEvents
	// Leave makes the group go on without this server, which is about to end: a master hands it over, another member leaves the in-sync
	// set. It waits for that, until ctx ends at the latest. If the server does not end, the caller calls stay.
	Leave(ctx context.Context) (stay func())
}

// GroupOperator does what an operator asks of a group. Nodes have the numbers that INFO shows. The methods with a context take a change to
// the directory of the group, and return when it is there, or why it is not; what follows from it goes on afterwards. They hold no shard
// and need none; the caller holds none.
type GroupOperator interface {
	// Status calls put for what Info does, and for lines about all nodes.
	Status(put func(name string, value any))
	// Numbers returns what /metrics shows.
	Numbers() admin.GroupNumbers
	// Promote makes a node the master that is in sync. If this server is the master, it hands the group over, and
	// disconnects its clients when it has.
	Promote(ctx context.Context, node uint32) error
	// SetK sets how many replicas must be in sync.
	SetK(ctx context.Context, k int) error
	// Remove removes a node that has ended, for ever.
	Remove(ctx context.Context, node uint32) error
	// Recover makes a node the master though it may lack what was acknowledged.
	Recover(ctx context.Context, node uint32) error
}

// GroupOperator returns the operator's side of the server's group, nil if the server belongs to none.
func (s *Service) GroupOperator() GroupOperator {
	if s.opts.Group == nil {
		return nil
	}
	return s.opts.Group
}

// Grouped reports whether the server is a member of a group, which chooses its master.
func (s *Service) Grouped() bool { return s.opts.Group != nil }

// JoinGroup makes replies wait until the group holds what they depend on. Call it before there are sessions.
func (s *Service) JoinGroup(g Group) {
	s.group.Store(&g)
	s.DB.Log().SetGroup(true)
}

// SetGroupWritable tells whether enough members of the group keep up. It is so at first. While it is not, clients get NOREPLICAS for
// writes, and the engine expires and evicts nothing: the stream, which the members lack, does not grow.
func (s *Service) SetGroupWritable(on bool) {
	s.gates.set(gateGroup, !on)
	s.pause.keepStill(!on)
}

// errReplaced is why clients of a master that was replaced are disconnected.
var errReplaced = errors.New("the group has replaced this master: the client has to look for the new one")

// CloseClients closes the connections of all clients: this server is no longer the master that they have asked for.
func (s *Service) CloseClients() {
	for _, c := range s.clients.snapshot() {
		if c.conn != nil {
			c.conn.Kill(errReplaced)
		}
	}
}

// leased implements connectionHost.
func (s *Service) leased() bool {
	g := s.group.Load()
	return g == nil || (*g).Lease()
}
