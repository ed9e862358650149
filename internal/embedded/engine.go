// Package embedded is the driver of package embed: the engine in this process as a conn.Driver. Packages of this module
// that need the sessions of an engine, such as the console, find them here; package embed is its public face.
//
//	embed.Engine ──▶ Engine ◀── driver ◀── conn.Conn
//	                   │
//	                   ▼
//	        session.Service, engine.DB     its own, or a server's that Lend was given
//
// Invariants: a driver holds one reference to its Engine from newDriver until Close; the last one closes the Engine,
// unless it is lent. Start reading at Open, then slot.do.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/conn/driverutil"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/direct/calls"
	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/transport"
)

// databases is the number of databases of an embedded engine; a server has the same
// number.
const databases = 16

// Options are embed.Options.
type Options struct {
	Clock  clock.Clock
	Logger *slog.Logger
}

// Open is embed.Open.
func Open(ctx context.Context, rawURL, prefix string, o Options) (*conn.Conn, error) {
	p, err := parsePlace(rawURL)
	if err != nil {
		return nil, err
	}
	eng, err := openEngine(ctx, p, o)
	if err != nil {
		return nil, err
	}
	d := newDriver(eng, p.db)
	c, err := conn.NewPrefixed(d, prefix)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return c, nil
}

// Lend returns a Conn over the engine of a running server, in database 0. The caller must
// close it before the server ends; the Close leaves the engine open.
func Lend(svc *session.Service) *conn.Conn {
	return conn.New(newDriver(&Engine{db: svc.DB, svc: svc, refs: 1, lent: true, stops: map[int]func(){}}, 0))
}

func newDriver(eng *Engine, dbi int) *driver {
	b := &driver{eng: eng, dbi: dbi, direct: calls.New(eng.svc, dbi), quit: make(chan struct{})}
	b.quiet.L = &b.mu
	return b
}

// Of returns the engine behind a connection, nil for a remote one. It is valid
// until Close.
func Of(c *conn.Conn) *Engine {
	if d, ok := conn.Find[interface{ Engine() *Engine }](c); ok {
		return d.Engine()
	}
	return nil
}

// Database is embed.Database.
func Database(c *conn.Conn) int {
	if d, ok := conn.Find[*driver](c); ok {
		return d.dbi
	}
	return 0
}

// Engine is an engine with its commands. One or more drivers use it, and the close
// of the last one closes it.
type Engine struct {
	place place
	db    *engine.DB
	svc   *session.Service

	once   sync.Once
	public any // its embed.Engine, set by once

	refs int  // Conns; guarded by shared.mu
	lent bool // it is a server's, which closes it

	mu      sync.Mutex // guards what follows
	closed  bool
	stops   map[int]func() // of the servers that are attached
	next    int
	serving sync.WaitGroup
}

// shared holds the engines that have names, or files.
var shared struct {
	mu      sync.Mutex // guards what follows, and is not held while an engine opens or closes
	engines map[string]*Engine
	busy    map[string]chan struct{} // the names of engines that open or close; each channel is closed afterwards
}

// begin notes that the engine of a name opens or closes, until the caller calls end. The caller holds shared.mu, also for end.
func begin(name string) (end func()) {
	if shared.busy == nil {
		shared.busy, shared.engines = map[string]chan struct{}{}, map[string]*Engine{}
	}
	over := make(chan struct{})
	shared.busy[name] = over
	return func() {
		delete(shared.busy, name)
		close(over)
	}
}

// openEngine returns the open engine of a place, or opens one.
func openEngine(ctx context.Context, p place, o Options) (*Engine, error) {
	if p.name == "" {
		return newEngine(ctx, p, o)
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	for over := shared.busy[p.name]; over != nil; over = shared.busy[p.name] {
		shared.mu.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
		}
		shared.mu.Lock()
		if ctx.Err() != nil {
			return nil, driverutil.Ended(ctx, "open "+p.String())
		}
	}
	if e := shared.engines[p.name]; e != nil {
		if err := e.join(p, o); err != nil {
			return nil, err
		}
		return e, nil
	}
	end := begin(p.name)
	shared.mu.Unlock()
	e, err := newEngine(ctx, p, o)
	shared.mu.Lock()
	end()
	if err != nil {
		return nil, err
	}
	shared.engines[p.name] = e
	return e, nil
}

