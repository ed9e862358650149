// Package port is the port of a node for the other nodes of its group. All communication between nodes uses it,
// except for the stream of data:
//
//	TCP, TLS 1.3 ─▶ handshake ─┬─▶ calls      a request, an answer: heartbeats, proposals for the leader     Handler, Port.Call
//	                           └─▶ streams    bytes in both directions: raft                               Port.Streams, DialStream
//
// In the handshake each side proves that it knows the group's secret without showing it, and the dialling side names
// the node that it wants. A node with a different name refuses. So messages for a node before it lost its files do
// not reach the node that comes back.
//
// Until a peer has proved that it is a node of the group, it costs a few hundred bytes, for at most the time limit of
// a handshake, and at most maxPending peers are in that state; strangers.go divides them. After the handshake a call
// has at most maxFrame bytes in each direction.
//
// Invariants:
//
//   - No byte of a peer reaches the Handler or Streams before its handshake is complete.
//   - The proofs cover the names, both random numbers and the TLS connection. So a proof is valid only once, only for one node,
//     and not on a connection through which a third party forwards it.
//   - Close waits for every goroutine that the port has started.
//
// Start reading at Open, then handshake.go.
package port

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

const (
	// maxOpen limits the open connections of peers. Each pair of nodes has up to three for raft and up to two for
	// calls.
	maxOpen = 256
	// maxName limits the bytes of each name in a handshake.
	maxName = 255
	// maxFrame limits the bytes of a request and of an answer. A command of the directory has at most 64 KiB.
	maxFrame = 256 << 10
	// maxIdle limits the idle connections that the port keeps for calls to one peer. Calls are short, and heartbeats
	// follow each other.
	maxIdle = 2
	// queued limits the streams that wait for Accept.
	queued = 16
)

// Config configures a port. Self, Group, Listeners, Timeout and Handler are required.
type Config struct {
	Self      string         // the name of this node, as peers dial it
	Group     string         // group-name
	Secret    string         // the same on all nodes; empty: none
	Listeners []net.Listener // for the group's port, without TLS. The port closes them.
	Nodes     []string       // host:port of the nodes, for which handshakes are reserved
	// Server and Client configure TLS. Both are nil without TLS.
	Server, Client *tls.Config
	// Dial connects to an address; nil: by TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Timeout limits a handshake, the rest of a frame that has begun, and a call whose context has no deadline.
	Timeout time.Duration
	// Handler answers calls of peers, concurrently. ctx ends with the port.
	Handler func(ctx context.Context, from string, request []byte) []byte
	Logger  *slog.Logger // nil: none
}

// Errors of Call and DialStream. All other errors come from the network.
var (
	// ErrRefused means that the peer is reachable but refuses this node. The text gives its reason.
	ErrRefused = errors.New("the node has refused the connection")
	// ErrTooLarge means that a request or an answer has more than maxFrame bytes.
	ErrTooLarge = fmt.Errorf("a message between nodes has more than %d bytes", maxFrame)
	// ErrClosed means that the port is closed.
	ErrClosed = errors.New("the group's port is closed")
)

// Port is a node's port. It is safe for concurrent use.
type Port struct {
	conf    Config
	ctx     context.Context // ends when the port closes
	cancel  context.CancelFunc
	pending handshakes
	streams chan net.Conn
	done    sync.WaitGroup // goroutines of the port

	mu    sync.Mutex            // guards the fields below
	peers map[*conn]struct{}    // open connections whose handshake is complete
	idle  map[target][]*conn    // idle connections for calls, by destination
	raw   map[net.Conn]struct{} // connections in the handshake
	end   bool
}

// target is the destination of a call.
type target struct{ address, to string }

// conn is a connection whose handshake is complete.
type conn struct {
	net.Conn
	port *Port
	once sync.Once
}

// Close closes the connection, and the port forgets it.
func (c *conn) Close() error {
	err := net.ErrClosed
	c.once.Do(func() {
		c.port.mu.Lock()
		delete(c.port.peers, c)
		c.port.mu.Unlock()
		err = c.Conn.Close()
	})
	return err
}

