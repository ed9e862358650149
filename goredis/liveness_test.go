package goredis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// A server that says nothing, with its connections open.

func TestASubscriptionGivesUpOnASilentServer(t *testing.T) {
	confirm := map[string]string{"SUBSCRIBE": "subscribe", "PSUBSCRIBE": "psubscribe"}
	for _, silent := range []string{"to the greeting", "SUBSCRIBE", "PSUBSCRIBE"} {
		t.Run(silent, func(t *testing.T) {
			var hangs atomic.Bool
			c := openHasty(t, "redis://"+scripted(t, func(name string) string {
				switch {
				case hangs.Load() && (silent == "to the greeting" || name == silent):
					return ""
				case name == "PING" || name == "CLIENT":
					return "+OK\r\n"
				case confirm[name] != "":
					return fmt.Sprintf("*3\r\n$%d\r\n%s\r\n$1\r\na\r\n:1\r\n", len(confirm[name]), confirm[name])
				}
				return "-ERR unknown\r\n"
			})+"?read_timeout=200ms&dial_timeout=200ms")
			hangs.Store(true)
			subscribe := c.Subscribe
			if silent == "PSUBSCRIBE" {
				subscribe = c.PSubscribe
			}
			ended := make(chan error, 1)
			go func() {
				_, err := subscribe(context.Background(), "a")
				ended <- err
			}()
			select {
			case err := <-ended:
				unavailable(t, err)
			case <-time.After(time.Minute):
				t.Error("it waits on")
				unavailable(t, <-ended)
			}
		})
	}
}

func TestASubscriptionDoesNotWaitForEverWithoutAReadTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", Dialer: b.Dial, ReadTimeout: -1, ContextTimeoutEnabled: true,
			MaxRetries: -1, DialerRetries: 1})
		c := ebb.Wrap(client)
		_, err := c.Do(t.Context(), "PING")
		must(t, err)
		b.Hang()
		_, err = c.Subscribe(context.Background(), "a")
		unavailable(t, err)
		b.GoOn()
		must(t, errors.Join(c.Close(), client.Close()))
	})
}

// openHasty opens a server whose client is less patient than a busy machine is quick.
func openHasty(t *testing.T, url string) *ebb.Conn {
	ctx := testContext(t)
	c, err := ebb.Open(ctx, url)
	for errors.Is(err, ebb.ErrUnavailable) && ctx.Err() == nil {
		c, err = ebb.Open(ctx, url)
	}
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// unavailable looks at the error of a call without a deadline.
func unavailable(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ebb.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the backend cannot be reached", err)
	}
}

func TestClosingAConnEndsItsWaits(t *testing.T) {
	p := realserver.NewProcess(t, realserver.Ebb(t))
	p.Start()
	for _, hangs := range []bool{false, true} {
		c, err := ebb.Open(testContext(t), "redis://"+p.Addr())
		must(t, err)
		ended := make(chan error, 2)
		for _, args := range [][]any{{"BLPOP", "a", 0}, {"BLPOP", "a", 100}} {
			go func() {
				_, err := c.Block(context.Background(), args...)
				ended <- err
			}()
		}
		other := open(t, "redis://"+p.Addr())
		waitFor(t, other, "blocked_clients:2")
		if hangs {
			p.Pause(t)
		}
		must(t, c.Close())
		for range cap(ended) {
			if err := <-ended; !errors.Is(err, ebb.ErrClosed) || strings.Contains(err.Error(), "reached") {
				t.Errorf("the wait ended with %v", err)
			}
		}
		if hangs {
			p.Resume(t)
		}
	}
}
