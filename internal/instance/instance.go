// Package instance runs a whole server: an engine, its commands, its files, and the sockets
// that they are served on, as a configuration says. cmd/ebb and package server start their
// servers here.
//
// Start reading at Start.
package instance

import (
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
	"time"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/transport"
)

// Instance is a whole server in one piece: an engine, its commands, and the
// sockets that they are served on.
type Instance struct {
	db   *engine.DB
	svc  *command.Service
	srv  *transport.Server
	stop chan struct{} // closed when a client has asked for SHUTDOWN

	loaded bool // by Open, because there was nothing to load
}

// Start opens an engine and serves it as the configuration says, and returns when
// the data is loaded. Stop it with Shutdown. level, which may be nil, is that of
// log: it follows the directive loglevel.
func Start(cfg *config.Set, log *slog.Logger, level *slog.LevelVar) (*Instance, error) {
	in, err := Open(cfg, log, level, false)
	if err != nil {
		return nil, err
	}
	if err := in.Load(context.Background()); err != nil {
		_ = in.Shutdown(context.Background())
		return nil, err
	}
	return in, nil
}

// Open is the first half of Start: the directory is locked, and clients are
// served, but hear LOADING until Load has returned; where there is nothing to load they
// never do. acceptClock starts although the
// system's clock is far behind what the files say.
func Open(cfg *config.Set, log *slog.Logger, level *slog.LevelVar, acceptClock bool) (*Instance, error) {
	loops := Loops(cfg)
	hooks := &command.Hooks{}
	in := &Instance{stop: make(chan struct{}, 1)}
	in.db = engine.Open(engine.Options{
		Databases:  cfg.Databases(),
		Shards:     int(cfg.Int("shards")),
		Hooks:      hooks,
		Reclaimers: loops,
	})
	svc, err := command.NewService(command.Options{
		DB: in.db, Config: cfg, Logger: log, Loops: loops, Port: int(cfg.Int("port")), LogLevel: level,
		Shutdown: func() {
			select {
			case in.stop <- struct{}{}:
			default:
			}
		},
	}, hooks)
	if err != nil {
		in.db.Close()
		return nil, err
	}
	in.svc = svc
	if err = svc.OpenFiles(command.FileOptions{AcceptClock: acceptClock}); err == nil {
		in.srv, err = in.listen(cfg, log, loops)
	}
	if err != nil {
		return nil, errors.Join(err, in.close())
	}
	return in, nil
}

// Load is the second half of Start. ctx ends it early; Shutdown is to follow where
// it fails.
func (in *Instance) Load(ctx context.Context) error {
	if in.loaded {
		return nil
	}
	return in.svc.Load(ctx)
}

// Loops returns how many network loops a configuration asks for. By default
// one for every two processors: a loop that has more connections to itself
// reads and writes more at once, and the other processors are left to
// reclaiming, long commands and the collector.
func Loops(cfg *config.Set) int {
	if n := int(cfg.Int("io-loops")); n > 0 {
		return n
	}
	return max(1, runtime.GOMAXPROCS(0)/2)
}

// listen binds what the configuration names.
func (in *Instance) listen(cfg *config.Set, log *slog.Logger, loops int) (*transport.Server, error) {
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
	o := transport.Options{
		NewSession: func(c transport.Conn) transport.Session { return in.svc.NewSession(c) },
		Unix:       cfg.String("unixsocket"),
		UnixGroup:  cfg.String("unixsocketgroup"),
		Loops:      loops,
		Backlog:    int(cfg.Int("tcp-backlog")),
		MaxClients: int(cfg.MaxClients()),
		Refusal:    []byte(command.Refusal),
		KeepAlive:  time.Duration(cfg.TCPKeepalive()) * time.Second,
		Logger:     log,
		Idle:       func(loop int) time.Duration { return runs[loop]() },
		Settle:     in.svc.Settle,
		Now:        func() int64 { return in.db.Clock().Micros() / 1000 },
	}
	if perm, err := strconv.ParseUint(cfg.String("unixsocketperm"), 8, 32); err == nil {
		o.UnixPerm = os.FileMode(perm)
	}
	if port := cfg.Int("tls-port"); port > 0 {
		var err error
		if o.TLS, err = tlsConfig(cfg, log); err != nil {
			return nil, err
		}
		o.TLSAddrs = addresses(cfg.Bind(), port)
	}
	srv, err := transport.New(o)
	if err != nil {
		return nil, err
	}
	close(ready)
	if err = in.bind(srv); err != nil {
		srv.Close()
		return nil, err
	}
	return srv, nil
}

