package ebbtest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/ebbtest"
)

// client is a go-redis client that sends each command once.
func client(t testing.TB, b *ebbtest.Backend, o redis.Options) *redis.Client {
	o.Dialer = b.Dial
	o.MaxRetries = -1
	o.DisableIdentity = true
	if o.ReadTimeout == 0 {
		o.ReadTimeout = -1
	}
	o.WriteTimeout = -1
	c := redis.NewClient(&o)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestSetErrorAnswersEveryCommand(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		ctx := context.Background()
		b := ebbtest.Run(t)
		c := client(t, b, redis.Options{})
		must(t, c.Set(ctx, "k", "v", 0).Err())
		b.SetError("LOADING not yet")
		if err := c.Set(ctx, "k", "w", 0).Err(); err == nil || err.Error() != "LOADING not yet" {
			t.Errorf("set: %v", err)
		}
		b.SetError("")
		if v := c.Get(ctx, "k").Val(); v != "v" {
			t.Errorf("%q: a refused command was run", v)
		}
	})
}

func TestAStoppedBackendKeepsItsData(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		ctx := context.Background()
		b := ebbtest.Run(t)
		c := client(t, b, redis.Options{})
		must(t, c.Set(ctx, "k", "v", time.Hour).Err())
		must(t, c.ScriptLoad(ctx, "return 1").Err())
		b.Stop()
		for range 2 {
			if err := c.Get(ctx, "k").Err(); err == nil || errors.Is(err, redis.Nil) {
				t.Errorf("stopped: %v", err)
			}
		}
		b.Clock.Advance(59 * time.Minute)
		if !b.Data.Exists("k") {
			t.Error("k is gone before its time")
		}
		b.Start()
		// In a bubble go-redis's pauses between its attempts to connect are time, too.
		if d := c.PTTL(ctx, "k").Val(); d > time.Minute || d < 55*time.Second {
			t.Errorf("there again: ttl %v, want 1m", d)
		}
		sha := "e0e1f9fabfc9d4800c877a703b823ac0578ff8db" // of return 1
		if err := c.EvalSha(ctx, sha, nil).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOSCRIPT") {
			t.Errorf("a script of before: %v", err)
		}
	})
}

func TestStopEndsTheCallsThatWait(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		ctx := context.Background()
		b := ebbtest.Run(t)
		c := client(t, b, redis.Options{})
		asked := make(chan struct{})
		b.Intercept(func(cmd []string) error {
			if cmd[0] == "blpop" {
				close(asked)
			}
			return nil
		})
		done := make(chan error, 1)
		go func() { done <- c.BLPop(ctx, 0, "jobs").Err() }()
		<-asked
		b.Intercept(nil)
		b.Restart()
		if err := <-done; err == nil {
			t.Error("BLPOP went on through a restart")
		}
		must(t, c.LPush(ctx, "jobs", "a").Err())
		if got := b.Data.List("jobs"); len(got) != 1 {
			t.Errorf("jobs: %q, want the one that no worker took", got)
		}
	})
}

func TestLatencyIsTheTestsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		b := ebbtest.Run(t)
		c := client(t, b, redis.Options{})
		must(t, c.Ping(ctx).Err())
		b.SetLatency(700 * time.Millisecond)
		began := b.Clock.Now()
		must(t, c.Ping(ctx).Err())
		if d := b.Clock.Now().Sub(began); d != 700*time.Millisecond {
			t.Errorf("PING took %v, want 700ms", d)
		}
		impatient := client(t, b, redis.Options{ReadTimeout: 500 * time.Millisecond, ContextTimeoutEnabled: true})
		if err := impatient.Ping(ctx).Err(); err == nil {
			t.Error("PING within 500 ms")
		}
		b.SetLatency(0)
	})
}

func TestARequestOrItsReplyIsLost(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		ctx := context.Background()
		b := ebbtest.Run(t)
		c := client(t, b, redis.Options{})
		for _, fault := range []error{ebbtest.ErrCut, ebbtest.ErrLost} {
			b.Intercept(func(cmd []string) error {
				if strings.EqualFold(cmd[0], "incr") {
					return fault
				}
				return nil
			})
			if err := c.Incr(ctx, fault.Error()).Err(); err == nil {
				t.Errorf("%v: no error", fault)
			}
			b.Intercept(nil)
		}
		if b.Data.Exists(ebbtest.ErrCut.Error()) {
			t.Error("a command that was cut off was run")
		}
		if n := b.Data.Get(ebbtest.ErrLost.Error()); n != "1" {
			t.Errorf("the command whose reply was lost: %q, want 1", n)
		}
		must(t, c.Ping(ctx).Err())
	})
}

