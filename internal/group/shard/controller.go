package shard

import (
	"time"

	"github.com/ebbdb/ebb/internal/group/directory"
)

// Controller decides when another member becomes master. Each voter has one, and asks it while it leads raft. It is for
// availability alone: whichever member in sync is promoted, and whenever, nothing that was acknowledged is lost.
type Controller struct {
	timeout  time.Duration
	patience time.Duration // how long a master may be stuck
	shard    directory.Shard
	changed  Time     // when the state that it has began to hold here
	able     Time     // when the master last said that it is not stuck
	replaces bool     // a stuck master is being replaced
	reports  []report // the newest of each node
}

// longestPatience bounds the time for which a master may be stuck. Without a bound, a cause that goes from node to node with the role
// would make the time grow for ever.
const longestPatience = time.Minute

// Report is the part of a heartbeat, of one each 200 ms, that a Controller reads.
type Report struct {
	From   directory.Member
	Master uint64 // the epoch in which it is the master, or 0
	End    uint64 // of its log
	Time   int64  // of its engine, in us since 1970; 0: it does not say
	Stuck  bool   // it cannot acknowledge writes: it cannot write its files, or it is the master, and too few members keep up
}

type report struct {
	Report
	at Time
}

// NewController returns a controller that calls a master silent after a timeout (group-timeout).
func NewController(timeout time.Duration) *Controller {
	return &Controller{timeout: timeout, patience: timeout}
}

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

// Decide returns the Promote to propose, if there is one.
//
// A master that has sent no heartbeat of its epoch and incarnation for the timeout is replaced by another member in sync that has.
// A master that is stuck for the timeout is replaced if k+1 other members in sync are not, so that the next one can go on without it. If
// the next one is stuck from its start, it stays for twice as long, and so on.
//
// Of the members that are not stuck, the one with the most is promoted; of the others only if there is none.
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
	stuck, able := false, 0 // the master is; so many other members are not
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
