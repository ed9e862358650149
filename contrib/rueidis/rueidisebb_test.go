package rueidisebb_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	rueidisebb "github.com/ebbdb/ebb/contrib/rueidis"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/drivertest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/resp"
)

// Tests that are parallel wait far more than they work, so there may be more of them than
// processors.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	backends.Main(m)
}

// Short names for what the tests of both drivers share.
var (
	testContext = drivertest.Within
	must        = drivertest.Must
)

// servers are the backends of the driver.
var servers = []struct {
	name  string
	start func(t testing.TB) *realserver.Process
}{
	{"redis", func(t testing.TB) *realserver.Process { return realserver.NewProcess(t, "redis-server", "--save", "") }},
	{"ebb", func(t testing.TB) *realserver.Process { return realserver.NewProcess(t, realserver.Ebb(t)) }},
}

// each runs a test on a server of each kind.
func each(t *testing.T, test func(t *testing.T, p *realserver.Process)) {
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			p := s.start(t)
			p.Start()
			test(t, p)
		})
	}
}

func to(p *realserver.Process) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: []string{p.Addr()}}
}

func open(t testing.TB, p *realserver.Process, opts ...rueidisebb.Options) *ebb.Conn {
	t.Helper()
	c, err := rueidisebb.Open(testContext(t), to(p), opts...)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

func TestRepliesArriveAsTheyAre(t *testing.T) {
	each(t, func(t *testing.T, p *realserver.Process) {
		c, ctx := open(t, p), testContext(t)
		must(t, c.Set(ctx, "s", []byte("a\x00b"), ebb.SetOptions{TTL: time.Hour}))
		if s, err := c.Get(ctx, "s"); s != "a\x00b" || err != nil {
			t.Errorf("get: %q, %v", s, err)
		}
		if _, err := c.Get(ctx, "none"); !errors.Is(err, ebb.ErrNil) {
			t.Errorf("get of nothing: %v", err)
		}
		v, err := c.Do(ctx, "HSET", "h", "f", 1, "g", 2.5, "t", true)
		if n, _ := v.AsInt(); n != 3 || err != nil {
			t.Errorf("hset: %v, %v", v, err)
		}
		v, err = c.Do(ctx, "HGETALL", "h")
		must(t, err)
		for key, want := range map[string]string{"f": "1", "g": "2.5", "t": "1"} {
			if got, _ := v.Get(key); got.Str != want {
				t.Errorf("field %s: %v, want %s", key, got, want)
			}
		}
		v, err = c.Script(ctx, ebb.NewScript(`return {1, false, 'x', {KEYS[1], redis.error_reply('ODD thing')}}`), []string{"k"})
		must(t, err)
		if e := v.Elems; len(e) != 4 || e[0].Int != 1 || !e[1].IsNull() || e[2].Str != "x" || e[3].Elems[0].Str != "k" ||
			e[3].Elems[1].Kind != resp.KindError {
			t.Errorf("script: %v", v)
		}
		must(t, c.Set(ctx, "n", 1))
		if v, err = c.Do(ctx, "ZADD", "z", 1.5, "m"); err != nil {
			t.Fatal(err)
		}
		v, err = c.Do(ctx, "ZSCORE", "z", "m")
		if f, _ := v.AsFloat(); f != 1.5 || err != nil {
			t.Errorf("zscore: %v, %v", v, err)
		}
		if _, err = c.Do(ctx, "SET", "k", time.Second); !errors.Is(err, ebb.ErrArgument) {
			t.Errorf("a duration: %v", err)
		}
	})
}

func TestErrorRepliesKeepTheirCode(t *testing.T) {
	each(t, func(t *testing.T, p *realserver.Process) {
		c, ctx := open(t, p), testContext(t)
		must(t, c.Set(ctx, "s", "v"))
		for _, try := range []struct {
			code string
			args []any
		}{{"WRONGTYPE", []any{"LPUSH", "s", 1}}, {"ERR", []any{"NOSUCH"}}, {"ERR", []any{"INCR", "s"}},
			{"NOSCRIPT", []any{"EVALSHA", strings.Repeat("0", 40), 0}}} {
			_, err := c.Do(ctx, try.args...)
			var refused ebb.ReplyError
			if !errors.As(err, &refused) || refused.Code() != try.code {
				t.Errorf("%v: %v, want the code %s", try.args, err, try.code)
			}
		}
	})
}

func TestBatchesReplyInOrder(t *testing.T) {
	each(t, func(t *testing.T, p *realserver.Process) {
		c, ctx := open(t, p), testContext(t)
		var b ebb.Batch
		b.Do("SET", "a", 1)
		b.Do("LPUSH", "a", 1)
		b.Do("INCR", "a")
		for name, run := range map[string]func(context.Context, *ebb.Batch) ([]ebb.Value, error){"pipeline": c.Pipeline, "tx": c.Tx} {
			vs, err := run(ctx, &b)
			if err != nil || len(vs) != 3 || vs[1].Err() == nil || vs[2].Int != 2 {
				t.Errorf("%s: %v, %v", name, vs, err)
			}
		}
		b.Reset()
		b.Do("SET", "a", 7)
		b.Do("NOSUCH")
		_, err := c.Tx(ctx, &b)
		var refused ebb.ReplyError
		if !errors.As(err, &refused) || refused.Code() != "EXECABORT" {
			t.Errorf("a transaction with a wrong command: %v", err)
		}
		if s, err := c.Get(ctx, "a"); s != "2" || err != nil {
			t.Errorf("it has run in part: %q, %v", s, err)
		}
	})
}

func TestWatchFindsConflicts(t *testing.T) {
	each(t, func(t *testing.T, p *realserver.Process) {
		c, ctx := open(t, p), testContext(t)
		must(t, c.Set(ctx, "n", 0))
		add := func(w *ebb.Watched) error {
			v, err := w.Do(ctx, "GET", "n")
			if err != nil {
				return err
			}
			n, err := v.AsInt()
			if err != nil {
				return err
			}
			var b ebb.Batch
			b.Do("SET", "n", n+1)
			_, err = w.Tx(ctx, &b)
			return err
		}
		var workers sync.WaitGroup
		for range 8 {
			workers.Go(func() {
				for done := 0; done < 20; {
					switch err := c.Watch(ctx, add, "n"); {
					case err == nil:
						done++
					case !errors.Is(err, ebb.ErrConflict):
						t.Error(err)
						return
					}
				}
			})
		}
		workers.Wait()
		if s, err := c.Get(ctx, "n"); s != "160" || err != nil {
			t.Errorf("%q, %v: additions were lost", s, err)
		}
		// A watch that ends without a transaction leaves nothing behind.
		must(t, c.Watch(ctx, func(*ebb.Watched) error { return nil }, "n"))
		must(t, c.Set(ctx, "n", "x"))
		err := c.Watch(ctx, func(w *ebb.Watched) error {
			var b ebb.Batch
			b.Do("SET", "m", 1)
			_, err := w.Tx(ctx, &b)
			return err
		}, "m")
		must(t, err)
	})
}

func TestBlockEndsWithTheContextAndTakesNothingLater(t *testing.T) {
	each(t, func(t *testing.T, p *realserver.Process) {
		c, ctx := open(t, p), testContext(t)
		short, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			_, err := c.Block(short, "BLPOP", "jobs", 0)
			ended <- err
		}()
		blocked := func() string {
			v, err := c.Do(ctx, "INFO", "clients")
			must(t, err)
			_, rest, _ := strings.Cut(v.Str, "blocked_clients:")
			n, _, _ := strings.Cut(rest, "\r\n")
			return n
		}
		drivertest.Until(t, "the command waits", func() bool { return blocked() == "1" })
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the context's error", err)
		}
		drivertest.Until(t, "the server forgets it", func() bool { return blocked() == "0" })
		if _, err := c.Do(ctx, "RPUSH", "jobs", "1"); err != nil {
			t.Fatal(err)
		}
		v, err := c.Block(ctx, "BLPOP", "jobs", 0)
		if err != nil || v.Elems[1].Str != "1" {
			t.Errorf("the job: %v, %v", v, err)
		}
	})
}

