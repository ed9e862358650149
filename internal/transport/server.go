// Package transport carries bytes between connections and sessions. It contains no
// command: the Session that Options.NewSession returns handles the requests.
//
//	addresses, unix socket ──▶ internal/reactor   epoll loops (Linux, plain)
//	TLS addresses, other   ──▶ portable.go        two goroutines per connection:
//	systems, any listener                         one reads and serves, one writes
//
// Both transports follow the same contract with a session (reactor.Session) and share one
// gate that counts connections. Both end with the server: Shutdown and Close leave no
// goroutine and no descriptor behind.
//
// Start reading at Listen and portableConn.read.
package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/reactor"
)

// The types of the transports; package reactor has their contracts.
type (
	Conn          = reactor.Conn
	Session       = reactor.Session
	Verdict       = reactor.Verdict
	PeerWatcher   = reactor.PeerWatcher
	UnsentWatcher = reactor.UnsentWatcher
	OutputLimiter = reactor.OutputLimiter
	IdleChecker   = reactor.IdleChecker
	Hijacker      = reactor.Hijacker
)

// The verdicts of Session.Serve.
const (
	Continue = reactor.Continue
	Park     = reactor.Park
	Yield    = reactor.Yield
)

// Reasons given to Session.Closed.
var (
	ErrShutdown    = reactor.ErrShutdown
	ErrOutputLimit = reactor.ErrOutputLimit
	ErrIdle        = reactor.ErrIdle
	ErrStalled     = reactor.ErrStalled
)

// Options configure a server. Only NewSession is required.
type Options struct {
	// NewSession creates the session of a new connection, or returns nil to refuse it. The
	// connection's loop calls it, and it must not block.
	NewSession func(Conn) Session

	Addrs     []string    // TCP addresses, host:port; port 0 picks one
	Unix      string      // path of a unix socket; "" for none
	UnixPerm  os.FileMode // its permissions; 0: those of the umask
	UnixGroup string      // name or number of its group; "": the process's group
	TLSAddrs  []string    // TCP addresses served with TLS
	TLS       *tls.Config // for TLSAddrs; see CertFiles

	// Bound are open listeners. Add uses one of them if it has the address, instead of
	// binding the address.
	Bound []net.Listener

	Loops      int           // event loops; default GOMAXPROCS
	Portable   bool          // use the portable transport instead of event loops
	Backlog    int           // connections the kernel holds before they are accepted; default: the system's
	MaxClients int           // connections at a time; 0 means no limit
	Refusal    []byte        // sent to a connection beyond MaxClients before it is closed
	KeepAlive  time.Duration // idle time before TCP keep-alive probes; 0: none
	HighWater  int           // unsent bytes at which a connection is no longer read; default 64 MiB
	Logger     *slog.Logger  // default: nothing is logged

	// Idle reclaims for a short slice and returns the time after which it must be called
	// again: 0 soon, negative not before the next batch or Nudge. Each event loop calls it
	// between batches. Without event loops, a goroutine of its own calls it as loop 0. That
	// goroutine sees no batches, so a deadline that is earlier than the last result needs a
	// Nudge.
	Idle func(loop int) (next time.Duration)

	// Each event loop calls Settle at the end of a batch, after it has written the output.
	// If Settle reports true, the loop serves the sessions that it has woken at once, and
	// calls it once more. Default: none.
	Settle func(loop int) (did bool)

	// Now returns the time that IdleCheck gets, in Unix milliseconds. Default: the system's.
	Now func() int64
}

func (o *Options) fill() error {
	if o.NewSession == nil {
		return errors.New("transport: Options.NewSession is nil")
	}
	if len(o.TLSAddrs) > 0 && o.TLS == nil {
		return errors.New("transport: TLS addresses need a certificate: set Options.TLS")
	}
	if o.HighWater <= 0 {
		o.HighWater = 64 << 20
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMilli() }
	}
	return nil
}