// join adds a reference for an Open that names the place of an open engine. The caller holds shared.mu.
func (e *Engine) join(p place, o Options) error {
	switch {
	case o.Clock != nil && o.Clock != e.db.Clock():
		return fmt.Errorf("%w: Options.Clock: %s is open already, with another clock", conn.ErrArgument, p)
	case p.fsync != e.place.fsync:
		return fmt.Errorf("%w: %s is open already, with fsync=%s", conn.ErrURL, p, e.place.fsync)
	}
	if as, differs := p.differs(e.place); differs {
		return fmt.Errorf("%w: %s is open already, with %s", conn.ErrURL, p, as)
	}
	e.refs++
	return nil
}

func newEngine(ctx context.Context, p place, o Options) (*Engine, error) {
	cfg := config.New()
	if p.dir != "" {
		if err := cfg.ParseArgs([]string{"--dir", p.dir, "--appendonly", "yes", "--appendfsync", p.fsync}); err != nil {
			return nil, fmt.Errorf("%w: %w", conn.ErrFiles, err)
		}
	}
	for _, d := range p.limit {
		if err := cfg.Change(true, d.name, d.value); err != nil {
			return nil, fmt.Errorf("%w: %s=%s: %w", conn.ErrURL, d.name, d.value, err) // parseLimit has checked it
		}
	}
	hooks := &session.Hooks{}
	db := engine.Open(engine.Options{Databases: databases, Clock: o.Clock, Hooks: hooks})
	// The service gets one network loop, for the case that a server serves the engine.
	svc, err := session.NewService(session.Options{DB: db, Table: servercmd.Table, Config: cfg, Logger: o.Logger, Loops: 1}, hooks)
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
		return nil, unopened(ctx, p, errors.Join(err, e.end()))
	}
	return e, nil
}

// unopened returns the error of an Open whose files cannot be used: that of ctx, if it has ended; conn.ErrUnavailable, if another
// process has them open; else conn.ErrFiles, because a later try would fail as well.
func unopened(ctx context.Context, p place, err error) error {
	var locked *disk.LockedError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", driverutil.Ended(ctx, "open "+p.String()), err)
	case errors.As(err, &locked):
		return fmt.Errorf("%w: %w", conn.ErrUnavailable, err)
	}
	return fmt.Errorf("%w: %w", conn.ErrFiles, err)
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
	e.refs--
	if e.refs > 0 || e.lent {
		shared.mu.Unlock()
		return nil
	}
	if e.place.name != "" {
		delete(shared.engines, e.place.name)
		end := begin(e.place.name) // an Open of the same directory waits until the engine has released it
		defer func() {
			shared.mu.Lock()
			defer shared.mu.Unlock()
			end()
		}()
	}
	shared.mu.Unlock()
	e.mu.Lock()
	e.closed = true
	for _, stop := range e.stops {
		stop()
	}
	e.mu.Unlock()
	e.serving.Wait()
	return e.end()
}

// PublicOnce returns the value that make returned at the first call: the embed.Engine, of which an Engine has one.
func (e *Engine) PublicOnce(make func() any) any {
	e.once.Do(func() { e.public = make() })
	return e.public
}

// Conn returns a further Conn over the engine, in a database. Errors: conn.ErrClosed, conn.ErrArgument.
func (e *Engine) Conn(dbi int) (*conn.Conn, error) {
	if n := e.db.Databases(); dbi < 0 || dbi >= n {
		return nil, fmt.Errorf("%w: database %d: the engine has the databases 0 to %d", conn.ErrArgument, dbi, n-1)
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if e.refs <= 0 {
		return nil, conn.ErrClosed
	}
	e.refs++
	return conn.New(newDriver(e, dbi)), nil
}

// Sync is embed.Engine.Sync.
func (e *Engine) Sync(ctx context.Context) error { return e.svc.Keeper().Sync(ctx) }

// DB returns the data. Like that of Service, the result is valid until the last Conn is closed.
func (e *Engine) DB() *engine.DB { return e.db }

// Service returns the engine's sessions.
func (e *Engine) Service() *session.Service { return e.svc }

// Serve is embed.Engine.Serve. A nil Engine returns conn.ErrRemote.
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
