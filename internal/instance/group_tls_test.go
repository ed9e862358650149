package instance

import (
	"bytes"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/testing/certtest"
)

// A node of a group runs for longer than its certificate is valid, and the next certificate may have a new authority.
func TestTheNodesOfAGroupTakeNewCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	written := time.Unix(1_800_000_000, 0)
	write := func(cert, key []byte) {
		t.Helper()
		written = written.Add(time.Second) // the file system's clock may not have advanced
		for name, b := range map[string][]byte{certFile: cert, keyFile: key} {
			if err := errors.Join(os.WriteFile(name, b, 0o600), os.Chtimes(name, written, written)); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(certtest.Make(t, "first"))
	cfg, err := config.Load([]string{"--tls-cert-file", certFile, "--tls-key-file", keyFile, "--tls-ca-cert-file", certFile}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer // the handler has a lock
	server, client, err := GroupTLS(cfg, slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// shake makes a handshake, and returns the certificate names that the two sides have seen.
	shake := func() (ofServer, ofClient string) {
		t.Helper()
		dialled, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer dialled.Close()
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer accepted.Close()
		c, s := tls.Client(dialled, client), tls.Server(accepted, server)
		failed := make(chan error, 1)
		go func() { failed <- c.Handshake() }()
		if err := s.Handshake(); err != nil {
			t.Fatal("the side that accepts: ", err)
		}
		if err := <-failed; err != nil {
			t.Fatal("the side that dials: ", err)
		}
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName, s.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	for _, want := range []string{"first", "second"} {
		if want == "second" {
			write(certtest.Make(t, want))
		}
		if s, c := shake(); s != want || c != want {
			t.Errorf("the two sides show %q and %q, want %q", s, c, want)
		}
	}
	if err := os.WriteFile(certFile, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		shake() // uses the old content
	}
	if n := strings.Count(said.String(), "cannot read the TLS files"); n != 2 { // once for accepting and once for dialling
		t.Errorf("the log has said %d times that the files cannot be read: %s", n, said.String())
	}
}
