package group

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/clock"
)

// The engine's time of a member is its master's, so that deadlines and leases do not move at a failover, however far apart the clocks of
// two machines are.
//
//	the master's heartbeats ── its engine's time ──▶ difference to this machine's ──▶ director ──▶ engineClock
//
// A heartbeat takes a while to arrive, so the time in it is behind by that when it arrives: of the newest ones, the one that was ahead by
// most is the nearest. A replica sets its clock where it is off by more than settable, and slews it otherwise. A node that becomes the
// master goes on from there, and slews towards its own machine's time.

// slewShare is by which part of the time that passes a shift moves: 1 %.
const slewShare = 100

// engineClock is a machine's engine time plus a shift: clock.Clock.
type engineClock struct {
	machine clock.Clock
	shift   atomic.Pointer[shift]
	mu      sync.Mutex // guards writes of shift
}

// shift is added to the machine's time; all is in us.
type shift struct {
	since    int64 // of the machine's time
	from, to int64 // it was from at since, and moves to to
}

func (s *shift) at(machine int64) int64 {
	most := max(machine-s.since, 0) / slewShare
	return s.from + min(max(s.to-s.from, -most), most)
}

func newEngineClock(machine clock.Clock) *engineClock {
	c := &engineClock{machine: machine}
	c.shift.Store(&shift{})
	return c
}

// Micros implements clock.Clock.
func (c *engineClock) Micros() int64 {
	now := c.machine.Micros()
	return now + c.shift.Load().at(now)
}

// Steady is that of clock.System: the clock for intervals is the machine's, which no master sets.
func (c *engineClock) Steady() clock.Clock {
	if m, ok := c.machine.(interface{ Steady() clock.Clock }); ok {
		return m.Steady()
	}
	return c.machine
}

// present returns the shift now.
func (c *engineClock) present() int64 { return c.shift.Load().at(c.machine.Micros()) }

// slew makes the shift move to another one.
func (c *engineClock) slew(to int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.machine.Micros()
	c.shift.Store(&shift{since: now, from: c.shift.Load().at(now), to: to})
}

// set sets the shift. The caller holds all shards of the engine, and calls Retime.
func (c *engineClock) set(to int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shift.Store(&shift{since: c.machine.Micros(), from: to, to: to})
}

// NotBefore is that of clock.System, for the load of files.
func (c *engineClock) NotBefore(us int64) {
	if m, ok := c.machine.(interface{ NotBefore(us int64) }); ok {
		m.NotBefore(us - c.present())
	}
}

// Offset is that of clock.System: how far the machine's wall clock is ahead of engine time.
func (c *engineClock) Offset() (lead time.Duration, steps int64) {
	if m, ok := c.machine.(interface{ Offset() (time.Duration, int64) }); ok {
		lead, steps = m.Offset()
	}
	return lead - time.Duration(c.present())*time.Microsecond, steps
}

// samples is the number of newest heartbeats that tell how far a master is ahead.
const samples = 4

// difference has the lead of a master's engine over this machine's time, as its heartbeats say.
type difference struct {
	epoch  uint64 // of the master
	n      int    // heartbeats of it
	newest [samples]int64
}

// add takes the difference that a heartbeat of the master of an epoch had when it arrived, in us.
func (d *difference) add(epoch uint64, ahead int64) {
	if epoch != d.epoch {
		*d = difference{epoch: epoch}
	}
	d.newest[d.n%samples] = ahead
	d.n++
}

// best returns the difference, and false if too few heartbeats have arrived: the first one may have waited for its connection.
func (d *difference) best() (ahead int64, ok bool) {
	ahead = d.newest[0]
	for _, a := range d.newest[:min(d.n, samples)] {
		ahead = max(ahead, a)
	}
	return ahead, d.n >= 2
}

const (
	// settable is by how much, in us, a replica's time may be off without being set when it first takes over the time of a master, and
	// steady after that. Heartbeats of a busy network are tens of ms late, and setting the clock back stops all shards.
	settable = 20e3
	steady   = 500e3
	// farthest is the greatest difference, in us, that a member takes over. A clock that is off by more is wrong, and the stream of a master
	// whose clock is far ahead is refused (max-clock-ahead).
	farthest = 3600e6
)

// Clock implements instance.Group.
func (m *Member) Clock(machine clock.Clock) clock.Clock {
	m.clock = newEngineClock(machine)
	return m.clock
}

// now returns the engine's time for heartbeats.
func (m *Member) now() int64 {
	if m.clock == nil {
		return 0
	}
	return m.clock.Micros()
}

// keepTime makes the engine's time that of the master, until this server is the master. The director calls it.
func (m *Member) keepTime() {
	if m.clock == nil {
		return
	}
	m.mu.Lock()
	to, ok := m.ahead.best()
	epoch := m.ahead.epoch
	ok = ok && m.role.epoch == 0 && epoch == m.node.Shard().Epoch // the heartbeats of an older master say nothing of this one
	m.mu.Unlock()
	off, most := to-m.clock.present(), int64(settable)
	if m.timed == epoch {
		most = steady
	}
	switch {
	case !ok:
		return
	case to > farthest || to < -farthest:
		if !m.clockTooFar {
			m.opt.Logger.Error("the clocks of this machine and of the master are too far apart: this member keeps its own time",
				"ahead", (time.Duration(to) * time.Microsecond).Round(time.Second))
		}
		m.clockTooFar = true
		return
	case -most < off && off < most:
		m.clock.slew(to)
	default:
		m.setClock(to, off)
	}
	m.clockTooFar, m.timed = false, epoch
}

// setClock sets the engine's time of a replica.
func (m *Member) setClock(to, off int64) {
	tx := m.db.BeginAll(0)
	defer tx.Commit()
	m.clock.set(to)
	tx.Retime()
	m.opt.Logger.Info("this member takes over the engine's time of its master", "forward", (time.Duration(off) * time.Microsecond).String(),
		"of its machine", (time.Duration(to) * time.Microsecond).String())
}

// resume makes the engine's time of a new master go on from where it is, towards its machine's.
func (m *Member) resume() {
	if m.clock != nil {
		m.clock.slew(0)
	}
}
