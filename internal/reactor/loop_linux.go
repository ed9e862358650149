package reactor

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// readSize is the size of the read buffer, in bytes. It holds a pipeline of about a
	// thousand small requests, and fits a second-level cache together with the output
	// buffer.
	readSize = 64 << 10
	// flushSize is the number of bytes of output that the loop writes before the batch is
	// over, so that the buffer stays in the cache too.
	flushSize = 64 << 10
	// keepOutput is the largest output buffer kept from one batch to the next.
	keepOutput = 1 << 20
	// sealSize is the size at which a connection's own output continues in another buffer. A
	// larger buffer would be copied as it grows, and stay allocated until its last byte is
	// sent.
	sealSize = 1 << 20

	// clockEvery is the number of batches after which a loop that never sleeps reads the
	// clock again. The sweep is due once a second, and a batch takes microseconds.
	clockEvery = 64
	sweepEvery = time.Second
	maxStalled = 30 // sweeps: half a minute without progress ends a closing connection

	wakeTag = 0 // the eventfd's tag; listeners count down from it, connections up
)

// loop is one event loop. Only run uses the fields that have no other note.
type loop struct {
	id        int
	r         *Reactor
	poller    *poller
	wakeFD    int
	highWater int

	conns   []*conn // by descriptor
	lastTag int32
	turn    []*conn // connections that have more to do without a new event
	spare   []*conn // the second buffer of turn
	dirty   []*conn // connections that have output in out, or must be closed
	rbuf    []byte
	out     []byte
	pool    pool

	batches  uint32
	next     time.Duration // the result of Idle
	sweepAt  time.Time
	paused   []*Listener // out of descriptors until resumeAt
	resumeAt time.Time
	attended map[int]*takenConn // hijacked connections that the loop reads, by descriptor
	dealt    int                // accepted so far
	dropped  bool               // unsent output was dropped at the end

	// Any goroutine may use the fields below.
	count    atomic.Int64 // connections, also those that are queued for this loop
	asleep   atomic.Bool
	nudged   atomic.Bool
	queued   atomic.Bool
	stopping atomic.Bool
	abandon  atomic.Bool // with stopping: do not wait for slow readers

	mu       sync.Mutex   // guards what follows
	queue    []*conn      // woken, or new: session is nil
	awaiting []*takenConn // the loop is to attend to them
	deaf     bool         // the loop attends to no further connections
	dead     bool         // the descriptors are closed

	taken []*conn // the second buffer of queue; only run uses it
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

// run is the event loop. It serves the connections that are ready, writes their output,
// lets the engine reclaim, and sleeps when there is no work.
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
			// The hook has more work. The writes may have woken clients of this machine on this
			// processor. Without the yield they would wait for the end of this thread's time
			// slice, about 3 ms.
			sysYield()
		}
	}
	l.drain()
	l.dismissAll()
	l.release()
}

// batch serves n events, the woken sessions, and those that wait for another turn. Then it
// calls the Settle hook, which does the common work that sessions wait for, and serves the
// sessions that the hook has woken.
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
		settle(l.id) // it wakes sessions for the next batch, which starts at once
	}
}

func (l *loop) idle() {
	if l.r.cfg.Idle == nil {
		l.next = -1
		return
	}
	if l.nudged.Load() {
		l.nudged.Store(false) // must be before the hook runs
	}
	l.next = l.r.cfg.Idle(l.id)
}

// sleep waits for an event, a wake, a nudge, or the next thing that is due. It returns at
// once if one of these has happened already.
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
	// The loop announces the sleep and then checks the queue once more. A goroutine that
	// queues something after this check sees the announcement.
	l.asleep.Store(true)
	if l.queued.Load() || l.nudged.Load() || l.stopping.Load() {
		l.asleep.Store(false)
		return 0
	}
	n := l.poller.wait(timeout)
	l.asleep.Store(false)
	return n
}

// sooner returns the smaller of two timeouts; a may be negative, which means for ever.
func sooner(a, b time.Duration) time.Duration {
	b = max(b, 0)
	if a < 0 {
		return b
	}
	return min(a, b)
}

// housekeep does the work that is due by the clock.
func (l *loop) housekeep(now time.Time) {
	if len(l.paused) > 0 && !now.Before(l.resumeAt) {
		l.resumeListeners()
	}
	if !now.Before(l.sweepAt) {
		l.sweepAt = now.Add(sweepEvery)
		l.sweep()
	}
}

// sweep calls IdleCheck of the sessions, ends closing connections whose peer does not
// read, and drops spare buffers.
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

// enqueue gives c to the loop, from any goroutine. It reports false if the loop has ended.
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

// ring writes to the eventfd if the loop sleeps. The caller holds mu, so that the
// descriptor is still open.
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
	awaiting := l.awaiting
	l.awaiting = nil
	l.queued.Store(false)
	l.mu.Unlock()
	for _, t := range awaiting {
		l.attend(t)
	}
	for i, c := range l.taken {
		l.taken[i] = nil
		c.woken.Store(false) // must be before the loop reads the waker's data
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

// takeTurn puts c in line if it has work that no event announces.
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

// drain ends the loop. It writes the unsent output until Shutdown's context ends, and
// closes all connections.
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

// sleepDraining waits for an event while the loop is stopping.
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
