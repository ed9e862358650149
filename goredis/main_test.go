package goredis_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/drivertest"
)

func TestMain(m *testing.M) {
	runQuiet()
	backends.Main(m)
}

// What the tests share, by short names.
var (
	testContext = drivertest.Within
	must        = drivertest.Must
)

// open opens a URL for the length of a test.
func open(t testing.TB, url string, o ...ebb.Options) *ebb.Conn {
	t.Helper()
	c, err := ebb.Open(testContext(t), url, o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ebbServer serves an embedded engine on a real port.
func ebbServer(t testing.TB) (addr string) {
	t.Helper()
	c := open(t, "mem://")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ebb.EngineOf(c).Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// check fails the test unless got is want and err nil.
func check[T comparable](t testing.TB, what string, want T) func(got T, err error) {
	return func(got T, err error) {
		t.Helper()
		if err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", what, got, err, want)
		}
	}
}

func wantErr(t testing.TB, what string, want error) func(_ any, err error) {
	return func(_ any, err error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
}

// waitFor asks the server until INFO has a line.
func waitFor(t *testing.T, c *ebb.Conn, line string) {
	t.Helper()
	for {
		v, err := c.Do(testContext(t), "INFO", "clients")
		must(t, err)
		if strings.Contains(v.Str, line+"\r\n") {
			return
		}
	}
}
