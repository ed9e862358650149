package rueidisebb_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb"
	rueidisebb "github.com/ebbdb/ebb/contrib/rueidis"
	"github.com/ebbdb/ebb/internal/routing"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/drivertest"
	"github.com/ebbdb/ebb/internal/testing/hangtest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/testing/wires"
)

func TestObjectsOutliveSilence(t *testing.T) {
	t.Parallel()
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
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

// openHasty opens a server that is about to hang, in as many tries as a busy machine takes.
func openHasty(t *testing.T, p *realserver.Process) *ebb.Conn {
	ctx := testContext(t)
	c, err := rueidisebb.Open(ctx, hasty(p, (&net.Dialer{}).DialContext))
	for errors.Is(err, ebb.ErrUnavailable) && ctx.Err() == nil {
		c, err = rueidisebb.Open(ctx, hasty(p, (&net.Dialer{}).DialContext))
	}
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
	drivertest.Until(t, "they wait", func() bool {
		v, err := other.Do(testContext(t), "CLIENT", "LIST")
		must(t, err)
		return strings.Count(v.Str, "cmd=blpop") == blocked
	})
	return ended
}

func TestWhatWaitsGivesUpOnASilentServer(t *testing.T) {
	t.Parallel()
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
		case <-time.After(tier.Patience):
			t.Fatal("it waits on")
		}
	}
	select {
	case err := <-subscribed:
		unavailable(t, err)
	case <-time.After(tier.Patience):
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

// A call that connects has its own deadline, and others do not wait for that.
func TestACallDoesNotWaitForTheGreetingOfAnother(t *testing.T) {
	p := realserver.NewProcess(t, "redis-server", "--save", "")
	p.Start()
	var dialled atomic.Int64
	o := to(p)
	o.DisableCache, o.PipelineMultiplex = true, -1 // one connection for all
	o.DialCtxFn = func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
		defer dialled.Add(1)
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}
	c, err := rueidisebb.Open(testContext(t), o)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = open(t, p).Do(testContext(t), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	must(t, err)
	before := dialled.Load()
	_ = c.Ping(testContext(t)) // it may find out that the connection is lost, or make another
	if dialled.Load() > before {
		_, err = open(t, p).Do(testContext(t), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		must(t, err)
		before = dialled.Load()
	}
	p.Pause(t)
	defer p.Resume(t)
	greeting, stop := context.WithCancel(testContext(t))
	var b ebb.Batch
	b.Do("INCR", "n")
	ended := make(chan error, 1)
	go func() {
		var err error
		for dialled.Load() == before { // the first may find that the connection is lost
			_, err = c.Pipeline(greeting, &b)
		}
		ended <- err
	}()
	drivertest.Until(t, "one call connects", func() bool { return dialled.Load() > before })
	for _, call := range map[string]func(ctx context.Context) error{
		"do":       func(ctx context.Context) error { _, err := c.Do(ctx, "INCR", "n"); return err },
		"pipeline": func(ctx context.Context) error { _, err := c.Pipeline(ctx, &b); return err },
		"tx":       func(ctx context.Context) error { _, err := c.Tx(ctx, &b); return err },
	} {
		short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		if err := call(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		cancel()
	}
	select {
	case err := <-ended:
		t.Errorf("they have waited for the greeting, which ended with %v", err)
	default:
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// readTimeout is that of calls to servers that hang. Other calls have it too, on a machine that may be busy.
var readTimeout = tier.Patience / 300

func TestCallsToAHungServerHaveALimit(t *testing.T) {
	t.Parallel()
	p := realserver.NewProcess(t, "redis-server", "--save", "")
	p.Start()
	c := open(t, p, rueidisebb.Options{ReadTimeout: readTimeout})
	p.Pause(t)
	limitedCalls(t, c, "n")
	p.Resume(t)
}

// limitedCalls makes calls on a key without a deadline, with a late one, and that could be
// cancelled, one by one and together: rueidis would wait for ten seconds.
func limitedCalls(t *testing.T, c *ebb.Conn, key string) {
	t.Helper()
	var b ebb.Batch
	b.Do("INCR", key)
	late, canceled := context.WithCancel(context.Background())
	defer canceled()
	for _, ctx := range []context.Context{context.Background(), late, testContext(t)} {
		_, err := c.Do(ctx, "INCR", key)
		limited(t, err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { _, err := c.Do(context.Background(), "INCR", key); limited(t, err) })
		all.Go(func() { _, err := c.Pipeline(late, &b); limited(t, err) })
		all.Go(func() { _, err := c.Tx(context.Background(), &b); limited(t, err) })
	}
	all.Wait()
}

// limited looks at the error of a call that the driver's read timeout has to end. rueidis'
// own limit of ten seconds has another error.
func limited(t *testing.T, err error) {
	t.Helper()
	unavailable(t, err)
	if !errors.Is(err, routing.ErrUnresponsive) {
		t.Errorf("%v, want the error of the driver's read timeout", err)
	}
}

// hungNode cuts the network between a program and one node of a cluster.
func hungNode(t *testing.T, cluster *backends.Cluster) {
	w := &wires.Wires{Dial: (&net.Dialer{}).DialContext, Within: 5 * time.Second}
	defer w.Close()
	ctx := testContext(t)
	c, err := rueidisebb.Open(ctx, rueidis.ClientOption{
		InitAddress: cluster.Addrs(),
		DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return w.Connect(ctx, "tcp", addr)
		},
	}, rueidisebb.Options{ReadTimeout: readTimeout})
	must(t, err)
	defer func() { must(t, c.Close()) }()
	defer w.Join()
	must(t, c.Set(ctx, "{hung}n", 0))
	at := cluster.Master(cluster.Slot("{hung}n"))
	other := ""
	for i := 0; other == ""; i++ {
		if key := fmt.Sprint("there", i); cluster.Master(cluster.Slot(key)) != at {
			other = key
		}
	}
	w.Cut(cluster.Addrs()[at])
	limitedCalls(t, c, "{hung}n")
	must(t, c.Set(ctx, other, 1))
	must(t, c.Set(context.Background(), other, 1))
}

func TestClosingEndsWhatWaits(t *testing.T) {
	t.Parallel()
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
