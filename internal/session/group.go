package session

import (
	"context"
	"errors"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/replication"
)

// Group is the server's view of its group. The group also calls Log.SetCommitted when its members have
// acknowledged more of the stream, and Log.Alarm when the lease is back, and once a second while replies
// wait. Its methods are safe for concurrent use, and do not block.
type Group interface {
	// Lease reports whether no other node can serve as master now, and all data that this one had when it became
	// master is committed.
	Lease() bool
	// Info calls put for the lines of INFO replication about the group.
	Info(put func(name string, value any))
}

// Member is a server's group: it answers questions about the lease, and receives the events of replication links.
type Member interface {
	Group
	GroupOperator
	replication.LinkEvents
	// Leave makes the group continue without this server, which is about to end: a master hands the group over, and
	// another member leaves the in-sync set. Leave returns when that is done, at the latest when ctx ends. If the
	// server does not end after all, the caller calls stay.
	Leave(ctx context.Context) (stay func())
}

// GroupOperator executes the requests of a group's operator. Nodes have the numbers that INFO shows. The
// methods with a context propose a change to the directory of the group. They return when the change is
// committed, or the reason why it is not; its consequences follow later. They lock no shard, and the caller
// must hold none.
type GroupOperator interface {
	// Status calls put for the lines of Info, and for lines about all nodes.
	Status(put func(name string, value any))
	// Numbers returns the numbers that /metrics shows.
	Numbers() admin.GroupNumbers
	// Promote makes a node of the in-sync set the master. If this server is the master, it hands the group over,
	// and then disconnects its clients.
	Promote(ctx context.Context, node uint32) error
	// SetK sets the number of replicas that must be in sync.
	SetK(ctx context.Context, k int) error
	// Remove permanently removes a node that has ended.
	Remove(ctx context.Context, node uint32) error
	// Recover makes a node the master even if it may lack acknowledged writes.
	Recover(ctx context.Context, node uint32) error
}

// GroupOperator returns the operator interface of the server's group, nil if the server belongs to none.
func (s *Service) GroupOperator() GroupOperator {
	if s.opts.Group == nil {
		return nil
	}
	return s.opts.Group
}

// Grouped reports whether the server is a member of a group, which chooses its master.
func (s *Service) Grouped() bool { return s.opts.Group != nil }

// JoinGroup makes replies wait until the members of the group hold the data that they depend on. Call it
// before there are sessions.
func (s *Service) JoinGroup(g Group) {
	s.group.Store(&g)
	s.DB.Log().SetGroup(true)
}

// SetGroupWritable sets whether enough members of the group keep up; initially they do. If they do not,
// clients get NOREPLICAS for writes, and the engine expires and evicts nothing, so that the stream, which the
// members lack, does not grow.
func (s *Service) SetGroupWritable(on bool) {
	s.gates.set(gateGroup, !on)
	s.pause.keepStill(!on)
}

// errReplaced is the reason for disconnecting the clients of a master that was replaced.
var errReplaced = errors.New("the group has replaced this master: the client has to look for the new one")

// CloseClients closes the connections of all clients, because this server is no longer the master.
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
