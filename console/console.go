package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/embed"
	"github.com/ebbdb/ebb/internal/adminhttp"
	"github.com/ebbdb/ebb/internal/embedded"
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
	// members are shown, and so are scores, lengths and counts.
	HideValues bool
	// Logger receives a line for each write and each refused command. Default: no log.
	Logger *slog.Logger
	// Hosts are the names by which browsers reach the console, without a port: the program's own names, or those
	// of a proxy. localhost and addresses of this machine need not be listed. A request for another name gets
	// 421, so that no page of another site can read the console by DNS rebinding.
	Hosts []string
	// LocalOnly refuses clients on other machines.
	LocalOnly bool
	// Access identifies the user of a request, in place of the login: it returns the name of a user of the
	// engine, or false to refuse the request. Default: the login. Without a login, a client on this machine is
	// the default user if that user has no password.
	Access func(*http.Request) (user string, ok bool)
}

// Console is the pages and their API. It is an http.Handler, whose methods any goroutine may call.
type Console struct {
	data  *conn.Conn       // keeps the engine open
	svc   *session.Service // of the engine
	opt   Options
	log   *slog.Logger
	clock clock.Clock
	api   map[string]map[string]*route // by path, by method
	guard *adminhttp.Guard

	label, colour string

	// closing ends with Close. Streams and waiting commands then end too.
	closing context.Context
	stop    context.CancelFunc

	throttle throttle
	shares   shares
	audits   auditLog

	forecasts forecasts
	hub       hub
	lists     lists
	trails    trails
	versions  versions
	walks     walks
	zips      sync.Map          // of serveUI: the files in the encoding gzip, by name
	markKey   [sha256.Size]byte // of markOf; the key of this run

	mu      sync.Mutex // guards the fields below
	closed  bool
	plain   map[string]*viewer            // viewers without a login, by user and address
	logins  map[[sha256.Size]byte]*viewer // by the hash of the cookie
	swept   int64                         // us: the latest sweep
	streams int
	// streamsOf has the streams of each user, the oldest first.
	streamsOf map[string][]*heldStream
	work      sync.WaitGroup // requests and background work; Add only under mu while the console is open
}

// New returns the console of an engine in this process: an embedded engine, or that of a server.Server, which
// the server's Conn leads to. The caller mounts it under a path that ends with a slash, and strips that path:
//
//	ui, err := console.New(ebb.EngineOf(c), console.Options{})
//	http.Handle("/ebb/", http.StripPrefix("/ebb", ui))
//
// The console uses a Conn of its own until Close: an embedded engine stays open until then. A server's
// console must be closed before the server. Errors: conn.ErrRemote for the nil Engine of a remote connection;
// conn.ErrClosed; and errors about the Label.
func New(e *embed.Engine, o Options) (*Console, error) {
	c, err := build(e, o)
	if err == nil {
		c.start()
	}
	return c, err
}

// build makes a console as New does, without the goroutine that takes samples.
func build(e *embed.Engine, o Options) (*Console, error) {
	text, colour, err := parseLabel(o.Label)
	if err != nil {
		return nil, fmt.Errorf("console: %w: the label is %q", err, o.Label)
	}
	data, err := e.Conn(0)
	if err != nil {
		return nil, err
	}
	svc := embedded.Of(data).Service()
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	c := &Console{svc: svc, data: data, opt: o, log: o.Logger, clock: svc.DB.Clock(), api: map[string]map[string]*route{}, label: text, colour: colour,
		plain: map[string]*viewer{}, logins: map[[sha256.Size]byte]*viewer{}, streamsOf: map[string][]*heldStream{}}
	_, _ = rand.Read(c.markKey[:]) // it never fails
	c.hub.svc, c.hub.clock, c.hub.wake = svc, c.clock, make(chan struct{}, 1)
	c.versions.db = svc.DB
	c.guard = &adminhttp.Guard{Hosts: o.Hosts, Next: http.HandlerFunc(c.serve)}
	c.closing, c.stop = context.WithCancel(context.Background())
	routes := routes()
	for i := range routes {
		r := &routes[i]
		if c.api[r.path] == nil {
			c.api[r.path] = map[string]*route{}
		}
		c.api[r.path][r.method] = r
		if r.named {
			c.api[r.path][http.MethodPost] = r
		}
	}
	return c, nil
}

// start starts the goroutine that takes samples. It ends with the console.
func (c *Console) start() {
	c.work.Add(1)
	go func() {
		defer c.work.Done()
		c.hub.run(c.closing)
	}()
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

// Close ends the streams and the waiting commands, waits for all requests to end, and closes the sessions.
// Later requests get 503.
func (c *Console) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		c.work.Wait()
		return nil
	}
	c.closed = true
	c.stop()
	viewers := slices.AppendSeq(slices.Collect(maps.Values(c.plain)), maps.Values(c.logins))
	c.plain, c.logins = nil, nil
	c.mu.Unlock()
	for _, v := range viewers {
		v.revoke()
	}
	c.work.Wait()
	c.versions.close()
	return c.data.Close()
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
	if c.opt.LocalOnly && !local(r) {
		c.deny(w, r, &failure{status: http.StatusForbidden, Code: "DENIED", Text: "the console serves clients of this machine alone: http-console yes, or an " +
			"SSH tunnel, lets others in"})
		return
	}
	c.guard.ServeHTTP(w, r)
}

// deny refuses a request that the guard has not seen: for the API with JSON, otherwise with a page.
func (c *Console) deny(w http.ResponseWriter, r *http.Request, f *failure) {
	if strings.HasPrefix(strings.TrimPrefix(r.URL.Path, "/"), "api/") {
		writeFailure(w, f)
		return
	}
	adminhttp.Refuse(w, r, f.status, f.Text)
}

// parseLabel splits "production #c0392b" into a name and a colour, which may be missing.
func parseLabel(s string) (text, colour string, err error) {
	text = strings.TrimSpace(s)
	if i := strings.LastIndexByte(text, ' '); i >= 0 && strings.HasPrefix(text[i+1:], "#") {
		text, colour = strings.TrimSpace(text[:i]), text[i+1:]
		if len(colour) != 7 || strings.Trim(colour[1:], "0123456789abcdefABCDEF") != "" {
			return "", "", errors.New("the colour of the label must be # and six hexadecimal digits, such as #c0392b")
		}
	}
	return text, colour, nil
}
