package redisson

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/limit"
)

// javaLimiter is the other side: a program that knows Redisson's layout and nothing of
// ours. It uses plain commands, in a transaction where it must, and its own clock.
type javaLimiter struct {
	*ebb.Conn
	t    *testing.T
	ctx  context.Context
	name string // {name}: the helper keys'
	uuid string // "" with type 0
}

func (j *javaLimiter) do(args ...any) ebb.Value {
	j.t.Helper()
	v, err := j.Do(j.ctx, args...)
	if err != nil {
		j.t.Fatal(args, err)
	}
	return v
}

func (j *javaLimiter) value() string {
	if j.uuid != "" {
		return "{" + j.name + "}:value:" + j.uuid
	}
	return "{" + j.name + "}:value"
}

func (j *javaLimiter) permits() string { return strings.Replace(j.value(), ":value", ":permits", 1) }

// now is the server's time in ms.
func (j *javaLimiter) now() int64 {
	v := j.do("TIME")
	s, _ := v.Elems[0].AsInt()
	us, _ := v.Elems[1].AsInt()
	return s*1000 + us/1000
}

// grant takes n permits as Java does when they are free: it is for quiet moments.
func (j *javaLimiter) grant(n uint32, at int64, member string) {
	if j.do("EXISTS", j.value()).Int == 0 {
		j.do("SET", j.value(), j.do("HGET", j.name, "rate").String())
	}
	j.do("ZADD", j.permits(), at, member)
	j.do("DECRBY", j.value(), int64(n))
}

func unhex(t *testing.T, s string) string {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// limiterOf makes a limiter, and the other side of it.
func limiterOf(t *testing.T, b *backends.Backend, name string, o ...RateLimiterOptions) (*RateLimiter, *javaLimiter) {
	t.Helper()
	l, err := NewRateLimiter(b.Conn, b.Name(name), o...)
	if err != nil {
		t.Fatal(err)
	}
	return l, &javaLimiter{Conn: b.Open(), t: t, ctx: b.Context(), name: b.Name(name)}
}

func TestARateIsSetOnce(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		l, j := limiterOf(t, b, "api")
		ctx := b.Context()
		for _, err := range []error{
			func() error { _, err := l.TryAcquire(ctx, 1, 0); return err }(),
			func() error { _, err := l.AvailablePermits(ctx); return err }(),
			func() error { _, err := l.Rate(ctx); return err }(),
			l.Acquire(ctx, 1),
		} {
			if !errors.Is(err, ErrNoRate) {
				t.Error(err)
			}
		}
		rate := Rate{Rate: 5, Interval: time.Minute}
		for i := range 2 {
			if set, err := l.TrySetRate(ctx, rate); set != (i == 0) || err != nil {
				t.Error(i, set, err)
			}
			rate.Rate = 7
		}
		want := []string{"rate", "5", "interval", "60000", "type", "0", "keepAliveTime", "0"}
		for i := 0; i < len(want); i += 2 {
			if got := j.do("HGET", l.name, want[i]).String(); got != want[i+1] {
				t.Errorf("%s: %q", want[i], got)
			}
		}
		if _, err := l.TryAcquire(ctx, 6, 0); !errors.Is(err, limit.ErrTooMuch) {
			t.Error(err)
		}
		if _, err := l.TryAcquire(ctx, 0, 0); !errors.Is(err, ebb.ErrArgument) || strings.Count(err.Error(), "rate limiter") != 1 {
			t.Error(err)
		}
		if ok, err := l.TryAcquire(ctx, 5, 0); !ok || err != nil {
			t.Error(ok, err)
		}
		if err := l.SetRate(ctx, rate); err != nil {
			t.Error(err)
		}
		if n, err := l.AvailablePermits(ctx); n != 7 || err != nil {
			t.Error(n, err)
		}
		if r, err := l.Rate(ctx); r != rate || err != nil {
			t.Error(r, err)
		}
		if err := l.SetRate(ctx, Rate{Rate: 1}); !errors.Is(err, ebb.ErrArgument) {
			t.Error(err)
		}
	})
}