func TestInterceptorsAnswerForTheServer(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		ctx := context.Background()
		b := ebbtest.Run(t)
		c := client(t, b, redis.Options{})
		b.Intercept(func(cmd []string) error {
			if cmd[0] == "set" && cmd[1] == "full" {
				return ebb.ReplyError("OOM command not allowed when used memory > 'maxmemory'.")
			}
			return nil
		})
		pipe := c.Pipeline()
		first, second, third := pipe.Set(ctx, "a", 1, 0), pipe.Set(ctx, "full", 2, 0), pipe.Set(ctx, "c", 3, 0)
		_, _ = pipe.Exec(ctx)
		if first.Err() != nil || third.Err() != nil || !strings.HasPrefix(second.Err().Error(), "OOM") {
			t.Errorf("%v, %v, %v", first.Err(), second.Err(), third.Err())
		}
	})
}

func TestAddrIsTheSameAfterARestart(t *testing.T) {
	ctx := context.Background()
	b := ebbtest.Run(t)
	c := redis.NewClient(&redis.Options{Addr: b.Addr(), MaxRetries: -1})
	defer c.Close()
	must(t, c.Set(ctx, "k", "v", 0).Err())
	b.Stop()
	if err := c.Get(ctx, "k").Err(); err == nil {
		t.Error("a stopped backend answers")
	}
	b.Start()
	if v, err := c.Get(ctx, "k").Result(); v != "v" || err != nil {
		t.Error(v, err)
	}
}

// What clients of the protocol see, the Conn sees, too.
func TestTheConnSeesTheFaults(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		ctx := context.Background()
		b := ebbtest.Run(t)
		must(t, b.Set(ctx, "k", "v"))
		b.SetError("LOADING not yet")
		var reply ebb.ReplyError
		if err := b.Set(ctx, "k", "w"); !errors.As(err, &reply) || reply.Code() != "LOADING" {
			t.Errorf("set: %v", err)
		}
		var batch ebb.Batch
		batch.Do("SET", "k", "w")
		if _, err := b.Tx(ctx, &batch); !errors.As(err, &reply) {
			t.Errorf("tx: %v", err)
		}
		if v, err := b.Pipeline(ctx, &batch); err != nil || v[0].Err() == nil {
			t.Errorf("pipeline: %v, %v", v, err)
		}
		b.SetError("")
		if v := b.Data.Get("k"); v != "v" {
			t.Errorf("%q: a refused command was run", v)
		}

		b.Intercept(func(cmd []string) error {
			if cmd[0] == "INCR" {
				return ebbtest.ErrLost
			}
			return nil
		})
		if _, err := b.Incr(ctx, "n"); !errors.Is(err, ebb.ErrUnavailable) {
			t.Errorf("a lost reply: %v", err)
		}
		b.Intercept(nil)
		if n := b.Data.Get("n"); n != "1" {
			t.Errorf("n is %q, want 1", n)
		}

		b.Stop()
		if _, err := b.Get(ctx, "k"); !errors.Is(err, ebb.ErrUnavailable) {
			t.Errorf("stopped: %v", err)
		}
		b.Start()
		if v, err := b.Get(ctx, "k"); v != "v" || err != nil {
			t.Errorf("started: %q, %v", v, err)
		}
		if ebb.EngineOf(b.Conn) == nil || !b.Capabilities().Embedded {
			t.Error("the engine is hidden")
		}
	})
}

func TestAConnThatWaitsHearsOfAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		b := ebbtest.Run(t)
		sub, err := b.Subscribe(ctx, "news")
		must(t, err)
		popped, told := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := b.Block(ctx, "BLPOP", "jobs", 0)
			popped <- err
		}()
		go func() {
			_, err := sub.Next(ctx)
			told <- err
		}()
		synctest.Wait()
		b.Stop()
		if err := <-popped; !errors.Is(err, ebb.ErrUnavailable) {
			t.Errorf("BLPOP: %v", err)
		}
		synctest.Wait()
		b.Start()
		if err := <-told; !errors.Is(err, ebb.ErrInterrupted) {
			t.Errorf("subscription: %v", err)
		}
		if n, err := b.Publish(ctx, "news", "tea"); n != 1 || err != nil {
			t.Errorf("%d receive it, %v", n, err)
		}
		if m, err := sub.Next(ctx); m.Payload != "tea" || err != nil {
			t.Errorf("%v, %v", m, err)
		}
		must(t, sub.Close())
	})
}

func TestLatencyDelaysTheConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		b.SetLatency(300 * time.Millisecond)
		began := b.Clock.Now()
		must(t, b.Ping(context.Background()))
		if d := b.Clock.Now().Sub(began); d != 300*time.Millisecond {
			t.Errorf("PING took %v", d)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		if err := b.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("PING within 200 ms: %v", err)
		}
	})
}

func TestAFaultThatOutlastsTheContextIsTheContextsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		for what, fault := range map[string]func(){"slow": func() { b.SetLatency(time.Minute) }, "hung": b.Hang} {
			fault()
			ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, errors.New("too slow for us"))
			if err := b.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", what, err)
			}
			cancel()
			b.SetLatency(0)
			b.GoOn()
		}
	})
}
