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

// Reload reads the files of TLS and the aclfile again. A part whose files have a mistake stays as it is, and
// Reload returns an error that names the file; the other part is reloaded. Connections stay
// open, except those of deleted users and those with a channel that their user may no longer have, which Reload
// closes as ACL LOAD does. Without such files Reload does nothing.
func (in *Instance) Reload() error {
	var errs []error
	for _, t := range in.serverTLS() {
		if err := t.reload(); err != nil {
			errs = append(errs, fmt.Errorf("TLS stays as it was: %w", err))
		}
	}
	if err := in.svc.ReloadUsers(); err != nil {
		errs = append(errs, fmt.Errorf("the users stay as they were: %w", err))
	}
	return errors.Join(errs...)
}

// serverTLS is the TLS configuration of one kind of listeners. Each handshake uses the newest, so that a
// reload concerns the connections after it.
type serverTLS struct {
	cfg   *config.Set
	log   *slog.Logger
	build func(*config.Set, *slog.Logger) (*tls.Config, error)

	mu  sync.Mutex // one reload at a time
	now atomic.Pointer[tls.Config]
}

// openTLS reads the files of the directives by build, and again at each Reload.
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

// serverTLS returns the configurations that openTLS has opened.
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

// certificateEnd returns when the first of the server's own certificates ends, zero if it has none. It looks for changed files.
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

// whole returns a configuration that follows Reload in all fields.
func (t *serverTLS) whole() *tls.Config {
	c := t.now.Load().Clone()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.now.Load(), nil }
	return c
}

// certificateOnly returns a configuration that follows Reload in its certificate, and to which the caller may add
// fields: net/http adds protocols.
func (t *serverTLS) certificateOnly() *tls.Config {
	c := t.now.Load().Clone()
	c.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return t.now.Load().GetCertificate(hello) }
	return c
}
