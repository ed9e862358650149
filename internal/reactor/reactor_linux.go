package reactor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Config configures a reactor. Only NewSession is required.
type Config struct {
	NewSession func(Conn) Session // called on the connection's loop; nil refuses the connection

	Loops     int           // event loops; default GOMAXPROCS. A single loop uses the least CPU per request, because its batches are larger
	Gate      *Gate         // limits connections; default: a gate without a limit
	Refusal   []byte        // sent to a connection that the gate refuses, if the socket accepts it at once
	KeepAlive time.Duration // idle time before TCP keep-alive probes; 0: none
	HighWater int           // unsent bytes at which a connection is no longer read or served; default 64 MiB
	Logger    *slog.Logger  // default: nothing is logged

	// Each loop calls Idle between batches. Idle may work for a short slice, for which every
	// client of the loop waits. It returns the time after which the loop must call it again
	// at the latest: 0 calls it again after the ready connections had their turn, a negative
	// value only after the next batch. A loop that sleeps wakes up in time, within the
	// resolution of the kernel's timers.
	Idle func(loop int) (next time.Duration)

	// Each loop calls Settle at the end of a batch, after it has written the output. Settle
	// does the common work that the sessions of the batch wait for, such as one fsync for
	// all. If it reports true, it has woken sessions: the loop serves them at once, and
	// calls Settle once more.
	Settle func(loop int) (did bool)

	// Now returns the time that IdleCheck gets, in Unix milliseconds. Default: the system's.
	Now func() int64
}

// defaultHighWater is the default of Config.HighWater, in bytes. It lets a client write a
// large pipeline before it reads: with a smaller mark both sides could wait for each
// other. It also limits the memory that a client can use that never reads.
const defaultHighWater = 64 << 20

// Reactor runs event loops. All methods may be called from any goroutine;
// Shutdown and Close wait for the loops and so must not be called on one.
type Reactor struct {
	cfg       Config
	loops     []*loop
	keepAlive atomic.Int64
	wg        sync.WaitGroup

	mu        sync.Mutex // guards what follows
	listeners map[int]*Listener
	taken     map[*conn]struct{} // hijacked
	lastTag   int32
	closed    bool
}

// Listener is one listening socket of a reactor.
type Listener struct {
	r       *Reactor
	network string
	tag     int32

	mu     sync.Mutex // held while accepting; guards what follows
	fd     int
	closed bool
}

// New starts a reactor's loops. It has no connections until AddListener.
func New(cfg Config) (*Reactor, error) {
	if cfg.NewSession == nil {
		return nil, errors.New("reactor: Config.NewSession is nil")
	}
	if cfg.Loops <= 0 {
		cfg.Loops = runtime.GOMAXPROCS(0)
	}
	if cfg.Gate == nil {
		cfg.Gate = new(Gate)
	}
	if cfg.HighWater <= 0 {
		cfg.HighWater = defaultHighWater
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = func() int64 { return time.Now().UnixMilli() }
	}
	r := &Reactor{cfg: cfg, listeners: make(map[int]*Listener), taken: make(map[*conn]struct{})}
	r.keepAlive.Store(int64(cfg.KeepAlive))
	for i := range cfg.Loops {
		l, err := newLoop(r, i)
		if err != nil {
			for _, l := range r.loops {
				l.release()
			}
			return nil, fmt.Errorf("reactor: loop %d: %w", i, err)
		}
		r.loops = append(r.loops, l)
	}
	for _, l := range r.loops {
		r.wg.Go(l.run)
	}
	return r, nil
}

// Loops returns the number of event loops.
func (r *Reactor) Loops() int { return len(r.loops) }

// Nudge makes the loop call its Idle hook soon, for a new deadline that is earlier than
// the one that the hook returned. On a busy loop it costs one atomic operation.
func (r *Reactor) Nudge(loop int) { r.loops[loop].interrupt() }

// SetKeepAlive changes the TCP keep-alive time of connections accepted from
// now on; 0 turns the probes off.
func (r *Reactor) SetKeepAlive(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keepAlive.Store(int64(d))
	for _, ln := range r.listeners {
		ln.setKeepAlive(d)
	}
}

// AddListener accepts connections from fd, a listening stream socket of the given network
// ("tcp" or "unix"), which the reactor owns from now on, even after an error.
//
// Loop 0 accepts and deals to the loop with the fewest connections, in turn
// among equals. SO_REUSEPORT spreads by hash and EPOLLEXCLUSIVE prefers the loop that
// waited last: with tens of connections both leave one core with most of the work.
func (r *Reactor) AddListener(fd int, network string) (*Listener, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	ln := &Listener{r: r, fd: fd, network: network}
	if network != "unix" {
		// Accepted sockets inherit these options, which saves system calls per connection.
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		ln.setKeepAlive(time.Duration(r.keepAlive.Load()))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_ = unix.Close(fd)
		return nil, ErrShutdown
	}
	r.lastTag--
	ln.tag = r.lastTag
	if err := r.loops[0].poller.ctl(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN, ln.tag); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	r.listeners[fd] = ln
	return ln, nil
}

// Close stops accepting at once. Accepted connections stay.
func (ln *Listener) Close() {
	ln.r.mu.Lock()
	defer ln.r.mu.Unlock()
	ln.close()
}

// close does the work of Close. The caller holds r.mu. Lock order: Reactor.mu,
// Listener.mu.
func (ln *Listener) close() {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.closed {
		return
	}
	ln.closed = true
	delete(ln.r.listeners, ln.fd)
	_ = ln.r.loops[0].poller.ctl(unix.EPOLL_CTL_DEL, ln.fd, 0, 0)
	_ = unix.Close(ln.fd)
}

// setKeepAlive makes the kernel probe an idle peer after d and then three times at
// intervals of d/3. It detects a vanished peer after 2d.
func (ln *Listener) setKeepAlive(d time.Duration) {
	if ln.network == "unix" {
		return
	}
	secs := int(d / time.Second)
	if secs <= 0 {
		_ = unix.SetsockoptInt(ln.fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 0)
		return
	}
	_ = unix.SetsockoptInt(ln.fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	_ = unix.SetsockoptInt(ln.fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, secs)
	_ = unix.SetsockoptInt(ln.fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, max(secs/3, 1))
	_ = unix.SetsockoptInt(ln.fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3)
}

// Shutdown stops accepting, writes out the replies of all requests that were served,
// closes every connection with ErrShutdown and waits for the loops. When ctx ends first,
// Shutdown drops the unsent output and returns ctx's error. It does not wait for parked
// requests.
func (r *Reactor) Shutdown(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	for _, ln := range r.listeners {
		ln.close()
	}
	r.endTaken()
	r.mu.Unlock()

	interruptAll := func() {
		for _, l := range r.loops {
			l.stopping.Store(true)
			l.interrupt()
		}
	}
	interruptAll()
	stop := context.AfterFunc(ctx, func() {
		for _, l := range r.loops {
			l.abandon.Store(true)
		}
		interruptAll()
	})
	defer stop()
	r.wg.Wait()
	for _, l := range r.loops {
		if l.dropped {
			return ctx.Err()
		}
	}
	return nil
}

// Close ends the reactor as Shutdown does, but drops unsent output at once.
func (r *Reactor) Close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = r.Shutdown(ctx)
}

// pick returns the loop with the fewest connections; equals take turns.
func (r *Reactor) pick(turn int) *loop {
	best := r.loops[turn%len(r.loops)]
	for i := 1; i < len(r.loops); i++ {
		if l := r.loops[(turn+i)%len(r.loops)]; l.count.Load() < best.count.Load() {
			best = l
		}
	}
	return best
}
