package shard

import (
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
	replaces bool     // a stuck master is being replaced
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
	Stuck  bool   // it cannot acknowledge writes: it cannot write its files, or it is the master and too few members keep up
}

type report struct {
	Report
	at Time
}

// NewController returns a controller that treats a master as silent, or first as stuck, after timeout (group-timeout).
func NewController(timeout time.Duration) *Controller {
	return &Controller{timeout: timeout, patience: timeout}
}

// Receive records a heartbeat.
func (c *Controller) Receive(now Time, r Report) {
	for i := range c.reports {
		if c.reports[i].From.Node == r.From.Node {
			c.reports[i] = report{r, now}
			return
		}
	}
	c.reports = append(c.reports, report{r, now})
}

// Decide returns the Promote to propose, if there is one.
//
// If the master has sent no heartbeat of its epoch and incarnation for the timeout, another member in sync that has sent one replaces it.
// If the master is stuck for patience, it is replaced if k+1 other members in sync are not stuck, so that the next master can go on
// without it. If the next master is stuck from its start, patience doubles.
//
// Decide chooses the member with the longest log among those that are not stuck, and among the others only if there is none.
func (c *Controller) Decide(now Time, s directory.Shard) (directory.Command, bool) {
	if s.Epoch != c.shard.Epoch {
		c.changed, c.able = now, now
		if c.replaces {
			c.patience = min(2*c.patience, longestPatience)
		}
		c.replaces = false
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
		case r.From == s.Master && r.Master == s.Epoch && !r.Stuck:
			c.able, c.patience = now, c.timeout
			return directory.Command{}, false
		case r.From == s.Master && r.Master == s.Epoch:
			stuck = true
			continue
		}
		if !r.Stuck {
			able++
		}
		if best == nil || best.Stuck && !r.Stuck || best.Stuck == r.Stuck && r.End > best.End {
			best = r
		}
	}
	if best == nil || stuck && (now-c.able < c.patience || able <= s.K) {
		return directory.Command{}, false
	}
	c.replaces = stuck
	return directory.Command{Kind: directory.Promote, Shard: s.ID, Epoch: s.Epoch, Version: s.Version, Node: best.From.Node}, true
}
