// Package embed is the engine in this process as a conn.Driver: data in memory, shared by
// name within the process or private, or with files.
//
//	Conn ── driver ── slot: a session and memory for arguments ── command ── engine ── (files)
//
// A call borrows a session, runs the command in the caller's goroutine, and gives the
// session back: no socket, no RESP. Start reading at Open, then slot.do.
package embed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/transport"
)

// databases is the number of databases of an embedded engine; a server has the same
// number.
const databases = 16

// Options holds the settings that a URL cannot have. The zero value works.
type Options struct {
	// Clock is the engine's time; the system's if nil. An engine that is shared by
	// name has the clock of the call of Open that made it.
	Clock engine.Clock
	// Logger receives the engine's log: loading, files that cannot be written. If it is nil,
	// the engine logs nothing.
	Logger *slog.Logger
}

// Open opens the engine that a mem:// or file:// URL names, as ebb.Open does. Two Options are ebb.ErrArgument.
func Open(ctx context.Context, rawURL string, opts ...Options) (*conn.Conn, error) {
	o, err := kit.Option(opts)
	if err != nil {
		return nil, fmt.Errorf("embed: open: %w", err)
	}
	if ctx.Err() != nil {
		return nil, conn.Ended(ctx, "open an engine")
	}
	p, err := parsePlace(rawURL)
	if err != nil {
		return nil, err
	}
	eng, err := openEngine(ctx, p, o)
	if err != nil {
		return nil, err
	}
	return conn.New(newDriver(eng, p.db)), nil
}

// ForService returns a Conn over the engine of a running server, in database 0. The caller must
// close it before the server ends; the Close leaves the engine open. server.Server.Conn is for
// programs.
func ForService(svc *session.Service) *conn.Conn {
	return conn.New(newDriver(&Engine{db: svc.DB, svc: svc, refs: 1, lent: true, stops: map[int]func(){}}, 0))
}

func newDriver(eng *Engine, dbi int) *driver {
	b := &driver{eng: eng, dbi: dbi, quit: make(chan struct{})}
	b.quiet.L = &b.mu
	return b
}

// Of returns the embedded engine behind a connection, nil for a remote one. It is valid
// until Close.
func Of(c *conn.Conn) *Engine {
	if d, ok := conn.Find[interface{ Engine() *Engine }](c); ok {
		return d.Engine()
	}
	return nil
}

// Database returns the number of the database that a Conn of an engine uses; 0 for a remote
// one.
func Database(c *conn.Conn) int {
	if d, ok := conn.Find[*driver](c); ok {
		return d.dbi
	}
	return 0
}

// Engine is an embedded engine with its commands. One or more Conns use it, and the close
// of the last one closes it.
type Engine struct {
	place place
	db    *engine.DB
	svc   *session.Service

	refs int  // Conns; guarded by shared.mu for named engines
	lent bool // it is a server's, which closes it

	mu      sync.Mutex // guards what follows
	closed  bool
	stops   map[int]func() // of the servers that are attached
	next    int
	serving sync.WaitGroup
}

// shared holds the engines that have names, or files.
var shared struct {
	mu      sync.Mutex
	engines map[string]*Engine
}

