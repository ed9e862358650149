// Package clock is an engine's time: System, which does not step when the machine's clock does, and Manual, which a test moves.
// Options of package ebb and embed take a Clock.
package clock

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Clock is the source of an engine's time, in microseconds since 1970. It never runs
// backwards. Implementations are safe for concurrent use.
type Clock interface {
	Micros() int64
}

// stepSize is the smallest difference between wall clock and engine time, in us, that counts as a
// step. It is more than NTP slews in a second.
const stepSize = 250 * 1000

// maxSlew limits how fast engine time moves towards the wall clock. At 1 %, no deadline is off by
// more than 1 %.
const maxSlew = 10000 // parts per million

// maxDrift is the largest gain of the wall clock over the monotonic clock between two looks, in
// parts per million, that engine time follows at once. NTP makes the wall clock gain as much.
const maxDrift = 500

// checkEvery is the interval, in microseconds, at which the clock looks at the wall
// clock. NTP makes the wall clock gain 2 to 10 us in it. That is less than a round trip
// takes, so that clients on the same machine see TIME between their own looks at the
// clock.
const checkEvery = 100 * 1000

// System is engine time: the wall clock at the start plus the time that has passed since,
// suspension included. When the wall clock steps, engine time does not step; it moves towards the
// wall clock by at most 1 %. Micros costs one monotonic clock read. NewSystem returns a
// System. Its methods are safe for concurrent use.
type System struct {
	start time.Time // carries the monotonic reading
	line  atomic.Pointer[line]

	mu      sync.Mutex // guards the fields below
	steps   int64
	offset  int64 // wall - engine time at the last look, us
	suspend int64 // boot time - monotonic time at the last look, us
	// read reads both clocks at one instant, us. If it read one after the other, a pause
	// between the two would look like a drift.
	read func() (mono, wall int64)
}

// line is engine time as a function of monotonic time, both in us. ppm bends it for
// checkEvery; after that it is straight, because hours may pass until the next look at
// the clock.
type line struct {
	mono, engine int64
	ppm          int64
	check        int64 // the monotonic time of the next look at the wall clock
}

func (l *line) at(mono int64) int64 {
	d := mono - l.mono
	return l.engine + d + min(d, checkEvery)*l.ppm/1e6
}

// NewSystem returns a clock that starts at the wall clock's time.
func NewSystem() *System {
	c := &System{start: time.Now()}
	c.read = func() (mono, wall int64) {
		t := time.Now()
		return c.mono(t), t.UnixMicro()
	}
	c.suspend = max(suspended(), suspended(), suspended()) // the largest of three readings is the least disturbed one
	c.line.Store(&line{engine: c.start.UnixMicro(), check: checkEvery})
	return c
}

// Micros implements Clock.
func (c *System) Micros() int64 {
	mono := int64(time.Since(c.start) / time.Microsecond)
	if l := c.line.Load(); mono < l.check || !c.mu.TryLock() {
		return l.at(mono)
	}
	defer c.mu.Unlock()
	return c.look()
}

// Steady returns a clock that began with this one, and shows the time that has passed since by the machine's monotonic clock. It neither
// jumps nor slews: it is for intervals, while engine time is for deadlines.
func (c *System) Steady() Clock { return steady{c.start} }

// SteadyOf returns the clock for intervals that belongs to c: the result of its method Steady, or c itself if it has none.
func SteadyOf(c Clock) Clock {
	if s, ok := c.(interface{ Steady() Clock }); ok {
		return s.Steady()
	}
	return c
}

// steady is the clock of System.Steady.
type steady struct{ start time.Time }

// Micros implements Clock.
func (s steady) Micros() int64 {
	return s.start.UnixMicro() + int64(time.Since(s.start)/time.Microsecond)
}

// mono returns a time as monotonic time since the start, us.
func (c *System) mono(t time.Time) int64 { return int64(t.Sub(c.start) / time.Microsecond) }

// look compares engine time with the wall clock, bends the line, and returns
// engine time.
func (c *System) look() int64 {
	mono, wall := c.read()
	last := c.line.Load()
	now := last.at(mono)
	if s := suspended(); s > c.suspend {
		now += s - c.suspend
		c.suspend = s
	}
	offset := wall - now
	if d := offset - c.offset; d > stepSize || d < -stepSize {
		c.steps++
	}
	if offset > 0 && offset <= (mono-last.mono)*maxDrift/1e6 {
		now, offset = now+offset, 0
	}
	c.offset = offset
	l := &line{mono: mono, engine: now, ppm: min(max(offset*1e6/checkEvery, -maxSlew), maxSlew), check: mono + checkEvery}
	c.line.Store(l)
	return now
}

// NotBefore makes engine time continue from us, in microseconds since 1970, if that is later than
// now. A caller that loads data passes the time at which the data was written, so that the data
// lies in the past. The wall clock is then behind engine time, and engine time slews towards it as
// after a step.
func (c *System) NotBefore(us int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.look(); now < us {
		l := *c.line.Load()
		l.engine = us
		c.line.Store(&l)
		c.offset -= us - now
	}
}

// Offset returns the wall clock's lead over engine time at the last look, and the number
// of steps of the wall clock that the clock has seen.
func (c *System) Offset() (lead time.Duration, steps int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.offset) * time.Microsecond, c.steps
}

// Manual is a clock that stands still until Advance is called. Advance runs the reclaimers of its engines, in the order of the
// deadlines. Its methods are safe for concurrent use.
type Manual struct {
	now atomic.Int64

	mu         sync.Mutex // guards attendants, and is held during Advance
	attendants []*attendant
}

// attendant is run by a manual clock at its next time, in ms.
type attendant struct {
	next func() (ms int64, ok bool)
	run  func()
}

// NewManual returns a clock that shows start.
func NewManual(start time.Time) *Manual {
	c := &Manual{}
	c.now.Store(start.UnixMicro())
	return c
}

// Micros implements Clock.
func (c *Manual) Micros() int64 { return c.now.Load() }

// Advance moves the clock by d and stops at each deadline in between. It returns when the
// reclaimers have removed everything that is due.
func (c *Manual) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	end := c.now.Load() + d.Microseconds()
	for {
		next := int64(math.MaxInt64)
		for _, a := range c.attendants {
			if ms, ok := a.next(); ok {
				next = min(next, ms*1000)
			}
		}
		if next > end {
			break
		}
		c.now.Store(max(next, c.now.Load()))
		for _, a := range c.attendants {
			a.run()
		}
	}
	c.now.Store(max(end, c.now.Load()))
}

// NotBefore moves the clock to us, in microseconds since 1970, if that is later. It reclaims
// nothing.
func (c *Manual) NotBefore(us int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Store(max(us, c.now.Load()))
}

// Attend makes Advance stop at the times that next returns, in ms since 1970, and call
// run there, until the caller calls stop. After a run, next must return a later time, or
// none. Advance calls both with the clock's lock held.
func (c *Manual) Attend(next func() (ms int64, ok bool), run func()) (stop func()) {
	a := &attendant{next, run}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attendants = append(c.attendants, a)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.attendants = slices.DeleteFunc(c.attendants, func(b *attendant) bool { return a == b })
	}
}
