package kit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestHelperKeysShareTheSlotOfTheirObject(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Key("orders", "due"), "{orders}:due"},
		{Key("shop:{7}:orders", "due"), "shop:{7}:orders:due"},
		{Prefixed("lock", "orders"), "lock:{orders}"},
		{Prefixed("lock", "{7}:orders"), "lock:{7}:orders"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}

func TestAPartOfAMillisecondCountsAsOne(t *testing.T) {
	for d, want := range map[time.Duration]int64{1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, 0: 0, -time.Second: -1000} {
		if got := Millis(d); got != want {
			t.Errorf("%v: %d ms, want %d", d, got, want)
		}
	}
}

func TestPausesGrowUpToTheMost(t *testing.T) {
	for n := range 100 {
		want := time.Second
		if n < 10 {
			want = min(time.Millisecond<<n, time.Second)
		}
		if d := Backoff(time.Millisecond, time.Second, n); d < want/2 || d > want {
			t.Errorf("attempt %d: %v, want half of %v or more", n, d, want)
		}
	}
}

func TestASleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := Sleep(ctx, 500*time.Millisecond); err != nil {
			t.Error(err)
		}
		if err := Sleep(ctx, time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func TestIdsDiffer(t *testing.T) {
	if a, b := ID(), ID(); a == b || len(a) != 32 {
		t.Error(a, b)
	}
	if u := UUID(); len(u) != 36 || u[14] != '4' {
		t.Error(u)
	}
}

func TestAnOwnLimitIsToldFromTheCallersContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := errors.New("no reply")
		for _, c := range []struct {
			ours, theirs time.Duration // deadlines; theirs 0: none
			err          error
			want         bool
		}{
			{time.Second, 0, context.DeadlineExceeded, true}, // a clock that is a little ahead
			{time.Second, 2 * time.Second, context.DeadlineExceeded, true},
			{2 * time.Second, time.Second, context.DeadlineExceeded, false},
			{time.Second, time.Second, context.DeadlineExceeded, false},
			{time.Second, 0, late, false},
			{time.Second, 0, nil, false},
			{-time.Second, 0, late, true},
			{-time.Second, -time.Second, late, false},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			if c.theirs != 0 {
				ctx, cancel = context.WithTimeout(ctx, c.theirs)
			}
			bounded, stop := context.WithTimeout(ctx, c.ours)
			if got := Overdue(ctx, bounded, c.err); got != c.want {
				t.Errorf("%+v: %v", c, got)
			}
			stop()
			cancel()
		}
	})
}