func TestJavaReadsThePermitsThatGoTakes(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		for _, uuid := range []string{"", "6f1e8f3c-3b0f-4d2a-9b1e-0d4b8c1a2e3f"} {
			l, j := limiterOf(t, b, "api"+uuid, RateLimiterOptions{Client: uuid})
			j.uuid = uuid
			kind := "0"
			if uuid != "" {
				kind = "1"
			}
			// As Redisson 3.4x leaves it, and an older one: no keepAliveTime.
			j.do("HSET", l.name, "rate", "10", "interval", "60000", "type", kind)
			before := j.now()
			for _, n := range []int64{1, 3} {
				if ok, err := l.TryAcquire(b.Context(), n, 0); !ok || err != nil {
					t.Fatal(ok, err)
				}
			}
			if got := j.do("GET", j.value()).String(); got != "6" {
				t.Errorf("value %q", got)
			}
			all := j.do("ZRANGE", j.permits(), 0, -1)
			if len(all.Elems) != 2 {
				t.Fatal(all)
			}
			sum := uint32(0)
			for _, e := range all.Elems {
				m := e.Str
				if len(m) != 21 || m[0] != 16 {
					t.Fatalf("%x", m)
				}
				sum += binary.LittleEndian.Uint32([]byte(m[17:]))
				at, err := j.do("ZSCORE", j.permits(), m).AsFloat()
				if err != nil || at != math.Trunc(at) || int64(at) < before || int64(at) > j.now() {
					t.Errorf("score %v", at)
				}
			}
			if sum != 4 {
				t.Errorf("%d permits", sum)
			}
			if n := j.do("EXISTS", "{"+l.name+"}:ebb-line").Int; n != 0 {
				t.Error("a key that Java does not know")
			}
		}
	})
}

func TestGoReadsThePermitsThatJavaTakes(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		l, j := limiterOf(t, b, "api")
		ctx := b.Context()
		j.do("HSET", l.name, "rate", "10", "interval", "60000", "type", "0", "keepAliveTime", "0")
		now := j.now()
		// Of three ages: 16 random bytes, 8, and a float.
		j.grant(2, now, unhex(t, "10 000102030405060708090a0b0c0d0e0f 02000000"))
		j.grant(3, now, unhex(t, "08 0001020304050607 03000000"))
		j.grant(1, now, unhex(t, "0000803f 01000000"))
		if n, err := l.AvailablePermits(ctx); n != 4 || err != nil {
			t.Error(n, err)
		}
		if ok, err := l.TryAcquire(ctx, 5, 0); ok || err != nil {
			t.Error(ok, err)
		}
		if ok, err := l.TryAcquire(ctx, 4, 0); !ok || err != nil {
			t.Error(ok, err)
		}
		// The same long ago: each returns the permits that it took.
		for _, m := range j.do("ZRANGE", j.permits(), 0, -1).Elems {
			j.do("ZADD", j.permits(), now-60_001, m.Str)
		}
		if n, err := l.AvailablePermits(ctx); n != 10 || err != nil {
			t.Error(n, err)
		}
		if got := j.do("GET", j.value()).String(); got != "10" {
			t.Error(got)
		}
		// Counter and log that disagree: the log is right.
		j.do("SET", j.value(), "9")
		j.do("ZADD", j.permits(), now-60_001, unhex(t, "08 1001020304050607 05000000"))
		j.do("ZADD", j.permits(), j.now(), unhex(t, "08 2001020304050607 04000000"))
		if n, err := l.AvailablePermits(ctx); n != 6 || err != nil {
			t.Error(n, err)
		}
	})
}

func TestTheTimeToLiveIsThatOfTheRate(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		l, j := limiterOf(t, b, "api")
		ctx := b.Context()
		if ok, err := l.Expire(ctx, time.Minute); ok || err != nil {
			t.Error(ok, err)
		}
		if _, err := l.TrySetRate(ctx, Rate{Rate: 5, Interval: time.Second}); err != nil {
			t.Fatal(err)
		}
		acquire := func() {
			if ok, err := l.TryAcquire(ctx, 1, 0); !ok || err != nil {
				t.Error(ok, err)
			}
		}
		lives := func(from, to time.Duration) {
			t.Helper()
			for _, key := range []string{l.name, j.value(), j.permits()} {
				ms := time.Duration(j.do("PTTL", key).Int) * time.Millisecond
				if from < 0 && ms >= 0 || from >= 0 && (ms <= from || ms > to) {
					t.Errorf("%s lives for %v", key, ms)
				}
			}
		}
		acquire()
		lives(-1, 0)
		if ok, err := l.Expire(ctx, time.Hour); !ok || err != nil {
			t.Error(ok, err)
		}
		lives(50*time.Minute, time.Hour)
		j.do("DEL", j.value(), j.permits())
		acquire()
		lives(50*time.Minute, time.Hour)
		if ok, err := l.ClearExpire(ctx); !ok || err != nil {
			t.Error(ok, err)
		}
		lives(-1, 0)
		if err := l.SetRate(ctx, Rate{Rate: 5, Interval: time.Second, KeepAlive: 10 * time.Minute}); err != nil {
			t.Error(err)
		}
		acquire()
		lives(5*time.Minute, 10*time.Minute)
		if err := l.Delete(ctx); err != nil {
			t.Error(err)
		}
		if n := j.do("EXISTS", l.name, j.value(), j.permits()).Int; n != 0 {
			t.Error(n)
		}
	})
}

