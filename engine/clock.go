package engine

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Clock is where an engine gets its time from: microseconds since 1970,
// never running backwards. Implementations are safe for concurrent use.
type Clock interface {
	Micros() int64
}

// stepSize is the difference between wall clock and engine time from which on
// a change counts as a step: more than NTP slews away in a second.
const stepSize = 250 * 1000

// maxSlew is how fast engine time is moved towards the wall clock: 1 %, so
// that no deadline is off by more than that.
const maxSlew = 10000 // parts per million

// maxDrift is how much the wall clock may gain on the monotonic one between two
// looks, in parts per million, to be followed at once: what NTP makes it gain.
const maxDrift = 500

// checkEvery is how often, in microseconds, the wall clock is looked at: so often
// that what NTP makes it gain in between, 2 to 10 us, is less than a round trip
// takes: clients on the same machine see TIME between their own looks at the clock.
const checkEvery = 100 * 1000

// SystemClock is engine time: the wall clock at the start plus the time that
// has passed since, suspension included. A step of the wall clock does not
// step it; it is slewed towards the wall by at most 1 %. Reading it costs one
// monotonic clock read. Make one with NewSystemClock.
type SystemClock struct {
	start time.Time // carries the monotonic reading
	line  atomic.Pointer[line]

	mu      sync.Mutex // guards what follows
	steps   int64
	offset  int64 // wall - engine time at the last look, us
	suspend int64 // boot time - monotonic time at the last look, us
	// read reads both clocks at one instant, us: where they are read one after
	// the other, whatever comes between the two would look like a drift.
	read func() (mono, wall int64)
}

// line is engine time as a function of monotonic time, both in us. It is bent by
// ppm for checkEvery, and goes on straight: nobody may look at the clock for hours.
type line struct {
	mono, engine int64
	ppm          int64
	check        int64 // mono from which on the wall is looked at again
}

func (l *line) at(mono int64) int64 {
	d := mono - l.mono
	return l.engine + d + min(d, checkEvery)*l.ppm/1e6
}

// NewSystemClock returns a clock that starts at the wall clock's time.
func NewSystemClock() *SystemClock {
	c := &SystemClock{start: time.Now()}
	c.read = func() (mono, wall int64) {
		t := time.Now()
		return c.mono(t), t.UnixMicro()
	}
	c.suspend = max(suspended(), suspended(), suspended()) // the reading least disturbed
	c.line.Store(&line{engine: c.start.UnixMicro(), check: checkEvery})
	return c
}

// Micros implements Clock.
func (c *SystemClock) Micros() int64 {
	mono := int64(time.Since(c.start) / time.Microsecond)
	if l := c.line.Load(); mono < l.check || !c.mu.TryLock() {
		return l.at(mono)
	}
	defer c.mu.Unlock()
	return c.look()
}

// mono is a time as monotonic time since the start, us.
func (c *SystemClock) mono(t time.Time) int64 { return int64(t.Sub(c.start) / time.Microsecond) }

// look compares engine time with the wall clock, bends the line, and returns
// engine time.
func (c *SystemClock) look() int64 {
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

// NotBefore has engine time go on from us, if that is later than now: what was
// written before the start is of the past. The wall clock, which is behind then, is
// slewed towards as after a step.
func (c *SystemClock) NotBefore(us int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.look(); now < us {
		l := *c.line.Load()
		l.engine = us
		c.line.Store(&l)
		c.offset -= us - now
	}
}

// Offset returns the wall clock's lead over engine time at the last look, and
// how many steps of the wall clock were seen.
func (c *SystemClock) Offset() (lead time.Duration, steps int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.offset) * time.Microsecond, c.steps
}

// ManualClock is a clock that stands still until Advance is called. Engines on
// it reclaim what expires within Advance, in the order of the deadlines.
type ManualClock struct {
	now atomic.Int64

	mu      sync.Mutex // guards sleepers, and is held during Advance
	sleeper []sleeper
}

// sleeper is woken by a manual clock at its next time, in ms.
type sleeper interface {
	nextWork() (ms int64, ok bool)
	work()
}

// NewManualClock returns a clock that shows start.
func NewManualClock(start time.Time) *ManualClock {
	c := &ManualClock{}
	c.now.Store(start.UnixMicro())
	return c
}

// Micros implements Clock.
func (c *ManualClock) Micros() int64 { return c.now.Load() }

// Advance moves the clock by d, stopping at each deadline on the way, and
// returns when all that fell due has been reclaimed.
func (c *ManualClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	end := c.now.Load() + d.Microseconds()
	for {
		next := int64(math.MaxInt64)
		for _, s := range c.sleeper {
			if ms, ok := s.nextWork(); ok {
				next = min(next, ms*1000)
			}
		}
		if next > end {
			break
		}
		c.now.Store(max(next, c.now.Load()))
		for _, s := range c.sleeper {
			s.work()
		}
	}
	c.now.Store(max(end, c.now.Load()))
}

// NotBefore has the clock show us, if that is later. Nothing is reclaimed.
func (c *ManualClock) NotBefore(us int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Store(max(us, c.now.Load()))
}

// Attend has Advance stop at the times that next says, in ms since 1970, and
// call run there, until stop is called. Afterwards next must say a later time,
// or none. Both are called with the clock's lock held.
func (c *ManualClock) Attend(next func() (ms int64, ok bool), run func()) (stop func()) {
	s := &attendant{next, run}
	c.register(s)
	return func() { c.unregister(s) }
}

// attendant is a sleeper made of functions.
type attendant struct {
	next func() (ms int64, ok bool)
	run  func()
}

func (a *attendant) nextWork() (ms int64, ok bool) { return a.next() }
func (a *attendant) work()                         { a.run() }

func (c *ManualClock) register(s sleeper) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sleeper = append(c.sleeper, s)
}

func (c *ManualClock) unregister(s sleeper) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, x := range c.sleeper {
		if x == s {
			c.sleeper = append(c.sleeper[:i], c.sleeper[i+1:]...)
			return
		}
	}
}
