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
	"strconv"
	"sync"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/reactor"
)

const (
	// databases is how many an embedded engine has, as many as a server.
	databases = 16
	// keepSessions is how many idle sessions a Conn keeps: more than goroutines
	// that are at work at the same moment, at some 2 KiB each.
	keepSessions = 64
	// keepArgs is the most memory, in bytes, that a session keeps for the
	// arguments of the next call.
	keepArgs = 64 << 10
)

// Engine is an embedded engine with its commands. One Conn or several lead to
// it; it ends with the last of them.
type Engine struct {
	place place
	db    *engine.DB
	svc   *command.Service

	refs int // Conns; guarded by shared.mu for named engines

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

// openEngine returns the engine that is at a place, or a new one.
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
	hooks := &command.Hooks{}
	db := engine.Open(engine.Options{Databases: databases, Clock: o.Clock, Hooks: hooks})
	// One network loop is provided for, in case the engine is served.
	svc, err := command.NewService(command.Options{DB: db, Config: cfg, Logger: o.Logger, Loops: 1}, hooks)
	if err != nil {
		db.Close()
		return nil, err
	}
	e := &Engine{place: p, db: db, svc: svc, refs: 1, stops: map[int]func(){}}
	if p.dir == "" {
		return e, nil
	}
	if err = svc.OpenFiles(command.FileOptions{}); err == nil {
		err = svc.Load(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", conn.ErrUnavailable, errors.Join(err, e.end()))
	}
	return e, nil
}

// end closes the engine. What was written is on disk when it returns nil.
func (e *Engine) end() error {
	e.svc.Close()
	err := e.svc.Keeper().Close()
	e.db.Close()
	return err
}

// release gives up one Conn's hold; the last one closes the engine.
func (e *Engine) release() error {
	shared.mu.Lock()
	defer shared.mu.Unlock() // who opens the directory again waits until it is free
	e.refs--
	if e.refs > 0 {
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

// Backup writes a snapshot, an RDB file of one instant, to w, while the engine is in
// use. ebb check reads it; a server loads it as its dump.rdb. On the nil Engine of a
// remote connection it fails with ErrRemote: there ebb backup does it. Closing the
// last Conn ends it early, with an error.
func (e *Engine) Backup(ctx context.Context, w io.Writer) error {
	if e == nil {
		return conn.ErrRemote
	}
	return e.svc.Keeper().Backup(ctx, w)
}

// Sync returns when everything that was written before is on disk, whatever fsync
// says. An engine without files has nothing to do.
func (e *Engine) Sync(ctx context.Context) error {
	if e == nil {
		return conn.ErrRemote
	}
	return e.svc.Keeper().Sync(ctx)
}

// DB returns the data, for programs that want its typed methods, which
// allocate nothing. It is valid until the engine's last Conn is closed.
func (e *Engine) DB() *engine.DB { return e.db }

// Service returns the commands.
func (e *Engine) Service() *command.Service { return e.svc }

// NewSession returns what a network connection runs: see server.Serve.
func (e *Engine) NewSession(nc reactor.Conn) reactor.Session { return e.svc.NewSession(nc) }

// Attach notes that a server begins to serve the engine: see server.Serve.
// Closing the engine calls stop and then waits for detach, which the server
// calls after its last session was closed. It fails on a closed engine, and on
// the nil Engine of a remote connection.
func (e *Engine) Attach(stop func()) (detach func(), err error) {
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

// embedded is the backend that calls the engine. Every call borrows a session.
type embedded struct {
	eng *Engine
	dbi int

	mu     sync.Mutex // guards what follows
	idle   []*slot
	busy   int // sessions lent, feeds included
	closed bool
	quit   chan struct{} // closed with the backend, for who waits
	quiet  sync.Cond     // signalled when a closed backend has none lent

	kills sync.WaitGroup // goroutines that close inboxes
}

// slot is a session and the memory for its arguments.
type slot struct {
	s    *command.Session
	flat []byte
	args [][]byte
}

// Options are what a URL cannot say. The zero value works.
type Options struct {
	// Clock is the engine's time; the system's if nil. An engine that is shared by
	// name has the clock of the call of Open that made it.
	Clock engine.Clock
	// Logger gets what the engine reports: loading, files that cannot be written.
	// Nothing is logged if it is nil.
	Logger *slog.Logger
}

// Open opens the engine that a mem:// or file:// URL names, as ebb.Open does. Of opts the
// first counts.
func Open(ctx context.Context, rawURL string, opts ...Options) (*conn.Conn, error) {
	var o Options
	if len(opts) > 0 {
		o = opts[0]
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
	b := &embedded{eng: eng, dbi: p.db, quit: make(chan struct{})}
	b.quiet.L = &b.mu
	return conn.New(b), nil
}

// enter counts a call, and returns an idle session for it if there is one.
func (b *embedded) enter() (*slot, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, conn.ErrClosed
	}
	b.busy++
	if n := len(b.idle); n > 0 {
		s := b.idle[n-1]
		b.idle = b.idle[:n-1]
		return s, nil
	}
	return nil, nil
}

// leave uncounts a call.
func (b *embedded) leave(keep *slot) {
	b.mu.Lock()
	if keep != nil && len(b.idle) < keepSessions {
		b.idle = append(b.idle, keep)
		keep = nil
	}
	b.busy--
	if b.closed && b.busy == 0 {
		b.quiet.Broadcast()
	}
	b.mu.Unlock()
	if keep != nil {
		keep.s.Closed(nil)
	}
}

// borrow returns a session of the caller's own until leave.
func (b *embedded) borrow() (*slot, error) {
	s, err := b.enter()
	if s != nil || err != nil {
		return s, err
	}
	s = &slot{s: b.eng.svc.NewSession(nil)}
	s.s.LeaveOn(b.quit)
	if err := b.greet(s); err != nil {
		s.s.Closed(nil)
		b.leave(nil)
		return nil, err
	}
	return s, nil
}

// greet gives a new session the protocol and the database of the backend.
func (b *embedded) greet(s *slot) error {
	ctx := context.Background()
	v, err := s.do(ctx, []any{"HELLO", "3"})
	if err == nil && v.Err() == nil && b.dbi != 0 {
		v, err = s.do(ctx, []any{"SELECT", b.dbi})
	}
	return errors.Join(err, v.Err())
}

// do runs one command. One that waits does so until ctx ends: it has done
// nothing then.
func (s *slot) do(ctx context.Context, args []any) (conn.Value, error) {
	flat, list := s.flat[:0], s.args[:0]
	for _, a := range args {
		if b, ok := a.([]byte); ok { // handlers copy what they keep
			list = append(list, b)
			continue
		}
		from := len(flat)
		var err error
		if flat, err = conn.AppendArg(flat, a); err != nil {
			return conn.Value{}, err
		}
		list = append(list, flat[from:len(flat):len(flat)])
	}
	return s.run(ctx, flat, list)
}

// doTexts is do for texts.
func (s *slot) doTexts(ctx context.Context, words []string) (conn.Value, error) {
	flat, list := s.flat[:0], s.args[:0]
	for _, w := range words {
		from := len(flat)
		flat = append(flat, w...)
		list = append(list, flat[from:len(flat):len(flat)])
	}
	return s.run(ctx, flat, list)
}

// run runs a command, whose arguments are in flat mostly.
func (s *slot) run(ctx context.Context, flat []byte, list [][]byte) (conn.Value, error) {
	v, err := s.s.DoContext(ctx, list...)
	if errors.Is(err, engine.ErrClosed) {
		err = conn.ErrClosed
	}
	clear(list)
	s.args = list
	if cap(flat) <= keepArgs {
		s.flat = flat
	}
	return v, err
}

// Do implements Driver.
func (b *embedded) Do(ctx context.Context, args []any) (conn.Value, error) {
	s, err := b.borrow()
	if err != nil {
		return conn.Value{}, err
	}
	defer b.leave(s)
	return s.do(ctx, args)
}

// Ints implements IntsDriver.
func (b *embedded) Ints(ctx context.Context, words []string) (conn.Ints, error) {
	s, err := b.borrow()
	if err != nil {
		return conn.Ints{}, err
	}
	defer b.leave(s)
	return conn.IntsOf(s.doTexts(ctx, words))
}

// Block implements Driver. It is Do: a session that waits is the caller's own anyway.
func (b *embedded) Block(ctx context.Context, args []any) (conn.Value, error) { return b.Do(ctx, args) }

// Pipeline implements Driver.
func (b *embedded) Pipeline(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	if err := checkArgs(cmds); err != nil {
		return nil, err
	}
	s, err := b.borrow()
	if err != nil {
		return nil, err
	}
	defer b.leave(s)
	replies := make([]conn.Value, len(cmds))
	for i, args := range cmds {
		if replies[i], err = s.do(ctx, args); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// Tx implements Driver.
func (b *embedded) Tx(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	s, err := b.borrow()
	if err != nil {
		return nil, err
	}
	defer b.leave(s)
	return s.tx(ctx, cmds)
}

// tx queues the commands and runs them.
func (s *slot) tx(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	if err := checkArgs(cmds); err != nil {
		return nil, err
	}
	_, _ = s.do(ctx, []any{"MULTI"})
	var refused error
	for _, args := range cmds {
		v, err := s.do(ctx, args)
		if err == nil {
			err = v.Err()
		}
		if refused == nil {
			refused = err
		}
	}
	v, err := s.do(ctx, []any{"EXEC"})
	if err != nil { // it has run, but is not known to be on disk
		return nil, err
	}
	return execReply(v, refused)
}

// execReply tells what came of a transaction.
func execReply(v conn.Value, refused error) ([]conn.Value, error) {
	switch err := v.Err(); {
	case err != nil && refused != nil:
		return nil, fmt.Errorf("%w %w", err, refused)
	case err != nil:
		return nil, err
	case v.IsNull():
		return nil, conn.ErrConflict
	}
	return v.Elems, nil
}

// checkArgs makes sure that a batch does not stop half-way for an argument.
func checkArgs(cmds [][]any) error {
	for _, args := range cmds {
		for _, a := range args {
			switch a.(type) {
			case string, []byte, int, int64, uint64, float64, bool:
				continue
			}
			if _, err := conn.AppendArg(nil, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// Watch implements Driver.
func (b *embedded) Watch(ctx context.Context, fn func(*conn.Watched) error, keys []string) error {
	return b.watch(ctx, keys, func(s *slot) error { return fn(conn.NewWatched(s.do, s.tx)) })
}

// watch calls fn with a session that watches keys.
func (b *embedded) watch(ctx context.Context, keys []string, fn func(s *slot) error) error {
	s, err := b.borrow()
	if err != nil {
		return err
	}
	defer b.leave(s)
	args := []any{"WATCH"}
	for _, k := range keys {
		args = append(args, k)
	}
	v, err := s.do(ctx, args)
	if err == nil {
		err = v.Err()
	}
	if err != nil {
		return err
	}
	defer func() { _, _ = s.do(ctx, []any{"UNWATCH"}) }()
	return fn(s)
}

// Capabilities implements Driver.
func (b *embedded) Capabilities() conn.Capabilities {
	return conn.Capabilities{Native: true, Embedded: true, Server: "ebb", Version: redisVersion,
		HashFieldTTL: true, Functions: true, ShardedPubSub: true}
}

// redisVersion is the version that an engine says it behaves as.
const redisVersion = "7.4.0"

// Engine is how Of finds it.
func (b *embedded) Engine() *Engine { return b.eng }

// Of returns the embedded engine behind a connection, nil for a remote one. It is valid
// until Close.
func Of(c *conn.Conn) *Engine {
	if d, ok := conn.Find[interface{ Engine() *Engine }](c); ok {
		return d.Engine()
	}
	return nil
}

// String implements Driver.
func (b *embedded) String() string {
	what := "private, in memory"
	switch p := b.eng.place; {
	case p.dir != "":
		what = "files, fsync=" + p.fsync
	case p.name != "":
		what = "shared by name, in memory"
	}
	return fmt.Sprintf("%s (an engine in this process, %s)", b.url(), what)
}

// url is the URL that leads here.
func (b *embedded) url() string {
	u := b.eng.place.String()
	switch {
	case b.dbi == 0:
		return u
	case b.eng.place.dir != "":
		return u + "?db=" + strconv.Itoa(b.dbi)
	}
	return u + "/" + strconv.Itoa(b.dbi)
}

// Close implements Driver.
func (b *embedded) Close() error {
	b.mu.Lock()
	if !b.closed {
		close(b.quit)
	}
	b.closed = true
	for b.busy > 0 {
		b.quiet.Wait()
	}
	idle := b.idle
	b.idle = nil
	b.mu.Unlock()
	b.kills.Wait()
	for _, s := range idle {
		s.s.Closed(nil)
	}
	return b.eng.release()
}