// quickLoad is up to how many bytes files are loaded before the first client is served,
// which takes some ms. Redis serves clients during a load after as many.
const quickLoad = 2 << 20

// bind binds all addresses, and then serves them. Where there is little or nothing to load
// that is done in between: clients that have connected meanwhile wait, and hear no LOADING.
func (in *Instance) bind(srv *transport.Server) error {
	srv.Hold()
	err := in.svc.Open(srv)
	if err == nil {
		err = srv.ListenAll()
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

// addresses joins hosts, of which those behind a '-' are left out, and a port.
func addresses(hosts []string, port int64) []string {
	var out []string
	for _, h := range hosts {
		if !strings.HasPrefix(h, "-") {
			out = append(out, net.JoinHostPort(hostOf(h), strconv.FormatInt(port, 10)))
		}
	}
	return out
}

// hostOf turns redis.conf's words for all addresses into Go's.
func hostOf(h string) string {
	switch h {
	case "*":
		return "0.0.0.0"
	case "::*":
		return "::"
	}
	return h
}

// tlsConfig reads the tls-* directives.
func tlsConfig(cfg *config.Set, log *slog.Logger) (*tls.Config, error) {
	certs, err := transport.NewCertFiles(cfg.String("tls-cert-file"), cfg.String("tls-key-file"), log)
	if err != nil {
		return nil, err
	}
	low, high, err := config.TLSVersions(cfg.String("tls-protocols"))
	if err != nil {
		return nil, err // the table has checked it
	}
	c := &tls.Config{GetCertificate: certs.Get, MinVersion: low, MaxVersion: high}
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
			return nil, fmt.Errorf("server: cannot read the certificates of tls-ca-cert-file: %w", err)
		}
		found = c.ClientCAs.AppendCertsFromPEM(pem) || found
	}
	if !found {
		return nil, fmt.Errorf("server: clients must show a certificate, but tls-ca-cert-file and tls-ca-cert-dir name none to check it against: set one, or tls-auth-clients no")
	}
	return c, nil
}

// Service returns what the instance serves.
func (in *Instance) Service() *command.Service { return in.svc }

// DB returns the engine.
func (in *Instance) DB() *engine.DB { return in.db }

// Addrs returns the bound addresses.
func (in *Instance) Addrs() []net.Addr { return in.srv.Addrs() }

// Loops returns the number of network loops.
func (in *Instance) Loops() int { return in.srv.Loops() }

// Asked yields a value when a client has sent SHUTDOWN.
func (in *Instance) Asked() <-chan struct{} { return in.stop }

// Prepare writes out what is to be kept. After an error the server goes on. The
// context ends the wait for replicas.
func (in *Instance) Prepare(ctx context.Context, o command.ShutdownOptions) error {
	return in.svc.PrepareShutdown(ctx, o)
}

// Shutdown stops listening, lets replies be written until ctx ends, closes all
// connections, writes and syncs what was appended, and gives the engine's memory
// back.
func (in *Instance) Shutdown(ctx context.Context) error {
	err := in.srv.Shutdown(ctx)
	return errors.Join(err, in.close())
}

// close ends what is behind the sockets.
func (in *Instance) close() error {
	in.svc.Close()
	err := in.svc.Keeper().Close()
	in.db.Close()
	return err
}
