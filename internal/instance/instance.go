// Package instance runs a whole server from a configuration: an engine, its commands, its files and its sockets.
// cmd/ebb and package server start their servers with Start.
//
// Start reading at Start.
package instance

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/console"
	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/adminhttp"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/embedded"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/promtext"
	"github.com/ebbdb/ebb/internal/replication"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/transport"
)

// Options configure an instance. Only Config is required.
type Options struct {
	Config *config.Set
	Log    *slog.Logger   // nil: no log
	Level  *slog.LevelVar // level of Log; the server sets it by the directive loglevel; may be nil

	// Clock is the source of the engine's time; nil: a new clock.System.
	Clock clock.Clock
	// AcceptClock starts the server even if the system's clock is far behind the files.
	AcceptClock bool
	// Listeners are open listeners. The server uses each of them instead of binding its address, and closes it.
	Listeners []net.Listener
	// Pages are additional pages at the address of the directive http, next to /metrics.
	Pages []adminhttp.Page
	// Group makes the server a member of a group; nil: none.
	Group Group
	// Bound is called after the addresses are bound and before the first client is served; may be nil.
	Bound func()
	// Listening is called when clients are served, before the data is loaded; may be nil.
	Listening func(*Instance)
}

// Group is a server's membership in a group (internal/group).
type Group interface {
	session.Member
	// Clock is called once, before Attach, with the engine's time outside of a group. It returns the engine's time in
	// the group.
	Clock(machine clock.Clock) clock.Clock
	// Attach is called once, before there are clients.
	Attach(svc *session.Service)
	// Begin is called when the data is loaded. It starts to take part in the group, and does not wait for the other
	// nodes.
	Begin() error
	// Close ends the membership. It is called before the service is closed, even if Begin was not called.
	Close() error
}

// Instance is a whole server: an engine, its commands, its sockets, and the pages for operators.
type Instance struct {
	db    *engine.DB
	svc   *session.Service
	srv   *transport.Server
	admin *adminhttp.Admin // nil: no directive http
	pages []adminhttp.Page
	// console is nil without the directive http or with http-console no.
	console *console.Console
	stop    chan struct{} // receives a value when a client has sent SHUTDOWN
	pulse   pulse
	group   Group // nil: none

	tlsMu sync.Mutex   // guards tls: the pages read it while the server opens its ports
	tls   []*serverTLS // for the TLS port and the pages for operators

	loaded bool // by Open, because there was little or no data
}

// Start opens an engine and serves it as the configuration says. It returns when the data is loaded. Stop the server
// with Shutdown. If ctx ends during the load, Start returns an error; a started server does not depend on ctx.
func Start(ctx context.Context, o Options) (*Instance, error) {
	in, err := Open(o)
	if err != nil {
		return nil, err
	}
	if o.Listening != nil {
		o.Listening(in)
	}
	if err := in.Load(ctx); err != nil {
		_ = in.Shutdown(context.WithoutCancel(ctx))
		return nil, err
	}
	return in, nil
}

// Open is the first half of Start. It locks the directory and serves clients, which get LOADING until Load has
// returned. If there is little data, Open loads it before it serves the first client.
func Open(o Options) (in *Instance, err error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	in = &Instance{stop: make(chan struct{}, 1)}
	limit := descriptorLimit()
	divided := divide(limit, adminhttp.AdminAddr(o.Config.String("http")) != "")
	if err := lowerMaxClients(o.Config, o.Log, limit, divided); err != nil {
		return nil, err
	}
	if in.admin, err = in.listenAdmin(o.Config, o.Log, divided.http); err != nil {
		return nil, err
	}
	if err := in.open(o, divided); err != nil {
		return nil, errors.Join(err, in.closeAdmin())
	}
	metrics := promtext.Handler(admin.NewMeter(in.svc.Admin()).Read)
	in.pages = append(append(in.pages, adminhttp.Page{Path: "/metrics", Title: "for Prometheus", Handler: metrics}), o.Pages...)
	return in, nil
}