func TestARateIsForAllOrForEach(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		for kind, want := range map[RateType]int{Overall: 4, PerClient: 12} {
			granted := 0
			for range 3 {
				l, err := NewRateLimiter(b.Open(), b.Name("api")+string(rune('0'+kind)))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := l.TrySetRate(b.Context(), Rate{Type: kind, Rate: 4, Interval: time.Hour}); err != nil {
					t.Fatal(err)
				}
				for range 6 {
					ok, err := l.TryAcquire(b.Context(), 1, 0)
					if err != nil {
						t.Fatal(err)
					}
					if ok {
						granted++
					}
				}
			}
			if granted != want {
				t.Errorf("type %d: %d granted, want %d", kind, granted, want)
			}
		}
	})
}

func TestTimeoutsAreKept(t *testing.T) {
	virtualLimiter(t, func(t *testing.T, b *ebbtest.Backend, l *RateLimiter) {
		ctx := t.Context()
		if _, err := l.TrySetRate(ctx, Rate{Rate: 2, Interval: time.Second}); err != nil {
			t.Fatal(err)
		}
		if ok, err := l.TryAcquire(ctx, 2, 0); !ok || err != nil {
			t.Fatal(ok, err)
		}
		took := spent(func() {
			if ok, err := l.TryAcquire(ctx, 1, 900*time.Millisecond); ok || err != nil {
				t.Error(ok, err)
			}
		})
		if took > 901*time.Millisecond {
			t.Errorf("refused after %v", took)
		}
		took += spent(func() {
			if ok, err := l.TryAcquire(ctx, 2, 2*time.Second); !ok || err != nil {
				t.Error(ok, err)
			}
		})
		if took < time.Second || took > 1010*time.Millisecond {
			t.Errorf("granted after %v", took)
		}
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		if err := l.Acquire(short, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// spent returns how long a call takes.
func spent(fn func()) time.Duration {
	began := time.Now()
	fn()
	return time.Since(began)
}

// virtual runs a test in virtual time without and with a line.
func virtual(t *testing.T, test func(t *testing.T, b *ebbtest.Backend, fair bool)) {
	for name, fair := range map[string]bool{"as it is": false, "fair": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, ebbtest.Run(t), fair) })
		})
	}
}

// virtualLimiter makes a limiter in virtual time without and with a line.
func virtualLimiter(t *testing.T, test func(t *testing.T, b *ebbtest.Backend, l *RateLimiter)) {
	virtual(t, func(t *testing.T, b *ebbtest.Backend, fair bool) {
		l, err := NewRateLimiter(b.Conn, "api", RateLimiterOptions{Fair: fair})
		if err != nil {
			t.Fatal(err)
		}
		test(t, b, l)
	})
}

func TestARateLimiterNeverGrantsMoreThanItsRate(t *testing.T) {
	virtualLimiter(t, func(t *testing.T, b *ebbtest.Backend, l *RateLimiter) {
		const rate, interval = 10, time.Second
		if _, err := l.TrySetRate(t.Context(), Rate{Rate: rate, Interval: interval}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		var mu sync.Mutex
		var grants []time.Duration
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for l.Acquire(ctx, 1) == nil {
					mu.Lock()
					grants = append(grants, time.Since(began))
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		for i := rate; i < len(grants); i++ {
			// Grants are stamped in whole ms, and seen a little after.
			if d := grants[i] - grants[i-rate]; d < interval-2*time.Millisecond {
				t.Fatalf("%d grants within %v", rate+1, d)
			}
		}
		if len(grants) < 40 {
			t.Errorf("%d grants in 5 s", len(grants))
		}
	})
}

func TestALineIsFair(t *testing.T) {
	virtual(t, func(t *testing.T, b *ebbtest.Backend, _ bool) {
		l, err := NewRateLimiter(b.Conn, "api", RateLimiterOptions{Fair: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		if _, err := l.TrySetRate(ctx, Rate{Rate: 4, Interval: time.Second}); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []int64
		var wg sync.WaitGroup
		for _, n := range []int64{4, 1, 4, 1, 1, 1} {
			wg.Go(func() {
				if err := l.Acquire(ctx, n); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, n)
			})
			b.Clock.Advance(time.Millisecond)
		}
		if ok, err := l.TryAcquire(ctx, 1, 0); ok || err != nil {
			t.Error("it overtook:", ok, err)
		}
		wg.Wait()
		if order[0] != 4 || order[1] != 1 || order[2] != 4 {
			t.Error(order)
		}
		if n, err := b.Exists(ctx, "{api}:ebb-line", "{api}:ebb-heard"); n != 0 || err != nil {
			t.Error("the line is left behind:", n, err)
		}
	})
}
