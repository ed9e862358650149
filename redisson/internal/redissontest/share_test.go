// Package redissontest has programs share objects with Redisson: Go processes with the
// toolkit, and one that plays the Java side with plain commands.
package redissontest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/redisson"
)

// patience bounds what one process does.
var patience = tier.Patience

const (
	childEnv = "EBB_REDISSON_CHILD" // the URL, for a process that is one of ours
	nameEnv  = "EBB_REDISSON_NAME"  // and the name of the shared object

	rate     = 40
	interval = 500 * time.Millisecond
	lasts    = 2 * time.Second // of each process, or until it had something of everything
)

func TestMain(m *testing.M) {
	if url := os.Getenv(childEnv); url != "" {
		os.Exit(child(url, os.Getenv(nameEnv)))
	}
	backends.Main(m)
}

// tally has the grants of a process.
type tally struct {
	Asked  int64   // when it first requested the lock, in ms since 1970
	Grants []int64 // as they came, ms since 1970
	Held   int     // how often it held the lock
	Error  string
}

func now() int64 { return time.Now().UnixMilli() }

// child is a Go process with the toolkit.
func child(url, name string) int {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := ebb.Open(ctx, url)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer c.Close()
	all := tally{Asked: now()}
	over := func(n int) bool { return n > 0 && now() > all.Asked+lasts.Milliseconds() }
	var errs [2]error
	var wait sync.WaitGroup
	wait.Go(func() {
		l, err := redisson.NewRateLimiter(c, name+":limiter")
		for err == nil && !over(len(all.Grants)) {
			if err = l.Acquire(ctx, 1); err == nil {
				all.Grants = append(all.Grants, now())
			}
		}
		errs[0] = err
	})
	wait.Go(func() {
		l, err := redisson.NewLock(redisson.NewClient(c, ""), name+":lock")
		for err == nil && !over(all.Held) {
			var lease *lock.Lease
			if lease, err = l.Acquire(ctx, 1, 0); err == nil {
				err = errors.Join(increment(c, name), lease.Release(context.WithoutCancel(ctx)))
				all.Held++
			}
		}
		errs[1] = err
	})
	wait.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		all.Error = err.Error()
	}
	_ = json.NewEncoder(os.Stdout).Encode(all)
	return 0
}

// increment reads and writes what only the lock protects.
func increment(c *ebb.Conn, name string) error {
	ctx := context.Background()
	n, err := c.Do(ctx, "GET", name+":protected")
	if err != nil {
		return err
	}
	x, _ := n.AsInt()
	return c.Set(ctx, name+":protected", x+1)
}

// TestTwoProcessesAndJavaShareALimiterAndALock: together they get what the limiter
// allows, and no increment under the lock is lost.
func TestTwoProcessesAndJavaShareALimiterAndALock(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		if b.Kind != "redis" && b.Kind != "ebb2" && b.Kind != "ebb3" {
			return // three processes need one address
		}
		ctx, name := b.Context(), "shared-"+kit.ID()[:8]
		l, err := redisson.NewRateLimiter(b.Conn, name+":limiter")
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := l.TrySetRate(ctx, redisson.Rate{Type: redisson.Overall, Rate: rate, Interval: interval}); !ok || err != nil {
			t.Fatal(ok, err)
		}
		j := newJava(t, b.URL())
		java := j.play(ctx, name, 100*time.Millisecond) // before there is a crowd
		one, two := start(t, b.URL(), name), start(t, b.URL(), name)
		more := j.play(ctx, name, lasts)
		java.Grants, java.Held = append(java.Grants, more.Grants...), java.Held+more.Held
		all := map[string]tally{"java": java, "go 1": one(), "go 2": two()}
		began := java.Asked // a grant is seen after it was made: it counts from the request of a caller

		var grants []int64
		held := 0
		for who, w := range all {
			t.Logf("%s: %d permits, held the lock %d times", who, len(w.Grants), w.Held)
			if w.Error != "" || len(w.Grants) == 0 || w.Held == 0 {
				t.Errorf("%s: %+v", who, w)
			}
			grants = append(grants, w.Grants...)
			held += w.Held
		}
		v, err := b.Do(ctx, "GET", name+":protected")
		if err != nil {
			t.Fatal(err)
		}
		protected, _ := v.AsInt()
		span := time.Duration(slices.Max(grants)-began) * time.Millisecond
		// A window of the log holds rate permits; those at both ends count whole.
		most := int(span/interval+2) * rate
		t.Logf("together: %d permits in %v, at most %d of %d in %v; %d increments by %d holders", len(grants), span, most,
			rate, interval, protected, held)
		if len(grants) > most {
			t.Errorf("%d permits in %v, %d allowed", len(grants), span, most)
		}
		if protected != int64(held) {
			t.Errorf("%d increments by %d holders: the lock had two at once", protected, held)
		}
	})
}

// start runs this program as another process, and returns how to wait for it.
func start(t *testing.T, url, name string) func() tally {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+url, nameEnv+"="+name)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() (w tally) {
		if err := errors.Join(json.NewDecoder(out).Decode(&w), cmd.Wait()); err != nil {
			t.Fatal(err)
		}
		return w
	}
}

// play takes and holds what it can get for a while.
func (j *java) play(ctx context.Context, name string, d time.Duration) (w tally) {
	t := j.t
	w.Asked = now()
	for now() < w.Asked+d.Milliseconds() {
		if ok, err := j.tryAcquire(ctx, name+":limiter"); err != nil {
			t.Fatal(err)
		} else if ok {
			w.Grants = append(w.Grants, now())
		}
		ok, err := j.lock(ctx, name+":lock", 1)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			n, err := j.c.Get(context.Background(), name+":protected").Int64()
			if err != nil && !errors.Is(err, redis.Nil) {
				t.Fatal(err)
			}
			if err := j.c.Set(context.Background(), name+":protected", n+1, 0).Err(); err != nil {
				t.Fatal(err)
			}
			w.Held++
			if err := j.unlock(context.Background(), name+":lock", 1); err != nil {
				t.Fatal(err)
			}
		}
		_ = kit.Sleep(ctx, time.Millisecond)
	}
	return w
}
