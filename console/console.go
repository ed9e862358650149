package console

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/embed"
	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/session"
)

// Options configure a Console. The zero value works.
type Options struct {
	// Label is a badge on every page, such as "production #c0392b": a name, and a colour if the last word
	// is one.
	Label string
	// ReadOnly refuses every command that may change something, whatever the user may do.
	ReadOnly bool
	// HideValues replaces values, payloads and arguments by their lengths. Names of keys, fields and
	// members are shown.
	HideValues bool
	// Logger receives a line for each write and each refused command. Default: no log.
	Logger *slog.Logger
	// Hosts are further names that the header Host may have, without a port: the names of a proxy in
	// front of the console.
	Hosts []string
}

// Console is the pages and their API. It is an http.Handler, whose methods any goroutine may call.
type Console struct {
	svc   *session.Service
	opt   Options
	log   *slog.Logger
	clock engine.Clock
	api   map[string]map[string]*route // by path, by method

	// closing ends with Close, and with it streams, and commands that wait.
	closing context.Context
	stop    context.CancelFunc

	mu      sync.Mutex // guards what follows
	closed  bool
	viewers map[string]*viewer // those without a login, by the host of their address
	work    sync.WaitGroup     // requests, and what runs in the background; begun under mu while it is open
}

// New returns the console of an embedded engine. The caller mounts it under a path with a slash at its end, and
// strips that path:
//
//	http.Handle("/ebb/", http.StripPrefix("/ebb", console.New(ebb.EngineOf(c), console.Options{})))
//
// Close it before the engine's last Conn. New returns conn.ErrRemote for the nil Engine of a remote connection.
func New(e *embed.Engine, o Options) (*Console, error) {
	if e == nil {
		return nil, conn.ErrRemote
	}
	return ForService(e.Service(), o)
}

// ForService is New for a server's own engine.
func ForService(svc *session.Service, o Options) (*Console, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Console{svc: svc, opt: o, log: o.Logger, clock: svc.DB.Clock(), api: map[string]map[string]*route{},
		viewers: map[string]*viewer{}}
	c.closing, c.stop = context.WithCancel(context.Background())
	routes := routes()
	for i := range routes {
		r := &routes[i]
		if c.api[r.path] == nil {
			c.api[r.path] = map[string]*route{}
		}
		c.api[r.path][r.method] = r
	}
	return c, nil
}

// enter begins a request or a task that Close waits for, and reports whether the console is open. The caller
// calls c.work.Done at the end.
func (c *Console) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.work.Add(1)
	return true
}

// Close ends the streams and the commands that wait, waits for all requests to end, and closes the sessions.
// Requests that come later get 503.
func (c *Console) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		c.work.Wait()
		return nil
	}
	c.closed = true
	c.stop()
	viewers := c.viewers
	c.viewers = nil
	c.mu.Unlock()
	for _, v := range viewers {
		v.leave()
	}
	c.work.Wait()
	return nil
}

// now returns the server's time, in ms since 1970.
func (c *Console) now() int64 { return c.clock.Micros() / 1000 }

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !c.enter() {
		writeFailure(w, errClosing)
		return
	}
	defer c.work.Done()
	c.serve(w, r)
}
