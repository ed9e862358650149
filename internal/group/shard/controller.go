package shard

import (
	"slices"
	"time"

	"github.com/ebbdb/ebb/internal/group/directory"
)

// Controller decides when to promote another member. Each voter has one, and asks it while it leads raft. It matters
// for availability only: a promotion of any member in sync, at any time, loses nothing that was acknowledged.
type Controller struct {
	timeout  time.Duration
	patience time.Duration // the time after which a stuck master is replaced
	shard    directory.Shard
	changed  Time     // the time at which the present epoch was first seen here
	able     Time     // the time of the master's last heartbeat that was not stuck
	replaces Time     // the time since which a stuck master is being replaced; 0: none is
	reports  []report // the newest of each node
}

// longestPatience limits patience. Without a limit, patience would grow for ever if the cause moved with the role from node to node.
const longestPatience = time.Minute

// Report is the part of a heartbeat that a Controller reads.
type Report struct {
	From   directory.Member
	Master uint64 // the epoch in which the node is the master; 0: it is not
	End    uint64 // the end of the node's log
	Time   int64  // the node's engine time, in us since 1970; 0: unknown
	Stuck  bool   // it cannot acknowledge writes: it cannot write its files, or it is the master and commits nothing
	Proven bool   // it is the master and not stuck, and its members have acknowledged in its epoch
}

type report struct {
	Report
	at     Time
	failed Time // when it was last replaced as a stuck master; 0: it has been proven since
}

// NewController returns a controller that treats a master as silent, or first as stuck, after timeout (group-timeout).
func NewController(timeout time.Duration) *Controller {
	return &Controller{timeout: timeout, patience: timeout}
}

// Receive records a heartbeat.
func (c *Controller) Receive(now Time, r Report) {
	i := slices.IndexFunc(c.reports, func(x report) bool { return x.From.Node == r.From.Node })
	if i < 0 {
		i = len(c.reports)
		c.reports = append(c.reports, report{})
	}
	c.reports[i].Report, c.reports[i].at = r, now
	if !c.isMaster(r) || r.Stuck {
		return
	}
	c.able = now
	if r.Proven {
		c.patience, c.reports[i].failed = c.timeout, 0
	}
}

func (c *Controller) isMaster(r Report) bool {
	return r.From == c.shard.Master && r.Master == c.shard.Epoch
}

// Decide returns the Promote to propose, if there is one.
//
// If the master has sent no heartbeat of its epoch and incarnation for the timeout, another member in sync that has sent one replaces it.
// If the master is stuck for patience, it is replaced if k+1 other members in sync are not stuck, so that the next master can go on
// without it. If the next master is replaced before it has proven that it can acknowledge, patience doubles.
//
// The replaced master leaves the in-sync set in the same step if k+1 members remain: the next one need not wait for it.
//
// Decide prefers members that are not stuck; among them those that were not stuck as masters, then those that were so the longest ago; and
// among equals the one with the longest log.
func (c *Controller) Decide(now Time, s directory.Shard) (directory.Command, bool) {
	if s.Epoch != c.shard.Epoch {
		if c.replaces != 0 {
			c.patience = min(2*c.patience, longestPatience)
			c.fail(c.shard.Master.Node)
		}
		c.changed, c.able, c.replaces = now, now, 0
	}
	c.shard = s
	if now-c.changed < c.timeout {
		return directory.Command{}, false
	}
	var best *report
	stuck, able := false, 0 // whether the master is stuck, and the number of other members that are not
	for i := range c.reports {
		r := &c.reports[i]
		switch {
		case now-r.at >= c.timeout || !s.In(r.From):
			continue
		case c.isMaster(r.Report) && !r.Stuck:
			return directory.Command{}, false
		case c.isMaster(r.Report):
			stuck = true
			continue
		}
		if !r.Stuck {
			able++
		}
		if best == nil || r.precedes(best) {
			best = r
		}
	}
	if best == nil || stuck && (now-c.able < c.patience || able <= s.K) {
		return directory.Command{}, false
	}
	if c.replaces = 0; stuck {
		c.replaces = now
	}
	return directory.Command{Kind: directory.Promote, Shard: s.ID, Epoch: s.Epoch, Version: s.Version, Node: best.From.Node, Drop: true}, true
}

// fail notes that a master was replaced because it was stuck.
func (c *Controller) fail(node directory.NodeID) {
	for i := range c.reports {
		if c.reports[i].From.Node == node {
			c.reports[i].failed = c.replaces
		}
	}
}

// precedes reports whether a member is promoted rather than another one.
func (r *report) precedes(other *report) bool {
	switch {
	case r.Stuck != other.Stuck:
		return other.Stuck
	case r.failed != other.failed:
		return r.failed < other.failed
	}
	return r.End > other.End
}