// open opens the engine, the commands and the files.
func (in *Instance) open(o Options, divided descriptors) error {
	cfg := o.Config
	loops := Loops(cfg)
	hooks := &session.Hooks{}
	source := o.Clock
	if o.Group != nil {
		source = o.Group.Clock(cmp.Or(source, clock.Clock(clock.NewSystem())))
	}
	in.db = engine.Open(engine.Options{
		Clock:      source,
		Databases:  cfg.Databases(),
		Shards:     int(cfg.Int("shards")),
		Hooks:      hooks,
		Reclaimers: loops,
	})
	svc, err := session.NewService(session.Options{
		DB: in.db, Table: servercmd.Table, Config: cfg, Logger: o.Log, Loops: loops, Port: int(cfg.Int("port")), LogLevel: o.Level,
		MostClients: divided.clients, Group: member(o.Group),
		Shutdown: func() {
			select {
			case in.stop <- struct{}{}:
			default:
			}
		},
	}, hooks)
	if err != nil {
		in.db.Close()
		return err
	}
	in.svc = svc
	if in.group = o.Group; o.Group != nil {
		o.Group.Attach(svc)
	}
	svc.Admin().CertificateEnd = in.certificateEnd
	if in.admin != nil {
		svc.Admin().HTTP = in.admin.Connections
	}
	if err = svc.OpenFiles(session.FileOptions{AcceptClock: o.AcceptClock}); err == nil {
		err = in.openConsole(cfg, o.Log) // the console's samples read the state of the files
	}
	if err == nil {
		in.srv, err = in.listen(cfg, o, loops)
	}
	if err != nil {
		return errors.Join(err, in.close())
	}
	return nil
}

// Conn returns a Conn on the engine, for the program that runs the server. The caller must close it before Shutdown.
func (in *Instance) Conn() *conn.Conn { return embedded.Lend(in.svc) }

// Load is the second half of Start; it then serves the pages for operators. The end of ctx ends the load. After an
// error the caller must call Shutdown.
func (in *Instance) Load(ctx context.Context) error {
	if !in.loaded {
		if err := in.svc.Load(ctx); err != nil {
			return err
		}
	}
	if in.group != nil {
		if err := in.group.Begin(); err != nil {
			return err
		}
	}
	if in.admin != nil {
		in.admin.Ready(in.pages...)
	}
	return nil
}

// GroupTLS returns the TLS configurations of the group's port: for accepting, as the server's TLS port, and for
// dialling, as replicas do. Both follow changes of the files, because nodes run for longer than certificates are
// valid. While a file cannot be read, handshakes use its old content.
func GroupTLS(cfg *config.Set, log *slog.Logger) (server, client *tls.Config, err error) {
	if server, err = tlsConfig(cfg, log); err == nil {
		client, err = replication.ClientTLS(cfg.String)
	}
	if err != nil {
		return nil, nil, err
	}
	server.MinVersion, client.MinVersion = tls.VersionTLS13, tls.VersionTLS13
	accepts := &tlsFiles{cfg: cfg, log: log, now: server.Clone(), read: func() (*tls.Config, error) { return tlsConfig(cfg, log) }}
	server.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return accepts.get(), nil }
	dials := &tlsFiles{cfg: cfg, log: log, now: client, read: func() (*tls.Config, error) { return replication.ClientTLS(cfg.String) }}
	client = client.Clone()
	client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if all := dials.get().Certificates; len(all) > 0 {
			return &all[0], nil
		}
		return &tls.Certificate{}, nil
	}
	client.VerifyConnection = func(s tls.ConnectionState) error { return dials.get().VerifyConnection(s) }
	return server, client, nil
}

// member returns g as a session.Member, which is nil if g is nil.
func member(g Group) session.Member {
	if g == nil {
		return nil
	}
	return g
}

// Loops returns the number of network loops for a configuration. The default is one for every two processors. A loop
// with more connections reads and writes more per system call, and the other processors are free for reclaiming, long
// commands and the garbage collector.
func Loops(cfg *config.Set) int {
	if n := int(cfg.Int("io-loops")); n > 0 {
		return n
	}
	return max(1, runtime.GOMAXPROCS(0)/2)
}

