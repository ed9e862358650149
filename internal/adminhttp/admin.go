// Package adminhttp serves the pages of a server for its operators over HTTP: /healthz,
// the pages that it is given, such as /metrics, and an index. It imports neither commands
// nor metrics. guard.go refuses requests that a page of another site makes a browser send.
//
// Start reading at ListenAdmin.
package adminhttp

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
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
}

// Admin is a small HTTP server for operators: /healthz, the pages that it is given, and an
// index of them all. Its methods may be called from any goroutine.
//
// It listens before the server has loaded, so that programs that wait for the server see
// that it is loading, and until the server has ended. There is no password. It answers
// only GET and HEAD, and only requests by a name of this server (see guard).
type Admin struct {
	ln    net.Listener
	srv   *http.Server
	wg    sync.WaitGroup // the accept loop
	state atomic.Pointer[adminState]
}

// adminState is the state that the pages show at one time.
type adminState struct {
	health int    // status of /healthz
	line   string // and its text
	pages  *http.ServeMux
	index  string
}

// The limits of an HTTP client.
const (
	adminHeader = 16 << 10               // bytes of a request's headers
	adminRead   = 5 * time.Second        // time for them to arrive
	adminIdle   = 2 * time.Minute        // between two requests; scrapes come every 15 s or minute
	adminWrite  = 2 * time.Minute        // for an answer; a CPU profile takes 30 s
	adminGrace  = 500 * time.Millisecond // for the last answers, in Close
)

// ListenAdmin binds addr, which AdminAddr returned, and answers that the server is
// loading until Ready. Close it at the end.
func ListenAdmin(addr string, log *slog.Logger) (*Admin, error) {
	ln, err := transport.ListenTCP(addr, "--http")
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	a := &Admin{ln: ln}
	a.state.Store(&adminState{health: http.StatusServiceUnavailable, line: "loading"})
	host, _, _ := net.SplitHostPort(addr) // transport.ListenTCP has split it
	a.srv = &http.Server{
		Handler:           guard{host, http.HandlerFunc(a.serve)},
		MaxHeaderBytes:    adminHeader,
		ReadHeaderTimeout: adminRead,
		IdleTimeout:       adminIdle,
		WriteTimeout:      adminWrite,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	a.wg.Go(func() {
		if err := a.srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
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

// Ready makes /healthz answer "ok", and serves pages from now on.
func (a *Admin) Ready(pages ...Page) {
	s := &adminState{health: http.StatusOK, line: "ok", pages: http.NewServeMux()}
	var index strings.Builder
	index.WriteString("<!DOCTYPE html>\n<title>ebb</title>\n<h1>ebb</h1>\n<ul>\n")
	all := append([]Page{{Path: "/healthz", Title: "200 while the server serves, else 503"}}, pages...)
	for _, p := range all {
		if p.Handler != nil {
			s.pages.Handle(p.Path, p.Handler)
		}
		path := html.EscapeString(p.Path)
		fmt.Fprintf(&index, "<li><a href=\"%s\">%s</a> %s\n", path, path, html.EscapeString(p.Title))
	}
	index.WriteString("</ul>\n")
	s.index = index.String()
	a.state.Store(s)
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

func (a *Admin) serve(w http.ResponseWriter, r *http.Request) {
	s := a.state.Load()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are answered here", http.StatusMethodNotAllowed)
	case r.URL.Path == "/healthz":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(s.health)
		_, _ = io.WriteString(w, s.line+"\n")
	case s.pages == nil:
		http.Error(w, s.line, s.health)
	case r.URL.Path == "/":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, s.index)
	default:
		s.pages.ServeHTTP(w, r)
	}
}