// Open starts to accept connections. The caller closes the port.
func Open(c Config) (*Port, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Self == "" || len(c.Self) > maxName:
		return nil, fmt.Errorf("the name of this node has %d bytes, want from 1 to %d", len(c.Self), maxName)
	case c.Group == "" || len(c.Group) > maxName:
		return nil, fmt.Errorf("group-name has %d bytes, want from 1 to %d", len(c.Group), maxName)
	case c.Timeout <= 0:
		return nil, errors.New("the group's port needs a Timeout above 0")
	case (c.Server == nil) != (c.Client == nil):
		return nil, errors.New("the group's port needs TLS for both Server and Client, or for neither")
	case len(c.Listeners) == 0 || c.Handler == nil:
		return nil, errors.New("the group's port needs a listener and a handler")
	}
	if c.Server != nil {
		c.Server, c.Client = newest(c.Server), newest(c.Client)
	}
	if c.Dial == nil {
		c.Dial = dialTCP
	}
	p := &Port{conf: c, streams: make(chan net.Conn, queued),
		peers: map[*conn]struct{}{}, idle: map[target][]*conn{}, raw: map[net.Conn]struct{}{}}
	p.pending.learnAll(c.Nodes)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for _, l := range c.Listeners {
		p.done.Go(func() { p.accept(l) })
	}
	return p, nil
}

// newest returns a copy of c that allows only TLS 1.3: the proofs use its exported key.
func newest(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.MinVersion, c.MaxVersion = tls.VersionTLS13, 0
	return c
}

func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// Close closes the port and all its connections, open streams among them, and waits for its goroutines.
func (p *Port) Close() error {
	p.mu.Lock()
	if p.end {
		p.mu.Unlock()
		return ErrClosed
	}
	p.end = true
	var open []io.Closer
	for c := range p.peers {
		open = append(open, c)
	}
	for c := range p.raw {
		open = append(open, c)
	}
	p.mu.Unlock()
	p.cancel()
	var err error
	for _, l := range p.conf.Listeners {
		err = errors.Join(err, l.Close())
	}
	for _, c := range open {
		c.Close()
	}
	p.done.Wait()
	for {
		select {
		case c := <-p.streams:
			c.Close()
		default:
			return err
		}
	}
}

// accept accepts connections from a listener until the port is closed.
func (p *Port) accept(l net.Listener) {
	for {
		raw, err := l.Accept()
		if p.ctx.Err() != nil {
			if err == nil {
				raw.Close()
			}
			return
		}
		if err != nil {
			p.conf.Logger.Warn("the group's port cannot accept a connection", "error", err)
			p.pause()
			continue
		}
		if end, ok := p.pending.begin(raw.RemoteAddr()); ok {
			p.done.Go(func() { p.serve(raw, end) })
		} else {
			raw.Close()
		}
	}
}

// pause waits before the next Accept after a failed one: the process may have files or memory again later.
func (p *Port) pause() {
	t := time.NewTimer(p.conf.Timeout / 10)
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.ctx.Done():
	}
}

// serve makes the handshake of a connection, calls admitted, and then answers the peer's calls or hands the
// connection out as a stream.
func (p *Port) serve(raw net.Conn, admitted func()) {
	c, h, err := p.admit(raw)
	admitted()
	if err != nil {
		if p.ctx.Err() == nil {
			p.conf.Logger.Debug("a connection to the group's port was refused", "from", raw.RemoteAddr().String(), "error", err)
		}
		return
	}
	if h.kind == kindStream {
		select {
		case p.streams <- c:
		default: // the queue is full, or raft does not run
			c.Close()
		}
		return
	}
	defer c.Close()
	for {
		size, err := readSize(c) // without a time limit: a peer may be idle
		if err != nil {
			return
		}
		var request []byte
		if err := p.within(p.ctx, c, func() (err error) { request, err = readFrame(c, size); return err }); err != nil {
			return
		}
		answer := p.conf.Handler(p.ctx, h.from, request)
		if err := p.within(p.ctx, c, func() error { return writeFrame(c, answer) }); err != nil {
			return
		}
	}
}

// admit makes the handshake of an accepted connection, within Timeout.
func (p *Port) admit(raw net.Conn) (*conn, hello, error) {
	if !p.track(raw) {
		return nil, hello{}, ErrClosed
	}
	defer p.forget(raw)
	secured := net.Conn(newHasty(raw, p.conf.Timeout/firstPart))
	if p.conf.Server != nil {
		secured = tls.Server(secured, p.conf.Server)
	}
	var h hello
	err := p.within(p.ctx, raw, func() (err error) {
		h, err = p.answer(secured)
		return err
	})
	if err != nil {
		raw.Close()
		return nil, h, err
	}
	p.pending.learn(raw.RemoteAddr())
	c, err := p.keep(secured)
	return c, h, err
}

// track records a connection whose handshake begins. It closes the connection and reports false if the port is
// closed.
func (p *Port) track(raw net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end {
		raw.Close()
		return false
	}
	p.raw[raw] = struct{}{}
	return true
}

func (p *Port) forget(raw net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.raw, raw)
}

