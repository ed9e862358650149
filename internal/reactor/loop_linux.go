package reactor

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// readSize holds a pipeline of some thousand small requests, and with the
	// output buffer still fits a second-level cache.
	readSize = 64 << 10
	// flushSize is when output is written before the batch is over, so that
	// the buffer stays in the cache too.
	flushSize = 64 << 10
	// keepOutput is the largest output buffer kept from one batch to the next.
	keepOutput = 1 << 20
	// sealSize is from where on a connection's own output goes on in another buffer:
	// a larger one would be copied as it grows, and be held until its end is sent.
	sealSize = 1 << 20

	// clockEvery is how many batches a loop that never sleeps runs before it
	// looks at the clock again: the sweep is due once a second, a batch takes
	// microseconds.
	clockEvery = 64
	sweepEvery = time.Second
	maxStalled = 30 // sweeps: half a minute without progress ends a closing connection

	wakeTag = 0 // the eventfd's tag; listeners count down from it, connections up
)

// loop is one event loop. What is not marked otherwise belongs to run.
type loop struct {
	id        int
	r         *Reactor
	poller    *poller
	wakeFD    int
	highWater int

	conns   []*conn // by descriptor
	lastTag int32
	turn    []*conn // have more to do without a new event
	spare   []*conn // turn's other half
	dirty   []*conn // have output in out, or are to be closed
	rbuf    []byte
	out     []byte
	pool    pool

	batches  uint32
	next     time.Duration // what Idle said
	sweepAt  time.Time
	paused   []*Listener // out of descriptors until resumeAt
	resumeAt time.Time
	dealt    int  // accepted so far
	dropped  bool // unsent output was dropped at the end

	// For any goroutine.
	count    atomic.Int64 // connections, those on their way here included
	asleep   atomic.Bool
	nudged   atomic.Bool
	queued   atomic.Bool
	stopping atomic.Bool
	abandon  atomic.Bool // with stopping: do not wait for slow readers

	mu    sync.Mutex // guards what follows
	queue []*conn    // woken, or new: session is nil
	dead  bool       // the descriptors are closed

	taken []*conn // queue's other half; belongs to run
}

func newLoop(r *Reactor, id int) (*loop, error) {
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		p.close()
		return nil, err
	}
	l := &loop{id: id, r: r, poller: p, wakeFD: fd, highWater: r.cfg.HighWater,
		rbuf: make([]byte, readSize), out: make([]byte, 0, flushSize+readSize)}
	// Edge-triggered, an eventfd need not be read to be noticed again.
	if err := p.ctl(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN|unix.EPOLLET, wakeTag); err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

// run is the loop: serve what is ready, flush, let the engine reclaim, sleep
// when there is nothing.
func (l *loop) run() {
	l.sweepAt = time.Now().Add(sweepEvery)
	for !l.stopping.Load() {
		n := l.poller.poll()
		if n == 0 && len(l.turn) == 0 {
			n = l.sleep()
		}
		l.batch(n)
		if l.batches++; l.batches%clockEvery == 0 {
			l.housekeep(time.Now())
		}
		l.idle()
		if l.next == 0 {
			// The hook is busy. Clients on this machine may have been woken
			// onto this processor by our writes: let them have it, or they
			// wait for the end of our time slice, some 3 ms.
			sysYield()
		}
	}
	l.drain()
	l.release()
}

// batch serves n events, the woken sessions, and those that wait for another turn. Then
// it does what these wait for together, and serves them to the end.
func (l *loop) batch(n int) {
	for i := range n {
		l.event(&l.poller.events[i])
	}
	l.takeWoken()
	l.takeTurns()
	l.flush()
	if settle := l.r.cfg.Settle; settle != nil && settle(l.id) {
		l.takeWoken()
		l.flush()
		settle(l.id) // the sessions that it wakes are in the next batch, which does not wait
	}
}

func (l *loop) idle() {
	if l.r.cfg.Idle == nil {
		l.next = -1
		return
	}
	if l.nudged.Load() {
		l.nudged.Store(false) // before the hook looks
	}
	l.next = l.r.cfg.Idle(l.id)
}

// sleep waits for an event, a wake, a nudge, or the next thing that is due. It
// returns at once when there already is one.
func (l *loop) sleep() int {
	if l.next == 0 {
		return 0
	}
	now := time.Now()
	l.housekeep(now)
	timeout := l.next
	if l.count.Load() > 0 {
		timeout = sooner(timeout, l.sweepAt.Sub(now))
	}
	if len(l.paused) > 0 {
		timeout = sooner(timeout, l.resumeAt.Sub(now))
	}
	// Announce the sleep, then look once more: a goroutine that queues something after
	// that look sees the announcement.
	l.asleep.Store(true)
	if l.queued.Load() || l.nudged.Load() || l.stopping.Load() {
		l.asleep.Store(false)
		return 0
	}
	n := l.poller.wait(timeout)
	l.asleep.Store(false)
	return n
}

