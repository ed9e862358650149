package transport

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// CertFiles serves a certificate from two PEM files and notices when they change: Get, for
// tls.Config.GetCertificate, compares their times and sizes at each handshake and reads
// them again when they differ. While the new files cannot be read or do not match, the old
// certificate stays in use; CertFiles logs one warning per change.
type CertFiles struct {
	certPath, keyPath string
	log               *slog.Logger

	mu    sync.Mutex // guards what follows
	cert  *tls.Certificate
	stamp [2]fileStamp
}

type fileStamp struct {
	modified time.Time
	size     int64
}

// NewCertFiles reads the files a first time. log may be nil.
func NewCertFiles(certPath, keyPath string, log *slog.Logger) (*CertFiles, error) {
	f := &CertFiles{certPath: certPath, keyPath: keyPath, log: log}
	stamp, err := f.look()
	if err == nil {
		err = f.load()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the TLS certificate %s with key %s: %w", certPath, keyPath, err)
	}
	f.stamp = stamp
	return f, nil
}

// Get returns the certificate in the files, which it reads again if they have changed.
func (f *CertFiles) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	stamp, err := f.look()
	if err == nil && stamp != f.stamp {
		err = f.load()
		f.stamp = stamp
		if err != nil && f.log != nil {
			f.log.Warn("cannot reload the TLS certificate; the old one stays in use", "file", f.certPath, "error", err)
		}
	}
	return f.cert, nil
}

func (f *CertFiles) look() (stamp [2]fileStamp, err error) {
	for i, path := range []string{f.certPath, f.keyPath} {
		info, err := os.Stat(path)
		if err != nil {
			return stamp, err
		}
		stamp[i] = fileStamp{info.ModTime(), info.Size()}
	}
	return stamp, nil
}

func (f *CertFiles) load() error {
	cert, err := tls.LoadX509KeyPair(f.certPath, f.keyPath)
	if err == nil {
		f.cert = &cert
	}
	return err
}
