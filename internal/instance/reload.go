package instance

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/config"
)

// Reload reads the files of TLS and the aclfile again. If a file has a mistake, its part (TLS or the users) stays
// unchanged, and Reload returns an error that names the file; the other part is reloaded. Connections stay open,
// except for those of deleted users and those with a channel that their user no longer may use, which Reload closes
// as ACL LOAD does. Without such files Reload does nothing.
func (in *Instance) Reload() error {
	var errs []error
	for _, t := range in.serverTLS() {
		if err := t.reload(); err != nil {
			errs = append(errs, fmt.Errorf("the TLS configuration is unchanged: %w", err))
		}
	}
	if err := in.svc.ReloadUsers(); err != nil {
		errs = append(errs, fmt.Errorf("the users are unchanged: %w", err))
	}
	return errors.Join(errs...)
}

// serverTLS is the TLS configuration of one kind of listener. Each handshake uses the newest one, so a reload affects
// only later connections.
type serverTLS struct {
	cfg   *config.Set
	log   *slog.Logger
	build func(*config.Set, *slog.Logger) (*tls.Config, error)

	mu  sync.Mutex // one reload at a time
	now atomic.Pointer[tls.Config]
}

// openTLS builds a configuration from the files of the directives. Reload builds it again.
func (in *Instance) openTLS(cfg *config.Set, log *slog.Logger,
	build func(*config.Set, *slog.Logger) (*tls.Config, error)) (*serverTLS, error) {
	t := &serverTLS{cfg: cfg, log: log, build: build}
	if err := t.reload(); err != nil {
		return nil, err
	}
	in.tlsMu.Lock()
	defer in.tlsMu.Unlock()
	in.tls = append(in.tls, t)
	return t, nil
}

// serverTLS returns the configurations that openTLS has built.
func (in *Instance) serverTLS() []*serverTLS {
	in.tlsMu.Lock()
	defer in.tlsMu.Unlock()
	return in.tls
}

func (t *serverTLS) reload() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, err := t.build(t.cfg, t.log)
	if err == nil {
		t.now.Store(c)
	}
	return err
}

// certificateEnd returns the earliest end of the server's own certificates, or zero if it has none. It checks the
// files for changes.
func (in *Instance) certificateEnd() (end time.Time) {
	for _, t := range in.serverTLS() {
		cert, err := t.now.Load().GetCertificate(nil)
		if err != nil || cert.Leaf == nil {
			continue
		}
		if at := cert.Leaf.NotAfter; end.IsZero() || at.Before(end) {
			end = at
		}
	}
	return end
}

// whole returns a configuration all of whose fields follow Reload.
func (t *serverTLS) whole() *tls.Config {
	c := t.now.Load().Clone()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.now.Load(), nil }
	return c
}

// certificateOnly returns a configuration whose certificate follows Reload. The caller may change its fields, as
// net/http does with protocols.
func (t *serverTLS) certificateOnly() *tls.Config {
	c := t.now.Load().Clone()
	c.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return t.now.Load().GetCertificate(hello) }
	return c
}
