package rueidisebb_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	rueidisebb "github.com/ebbdb/ebb/contrib/rueidis"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/backends"
	"github.com/ebbdb/ebb/internal/doortest"
	"github.com/ebbdb/ebb/internal/hangtest"
	"github.com/ebbdb/ebb/internal/realserver"
)

func TestObjectsOutliveSilence(t *testing.T) {
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			p := s.start(t)
			p.Start()
			over := func(ctx context.Context, dial backends.Dial) (*ebb.Conn, error) {
				return rueidisebb.Open(ctx, hasty(p, dial))
			}
			backends.HangsOver(t, p, "stopped", over, hangtest.Objects)
			if s.name == "ebb" { // the network is the same for all
				backends.HangsOver(t, p, "cut", over, hangtest.Objects)
			}
		})
	}
}

// hasty are options of a client that is as patient as a hang test.
func hasty(p *realserver.Process, dial backends.Dial) rueidis.ClientOption {
	o := to(p)
	o.ConnWriteTimeout, o.Dialer.Timeout = backends.Patience, backends.Patience
	o.DialCtxFn = func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return dial(ctx, "tcp", addr)
	}
	return o
}

// openHasty opens a server that is about to hang.
func openHasty(t *testing.T, p *realserver.Process) *ebb.Conn {
	c, err := rueidisebb.Open(testContext(t), hasty(p, (&net.Dialer{}).DialContext))
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// waiting starts calls without a deadline, and returns when the server has some that
// wait for a key.
func waiting(t *testing.T, p *realserver.Process, blocked int, calls ...func() error) (ended chan error) {
	ended = make(chan error, len(calls))
	for _, call := range calls {
		go func() { ended <- call() }()
	}
	other := open(t, p)
	doortest.Until(t, "they wait", func() bool {
		v, err := other.Do(testContext(t), "CLIENT", "LIST")
		must(t, err)
		return strings.Count(v.Str, "cmd=blpop") == blocked
	})
	return ended
}

func TestWhatWaitsGivesUpOnASilentServer(t *testing.T) {
	p := realserver.NewProcess(t, realserver.Ebb(t))
	p.Start()
	c := openHasty(t, p)
	block := func(on *ebb.Conn, args ...any) func() error {
		return func() error { _, err := on.Block(context.Background(), args...); return err }
	}
	ended := waiting(t, p, 4,
		block(c, "BLPOP", "a", 1), block(c, "BLPOP", "a", 0),
		block(c.Replicated(1, time.Second), "BLPOP", "a", 1), block(c.Replicated(1, time.Second), "BLPOP", "a", 0))
	p.Pause(t)
	defer p.Resume(t)
	subscribed := make(chan error, 1)
	go func() {
		_, err := c.Subscribe(context.Background(), "news")
		subscribed <- err
	}()
	for range cap(ended) {
		select {
		case err := <-ended:
			unavailable(t, err)
		case <-time.After(20 * time.Second):
			t.Fatal("it waits on")
		}
	}
	select {
	case err := <-subscribed:
		unavailable(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("it subscribes on")
	}
}

// unavailable looks at the error of a call without a deadline.
func unavailable(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ebb.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the backend cannot be reached", err)
	}
}

func TestClosingEndsWhatWaits(t *testing.T) {
	each(t, func(t *testing.T, p *realserver.Process) {
		for _, hangs := range []bool{false, true} {
			c := openHasty(t, p)
			block := func(args ...any) func() error {
				return func() error { _, err := c.Block(context.Background(), args...); return err }
			}
			ended := waiting(t, p, 2, block("BLPOP", "a", 0), block("BLPOP", "a", 100))
			if hangs {
				p.Pause(t)
			}
			must(t, c.Close())
			for range cap(ended) {
				if err := <-ended; !errors.Is(err, ebb.ErrClosed) {
					t.Errorf("the wait ended with %v", err)
				}
			}
			if hangs {
				p.Resume(t)
			}
		}
	})
}
