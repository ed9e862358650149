package instance

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/certtest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// Reload reads the certificate, the clients' authorities and the users again. A file with a mistake leaves its part
// unchanged.
func TestReloadReadsTheFilesOfTLSAndTheUsers(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, text []byte) {
		t.Helper()
		if err := os.WriteFile(path(name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := func(name string) {
		cert, key := certtest.Make(t, name)
		write("cert.pem", cert)
		write("key.pem", key)
	}
	server("first.test")
	client := func(name string) tls.Certificate {
		cert, key := certtest.Make(t, name)
		write(name+".pem", cert)
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	ann, bob := client("ann"), client("bob")
	trust := func(name string) {
		cert, err := os.ReadFile(path(name + ".pem"))
		if err != nil {
			t.Fatal(err)
		}
		write("ca.pem", cert)
	}
	trust("ann")
	write("users.acl", []byte("user default on nopass ~* &* +@all\nuser ann on nopass ~* +get\n"))
	tlsPort, http := unusedPort(t), unusedPort(t)
	in := startOnPort(t, "--port", "0", "--unixsocket", realserver.Socket(t), "--tls-port", strconv.Itoa(tlsPort),
		"--tls-cert-file", path("cert.pem"), "--tls-key-file", path("key.pem"), "--tls-ca-cert-file", path("ca.pem"),
		"--aclfile", path("users.acl"), "--http", "127.0.0.1:"+strconv.Itoa(http), "--http-tls", "yes")
	c := dial(t, in.svc.Config.String("unixsocket"))

	// handshake returns the server's certificate name, and whether the server accepts the client.
	handshake := func(port int, who tls.Certificate) (name string, served bool) {
		t.Helper()
		o := &tls.Config{Certificates: []tls.Certificate{who}, InsecureSkipVerify: true} //nolint:gosec // the test compares names
		o.VerifyPeerCertificate = func(raw [][]byte, _ [][]*x509.Certificate) error {
			cert, err := x509.ParseCertificate(raw[0])
			if err == nil {
				name = cert.Subject.CommonName
			}
			return err
		}
		conn, err := tls.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), o)
		if err != nil {
			return name, false
		}
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(deadline(t))
		_, err = conn.Write([]byte("PING\r\n"))
		if err == nil {
			_, err = conn.Read(make([]byte, 1))
		}
		return name, err == nil
	}
	check := func(when, name string, annServed, bobServed bool, users string) {
		t.Helper()
		for who, x := range map[string]struct {
			cert tls.Certificate
			want bool
		}{"ann": {ann, annServed}, "bob": {bob, bobServed}} {
			if got, served := handshake(tlsPort, x.cert); got != name || served != x.want {
				t.Errorf("%s: %s sees the certificate of %s and is served: %v; want %s, %v", when, who, got, served, name, x.want)
			}
		}
		if got, _ := handshake(http, ann); got != name {
			t.Errorf("%s: the pages show the certificate of %s, want %s", when, got, name)
		}
		var got []string
		for _, u := range c.must("ACL", "USERS").Elems {
			got = append(got, u.Str)
		}
		if s := strings.Join(got, " "); s != users {
			t.Errorf("%s: users are %s, want %s", when, s, users)
		}
	}
	check("at the start", "first.test", true, false, "ann default")
	if end := in.svc.Admin().CertificateEnd(); end.Year() != 2200 {
		t.Errorf("the certificate ends at %v, want the year 2200", end)
	}

	server("second.test")
	trust("bob")
	write("users.acl", []byte("user default on nopass ~* &* +@all\nuser bob on nopass ~* +get\n"))
	if err := in.Reload(); err != nil {
		t.Fatal(err)
	}
	check("after a reload", "second.test", false, true, "bob default")

	write("ca.pem", []byte("nonsense"))
	write("users.acl", []byte("user default on nopass ~* &* +@all\nuser carl on nopass ~* +get\n"))
	if err := in.Reload(); err == nil || !strings.Contains(err.Error(), "tls-ca-cert-file") ||
		strings.Contains(err.Error(), "the users stay") {
		t.Errorf("with a CA file that has no certificate: %v", err)
	}
	check("after a CA file without certificates", "second.test", false, true, "carl default")

	trust("ann")
	write("users.acl", []byte("user dora on nopass +nonsense\n"))
	if err := in.Reload(); err == nil || !strings.Contains(err.Error(), "nonsense") || strings.Contains(err.Error(), "TLS stays") {
		t.Errorf("with an aclfile that has a mistake: %v", err)
	}
	check("after an aclfile with a mistake", "second.test", true, false, "carl default")
}

func TestReloadWithoutFilesDoesNothing(t *testing.T) {
	in := startOnPort(t, "--port", "0", "--unixsocket", realserver.Socket(t))
	if err := in.Reload(); err != nil {
		t.Error(err)
	}
	if end := in.svc.Admin().CertificateEnd(); !end.IsZero() {
		t.Errorf("without TLS a certificate ends at %v", end)
	}
}