// Server is a set of listeners and their connections. Its methods may be
// called from any goroutine; Shutdown and Close wait for every session and so
// must not be called from one.
type Server struct {
	opt  Options
	gate reactor.Gate
	fast *fastPath // nil where there are no event loops

	ctx    context.Context // ends when the portable transport is to stop
	cancel context.CancelFunc
	wg     sync.WaitGroup // accept loops, portable connections, housekeeping
	nudge  chan struct{}

	dropped atomic.Bool // unsent output was dropped while shutting down

	mu        sync.Mutex // guards what follows
	closed    bool
	holding   bool            // listeners are bound, but not served before LetIn
	held      []*heldListener // these
	addrs     []net.Addr
	listeners map[net.Listener]struct{} // served by the portable transport
	conns     map[*portableConn]struct{}
	remove    string // the unix socket's path
	keepAlive time.Duration
}

// Listen binds every address of o and serves until Shutdown or Close. If it cannot bind
// one address, it binds none, and the error says which address, why, and how to correct
// it.
func Listen(o Options) (*Server, error) {
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	if err := s.ListenAll(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// ServeSessions accepts connections from ln until ctx ends or ln fails. Then it closes ln
// and the connections, which get up to five seconds for their replies. It ignores the
// addresses of o. It returns nil when ctx ended.
func ServeSessions(ctx context.Context, ln net.Listener, o Options) error {
	o.Addrs, o.TLSAddrs, o.Unix = nil, nil, ""
	if _, tcp := ln.(*net.TCPListener); !tcp {
		o.Portable = true
	}
	s, err := New(o)
	if err != nil {
		_ = ln.Close()
		return err
	}
	err = s.Serve(ctx, ln)
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = s.Shutdown(grace)
	return err
}

// New returns a server that has no listener yet: see ListenAll, Add, Start and Serve.
func New(o Options) (*Server, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	s := &Server{opt: o, nudge: make(chan struct{}, 1), keepAlive: o.KeepAlive,
		listeners: make(map[net.Listener]struct{}), conns: make(map[*portableConn]struct{})}
	s.gate.SetMax(o.MaxClients)
	if !o.Portable {
		fast, err := newFastPath(&s.opt, &s.gate)
		if err != nil {
			return nil, err
		}
		s.fast = fast
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.wg.Go(s.housekeep)
	return s, nil
}

// ListenAll binds the addresses of Options.
func (s *Server) ListenAll() error {
	for _, addr := range s.opt.Addrs {
		if _, err := s.Add(addr); err != nil {
			return err
		}
	}
	for _, addr := range s.opt.TLSAddrs {
		ln, err := ListenTCP(addr, "--tls-port")
		if err != nil {
			return err
		}
		s.noteAddr(ln)
		_, err = s.serve(ln, func() (func(), error) {
			s.Start(tls.NewListener(ln, s.opt.TLS))
			return nil, nil
		})
		if err != nil {
			return err
		}
	}
	if s.opt.Unix == "" {
		return nil
	}
	ln, err := listenUnix(s.opt.Unix, s.opt.UnixPerm, s.opt.UnixGroup)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.remove = s.opt.Unix
	s.mu.Unlock()
	s.noteAddr(ln)
	_, err = s.serveFast(ln, "unix")
	return err
}

// Add binds one more TCP address, unless Options.Bound has a listener for it, and returns
// a function that closes it.
func (s *Server) Add(addr string) (stop func(), err error) {
	ln := s.takeBound(addr)
	if ln == nil {
		if ln, err = ListenTCP(addr, "--port"); err != nil {
			return nil, err
		}
	}
	s.noteAddr(ln)
	return s.serveFast(ln, "tcp")
}

// takeBound returns the listener of Options.Bound whose address is addr, once, and nil if
// there is none.
func (s *Server) takeBound(addr string) net.Listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, ln := range s.opt.Bound {
		if ln.Addr().String() == addr {
			s.opt.Bound = slices.Delete(slices.Clone(s.opt.Bound), i, i+1)
			return ln
		}
	}
	return nil
}

// serveFast gives ln to the event loops, or to the portable transport if there are none.
func (s *Server) serveFast(ln net.Listener, network string) (stop func(), err error) {
	return s.serve(ln, func() (func(), error) {
		if s.fast != nil {
			return s.fast.add(ln, network)
		}
		s.Start(ln)
		return func() { _ = ln.Close() }, nil
	})
}

// heldListener is a listener that is bound but not served yet. The system completes the
// connections of clients, and keeps the bytes that they send.
type heldListener struct {
	ln    net.Listener
	begin func() (stop func(), err error)

	mu      sync.Mutex // guards what follows
	stop    func()     // once it is served
	stopped bool
}

func (h *heldListener) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped = true; h.stop != nil {
		h.stop()
		return
	}
	_ = h.ln.Close()
}

func (h *heldListener) serve() (err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopped {
		h.stop, err = h.begin()
	}
	return err
}

// serve begins to serve a listener, or leaves that to LetIn.
func (s *Server) serve(ln net.Listener, begin func() (stop func(), err error)) (stop func(), err error) {
	s.mu.Lock()
	if !s.holding {
		s.mu.Unlock()
		return begin()
	}
	defer s.mu.Unlock()
	h := &heldListener{ln: ln, begin: begin}
	s.held = append(s.held, h)
	return h.end, nil
}

// Hold makes the server bind its listeners, but not serve them until LetIn is called.
func (s *Server) Hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holding = true
}