// openEngine returns the open engine of a place, or opens one.
func openEngine(ctx context.Context, p place, o Options) (*Engine, error) {
	if p.name == "" {
		return newEngine(ctx, p, o)
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if e := shared.engines[p.name]; e != nil {
		switch {
		case o.Clock != nil && o.Clock != e.db.Clock():
			return nil, fmt.Errorf("%w: %s is open already, with another clock", conn.ErrURL, p)
		case p.fsync != e.place.fsync:
			return nil, fmt.Errorf("%w: %s is open already, with fsync=%s", conn.ErrURL, p, e.place.fsync)
		}
		e.refs++
		return e, nil
	}
	e, err := newEngine(ctx, p, o)
	if err != nil {
		return nil, err
	}
	if shared.engines == nil {
		shared.engines = map[string]*Engine{}
	}
	shared.engines[p.name] = e
	return e, nil
}

func newEngine(ctx context.Context, p place, o Options) (*Engine, error) {
	cfg := config.New()
	if p.dir != "" {
		if err := cfg.ParseArgs([]string{"--dir", p.dir, "--appendonly", "yes", "--appendfsync", p.fsync}); err != nil {
			return nil, fmt.Errorf("%w: %w", conn.ErrUnavailable, err)
		}
	}
	hooks := &session.Hooks{}
	db := engine.Open(engine.Options{Databases: databases, Clock: o.Clock, Hooks: hooks})
	// The service gets one network loop, for the case that a server serves the engine.
	svc, err := session.NewService(session.Options{DB: db, Config: cfg, Logger: o.Logger, Loops: 1}, hooks)
	if err != nil {
		db.Close()
		return nil, err
	}
	e := &Engine{place: p, db: db, svc: svc, refs: 1, stops: map[int]func(){}}
	if p.dir == "" {
		return e, nil
	}
	if err = svc.OpenFiles(session.FileOptions{}); err == nil {
		err = svc.Load(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", conn.ErrUnavailable, errors.Join(err, e.end()))
	}
	return e, nil
}

// end closes the engine. If it returns nil, all writes are on disk.
func (e *Engine) end() error {
	e.svc.Close()
	err := e.svc.Keeper().Close()
	e.db.Close()
	return err
}

// release drops one Conn's reference; the last one closes the engine.
func (e *Engine) release() error {
	shared.mu.Lock()
	defer shared.mu.Unlock() // an Open of the same directory waits until the engine has released it
	e.refs--
	if e.refs > 0 || e.lent {
		return nil
	}
	if e.place.name != "" {
		delete(shared.engines, e.place.name)
	}
	e.mu.Lock()
	e.closed = true
	for _, stop := range e.stops {
		stop()
	}
	e.mu.Unlock()
	e.serving.Wait()
	return e.end()
}

// Backup writes a snapshot, an RDB file of one instant, to w, while the engine is in use.
// ebb check reads it; a server loads it as its dump.rdb. On the nil Engine of a remote
// connection it fails with ErrRemote; use the program ebb backup there. Closing the last
// Conn ends Backup early, with an error.
func (e *Engine) Backup(ctx context.Context, w io.Writer) error {
	if e == nil {
		return conn.ErrRemote
	}
	return e.svc.Keeper().Backup(ctx, w)
}

// Sync returns when everything that was written before is on disk, with every value of
// fsync. For an engine without files, Sync returns nil at once.
func (e *Engine) Sync(ctx context.Context) error {
	if e == nil {
		return conn.ErrRemote
	}
	return e.svc.Keeper().Sync(ctx)
}

// DB returns the engine's data, for programs that call its typed methods, which allocate
// nothing. It is valid until the engine's last Conn is closed.
func (e *Engine) DB() *engine.DB { return e.db }

// Service returns the engine's sessions, for package console. It is valid until the engine's last Conn
// is closed.
func (e *Engine) Service() *session.Service { return e.svc }

// Serve lets clients of the Redis protocol into the engine; server.Serve says how. It
// serves ln, which it closes, until ctx ends, ln fails or the engine is closed, and returns
// nil unless ln failed. It returns ErrClosed for a closed engine, and ErrRemote for the nil
// Engine of a remote connection.
func (e *Engine) Serve(ctx context.Context, ln net.Listener) error {
	return transport.ServeHost(ctx, ln, host{e})
}

// host is an Engine for internal/transport.
type host struct{ e *Engine }

// NewSession implements transport.Host.
func (h host) NewSession(nc reactor.Conn) reactor.Session { return h.e.svc.NewSession(nc) }

// Attach implements transport.Host. Closing the engine calls stop and then waits for
// detach. Attach fails on a closed engine, and on the nil Engine of a remote connection.
func (h host) Attach(stop func()) (detach func(), err error) {
	e := h.e
	if e == nil {
		return nil, conn.ErrRemote
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, conn.ErrClosed
	}
	id := e.next
	e.next++
	e.stops[id] = stop
	e.serving.Add(1)
	return func() {
		e.mu.Lock()
		delete(e.stops, id)
		e.mu.Unlock()
		e.serving.Done()
	}, nil
}