// listen binds the addresses of the configuration, and serves them.
func (in *Instance) listen(cfg *config.Set, opt Options, loops int) (*transport.Server, error) {
	reclaimers := make([]*engine.Reclaimer, loops)
	runs := make([]func() time.Duration, loops)
	var srv *transport.Server
	ready := make(chan struct{})
	for i := range reclaimers {
		reclaimers[i] = in.db.Reclaimer(i, func() {
			<-ready
			srv.Nudge(i)
		})
		run := reclaimers[i].Run
		runs[i] = func() time.Duration { return in.svc.Reclaim(run) }
	}
	in.pulse = pulse{turns: make([]turns, loops), reclaim: runs}
	o := transport.Options{
		NewSession: func(c transport.Conn) transport.Session { return in.svc.NewSession(c) },
		Unix:       cfg.String("unixsocket"),
		UnixGroup:  cfg.String("unixsocketgroup"),
		Loops:      loops,
		Backlog:    int(cfg.Int("tcp-backlog")),
		MaxClients: int(cfg.MaxClients()),
		Refusal:    []byte(session.Refusal),
		KeepAlive:  time.Duration(cfg.TCPKeepalive()) * time.Second,
		Logger:     opt.Log,
		Bound:      opt.Listeners,
		Idle:       in.pulse.idle,
		Settle:     in.svc.Settle,
		Now:        func() int64 { return in.db.Steady().Micros() / 1000 },
	}
	if perm, err := strconv.ParseUint(cfg.String("unixsocketperm"), 8, 32); err == nil {
		o.UnixPerm = os.FileMode(perm)
	}
	if port := cfg.Int("tls-port"); port > 0 {
		files, err := in.openTLS(cfg, opt.Log, tlsConfig)
		if err != nil {
			return nil, err
		}
		o.TLS = files.whole()
		o.TLSAddrs = addresses(cfg.Bind(), port)
	}
	srv, err := transport.New(o)
	if err != nil {
		return nil, err
	}
	close(ready)
	if err = in.bind(srv, opt.Bound); err != nil {
		srv.Close()
		return nil, err
	}
	return srv, nil
}

// quickLoad is the size of files, in bytes, up to which the server loads them before it serves the first client. Such
// a load takes a few ms. Redis serves clients during a load after the same number of bytes.
const quickLoad = 2 << 20

// bind binds all addresses, calls bound if it is not nil, and then serves clients. If there is little or no data,
// bind loads it before it serves clients: those that have connected meanwhile wait, and get no LOADING.
func (in *Instance) bind(srv *transport.Server, bound func()) error {
	srv.Hold()
	err := in.svc.Open(srv)
	if err == nil {
		err = srv.ListenAll()
	}
	if err == nil && bound != nil {
		bound()
	}
	if err == nil && in.svc.Keeper().LoadSize() <= quickLoad {
		err = in.svc.Load(context.Background())
		in.loaded = true
	}
	if err == nil {
		err = srv.LetIn()
	}
	return err
}

// addresses joins each host with the port. It leaves out hosts that begin with '-'.
func addresses(hosts []string, port int64) []string {
	var out []string
	for _, h := range hosts {
		if !strings.HasPrefix(h, "-") {
			out = append(out, net.JoinHostPort(hostOf(h), strconv.FormatInt(port, 10)))
		}
	}
	return out
}

// hostOf converts redis.conf's names for all addresses to Go's.
func hostOf(h string) string {
	switch h {
	case "*":
		return "0.0.0.0"
	case "::*":
		return "::"
	}
	return h
}

// certificate reads the tls-* directives about the server's own certificate.
func certificate(cfg *config.Set, log *slog.Logger) (*tls.Config, error) {
	certs, err := transport.NewCertFiles(cfg.String("tls-cert-file"), cfg.String("tls-key-file"), log)
	if err != nil {
		return nil, err
	}
	low, high, err := config.TLSVersions(cfg.String("tls-protocols"))
	if err != nil {
		return nil, err // config has checked it
	}
	return &tls.Config{GetCertificate: certs.Get, MinVersion: low, MaxVersion: high}, nil
}

