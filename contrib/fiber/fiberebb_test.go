package fiberebb_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"

	fiberebb "github.com/ebbdb/ebb/contrib/fiber"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/limittest"
	"github.com/ebbdb/ebb/limit"
)

func TestFiberIsLimited(t *testing.T) {
	limittest.Run(t, limittest.Framework[fiber.Ctx]{
		Serve: func(l *limit.Limiter, o fiberebb.Options, visit func()) limittest.Get {
			app := fiber.New()
			app.Use(fiberebb.New(l, o))
			app.Get("/", func(c fiber.Ctx) error { visit(); return c.SendString("hello") })
			app.Handler() // makes the app ready
			return func(t testing.TB, from string, header ...string) limittest.Answer {
				return get(t, app, from, header)
			}
		},
		Header: func(c fiber.Ctx, name string) string { return c.Get(name) },
		Answer: func(c fiber.Ctx, status int, text string) error { return c.Status(status).SendString(text) },
	})
}

// conn is a connection from an address, with one request to read.
type conn struct {
	net.Conn // nil: the methods that are called are below
	from     net.Addr
	in       *strings.Reader
	out      bytes.Buffer
}

func (c *conn) Read(b []byte) (int, error)       { return c.in.Read(b) }
func (c *conn) Write(b []byte) (int, error)      { return c.out.Write(b) }
func (c *conn) Close() error                     { return nil }
func (c *conn) LocalAddr() net.Addr              { return c.from }
func (c *conn) RemoteAddr() net.Addr             { return c.from }
func (c *conn) SetDeadline(time.Time) error      { return nil }
func (c *conn) SetReadDeadline(time.Time) error  { return nil }
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

func get(t testing.TB, app *fiber.App, from string, header []string) limittest.Answer {
	t.Helper()
	request := "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n"
	for i := 0; i+1 < len(header); i += 2 {
		request += header[i] + ": " + header[i+1] + "\r\n"
	}
	c := &conn{from: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from)), in: strings.NewReader(request + "\r\n")}
	if err := app.Server().ServeConn(c); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(&c.out), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return limittest.Answer{Code: r.StatusCode, Body: string(body), Header: r.Header}
}

func ExampleNew() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		panic(err)
	}
	defer c.Close()
	l, err := limit.New(c, "api", limit.Per(1, time.Minute), limit.Local(0.5))
	if err != nil {
		panic(err)
	}
	app := fiber.New()
	app.Use(fiberebb.New(l))
	app.Get("/", func(c fiber.Ctx) error { return c.SendString("hello") })

	for range 2 {
		r, err := app.Test(httptest.NewRequest(http.MethodGet, "/", nil))
		if err != nil {
			panic(err)
		}
		fmt.Printf("%d, policy %s, retry after %q\n", r.StatusCode, r.Header.Get("RateLimit-Policy"), r.Header.Get("Retry-After"))
	}
	// Output:
	// 200, policy "api";q=1;w=60, retry after ""
	// 429, policy "api";q=1;w=60, retry after "60"
}
