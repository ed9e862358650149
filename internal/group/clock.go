package group

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/clock"
)

// A member's engine runs on its master's time, so deadlines and leases do not move at a failover, however far apart
// the clocks of the two machines are.
//
//	the master's heartbeats ── its engine's time ──▶ difference to this machine's ──▶ director ──▶ engineClock
//
// The time in a heartbeat is late by the time that the heartbeat was on its way. So of the newest heartbeats the one
// with the greatest lead is the most exact. A replica sets its clock if it is off by more than settable, and slews it
// otherwise. A node that becomes the master keeps its engine's time, and slews it towards its own machine's time.

// slewShare is the inverse of the rate at which a shift moves: by 1/100 (1 %) of the time that passes.
const slewShare = 100

// engineClock implements clock.Clock: the machine's engine time plus a shift.
type engineClock struct {
	machine clock.Clock
	shift   atomic.Pointer[shift]
	mu      sync.Mutex // guards writes of shift
}

// shift is the value that engineClock adds to the machine's time, in us. It moves linearly from one value to another.
type shift struct {
	since    int64 // the machine's time when the shift was from
	from, to int64 // the shift at since, and the one that it moves to
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

// Steady returns the clock for intervals, as clock.System does. It is the machine's own clock, which no master sets.
func (c *engineClock) Steady() clock.Clock { return clock.SteadyOf(c.machine) }

// present returns the shift now.
func (c *engineClock) present() int64 { return c.shift.Load().at(c.machine.Micros()) }

// slew makes the shift move gradually to the given one.
func (c *engineClock) slew(to int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.machine.Micros()
	c.shift.Store(&shift{since: now, from: c.shift.Load().at(now), to: to})
}

// set sets the shift at once. The caller holds all shards of the engine, and calls Retime.
func (c *engineClock) set(to int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shift.Store(&shift{since: c.machine.Micros(), from: to, to: to})
}

// NotBefore forwards to the machine's clock, in its time, while files are loaded.
func (c *engineClock) NotBefore(us int64) {
	if m, ok := c.machine.(interface{ NotBefore(us int64) }); ok {
		m.NotBefore(us - c.present())
	}
}

// Offset returns how far the machine's wall clock is ahead of engine time, and the number of its steps, as
// clock.System does.
func (c *engineClock) Offset() (lead time.Duration, steps int64) {
	if m, ok := c.machine.(interface{ Offset() (time.Duration, int64) }); ok {
		lead, steps = m.Offset()
	}
	return lead - time.Duration(c.present())*time.Microsecond, steps
}

// samples is the number of newest heartbeats from which best takes the lead of a master.
const samples = 4

// difference estimates the lead of a master's engine time over this machine's time from the master's heartbeats.
type difference struct {
	epoch  uint64 // the master's epoch; a new epoch resets the estimate
	n      int    // the number of heartbeats of this epoch
	newest [samples]int64
}

// add records the lead, in us, that a heartbeat of the master of an epoch showed on arrival.
func (d *difference) add(epoch uint64, ahead int64) {
	if epoch != d.epoch {
		*d = difference{epoch: epoch}
	}
	d.newest[d.n%samples] = ahead
	d.n++
}

// best returns the greatest lead of the newest heartbeats, in us. ok is false before the second heartbeat: the first
// one may have waited for its connection.
func (d *difference) best() (ahead int64, ok bool) {
	ahead = d.newest[0]
	for _, a := range d.newest[:min(d.n, samples)] {
		ahead = max(ahead, a)
	}
	return ahead, d.n >= 2
}

const (
	// settable and steady are the errors, in us, from which a replica's clock is set and not slewed: settable for the
	// first time of a master, steady for later ones. Heartbeats of a busy network are tens of ms late, and setting
	// the clock back stops all shards.
	settable = 20e3
	steady   = 500e3
	// farthest is the greatest lead, in us, that a member takes over. A clock that is off by more is wrong, and a
	// replica refuses the stream of a master whose clock is far ahead (max-clock-ahead).
	farthest = 3600e6
)

// Clock implements instance.Group.
func (m *Member) Clock(machine clock.Clock) clock.Clock {
	m.clock = newEngineClock(machine)
	return m.clock
}

// now returns the engine's time in us, for heartbeats; 0 without an engine.
func (m *Member) now() int64 {
	if m.clock == nil {
		return 0
	}
	return m.clock.Micros()
}

// keepTime adjusts the engine's time of a replica to that of its master. The director calls it.
func (m *Member) keepTime() {
	if m.clock == nil {
		return
	}
	m.mu.Lock()
	to, ok := m.ahead.best()
	epoch := m.ahead.epoch
	ok = ok && m.role.epoch == 0 && epoch == m.node.Shard().Epoch // heartbeats of an older master do not apply to this one
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
			m.opt.Logger.Error("the clock of this machine differs from the master's by more than an hour: this member keeps its own time",
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

// setClock sets the engine's time of a replica; it holds all shards.
func (m *Member) setClock(to, off int64) {
	tx := m.db.BeginAll(0)
	defer tx.Commit()
	m.clock.set(to)
	tx.Retime()
	m.opt.Logger.Info("the engine's time was set to the master's", "forward", (time.Duration(off) * time.Microsecond).String(),
		"of its machine", (time.Duration(to) * time.Microsecond).String())
}

// resume lets the engine's time of a new master continue from its present value, and slews it towards the machine's
// time.
func (m *Member) resume() {
	if m.clock != nil {
		m.clock.slew(0)
	}
}