// tlsConfig reads the tls-* directives.
func tlsConfig(cfg *config.Set, log *slog.Logger) (*tls.Config, error) {
	c, err := certificate(cfg, log)
	if err != nil {
		return nil, err
	}
	switch cfg.String("tls-auth-clients") {
	case "no":
		return c, nil
	case "optional":
		c.ClientAuth = tls.VerifyClientCertIfGiven
	default:
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	c.ClientCAs = x509.NewCertPool()
	files := []string{cfg.String("tls-ca-cert-file")}
	if dir := cfg.String("tls-ca-cert-dir"); dir != "" {
		more, _ := filepath.Glob(filepath.Join(dir, "*"))
		files = append(files, more...)
	}
	found := false
	for _, f := range files {
		if f == "" {
			continue
		}
		pem, err := os.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("server: cannot read the certificates of tls-ca-cert-file or tls-ca-cert-dir: %w", err)
		}
		found = c.ClientCAs.AppendCertsFromPEM(pem) || found
	}
	if !found {
		return nil, fmt.Errorf("server: clients must show a certificate, but tls-ca-cert-file and tls-ca-cert-dir have " +
			"none to check it against: set one, or tls-auth-clients no")
	}
	return c, nil
}

// Service returns the service that runs the instance's commands.
func (in *Instance) Service() *session.Service { return in.svc }

// DB returns the engine.
func (in *Instance) DB() *engine.DB { return in.db }

// Addrs returns the bound addresses.
func (in *Instance) Addrs() []net.Addr { return in.srv.Addrs() }

// Loops returns the number of network loops.
func (in *Instance) Loops() int { return in.srv.Loops() }

// Alive wakes every network loop, and returns when each has run once and its reclaimer has finished a slice of work.
// If ctx ends first, Alive returns an error that names a loop that has not: a command or a reclaimer has occupied it,
// or the program is stuck. Alive is for the watchdog of a service manager. It takes the time of a wake-up, about 50
// us, and that of a slice.
func (in *Instance) Alive(ctx context.Context) error {
	return in.pulse.alive(ctx, max(in.srv.Loops(), 1), in.srv.Nudge) // without event loops one goroutine does the idle work
}

// AdminAddr returns the address of the pages for operators, or nil.
func (in *Instance) AdminAddr() net.Addr {
	if in.admin == nil {
		return nil
	}
	return in.admin.Addr()
}

// Asked returns a channel that receives a value when a client has sent SHUTDOWN and the data is saved.
func (in *Instance) Asked() <-chan struct{} { return in.stop }

// Prepare saves the data as the command SHUTDOWN does. After an error the server continues. The end of ctx ends the
// wait for replicas.
func (in *Instance) Prepare(ctx context.Context, o session.ShutdownOptions) error {
	return in.svc.PrepareShutdown(ctx, o)
}

// Shutdown stops listening, lets replies be written until ctx ends, closes all connections, writes and syncs the
// append-only file, and releases the engine's memory. It does not save a snapshot; Prepare does.
func (in *Instance) Shutdown(ctx context.Context) error {
	if in.admin != nil {
		in.admin.Leave()
	}
	in.closeConsole()
	err := in.srv.Shutdown(ctx)
	return errors.Join(err, in.close(), in.closeAdmin())
}

// closeAdmin closes the pages for operators.
func (in *Instance) closeAdmin() error {
	if in.admin == nil {
		return nil
	}
	return in.admin.Close()
}

// close closes the console, the files, the commands and the engine.
func (in *Instance) close() error {
	in.closeConsole()
	var err error
	if in.group != nil {
		err = in.group.Close()
	}
	in.svc.Close()
	err = errors.Join(err, in.svc.Keeper().Close())
	in.db.Close()
	return err
}
