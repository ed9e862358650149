package ebbtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/testing/leaks"
)

// go-redis keeps a clock of its own from the start of the program on.
func TestMain(m *testing.M) {
	leaks.Main(m, goleak.IgnoreTopFunction("github.com/redis/go-redis/v9/internal/pool.startGlobalTimeCache.func1"))
}

// everywhere runs a test in a bubble and outside of one.
func everywhere(t *testing.T, test func(t *testing.T)) {
	t.Run("manual clock", test)
	t.Run("bubble", func(t *testing.T) { synctest.Test(t, test) })
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAKeyLivesThroughItsLastMillisecond(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		ctx := context.Background()
		b := ebbtest.Run(t)
		began := b.Clock.Now()
		must(t, b.SetTTL(ctx, "session", "ann", 30*time.Minute))
		b.Clock.Advance(30 * time.Minute)
		if v, err := b.Get(ctx, "session"); err != nil || v != "ann" {
			t.Errorf("at the deadline: %q, %v", v, err)
		}
		b.Clock.Advance(time.Millisecond)
		if _, err := b.Get(ctx, "session"); !errors.Is(err, ebb.ErrNil) {
			t.Errorf("after the deadline: %v", err)
		}
		if d := b.Clock.Now().Sub(began); d != 30*time.Minute+time.Millisecond {
			t.Errorf("%v have passed", d)
		}
	})
}

func TestEventsAreThereWhenAdvanceReturns(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		ctx := context.Background()
		b := ebbtest.Run(t)
		_, err := b.Do(ctx, "CONFIG", "SET", "notify-keyspace-events", "Ex")
		must(t, err)
		s, err := b.Subscribe(ctx, "__keyevent@0__:expired")
		must(t, err)
		for key, ttl := range map[string]time.Duration{"c": 3 * time.Hour, "a": time.Hour, "b": 2 * time.Hour, "d": 30 * 24 * time.Hour} {
			must(t, b.SetTTL(ctx, key, "", ttl))
		}
		b.Clock.Advance(4 * time.Hour)
		gone, cancel := context.WithCancel(ctx)
		got := ""
		for m, err := range s.All(gone) {
			must(t, err)
			if got += m.Payload; len(got) == 3 {
				cancel()
			}
		}
		cancel()
		if got != "abc" {
			t.Errorf("expired: %s, want abc in this order", got)
		}
	})
}

func TestClientsReachTheEngineInsideABubble(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		ctx := context.Background()
		b := ebbtest.Run(t)
		c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", Dialer: b.Dial, ReadTimeout: -1, WriteTimeout: -1})
		defer c.Close()
		must(t, c.Set(ctx, "k", "v", time.Minute).Err())
		b.Clock.Advance(time.Minute + time.Millisecond)
		if err := c.Get(ctx, "k").Err(); !errors.Is(err, redis.Nil) {
			t.Errorf("after its minute: %v", err)
		}
	})
}

func TestTimersAndDeadlinesShareABubblesClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		b := ebbtest.Run(t)
		must(t, b.SetTTL(ctx, "k", "v", 24*time.Hour))
		time.Sleep(24 * time.Hour)
		if n, err := b.Exists(ctx, "k"); n != 1 || err != nil {
			t.Errorf("at the deadline: %d, %v", n, err)
		}
		time.Sleep(time.Millisecond)
		if n, err := b.Exists(ctx, "k"); n != 0 || err != nil {
			t.Errorf("after it: %d, %v", n, err)
		}
	})
}

func TestAddrServesTheSameEngine(t *testing.T) {
	ctx := context.Background()
	b := ebbtest.Run(t)
	c := redis.NewClient(&redis.Options{Addr: b.Addr()})
	defer c.Close()
	must(t, c.Set(ctx, "k", "v", time.Hour).Err())
	b.Clock.Advance(20 * time.Minute)
	if d, err := b.TTL(ctx, "k"); d != 40*time.Minute || err != nil {
		t.Errorf("ttl %v, %v", d, err)
	}
	b.Clock.Advance(40*time.Minute + time.Millisecond)
	if err := c.Get(ctx, "k").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("after its hour: %v", err)
	}
}
