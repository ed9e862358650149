package ebbtest_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/ebbtest"
)

func TestAHungBackendKeepsWhatItIsTold(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		c := client(t, b, redis.Options{ContextTimeoutEnabled: true})
		must(t, c.Ping(t.Context()).Err())
		b.Hang()
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		for _, try := range []func() error{
			func() error { return c.Incr(short, "sent").Err() },
			func() error { _, err := b.Incr(short, "not sent"); return err },
			func() error { _, err := b.Subscribe(short, "news"); return err },
		} {
			if err := try(); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("while it hangs: %v", err)
			}
		}
		b.GoOn()
		if n := c.Incr(t.Context(), "after").Val(); n != 1 {
			t.Error(n)
		}
		for b.Data.Get("sent") != "1" { // the command that was sent runs, if a little later
			must(t, c.Ping(t.Context()).Err())
		}
		if b.Data.Exists("not sent") {
			t.Error("a command of the Conn was run though its caller had gone")
		}
	})
}

func TestMessagesComeWhenAHungBackendGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		s, err := b.Subscribe(t.Context(), "news")
		must(t, err)
		b.Hang()
		sent := make(chan error, 1)
		go func() {
			_, err := b.Publish(t.Context(), "news", "late")
			sent <- err
		}()
		short, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if m, err := s.Next(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(m, err)
		}
		b.GoOn()
		must(t, <-sent)
		if m, err := s.Next(t.Context()); err != nil || m.Payload != "late" {
			t.Error(m, err)
		}
	})
}

// A call that waits at a server that hangs notices it, even without a deadline.
func TestAWaitAtAHungServerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		c, err := ebb.Open(t.Context(), "redis://ebbtest?read_timeout=2s", ebb.Options{Dial: b.Dial})
		must(t, err)
		defer c.Close()
		for _, x := range []struct {
			cmd  []any
			took time.Duration
		}{
			{[]any{"BLPOP", "a", 4}, 6 * time.Second},
			{[]any{"BLMPOP", 1.5, 1, "a", "LEFT"}, 3500 * time.Millisecond},
			{[]any{"XREAD", "BLOCK", 1000, "STREAMS", "block", "0"}, 3 * time.Second},
			{[]any{"LOCK.ACQUIRE", "wait", "me", 60_000, "WAIT", 3000}, 5 * time.Second},
			{[]any{"DQ.POP", "jobs", 60_000, "BLOCK", 3000}, 5 * time.Second},
			{[]any{"BLPOP", "a", 0}, 12 * time.Second}, // two PINGs, 5 s apart, 2 s each
		} {
			b.Hang()
			began := time.Now()
			v, err := c.Block(context.Background(), x.cmd...)
			took := time.Since(began)
			if !errors.Is(err, ebb.ErrUnavailable) || took < x.took || took > x.took+time.Millisecond {
				t.Errorf("%v: after %v: %v, %v", x.cmd, took, v, err)
			}
			b.GoOn()
			if _, err := c.Do(t.Context(), "PING"); err != nil {
				t.Error(err)
			}
			b.Hang()
			short, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
			if _, err := c.Block(short, x.cmd...); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ebb.ErrUnavailable) {
				t.Errorf("%v: %v", x.cmd, err)
			}
			cancel()
			b.GoOn()
		}
		// One that is there may be waited at for as long as one likes.
		done := make(chan error, 1)
		go func() {
			_, err := c.Block(context.Background(), "BLPOP", "later", 0)
			done <- err
		}()
		b.Clock.Advance(time.Hour)
		_, err = c.Do(t.Context(), "RPUSH", "later", "x")
		must(t, err)
		must(t, <-done)
	})
}