// LetIn serves the listeners that Hold has delayed.
func (s *Server) LetIn() error {
	s.mu.Lock()
	held := s.held
	s.holding, s.held = false, nil
	s.mu.Unlock()
	var err error
	for _, h := range held {
		err = errors.Join(err, h.serve())
	}
	return err
}

func (s *Server) noteAddr(ln net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addrs = append(s.addrs, ln.Addr())
}

// Addrs returns the bound addresses: TCP, TLS, unix, in the order of Options.
func (s *Server) Addrs() []net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]net.Addr(nil), s.addrs...)
}

// Loops returns the number of event loops, 0 if there are none.
func (s *Server) Loops() int {
	if s.fast == nil {
		return 0
	}
	return s.fast.loops()
}

// Clients returns the number of connections.
func (s *Server) Clients() int { return s.gate.Count() }

// Refused returns the number of connections that were refused because of MaxClients.
func (s *Server) Refused() int64 { return s.gate.Refused() }

// SetMaxClients changes Options.MaxClients; open connections stay open.
func (s *Server) SetMaxClients(n int) { s.gate.SetMax(n) }

// SetKeepAlive changes Options.KeepAlive for new connections.
func (s *Server) SetKeepAlive(d time.Duration) {
	s.mu.Lock()
	s.keepAlive = d
	s.mu.Unlock()
	if s.fast != nil {
		s.fast.setKeepAlive(d)
	}
}

// Nudge makes the given loop call Idle soon, for a new deadline that is earlier than the
// one that Idle returned.
func (s *Server) Nudge(loop int) {
	if s.fast != nil {
		s.fast.nudge(loop)
		return
	}
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// Shutdown stops listening, writes out the replies, closes every connection with
// ErrShutdown, and waits. When ctx ends first, Shutdown drops unsent output and returns
// ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	for ln := range s.listeners {
		_ = ln.Close()
	}
	for _, ln := range s.opt.Bound {
		_ = ln.Close()
	}
	held, remove := s.held, s.remove
	s.held, s.remove, s.opt.Bound = nil, "", nil
	s.mu.Unlock()
	for _, h := range held {
		h.end()
	}
	s.cancel()
	for _, c := range s.snapshot() {
		c.shutdown()
	}
	if remove != "" {
		_ = os.Remove(remove)
	}

	stop := context.AfterFunc(ctx, s.abandon)
	var err error
	if s.fast != nil {
		err = s.fast.shutdown(ctx)
	}
	s.wg.Wait()
	stop()
	if err == nil && s.dropped.Load() {
		err = ctx.Err()
	}
	return err
}

// Close ends the server as Shutdown does, but drops unsent output at once.
func (s *Server) Close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.Shutdown(ctx)
}

// abandon closes the portable connections that still have output.
func (s *Server) abandon() {
	for _, c := range s.snapshot() {
		if c.abandon() {
			s.dropped.Store(true)
		}
	}
}

// housekeep calls the portable sessions' IdleCheck once a second, and runs Idle if there
// are not event loops.
func (s *Server) housekeep() {
	idle := s.opt.Idle
	if s.fast != nil {
		idle = nil
	}
	sweep := time.NewTicker(time.Second)
	defer sweep.Stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-sweep.C:
			s.sweep()
			continue
		case <-s.nudge:
		case <-timer.C:
		}
		if idle == nil {
			continue
		}
		if next := idle(0); next >= 0 {
			timer.Reset(next)
		}
	}
}

func (s *Server) sweep() {
	now := s.opt.Now()
	for _, c := range s.snapshot() {
		c.idleCheck(now)
	}
}