// sooner is the smaller of two timeouts, of which a may be forever (negative).
func sooner(a, b time.Duration) time.Duration {
	b = max(b, 0)
	if a < 0 {
		return b
	}
	return min(a, b)
}

// housekeep does what is due by the clock.
func (l *loop) housekeep(now time.Time) {
	if len(l.paused) > 0 && !now.Before(l.resumeAt) {
		l.resumeListeners()
	}
	if !now.Before(l.sweepAt) {
		l.sweepAt = now.Add(sweepEvery)
		l.sweep()
	}
}

// sweep asks the sessions that time out, ends closing connections whose peer
// does not read, and gives up spare buffers.
func (l *loop) sweep() {
	l.pool.trim()
	now := l.r.cfg.Now()
	for _, c := range l.conns {
		switch {
		case c == nil:
		case c.closing:
			if c.stalled++; c.stalled > maxStalled {
				l.close(c, ErrStalled)
			}
		case c.checker != nil && c.checker.IdleCheck(now):
			l.close(c, ErrIdle)
		}
	}
}

// enqueue hands c to the loop, from any goroutine, and reports whether there
// still is a loop.
func (l *loop) enqueue(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return false
	}
	l.queue = append(l.queue, c)
	l.queued.Store(true)
	l.ring()
	return true
}

// interrupt ends the loop's sleep and has it call Idle.
func (l *loop) interrupt() {
	l.nudged.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring()
}

// ring writes to the eventfd if the loop sleeps. With mu held, so that the
// descriptor is still ours.
func (l *loop) ring() {
	if l.asleep.Load() && l.asleep.CompareAndSwap(true, false) && !l.dead {
		sysNotify(l.wakeFD)
	}
}

// takeWoken serves the queue: new connections, killed ones, pushes, and parked
// sessions whose command is done.
func (l *loop) takeWoken() {
	if !l.queued.Load() {
		return
	}
	l.mu.Lock()
	l.queue, l.taken = l.taken[:0], l.queue
	l.queued.Store(false)
	l.mu.Unlock()
	for i, c := range l.taken {
		l.taken[i] = nil
		c.woken.Store(false) // before looking at what the waker left
		switch {
		case c.closed:
		case c.session == nil:
			l.admit(c)
		default:
			l.wake(c)
		}
	}
}

func (l *loop) wake(c *conn) {
	killed, reason := c.killedBy()
	if killed && reason != nil {
		l.close(c, reason)
		return
	}
	if c.closing {
		return
	}
	l.push(c)
	switch {
	case c.closed:
	case killed:
		l.finish(c, nil)
	case c.parked:
		c.parked = false
		l.serve(c, c.in[c.r:c.w])
		l.takeTurn(c)
	}
}

// takeTurn puts c in line if it has something to do that no event announces.
func (l *loop) takeTurn(c *conn) {
	if !c.again && !c.closed && c.mayServe() && (c.yielded || c.readable) {
		c.again = true
		l.turn = append(l.turn, c)
	}
}

// takeTurns serves once the connections that were in line.
func (l *loop) takeTurns() {
	if len(l.turn) == 0 {
		return
	}
	l.turn, l.spare = l.spare[:0], l.turn
	for i, c := range l.spare {
		l.spare[i] = nil
		c.again = false
		switch {
		case c.closed || !c.mayServe():
		case c.yielded:
			l.serve(c, c.in[c.r:c.w])
			l.takeTurn(c)
		case c.readable:
			l.read(c)
		}
	}
}

// drain ends the loop: unsent output is awaited until Shutdown's context ends,
// everything else is closed.
func (l *loop) drain() {
	for _, c := range l.conns {
		if c == nil {
			continue
		}
		if c.unsent() == 0 {
			l.close(c, ErrShutdown)
		} else if !c.closing {
			c.closing, c.cause = true, ErrShutdown
		}
	}
	for l.open() > 0 && !l.abandon.Load() {
		l.nudged.Store(false)
		l.next = -1
		l.batch(l.sleepDraining())
	}
	for _, c := range l.conns {
		if c != nil {
			l.dropped = true
			l.close(c, ErrShutdown)
		}
	}
}

// sleepDraining is sleep for a loop that is stopping.
func (l *loop) sleepDraining() int {
	now := time.Now()
	l.housekeep(now)
	l.asleep.Store(true)
	defer l.asleep.Store(false)
	if l.queued.Load() || l.abandon.Load() {
		return 0
	}
	return l.poller.wait(max(l.sweepAt.Sub(now), 0))
}

// open counts the connections that are registered.
func (l *loop) open() (n int) {
	for _, c := range l.conns {
		if c != nil {
			n++
		}
	}
	return n
}

// release closes the loop's descriptors and turns away the connections that are still
// queued.
func (l *loop) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	for _, c := range l.queue {
		if c.session == nil && !c.closed {
			l.turnAway(c)
		}
	}
	l.queue = nil
	_ = unix.Close(l.wakeFD)
	l.poller.close()
}
