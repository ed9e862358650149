// Package server runs servers that speak the Redis protocol within a Go program: Start runs one
// of its own, as `ebb serve` does, with files, users, replicas and metrics. It is
// internal/instance behind a configuration whose fields are Go values. An engine that a program
// has embedded serves clients by embed.Engine.Serve. Start reading at Start.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/adminhttp"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/durable"
	"github.com/ebbdb/ebb/internal/instance"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/transport"
)

// Config says what server Start runs. The zero value is what `ebb serve` runs without
// arguments: 127.0.0.1:6379, data in memory.
type Config struct {
	// Addr is the TCP address, host:port. With port 0 the system chooses a free port, which
	// Server.Addr returns. Default: the directives bind, port and unixsocket of File and
	// Directives, or else 127.0.0.1:6379.
	Addr string

	// Dir is the directory of the data. Start creates it if it is missing, and locks it: one
	// directory has one server. Default: the data is in memory only, and is lost when the
	// server ends.
	Dir string

	// Fsync says when changes in Dir are safe: "always" before the reply is sent, "everysec"
	// within a second, "no" when the system writes them. Default: everysec.
	Fsync string

	// MaxMemory is the limit of memory for data, in bytes. The directive maxmemory-policy
	// says what the server does at the limit. Default: no limit.
	MaxMemory int64

	// RequirePass is the password of the default user. Default: none, and only clients of
	// this machine are served (protected-mode).
	RequirePass string

	// File is the path of a configuration file in the syntax of redis.conf. CONFIG REWRITE
	// writes it. With a file, all defaults are Redis's, also those of save and dir.
	File string

	// Directives are lines in the syntax of redis.conf, such as "maxmemory-policy allkeys-lru"
	// or "user ann on >secret ~* +@all". They override File, and the fields above override
	// them. daemonize, logfile, pidfile, supervised, shutdown-on-sigint and
	// shutdown-on-sigterm are for the program ebb and have no effect here.
	Directives []string

	// Logger receives the server's log. Default: the server logs nothing.
	Logger *slog.Logger

	// Level is the level of Logger. The server sets it to the directive loglevel, at start
	// and after CONFIG SET. May be nil.
	Level *slog.LevelVar

	// Pages are further pages, by path, next to /metrics and /healthz at the address of the
	// directive http. A path that ends in a slash stands for all below it. The directive
	// http-pprof needs a page "/debug/pprof/": package net/http/pprof has it.
	Pages map[string]http.Handler

	// AcceptClock starts the server although the system's clock is an hour or more behind the
	// time in the files of Dir.
	AcceptClock bool

	// Start calls Listening when the server accepts connections, before it loads its data.
	// Until the data is loaded, clients get the error LOADING. Start waits for it. May be
	// nil.
	Listening func(addrs []net.Addr)
}

// closeGrace is the time that Close, and a client's SHUTDOWN, wait until replies are
// written.
const closeGrace = 5 * time.Second

// Server is a running server. Its methods may be called from any goroutine.
type Server struct {
	in *instance.Instance

	hurry context.Context // ends when Close is called; Shutdown then stops waiting
	now   context.CancelFunc
	end   sync.Mutex    // held by the method that ends the server
	quit  chan struct{} // closed when the server has ended
	err   error         // what it ended with; set before quit is closed
	wg    sync.WaitGroup
}

// Start runs a server as the program `ebb serve` does, by the same code, and returns when
// its data is loaded and it serves. The end of ctx ends the load, and Start then returns an
// error; afterwards the server does not depend on ctx. The caller must call Shutdown or Close,
// unless Wait has returned.
//
// Errors say which directive, address or file is wrong and what would be right.
func Start(ctx context.Context, c Config) (*Server, error) {
	ln, err := c.listen()
	if err != nil {
		return nil, err
	}
	in, err := c.start(ctx, ln)
	if err != nil {
		if ln != nil {
			_ = ln.Close() // a second Close if the server has closed it already
		}
		return nil, err
	}
	s := &Server{in: in, quit: make(chan struct{})}
	s.hurry, s.now = context.WithCancel(context.Background())
	s.wg.Go(s.obey)
	return s, nil
}

// listen binds Addr if its port is 0. The directive port cannot say this, because its 0
// means no TCP port.
func (c *Config) listen() (net.Listener, error) {
	if c.Addr == "" {
		return nil, nil
	}
	_, port, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return nil, fmt.Errorf("server: Config.Addr is %q, and must be host:port, such as 127.0.0.1:6379: %w", c.Addr, err)
	}
	if port != "0" {
		return nil, nil
	}
	return transport.ListenTCP(c.Addr, "Config.Addr")
}

