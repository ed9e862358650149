package instance

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/ebbdb/ebb/internal/config"
)

// tlsFiles is a TLS configuration that follows changes of the files of the tls-* directives: it reads them again when
// their times or sizes have changed. A handshake of an unauthenticated peer only looks up times and sizes, unless the
// files have changed or cannot be read.
type tlsFiles struct {
	cfg  *config.Set
	log  *slog.Logger
	read func() (*tls.Config, error)

	mu     sync.Mutex // guards the fields below
	now    *tls.Config
	stamp  string // tlsStamp when now was read; "": unknown
	warned string // the stamp of unreadable files that was logged
}

func (f *tlsFiles) get() *tls.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	stamp := tlsStamp(f.cfg)
	if stamp == f.stamp {
		return f.now
	}
	now, err := f.read()
	switch {
	case err == nil:
		now.MinVersion = tls.VersionTLS13
		f.now, f.stamp = now, stamp
	case f.warned != stamp:
		f.warned = stamp
		f.log.Warn("cannot read the TLS files of the group's port again", "error", err)
	}
	return f.now
}

// tlsStamp returns the times and sizes of the files of the tls-* directives, and the other directives on which the
// configuration depends.
func tlsStamp(cfg *config.Set) string {
	var files []string
	for _, name := range []string{"tls-cert-file", "tls-key-file", "tls-client-cert-file", "tls-client-key-file", "tls-ca-cert-file"} {
		files = append(files, cfg.String(name))
	}
	if dir := cfg.String("tls-ca-cert-dir"); dir != "" {
		more, _ := filepath.Glob(filepath.Join(dir, "*"))
		files = append(files, more...)
	}
	var b strings.Builder
	fmt.Fprintln(&b, cfg.String("tls-auth-clients"), cfg.String("tls-protocols"))
	for _, name := range files {
		if info, err := os.Stat(name); err == nil {
			fmt.Fprintf(&b, "%s %d %d\n", name, info.ModTime().UnixNano(), info.Size())
		}
	}
	return b.String()
}
