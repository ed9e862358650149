package routing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestACommandSaysHowLongItWaits(t *testing.T) {
	for command, want := range map[string]time.Duration{
		"BLPOP a b 1.5":                    1500 * time.Millisecond,
		"blmpop 2 1 a LEFT":                2 * time.Second,
		"BLPOP a 0":                        0,
		"BLPOP a soon":                     0,
		"BLPOP a -1":                       0,
		"BLPOP":                            0,
		"WAIT 1 100":                       100 * time.Millisecond,
		"RL.WAIT api 5 1000 250":           250 * time.Millisecond,
		"LOCK.ACQUIRE l me 30000 WAIT 700": 700 * time.Millisecond,
		"LOCK.ACQUIRE WAIT me 30000":       0,
		"XREAD BLOCK 50 STREAMS s 0":       50 * time.Millisecond,
		"XREADGROUP GROUP g block BLOCK 40 STREAMS BLOCK": 40 * time.Millisecond,
		"DQ.POP block BLOCK 30":                           30 * time.Millisecond,
		"GET k":                                           0,
	} {
		words := strings.Fields(command)
		if got := OwnWait(len(words), func(i int) string { return words[i] }); got != want {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
	}
}

func TestASilentServerIsWaitedForAsLongAsTheCommandSays(t *testing.T) {
	const reply = 3 * time.Second
	silent := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	answers := func(context.Context) error { return nil }
	moved := func(context.Context) error { return fmt.Errorf("%w: another has its place", ErrUnresponsive) }
	turns := 0
	now := func(ctx context.Context) error { // every second time
		if turns++; turns%2 == 0 {
			return nil
		}
		return silent(ctx)
	}
	for _, x := range []struct {
		what string
		p    Liveness
		ends time.Duration // 0: it does not
	}{
		{"its own wait", Liveness{Own: time.Minute, ReadTimeout: reply, Ping: silent}, time.Minute + reply},
		{"an endless one", Liveness{ReadTimeout: reply, Ping: silent}, 2*CheckInterval + reply},
		{"with an early look", Liveness{ReadTimeout: reply, First: time.Second, Ping: silent}, time.Second + CheckInterval + reply},
		{"another server", Liveness{ReadTimeout: reply, Ping: moved}, CheckInterval},
		{"a server that is there", Liveness{ReadTimeout: reply, Ping: answers}, 0},
		{"one that is slow at times", Liveness{ReadTimeout: reply, Ping: now}, 0},
		{"no read timeout", Liveness{Own: time.Second, Ping: silent}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			began := time.Now()
			bounded, end := x.p.Bound(ctx)
			defer end()
			<-bounded.Done()
			took := time.Since(began)
			err := LivenessError(ctx, bounded, bounded.Err())
			if x.ends == 0 && (took != time.Hour || err != nil) || x.ends > 0 && (took != x.ends || !errors.Is(err, ErrUnresponsive)) {
				t.Errorf("%s: after %v: %v", x.what, took, err)
			}
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: the end of a context that is not the caller's: %v", x.what, err)
			}
		})
	}
}
