// Package adminhttp serves the pages of a server for its operators over HTTP: /healthz,
// the pages that it is given, such as /metrics, and an index. It imports neither commands
// nor metrics. guard.go refuses requests that a page of another site makes a browser send.
//
// Start reading at ListenAdmin.
package adminhttp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/transport"
)

// Page is one of the pages that Admin shows. A path that ends in a slash stands
// for all below it.
type Page struct {
	Path    string // "/metrics"
	Title   string // what is there, for the index
	Handler http.Handler
	Methods []string // default: GET and HEAD
	// Home makes / redirect to this page instead of the index.
	Home bool
}

// Options configure an Admin. The zero value works.
type Options struct {
	Hosts []string     // names that Host may have, in addition to the one that Admin listens on
	TLS   *tls.Config  // serve HTTPS, and HTTP/2
	Log   *slog.Logger // default: no log
	// Connections is the bound of connections; 0: DefaultConnections. A new one beyond it takes the place of the oldest one on which no
	// request is answered.
	Connections int
}

// Admin is a small HTTP server for operators: /healthz, the pages that it is given, and an
// index of them all. Its methods may be called from any goroutine.
//
// It listens before the server has loaded, so that programs that wait for the server see
// that it is loading, and until the server has ended. It has no password; a page may. It answers
// only GET and HEAD, unless a page says otherwise, and only requests by a name of this server (see Guard).
type Admin struct {
	ln    net.Listener
	srv   *http.Server
	conns connections
	wg    sync.WaitGroup // the accept loop
	state atomic.Pointer[adminState]
}

// adminState is the state that the pages show.
type adminState struct {
	health int    // status of /healthz
	line   string // and its text
	pages  *http.ServeMux
	index  string // "": the server loads
	home   string // the path that / redirects to, "" for the index
}

// DefaultConnections is the number of connections that the admin pages may have.
const DefaultConnections = 256

// The limits of an HTTP client.
const (
	adminHeader = 256 << 10              // bytes of a request's headers: its path may have a key of 64 KiB, encoded twice
	adminRead   = 5 * time.Second        // time for them to arrive
	adminIdle   = 2 * time.Minute        // between two requests; scrapes come every 15 s or minute
	adminWrite  = 2 * time.Minute        // for an answer; a CPU profile takes 30 s
	adminGrace  = 500 * time.Millisecond // for the last answers, in Close
)

// ListenAdmin binds addr, which AdminAddr returned, and answers that the server is
// loading until Ready. Close it at the end.
func ListenAdmin(addr string, o Options) (*Admin, error) {
	ln, err := transport.ListenTCP(addr, "--http")
	if err != nil {
		return nil, err
	}
	log := o.Log
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	a := &Admin{ln: ln, conns: connections{limit: cmp.Or(o.Connections, DefaultConnections)}}
	a.Loading()
	host, _, _ := net.SplitHostPort(addr) // transport.ListenTCP has split it
	a.srv = &http.Server{
		Handler:           a.conns.busy(&Guard{Hosts: append([]string{host}, o.Hosts...), Programs: programs, Next: http.HandlerFunc(a.serve)}),
		ConnContext:       a.conns.enter,
		ConnState:         a.conns.state,
		TLSConfig:         o.TLS,
		MaxHeaderBytes:    adminHeader,
		ReadHeaderTimeout: adminRead,
		IdleTimeout:       adminIdle,
		WriteTimeout:      adminWrite,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	a.wg.Go(func() {
		serve := a.srv.Serve
		if o.TLS != nil {
			serve = func(ln net.Listener) error { return a.srv.ServeTLS(ln, "", "") }
		}
		if err := serve(ln); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the admin pages are gone", "address", addr, "error", err)
		}
	})
	return a, nil
}

// AdminAddr turns the directive http into host:port, "" if nothing is to listen. A
// port alone is one of loopback: an operator who opens the pages to other machines names
// the address.
func AdminAddr(directive string) string {
	switch {
	case directive == "" || directive == "0":
		return ""
	case strings.Contains(directive, ":"):
		return directive
	}
	return net.JoinHostPort("127.0.0.1", directive)
}

