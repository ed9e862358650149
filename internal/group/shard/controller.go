package shard

import (
	"time"

	"github.com/ebbdb/ebb/internal/group/directory"
)

// Controller decides when another member becomes master. Each voter has one, and asks it while it leads raft. It is for
// availability alone: whichever member in sync is promoted, and whenever, nothing that was acknowledged is lost.
type Controller struct {
	timeout time.Duration
	shard   directory.Shard
	changed Time     // when the state that it has began to hold here
	reports []report // the newest of each node
}

// Report is the part of a heartbeat, of one each 200 ms, that a Controller reads.
type Report struct {
	From   directory.Member
	Master uint64 // the epoch in which it is the master, or 0
	End    uint64 // of its log
	Time   int64  // of its engine, in us since 1970; 0: it does not say
}

type report struct {
	Report
	at Time
}

// NewController returns a controller that calls a master silent after a timeout (group-timeout).
func NewController(timeout time.Duration) *Controller { return &Controller{timeout: timeout} }

// Receive takes a heartbeat.
func (c *Controller) Receive(now Time, r Report) {
	for i := range c.reports {
		if c.reports[i].From.Node == r.From.Node {
			c.reports[i] = report{r, now}
			return
		}
	}
	c.reports = append(c.reports, report{r, now})
}

// Decide returns the Promote to propose, if there is one: the master of the state has sent no heartbeat of its epoch and
// incarnation for the timeout, and another member in sync has. Of those, the one with the most is promoted.
func (c *Controller) Decide(now Time, s directory.Shard) (directory.Command, bool) {
	if s.Epoch != c.shard.Epoch {
		c.changed = now
	}
	c.shard = s
	if now-c.changed < c.timeout {
		return directory.Command{}, false
	}
	var best *report
	for i := range c.reports {
		r := &c.reports[i]
		if now-r.at >= c.timeout || !s.In(r.From) {
			continue
		}
		if r.From == s.Master && r.Master == s.Epoch {
			return directory.Command{}, false
		}
		if best == nil || r.End > best.End {
			best = r
		}
	}
	if best == nil {
		return directory.Command{}, false
	}
	return directory.Command{Kind: directory.Promote, Shard: s.ID, Epoch: s.Epoch, Version: s.Version, Node: best.From.Node}, true
}