func TestSubscriptionsHearWhatIsPublishedAfterThem(t *testing.T) {
	each(t, func(t *testing.T, p *realserver.Process) {
		c, ctx := open(t, p), testContext(t)
		kinds := map[string]struct {
			subscribe func(context.Context, ...string) (*ebb.Subscription, error)
			name      string
			publish   string
			pattern   string
		}{
			"channels": {c.Subscribe, "news", "PUBLISH", ""},
			"patterns": {c.PSubscribe, "new?", "PUBLISH", "new?"},
			"sharded":  {c.SSubscribe, "news", "SPUBLISH", ""},
		}
		for name, k := range kinds {
			s, err := k.subscribe(ctx, k.name, "other")
			must(t, err)
			for i := range 100 {
				if _, err := c.Do(ctx, k.publish, "news", i); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 100 {
				m, err := s.Next(ctx)
				if err != nil || m != (ebb.Message{Channel: "news", Pattern: k.pattern, Payload: fmt.Sprint(i)}) {
					t.Fatalf("%s: %+v, %v", name, m, err)
				}
			}
			must(t, s.Close())
			if _, err := s.Next(ctx); !errors.Is(err, ebb.ErrClosed) {
				t.Errorf("%s: after Close: %v", name, err)
			}
		}
	})
}

func TestASubscriberIsToldOfALostConnection(t *testing.T) {
	each(t, func(t *testing.T, p *realserver.Process) {
		c, ctx := open(t, p), testContext(t)
		s, err := c.Subscribe(ctx, "news")
		must(t, err)
		p.Kill()
		if _, err := c.Do(ctx, "PING"); !errors.Is(err, ebb.ErrUnavailable) {
			t.Errorf("without a server: %v, want ErrUnavailable", err)
		}
		p.Start()
		for _, what := range []string{"lost", "made again"} {
			if _, err := s.Next(ctx); !errors.Is(err, ebb.ErrInterrupted) {
				t.Fatalf("%s: %v, want ErrInterrupted", what, err)
			}
		}
		drivertest.Until(t, "the server is reached again", func() bool {
			n, err := c.Publish(ctx, "news", "again")
			return err == nil && n == 1
		})
		if m, err := s.Next(ctx); err != nil || m.Payload != "again" {
			t.Errorf("%+v, %v", m, err)
		}
		must(t, s.Close())
	})
}

func TestCloseEndsWhatWaits(t *testing.T) {
	each(t, func(t *testing.T, p *realserver.Process) {
		ctx := testContext(t)
		c, err := rueidisebb.Open(ctx, to(p))
		must(t, err)
		s, err := c.Subscribe(ctx, "news")
		must(t, err)
		ended := make(chan error, 2)
		go func() {
			_, err := c.Block(ctx, "BLPOP", "jobs", 0)
			ended <- err
		}()
		go func() {
			_, err := s.Next(ctx)
			ended <- err
		}()
		must(t, c.Close())
		for range 2 {
			if err := <-ended; !errors.Is(err, ebb.ErrClosed) {
				t.Errorf("%v, want ErrClosed", err)
			}
		}
		if _, err := c.Do(ctx, "PING"); !errors.Is(err, ebb.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestAWrappedClientStaysOpen(t *testing.T) {
	each(t, func(t *testing.T, p *realserver.Process) {
		client, err := rueidis.NewClient(to(p))
		must(t, err)
		t.Cleanup(client.Close)
		c, err := rueidisebb.Wrap(client)
		must(t, err)
		caps := c.Capabilities()
		if caps.Native != strings.HasSuffix(t.Name(), "/ebb") || caps.Server == "" || caps.Version == "" ||
			!caps.Functions || !caps.ShardedPubSub {
			t.Errorf("%+v", caps)
		}
		if s := c.String(); !strings.Contains(s, p.Addr()) || !strings.Contains(s, caps.Server) {
			t.Error(s)
		}
		must(t, c.Close())
		must(t, client.Do(testContext(t), client.B().Ping().Build()).Error())
	})
}

func TestAServerThatIsAwayIsAnError(t *testing.T) {
	p := realserver.NewProcess(t, "redis-server") // it is not started
	_, err := rueidisebb.Open(testContext(t), to(p))
	if !errors.Is(err, ebb.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
	ended, cancel := context.WithCancel(testContext(t))
	cancel()
	if _, err := rueidisebb.Open(ended, to(p)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
}

func TestCachedReadsAskTheServerOnceUntilTheKeyChanges(t *testing.T) {
	each(t, func(t *testing.T, p *realserver.Process) {
		c, other, ctx := open(t, p, rueidisebb.Options{Cache: time.Minute}), open(t, p), testContext(t)
		must(t, other.Set(ctx, "k", "old"))
		reads := func() string {
			v, err := other.Do(ctx, "INFO", "commandstats")
			must(t, err)
			_, rest, _ := strings.Cut(v.Str, "cmdstat_get:calls=")
			n, _, _ := strings.Cut(rest, ",")
			return n
		}
		for range 50 {
			if s, err := c.Get(ctx, "k"); s != "old" || err != nil {
				t.Fatal(s, err)
			}
		}
		if n := reads(); n != "1" {
			t.Errorf("the server was asked %s times, want once", n)
		}
		must(t, other.Set(ctx, "k", "new"))
		drivertest.Until(t, "the copy is dropped", func() bool {
			s, err := c.Get(ctx, "k")
			must(t, err)
			return s == "new"
		})
		if _, err := c.Get(ctx, "none"); !errors.Is(err, ebb.ErrNil) {
			t.Errorf("nothing is cached as %v", err)
		}
		if !strings.Contains(c.String(), "cached") {
			t.Error(c.String())
		}
	})
}

func TestCacheOptionsAreChecked(t *testing.T) {
	p := realserver.NewProcess(t, "redis-server", "--save", "")
	p.Start()
	for _, ttl := range []time.Duration{-1, time.Microsecond} {
		if _, err := rueidisebb.Open(testContext(t), to(p), rueidisebb.Options{Cache: ttl}); !errors.Is(err, ebb.ErrArgument) {
			t.Errorf("%v: %v, want ErrArgument", ttl, err)
		}
	}
}