// keep records a connection whose handshake is complete.
func (p *Port) keep(secured net.Conn) (*conn, error) {
	c := &conn{Conn: secured, port: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.end:
		secured.Close()
		return nil, ErrClosed
	case len(p.peers) >= maxOpen:
		secured.Close()
		return nil, fmt.Errorf("the group's port already has %d connections, which is its limit", maxOpen)
	}
	p.peers[c] = struct{}{}
	return c, nil
}

// within runs a step on a connection. It closes the connection if ctx ends or Timeout passes meanwhile, and then
// returns the context's error.
func (p *Port) within(ctx context.Context, c io.Closer, step func() error) error {
	ctx, cancel := context.WithTimeout(ctx, p.conf.Timeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	err := step()
	if !stop() && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// connect dials a peer and makes the handshake, within Timeout.
func (p *Port) connect(ctx context.Context, kind byte, at target) (*conn, error) {
	if len(at.to) > maxName {
		return nil, fmt.Errorf("the name of a node has %d bytes, want at most %d", len(at.to), maxName)
	}
	ctx, cancel := context.WithTimeout(ctx, p.conf.Timeout)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	raw, err := p.conf.Dial(ctx, at.address)
	if err != nil {
		return nil, err
	}
	p.pending.learn(raw.RemoteAddr())
	if !p.track(raw) {
		return nil, ErrClosed
	}
	defer p.forget(raw)
	secured := raw
	if p.conf.Client != nil {
		secured = tls.Client(raw, p.conf.Client)
	}
	h := hello{kind: kind, group: p.conf.Group, from: p.conf.Self, to: at.to}
	if err := p.within(ctx, raw, func() error { return p.ask(secured, h) }); err != nil {
		raw.Close()
		return nil, err
	}
	return p.keep(secured)
}

// Call sends a request to the node at an address and returns its answer. to is the name of the intended node; ""
// accepts any node at the address. After an error the node may still have handled the request.
func (p *Port) Call(ctx context.Context, address, to string, request []byte) ([]byte, error) {
	if len(request) > maxFrame {
		return nil, ErrTooLarge
	}
	at := target{address, to}
	c := p.borrow(at)
	if c == nil {
		var err error
		if c, err = p.connect(ctx, kindCalls, at); err != nil {
			return nil, fmt.Errorf("node %s: %w", shown(at), err)
		}
	}
	var answer []byte
	err := p.within(ctx, c, func() (err error) {
		var size int
		if err = writeFrame(c, request); err == nil {
			size, err = readSize(c)
		}
		if err == nil {
			answer, err = readFrame(c, size)
		}
		return err
	})
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("node %s: %w", shown(at), err)
	}
	p.giveBack(at, c)
	return answer, nil
}

// DialStream opens a stream to the node at an address; to is its name.
func (p *Port) DialStream(ctx context.Context, address, to string) (net.Conn, error) {
	c, err := p.connect(ctx, kindStream, target{address, to})
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", shown(target{address, to}), err)
	}
	return c, nil
}

func shown(at target) string {
	if at.to == "" {
		return at.address
	}
	return at.to + " at " + at.address
}

// borrow returns an idle connection for a call, or nil.
func (p *Port) borrow(at target) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.idle[at]
	if len(all) == 0 {
		return nil
	}
	c := all[len(all)-1]
	if all = all[:len(all)-1]; len(all) == 0 {
		delete(p.idle, at)
	} else {
		p.idle[at] = all
	}
	return c
}

// giveBack keeps a connection for the next call, or closes it.
func (p *Port) giveBack(at target, c *conn) {
	p.mu.Lock()
	keep := !p.end && len(p.idle[at]) < maxIdle
	if keep {
		p.idle[at] = append(p.idle[at], c)
	}
	p.mu.Unlock()
	if !keep {
		c.Close()
	}
}

// Streams returns a listener of the streams that peers open. Closing the listener does not close the port.
func (p *Port) Streams() net.Listener {
	ctx, cancel := context.WithCancel(p.ctx)
	return &streams{port: p, ctx: ctx, cancel: cancel}
}

type streams struct {
	port   *Port
	ctx    context.Context
	cancel context.CancelFunc
}

// Accept returns the next stream, or ErrClosed once the listener or the port is closed.
func (s *streams) Accept() (net.Conn, error) {
	select {
	case <-s.ctx.Done():
		return nil, ErrClosed
	default:
	}
	select {
	case c := <-s.port.streams:
		return c, nil
	case <-s.ctx.Done():
		return nil, ErrClosed
	}
}

// Close makes Accept return ErrClosed.
func (s *streams) Close() error {
	s.cancel()
	return nil
}

// Addr returns the address of the port.
func (s *streams) Addr() net.Addr { return s.port.conf.Listeners[0].Addr() }
