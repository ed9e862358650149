package goredis_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/drivertest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/wire"
)

// scripted starts a server that answers each command with the given reply.
func scripted(t *testing.T, answer func(name string) string) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var ends []func()
		for {
			c, err := ln.Accept()
			if err != nil {
				break
			}
			over := make(chan struct{})
			go func() { defer close(over); converse(c, answer) }()
			ends = append(ends, func() { _ = c.Close(); <-over })
		}
		for _, end := range ends {
			end()
		}
	}()
	t.Cleanup(func() { _ = ln.Close(); <-done })
	return ln.Addr().String()
}

func converse(c net.Conn, answer func(name string) string) {
	var p wire.Parser
	var in []byte
	for buf := make([]byte, 4096); ; {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		for in = append(in, buf[:n]...); ; {
			args, length, err := p.Next(in)
			if err != nil || length == 0 {
				break
			}
			if _, err := c.Write([]byte(answer(strings.ToUpper(string(args[0]))))); err != nil {
				return
			}
			in = in[length:]
		}
	}
}

func TestAContextThatEndsBetweenTwoTriesIsSaid(t *testing.T) {
	c := open(t, "redis://"+scripted(t, func(name string) string {
		switch name {
		case "PING", "CLIENT":
			return "+OK\r\n"
		case "GET", "MULTI", "SUBSCRIBE":
			return "-LOADING the data are being read\r\n"
		}
		return "-ERR unknown command\r\n"
	}))
	var b ebb.Batch
	b.Do("GET", "k")
	for what, call := range map[string]func(ctx context.Context) error{
		"do":       func(ctx context.Context) error { _, err := c.Get(ctx, "k"); return err },
		"block":    func(ctx context.Context) error { _, err := c.Block(ctx, "GET", "k"); return err },
		"pipeline": func(ctx context.Context) error { _, err := c.Pipeline(ctx, &b); return err },
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
		cancel()
	}
	var refused ebb.ReplyError
	if _, err := c.Get(testContext(t), "k"); !errors.Is(err, ebb.ErrUnavailable) || !errors.As(err, &refused) {
		t.Errorf("tried enough: %v", err)
	}
}

func TestAClosedConnRefusesThoughItsClientIsOpen(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: realserver.Start(t, "redis-server"), MaxRetries: -1})
	defer client.Close()
	ctx := testContext(t)
	for what, c := range map[string]*ebb.Conn{"wrapped": ebb.Wrap(client), "its own": open(t, "redis://"+client.Options().Addr)} {
		must(t, c.Ping(ctx))
		must(t, c.Close())
		var b ebb.Batch
		b.Do("PING")
		_, pipeline := c.Pipeline(ctx, &b)
		_, tx := c.Tx(ctx, &b)
		_, block := c.Block(ctx, "BLPOP", "k", 1)
		_, subscribe := c.Subscribe(ctx, "news")
		watch := c.Watch(ctx, func(*ebb.Watched) error { return nil }, "k")
		for call, err := range map[string]error{"do": c.Ping(ctx), "pipeline": pipeline, "tx": tx, "block": block,
			"subscribe": subscribe, "watch": watch} {
			wantErr(t, what+": "+call, ebb.ErrClosed)(nil, err)
		}
	}
}

func TestCloseWaitsForTheCallsThatRun(t *testing.T) {
	addr := realserver.Start(t, "redis-server")
	other := open(t, "redis://"+addr)
	ctx := testContext(t)
	c := open(t, "redis://"+addr+"?read_timeout=60s")
	done, closed := make(chan error, 1), make(chan error, 1)
	go func() { // a command that takes its time, and is none of Block's
		_, err := c.Do(ctx, "BLPOP", "jobs", 0)
		done <- err
	}()
	waitFor(t, other, "blocked_clients:1")
	go func() { closed <- c.Close() }()
	for !errors.Is(c.Ping(ctx), ebb.ErrClosed) {
	}
	_, err := other.Do(ctx, "RPUSH", "jobs", "job")
	must(t, err)
	must(t, <-done)
	must(t, <-closed)
}

func TestAUserWithoutINFOFindsOutWhatTheServerIs(t *testing.T) {
	addr := ebbServer(t)
	admin := open(t, "redis://"+addr)
	ctx := testContext(t)
	for _, without := range []string{"-@dangerous", "-info", "-command"} {
		_, err := admin.Do(ctx, "ACL", "SETUSER", "worker", "reset", "on", ">pw", "~*", "&*", "+@all", without)
		must(t, err)
		if caps := open(t, "redis://worker:pw@"+addr).Capabilities(); !caps.Native || caps.Server != "ebb" ||
			!caps.HashFieldTTL || !caps.ShardedPubSub {
			t.Errorf("%s: %+v", without, caps)
		}
	}
}

func TestEventsAreHeardOfEachMaster(t *testing.T) {
	backends.Asked(t, []string{"cluster"}, func(t *testing.T, b *backends.Backend) {
		drivertest.EventsOfMasters(t, b.Conn, b.Cluster(), "{"+b.Name("k")+"}")
	})
}
