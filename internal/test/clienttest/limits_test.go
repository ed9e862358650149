package clienttest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/wire"
)

// Clients that take up more than they may are closed, on redis-server and on ebb,
// and counted.
func TestClientsOverTheirLimitsAreClosed(t *testing.T) {
	for _, s := range []struct {
		name  string
		start func(t *testing.T) string
	}{
		{"redis-server", func(t *testing.T) string { return realserver.Start(t, "redis-server") }},
		{"ebb", startEbb},
	} {
		for _, l := range []struct {
			name  string
			check func(t *testing.T, l *limited)
		}{
			{"maxmemory-clients", closesTheLargest}, {"client-output-buffer-limit hard", closesWhoDoesNotRead},
			{"client-output-buffer-limit soft", closesWhoDoesNotReadForLong}, {"client-output-buffer-limit pubsub", closesASubscriber},
			{"client-query-buffer-limit", closesWhoNeverEnds},
		} {
			t.Run(l.name+" on "+s.name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				x := &limited{t: t, ctx: ctx, addr: s.start(t)}
				x.admin = redis.NewClient(&redis.Options{Addr: x.addr, PoolSize: 1})
				defer x.admin.Close()
				l.check(t, x)
			})
		}
	}
}

// limited is a server and a client that watches it.
type limited struct {
	t     *testing.T
	ctx   context.Context
	addr  string
	admin *redis.Client
}

func (l *limited) do(args ...any) {
	l.t.Helper()
	if err := l.admin.Do(l.ctx, args...).Err(); err != nil {
		l.t.Fatalf("%v: %v", args, err)
	}
}

// gone waits until the server has closed a connection, also one that is not read,
// and counted it, if it has the counter.
func (l *limited) gone(c net.Conn, counter string) {
	l.t.Helper()
	for strings.Contains(l.admin.ClientList(l.ctx).Val(), " addr="+c.LocalAddr().String()+" ") {
	}
	if l.ctx.Err() != nil {
		l.t.Fatal("the server did not close the connection")
	}
	if m := regexp.MustCompile(`\b` + counter + `:(\d+)`).FindStringSubmatch(l.admin.Info(l.ctx).Val()); m != nil && m[1] != "1" {
		l.t.Errorf("%s is %s", counter, m[1])
	}
	l.isClosed(c)
}

// dial opens a connection that is closed when the test's patience is over.
func (l *limited) dial() net.Conn {
	l.t.Helper()
	c, err := net.Dial("tcp", l.addr)
	if err != nil {
		l.t.Fatal(err)
	}
	stop := context.AfterFunc(l.ctx, func() { _ = c.Close() })
	l.t.Cleanup(func() { stop(); _ = c.Close() })
	l.say(c, wire.AppendCommand(nil, "PING"))
	if _, err := io.ReadFull(c, make([]byte, len("+PONG\r\n"))); err != nil {
		l.t.Fatal(err)
	}
	return c
}

// say sends requests on a connection of one's own, which the server may close
// meanwhile.
func (l *limited) say(c net.Conn, requests []byte) {
	l.t.Helper()
	if _, err := c.Write(requests); errors.Is(err, net.ErrClosed) {
		l.t.Fatal("the server did not close the connection")
	}
}

// isClosed reads until the server has closed the connection.
func (l *limited) isClosed(c net.Conn) {
	l.t.Helper()
	if _, err := io.Copy(io.Discard, c); errors.Is(err, net.ErrClosed) {
		l.t.Fatal("the server did not close the connection")
	}
}

// part is a request whose last argument is still to come, of which there are n
// bytes.
func part(n int) []byte {
	return append([]byte("*2\r\n$4\r\nECHO\r\n$100000000\r\n"), bytes.Repeat([]byte("x"), n)...)
}

func closesTheLargest(t *testing.T, l *limited) {
	spared, large := l.dial(), l.dial()
	l.say(spared, wire.AppendCommand(nil, "CLIENT", "NO-EVICT", "ON"))
	if line, err := bufio.NewReader(spared).ReadString('\n'); line != "+OK\r\n" {
		t.Fatalf("NO-EVICT replies %q, %v", line, err)
	}
	l.do("CLIENT", "NO-EVICT", "ON") // or the watching client may go before the large one has been read
	l.say(spared, part(1<<20))
	l.say(large, part(8<<20))
	l.do("CONFIG", "SET", "maxmemory-clients", "4mb")
	l.gone(large, "evicted_clients")
	list, err := l.admin.ClientList(l.ctx).Result()
	if n := strings.Count(list, "flags=e "); n != 2 {
		t.Errorf("%d clients with NO-EVICT are left, want 2 (%v):\n%s", n, err, list)
	}
}

// neverRead has a client ask for n MiB of replies that it does not read.
func neverRead(l *limited, n int) net.Conn {
	l.do("SET", "big", strings.Repeat("x", 1<<20))
	c := l.dial()
	var requests []byte
	for range n {
		requests = wire.AppendCommand(requests, "GET", "big")
	}
	l.say(c, requests)
	return c
}

const outputCounter = "client_output_buffer_limit_disconnections"

func closesWhoDoesNotRead(_ *testing.T, l *limited) {
	l.do("CONFIG", "SET", "client-output-buffer-limit", "normal 4mb 0 0")
	l.gone(neverRead(l, 64), outputCounter)
}

func closesWhoDoesNotReadForLong(_ *testing.T, l *limited) {
	l.do("CONFIG", "SET", "client-output-buffer-limit", "normal 0 1mb 1")
	l.gone(neverRead(l, 32), outputCounter)
}

func closesASubscriber(_ *testing.T, l *limited) {
	l.do("CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 0 0")
	c := l.dial()
	l.say(c, wire.AppendCommand(nil, "SUBSCRIBE", "news"))
	message := strings.Repeat("x", 1<<18)
	for l.admin.Publish(l.ctx, "news", message).Val() == 0 && l.ctx.Err() == nil {
	}
	for l.admin.Publish(l.ctx, "news", message).Val() > 0 && l.ctx.Err() == nil {
	}
	l.gone(c, outputCounter)
}

func closesWhoNeverEnds(_ *testing.T, l *limited) {
	l.do("CONFIG", "SET", "client-query-buffer-limit", "1mb")
	c := l.dial()
	l.say(c, part(4<<20))
	l.gone(c, "client_query_buffer_limit_disconnections")
}
