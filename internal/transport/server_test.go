package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/certtest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

func TestListenErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	busy := filepath.Join(dir, "busy")
	ln, err := net.Listen("unix", busy)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Addrs: []string{taken.Addr().String()}}, "cannot listen on " + taken.Addr().String() +
			": address already in use; is another server running? choose another with --port"},
		{Options{Addrs: []string{"192.0.2.1:0"}}, "this machine does not have that address"},
		{Options{Addrs: []string{"nothing"}}, `cannot listen on "nothing": not host:port`},
		{Options{TLSAddrs: []string{"127.0.0.1:0"}}, "TLS addresses need a certificate"},
		{Options{Unix: dir}, "a directory has that name"},
		{Options{Unix: filepath.Join(dir, "s"), UnixGroup: "no such group"}, `the system has no group "no such group"`},
		{Options{Unix: busy}, "another server is serving it"},
		{Options{Unix: filepath.Join(dir, "no", "where")}, "its directory does not exist"},
		{Options{Unix: filepath.Join(dir, strings.Repeat("x", 200))}, "the path is too long"},
	} {
		c.o.NewSession = h.session
		s, err := Listen(c.o)
		if err == nil {
			s.Close()
			t.Errorf("no error, want %q", c.want)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// As on redis-server 7.0.15, which removes what stands there first.
func TestAUnixSocketTakesThePlaceOfAFileAndOfALink(t *testing.T) {
	t.Parallel()
	h, dir := newHub(t), t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	kept := filepath.Join(dir, "kept")
	err := errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.WriteFile(kept, []byte("x"), 0o600), os.Symlink(kept, link))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link} {
		s, err := Listen(Options{NewSession: h.session, Unix: path, UnixGroup: strconv.Itoa(os.Getgid())})
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSocket == 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		s.Close()
	}
	if text, err := os.ReadFile(kept); err != nil || string(text) != "x" {
		t.Errorf("what the link named: %q, %v", text, err)
	}
}

func TestAUnixSocketReplacesOneThatIsNotServed(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	path := realserver.Socket(t)
	dead, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = dead.Close()
	s, err := Listen(Options{NewSession: h.session, Unix: path, UnixPerm: 0o700})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	s.Close()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

func TestServeServesAnyListenerUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	for _, portable := range []bool{false, true} {
		h := newHub(t)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- ServeSessions(ctx, ln, Options{NewSession: h.session, Portable: portable}) }()
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		send(t, c, "ECHO x\r\n")
		expect(t, bufio.NewReader(c), "x")
		cancel()
		if err := receive(t, done); err != nil {
			t.Error(err)
		}
		if err := receive(t, h.closed); err != ErrShutdown {
			t.Errorf("closed with %v", err)
		}
		_ = c.Close()
	}
}

func TestAnAddressCanBeAddedAndRemoved(t *testing.T) {
	t.Parallel()
	for _, portable := range []bool{false, true} {
		h := newHub(t)
		s, err := Listen(Options{NewSession: h.session, Portable: portable})
		if err != nil {
			t.Fatal(err)
		}
		stop, err := s.Add("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", s.Addrs()[0].String())
		if err != nil {
			t.Fatal(err)
		}
		receive(t, h.opened)
		stop()
		if c, err := net.Dial("tcp", s.Addrs()[0].String()); err == nil {
			_ = c.Close()
			t.Error("still listening")
		}
		send(t, c, "ECHO stays\r\n")
		expect(t, bufio.NewReader(c), "stays")
		_ = c.Close()
		s.Close()
	}
}

func TestIdleIsCalledAgainWhenItAsksToBe(t *testing.T) {
	t.Parallel()
	for _, portable := range []bool{false, true} {
		h := newHub(t)
		called := make(chan int, 100)
		s, err := Listen(Options{NewSession: h.session, Portable: portable, Loops: 1,
			Idle: func() func(int) time.Duration {
				answers := []time.Duration{0, time.Microsecond, 0, time.Millisecond, -1}
				return func(loop int) time.Duration {
					called <- loop
					next := answers[0]
					if len(answers) > 1 {
						answers = answers[1:]
					}
					return next
				}
			}()})
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if loop := receive(t, called); loop != 0 {
				t.Errorf("loop %d", loop)
			}
		}
		s.Nudge(0)
		receive(t, called)
		s.Close()
	}
}

func TestACertificateIsReloadedWhenItsFilesChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certPath, keyPath := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	writeCert := func(name string, age time.Duration) {
		cert, key := certtest.Make(t, name)
		for path, data := range map[string][]byte{certPath: cert, keyPath: key} {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, start.Add(age), start.Add(age)); err != nil {
				t.Fatal(err)
			}
		}
	}
	writeCert("one.test", 0)
	files, err := NewCertFiles(certPath, keyPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := newHub(t)
	s, err := Listen(Options{NewSession: h.session, TLSAddrs: []string{"127.0.0.1:0"},
		TLS: &tls.Config{GetCertificate: files.Get}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	name := func() string {
		c, err := tls.Dial("tcp", s.Addrs()[0].String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		send(t, c, "ECHO over tls\r\nBIG 300000\r\n")
		expect(t, bufio.NewReader(c), "over tls", strings.Repeat("b", 300000))
		session := receive(t, h.opened)
		if session.conn.Network() != "tls" {
			t.Error("the session does not know that it is TLS")
		}
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	if got := name(); got != "one.test" {
		t.Errorf("got %s", got)
	}
	writeCert("two.test", time.Second)
	if got := name(); got != "two.test" {
		t.Errorf("got %s after the change", got)
	}
	if err := os.WriteFile(certPath, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := name(); got != "two.test" {
		t.Errorf("got %s while the file is broken", got)
	}
	if _, err := NewCertFiles(certPath, keyPath, nil); err == nil || !strings.Contains(err.Error(), certPath) {
		t.Errorf("got %v", err)
	}
	plain, err := net.Dial("tcp", s.Addrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	send(t, plain, "ECHO no handshake\r\n") // must not hold up Close, nor may silence
}
