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

// tlsFiles is a configuration that is read from the files of the tls-* directives again when their times or sizes have changed. A peer that
// has proved nothing makes a handshake look at them, and no more, unless they cannot be read.
type tlsFiles struct {
	cfg  *config.Set
	log  *slog.Logger
	read func() (*tls.Config, error)

	mu     sync.Mutex // guards what follows
	now    *tls.Config
	stamp  string // of the files when now was read; "": not known
	warned string // the stamp of files that could not be read
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
		f.log.Warn("the TLS files of the group's port cannot be read again", "error", err)
	}
	return f.now
}

// tlsStamp returns the times and sizes of the files of the tls-* directives, and the other directives that the configurations depend on.
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
