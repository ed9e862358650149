package ebb_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/memnet"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// serve serves c's engine on ln, and returns what Serve returned.
func serve(ctx context.Context, ln net.Listener, c *ebb.Conn) <-chan error {
	done := make(chan error, 1)
	go func() { done <- ebb.EngineOf(c).Serve(ctx, ln) }()
	return done
}

func TestRedisCLILooksIntoAnEmbeddedEngine(t *testing.T) {
	cli := realserver.Program(t, "redis-cli")
	c := open(t, "mem://", ebb.Options{Clock: clock.NewManual(time.Unix(1700000000, 0))}) // which stands still
	must(t, c.SetTTL(testContext(t), "session:1", "ann", time.Hour))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := serve(ctx, ln, c)
	host, port, _ := net.SplitHostPort(ln.Addr().String())
	for line, want := range map[string]string{"GET session:1": "ann", "SET seen yes": "OK", "TTL session:1": "3600"} {
		out, err := exec.Command(cli, append([]string{"-h", host, "-p", port}, strings.Fields(line)...)...).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("redis-cli %s: %s (%v), want %s", line, out, err, want)
		}
	}
	check(t, "what redis-cli set", "yes")(c.Get(testContext(t), "seen"))
	cancel()
	must(t, <-done)
	must(t, c.Ping(testContext(t)))
}

func TestAnyListenerServes(t *testing.T) {
	mem := memnet.Listen("test")
	unix, err := net.Listen("unix", realserver.Socket(t))
	must(t, err)
	c := open(t, "mem://")
	for _, ln := range []net.Listener{mem, unix} {
		ctx, cancel := context.WithCancel(context.Background())
		done := serve(ctx, ln, c)
		var client *redis.Client
		if ln == unix {
			client = redis.NewClient(&redis.Options{Network: "unix", Addr: unix.Addr().String()})
		} else {
			client = redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", Dialer: mem.DialContext})
		}
		must(t, client.Set(ctx, "from", ln.Addr().Network(), 0).Err())
		check(t, "from", ln.Addr().Network())(c.Get(ctx, "from"))
		must(t, client.Close())
		cancel()
		must(t, <-done)
	}
}

func TestOpenSpeaksTLSAndUnixSockets(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	roots := web.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	unix, err := net.Listen("unix", realserver.Socket(t))
	must(t, err)

	c := open(t, "mem://")
	ctx, cancel := context.WithCancel(context.Background())
	overTLS := serve(ctx, tls.NewListener(tcp, &tls.Config{Certificates: web.TLS.Certificates}), c)
	overUnix := serve(ctx, unix, c)
	a := open(t, "rediss://"+tcp.Addr().String(), ebb.Options{TLS: &tls.Config{RootCAs: roots}})
	must(t, a.Set(testContext(t), "k", "v"))
	a = open(t, "valkeys://"+tcp.Addr().String()+"/2", ebb.Options{TLS: &tls.Config{RootCAs: roots}})
	must(t, a.Set(testContext(t), "k", "two"))
	for _, scheme := range []string{"unix", "redis+unix", "redis-socket", "redis+socket"} {
		b := open(t, scheme+"://"+unix.Addr().String())
		check(t, "get", "v")(b.Get(testContext(t), "k"))
		b = open(t, scheme+"://"+unix.Addr().String()+"?database=2")
		check(t, "get", "two")(b.Get(testContext(t), "k"))
	}
	_, err = ebb.Open(testContext(t), "rediss://"+tcp.Addr().String())
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		t.Errorf("a certificate without a known authority: %v", err)
	}
	cancel()
	must(t, <-overTLS)
	must(t, <-overUnix)
}

func TestClosingAnEngineEndsItsServers(t *testing.T) {
	c := open(t, "mem://")
	ln := memnet.Listen("test")
	done := serve(context.Background(), ln, c)
	remote := open(t, "redis://test", ebb.Options{Dial: ln.DialContext})
	s, err := remote.Subscribe(testContext(t), "news")
	must(t, err)
	must(t, c.Close())
	must(t, <-done)
	_, err = s.Next(testContext(t))
	wantErr(t, "a client's subscription", ebb.ErrInterrupted)(nil, err)
	wantErr(t, "a client's command", ebb.ErrUnavailable)(nil, remote.Ping(testContext(t)))
	if err := ebb.EngineOf(c).Serve(context.Background(), memnet.Listen("late")); !errors.Is(err, ebb.ErrClosed) {
		t.Errorf("serving a closed engine: %v", err)
	}
	if err := ebb.EngineOf(remote).Serve(context.Background(), memnet.Listen("late")); !errors.Is(err, ebb.ErrRemote) {
		t.Errorf("serving a remote connection: %v", err)
	}
}
