package transcript

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// Engine is a Target in this process: an engine on a clock that stands still, and
// connections in memory that carry the bytes of the protocol. It records its effects. The
// caller closes it.
type Engine struct {
	DB      *engine.DB
	Service *session.Service
	Clock   *clock.Manual

	conns  map[int]*conn
	broken bool // a command panicked, so its locks may be held
}

// NewEngine returns an empty engine at Start; options configure it as on a
// command line.
func NewEngine(options ...string) (*Engine, error) {
	e := &Engine{Clock: clock.NewManual(Start), conns: map[int]*conn{}}
	var hooks session.Hooks
	e.DB = engine.Open(engine.Options{Clock: e.Clock, Shards: 64, RecordEffects: true, Hooks: &hooks})
	cfg, err := config.Load(append([]string{"--enable-debug-command", "yes"}, options...), nil)
	if err == nil {
		e.Service, err = session.NewService(session.Options{DB: e.DB, Table: servercmd.Table, Config: cfg}, &hooks)
	}
	if err != nil {
		e.DB.Close()
		return nil, err
	}
	return e, nil
}

// Around returns an Engine for a database and a service that the caller opened. The caller
// calls HangupAll and closes these parts, instead of calling Close.
func Around(db *engine.DB, svc *session.Service, clock *clock.Manual) *Engine {
	return &Engine{DB: db, Service: svc, Clock: clock, conns: map[int]*conn{}}
}

// HangupAll closes all connections.
func (e *Engine) HangupAll() error {
	var errs error
	for n := range e.conns {
		errs = errors.Join(errs, e.Hangup(n))
	}
	return errs
}

// Close ends the connections and the engine. It does not close an engine in which a
// command panicked, because its locks may be held.
func (e *Engine) Close() {
	if e.broken {
		return
	}
	for _, c := range e.conns {
		c.close(io.EOF)
	}
	e.Service.Close()
	e.DB.Close()
}

var errBroken = errors.New("a command panicked before")

// Send implements Target.
func (e *Engine) Send(n int, args []string) error {
	return e.SendRaw(n, wire.AppendCommand(nil, args...))
}

// SendRaw sends bytes, which need not be a request. SendRaw returns a panic as an error;
// the engine is unusable after it.
func (e *Engine) SendRaw(n int, data []byte) (err error) {
	if e.broken {
		return errBroken
	}
	defer func() {
		if p := recover(); p != nil {
			e.broken = true
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	c := e.conns[n]
	if c == nil {
		c = &conn{n: n}
		c.session = e.Service.NewSession(c)
		e.conns[n] = c
	}
	c.in = append(c.in, data...)
	c.serve()
	return e.settle()
}

// Do sends a request and returns the first value of the reply.
func (e *Engine) Do(n int, args ...string) (resp.Value, error) {
	if err := e.Send(n, args); err != nil {
		return resp.Value{}, err
	}
	v, ok := e.Next(n)
	if !ok {
		return v, errors.New("there is no reply")
	}
	return v, nil
}

// Hangup closes a connection, as a client does when it disconnects. A later request with
// its number opens a new one.
func (e *Engine) Hangup(n int) error {
	if e.broken {
		return errBroken
	}
	if c := e.conns[n]; c != nil {
		c.close(io.EOF)
		delete(e.conns, n)
	}
	return e.settle()
}

// Next implements Target.
func (e *Engine) Next(n int) (resp.Value, bool) {
	c := e.conns[n]
	switch {
	case c == nil:
		return resp.Value{}, false
	case len(c.inbox) > 0:
		v := c.inbox[0]
		c.inbox = c.inbox[1:]
		return v, true
	}
	return Closed, c.gone
}

// Unread puts values back before all others.
func (e *Engine) Unread(n int, vals []resp.Value) {
	c := e.conns[n]
	c.inbox = append(append([]resp.Value(nil), vals...), c.inbox...)
}

// Advance implements Target.
func (e *Engine) Advance(d time.Duration) error {
	if e.broken {
		return errBroken
	}
	e.Clock.Advance(d)
	for _, c := range e.conns {
		c.woken.Store(c.woken.Load() || c.parked) // a command that waits for a time checks it again
	}
	return e.settle()
}

// settle delivers messages and resumes waiting commands until none is woken, and decodes
// the written bytes.
func (e *Engine) settle() error {
	for again := true; again; {
		again = false
		for _, c := range e.conns {
			if c.woken.Swap(false) {
				again = true
				c.wake()
			}
		}
	}
	if n, last := e.Service.Panics(); n > 0 {
		e.broken = true
		return errors.New(last)
	}
	for _, c := range e.conns {
		if err := c.decode(); err != nil {
			return fmt.Errorf("connection %d: %w", c.n, err)
		}
	}
	return nil
}

// conn is a connection in memory. Only the goroutine that plays the case calls its
// methods, except Wake and Kill.
type conn struct {
	n       int
	session *session.Session
	in, out []byte
	inbox   []resp.Value
	parked  bool
	gone    bool
	woken   atomic.Bool
	killed  atomic.Pointer[error]
}

// serve runs the requests that were sent.
func (c *conn) serve() {
	for !c.gone && !c.parked && len(c.in) > 0 {
		if c.serveOnce() == reactor.Continue {
			return
		}
	}
}

func (c *conn) serveOnce() reactor.Verdict {
	n, out, v := c.session.Serve(c.in, c.out)
	c.in, c.out = c.in[n:], out
	switch v {
	case reactor.Park:
		c.parked = true
	case reactor.Close:
		c.close(nil)
	}
	return v
}

// wake does the work of an event loop after Wake or Kill.
func (c *conn) wake() {
	if c.gone {
		return
	}
	c.out = c.session.TakePushes(c.out)
	if err := c.killed.Load(); err != nil {
		c.close(*err)
		return
	}
	if c.parked { // a reply may be there without a new request
		c.parked = false
		if c.serveOnce() == reactor.Yield {
			c.serve()
		}
	}
}

func (c *conn) close(err error) {
	if !c.gone {
		c.gone = true
		c.session.Closed(err)
	}
}

// decode turns the written bytes into values. The bytes always end with a complete value.
func (c *conn) decode() error {
	r := bufio.NewReader(bytes.NewReader(c.out))
	c.out = nil
	for {
		v, err := wire.ReadValue(r)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		c.inbox = append(c.inbox, v)
	}
}

// The methods of reactor.Conn.

func (c *conn) Wake()             { c.woken.Store(true) }
func (c *conn) Kill(err error)    { c.killed.CompareAndSwap(nil, &err); c.Wake() }
func (c *conn) LocalAddr() string { return "127.0.0.1:6379" }
func (c *conn) Network() string   { return "tcp" }
func (c *conn) FD() int           { return 7 + c.n }
func (c *conn) Loop() int         { return -1 }

func (c *conn) RemoteAddr() string { return fmt.Sprintf("127.0.0.1:%d", 50000+c.n) }

func (c *conn) Buffered() (input, output int) { return len(c.in), len(c.out) }