// Addr returns the bound address.
func (a *Admin) Addr() net.Addr { return a.ln.Addr() }

// Connections returns how many connections are open, and how many were closed since the start because there were too many.
func (a *Admin) Connections() (open, closed int64) { return a.conns.open(), a.conns.closed.Load() }

// Loading makes /healthz answer "loading", and serves those pages that work while the server loads.
func (a *Admin) Loading(pages ...Page) {
	s := &adminState{health: http.StatusServiceUnavailable, line: "loading"}
	s.add(pages)
	a.state.Store(s)
}

// Ready makes /healthz answer "ok", and serves pages from now on.
func (a *Admin) Ready(pages ...Page) {
	s := &adminState{health: http.StatusOK, line: "ok"}
	s.add(pages)
	var index strings.Builder
	index.WriteString("<!DOCTYPE html>\n<title>ebb</title>\n<h1>ebb</h1>\n<ul>\n")
	for _, p := range append([]Page{{Path: "/healthz", Title: "200 while the server serves, else 503"}}, pages...) {
		path := html.EscapeString(p.Path)
		fmt.Fprintf(&index, "<li><a href=\"%s\">%s</a> %s\n", path, path, html.EscapeString(p.Title))
	}
	index.WriteString("</ul>\n")
	s.index = index.String()
	a.state.Store(s)
}

// add makes the state serve pages.
func (s *adminState) add(pages []Page) {
	s.pages = http.NewServeMux()
	for _, p := range pages {
		methods := p.Methods
		if methods == nil {
			methods = reads
		}
		s.pages.Handle(p.Path, only{methods, p.Handler})
		if p.Home {
			s.home = p.Path
		}
	}
}

// reads are the methods of most pages.
var reads = []string{http.MethodGet, http.MethodHead}

// only answers requests that have one of some methods.
type only struct {
	methods []string
	next    http.Handler
}

// ServeHTTP implements http.Handler.
func (o only) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if slices.Contains(o.methods, r.Method) {
		o.next.ServeHTTP(w, r)
		return
	}
	allow := strings.Join(o.methods, ", ")
	w.Header().Set("Allow", allow)
	http.Error(w, "this page answers only "+allow, http.StatusMethodNotAllowed)
}

// Leave makes /healthz answer "shutting down" from now on, so that load balancers send no
// more clients. The pages are still shown.
func (a *Admin) Leave() {
	s := *a.state.Load()
	s.health, s.line = http.StatusServiceUnavailable, "shutting down"
	a.state.Store(&s)
}

// Close stops listening, lets answers under way end for half a second, and closes all
// connections. Afterwards no handler is running, except one that ignores its request's
// context.
func (a *Admin) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), adminGrace)
	defer cancel()
	var err error
	if a.srv.Shutdown(ctx) != nil {
		err = a.srv.Close()
	}
	a.wg.Wait()
	return err
}

// programs are the paths that answer programs with any Host: see Guard.
var programs = []string{"/healthz", "/metrics"}

func (a *Admin) serve(w http.ResponseWriter, r *http.Request) {
	s := a.state.Load()
	w.Header().Set("Cache-Control", "no-store")
	own := http.HandlerFunc(s.serveOwn)
	if r.URL.Path == "/" || r.URL.Path == "/healthz" {
		only{reads, own}.ServeHTTP(w, r)
		return
	}
	if _, pattern := s.pages.Handler(r); pattern == "" && s.index == "" {
		http.Error(w, s.line, s.health)
		return
	}
	s.pages.ServeHTTP(w, r)
}

// serveOwn serves / and /healthz.
func (s *adminState) serveOwn(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/healthz":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(s.health)
		_, _ = io.WriteString(w, s.line+"\n")
	case s.home != "":
		w.Header().Set("Location", strings.TrimPrefix(s.home, "/")) // relative: a proxy may add a prefix
		w.WriteHeader(http.StatusFound)
	case s.index == "":
		http.Error(w, s.line, s.health)
	default:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, s.index)
	}
}