// start runs an instance. ln is its TCP listener, or nil if the directives say the
// address.
func (c *Config) start(ctx context.Context, ln net.Listener) (*instance.Instance, error) {
	addr := c.Addr
	o := instance.Options{Log: c.Logger, Level: c.Level, AcceptClock: c.AcceptClock}
	if ln != nil {
		addr = ln.Addr().String()
		o.Listeners = []net.Listener{ln}
	}
	lines, err := c.lines(addr)
	if err != nil {
		return nil, err
	}
	if c.Dir != "" {
		if err := disk.OS().MkdirAll(c.Dir); err != nil {
			return nil, fmt.Errorf("server: Config.Dir: %w", err)
		}
	}
	if o.Config, err = config.LoadLines(c.File, lines, "server.Config"); err != nil {
		return nil, err
	}
	for path, handler := range c.Pages {
		o.Pages = append(o.Pages, adminhttp.Page{Path: path, Handler: handler})
	}
	slices.SortFunc(o.Pages, func(a, b adminhttp.Page) int { return strings.Compare(a.Path, b.Path) })
	if o.Config.Bool("http-pprof") && c.Pages["/debug/pprof/"] == nil {
		return nil,
			errors.New(`server: the directive http-pprof is yes, and Config.Pages has no "/debug/pprof/": add http.HandlerFunc(pprof.Index) of ` +
				`net/http/pprof`)
	}
	if c.Listening != nil {
		o.Listening = func(in *instance.Instance) { c.Listening(in.Addrs()) }
	}
	return instance.Start(ctx, o)
}

// lines returns the directives, with those of the fields after them.
func (c *Config) lines(addr string) ([]string, error) {
	lines := slices.Clone(c.Directives)
	add := func(name, value string) { lines = append(lines, name+" "+config.Quote(value)) }
	if addr != "" {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err // listen has split the address already
		}
		host = cmp.Or(host, "*")
		add("bind", host)
		add("port", port)
	}
	if c.Dir != "" {
		add("dir", c.Dir)
	}
	if c.Fsync != "" {
		add("appendfsync", c.Fsync)
	}
	if c.MaxMemory != 0 {
		add("maxmemory", strconv.FormatInt(c.MaxMemory, 10))
	}
	if c.RequirePass != "" {
		add("requirepass", c.RequirePass)
	}
	return lines, nil
}

// obey ends the server after a client's SHUTDOWN, which has saved the data.
func (s *Server) obey() {
	select {
	case <-s.quit:
	case <-s.in.Asked():
		ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
		defer cancel()
		_ = s.finish(ctx, nil)
	}
}

// Addr returns the first address that the server listens on, nil if there is none.
func (s *Server) Addr() net.Addr {
	if all := s.in.Addrs(); len(all) > 0 {
		return all[0]
	}
	return nil
}

// Addrs returns all addresses that the server listens on: TCP, then TLS, then the unix socket.
func (s *Server) Addrs() []net.Addr { return s.in.Addrs() }

// AdminAddr returns the address of /metrics, /healthz and Config.Pages, nil without the
// directive http.
func (s *Server) AdminAddr() net.Addr { return s.in.AdminAddr() }

// Conn returns a Conn over the server's engine, in database 0: a call is a function call in this
// process, without a socket. The objects of the toolkit take it. The caller must close it before
// Shutdown and Close; its Close leaves the server running.
func (s *Server) Conn() *conn.Conn { return s.in.Conn() }

// Reload reads the files of TLS and the aclfile again, as `ebb serve` does at SIGHUP. A part whose files have a mistake
// stays as it is, and the error names the file. Connections stay open, except those of users that are gone.
func (s *Server) Reload() error { return s.in.Reload() }

// Done returns a channel that is closed when the server has ended: by Shutdown, by Close, or
// because a client has sent SHUTDOWN.
func (s *Server) Done() <-chan struct{} { return s.quit }

// Wait waits until the server has ended, and returns the error that it ended with: nil,
// unless files could not be written or replies could not be sent.
func (s *Server) Wait() error {
	<-s.quit
	s.wg.Wait()
	return s.err
}

// Shutdown ends the server as the command SHUTDOWN does: it waits for replicas, writes a
// snapshot where save points are set, lets replies be written until ctx ends, and syncs
// the files. If the data cannot be saved, Shutdown returns an error and the server goes on.
// On a server that has ended it returns what Wait does.
func (s *Server) Shutdown(ctx context.Context) error {
	prepare, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(s.hurry, stop)()
	return s.finish(ctx, func() error { return s.in.Prepare(prepare, session.ShutdownOptions{}) })
}

// Close ends the server as SHUTDOWN NOSAVE NOW FORCE does: it writes no snapshot and waits for no
// replica, gives replies five seconds, and syncs the files. It ends a
// Shutdown that waits, and may be called more than once.
func (s *Server) Close() error {
	s.now()
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	return s.finish(ctx, func() error {
		// it logs the error; a client's SHUTDOWN may be under way
		_ = s.in.Prepare(ctx, session.ShutdownOptions{Mode: durable.ShutdownNoSave, Now: true, Force: true})
		return nil
	})
}

// finish ends the server once. If prepare returns an error, the server continues.
func (s *Server) finish(ctx context.Context, prepare func() error) error {
	s.end.Lock()
	defer s.end.Unlock()
	select {
	case <-s.quit:
		return s.err
	default:
	}
	if prepare != nil {
		if err := prepare(); err != nil {
			return err
		}
	}
	s.now()
	s.err = s.in.Shutdown(ctx)
	close(s.quit)
	return s.err
}
