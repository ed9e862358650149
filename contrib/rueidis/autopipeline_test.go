package rueidisebb_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	rueidisebb "github.com/ebbdb/ebb/contrib/rueidis"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

func TestEachOfManyHasItsOwnReply(t *testing.T) {
	each(t, func(t *testing.T, p *realserver.Process) {
		c, ctx := open(t, p), testContext(t)
		both := ebb.NewScript("return {tonumber(ARGV[1]), tonumber(ARGV[2])}")
		must(t, c.Set(ctx, "text", "x"))
		var all sync.WaitGroup
		for w := range 64 {
			all.Go(func() {
				own := fmt.Sprint("own", w)
				for i := range 50 {
					if got, err := c.Incr(ctx, own); got != int64(i+1) || err != nil {
						t.Errorf("INCR: %v %v, want %d", got, err, i+1)
					}
					if v, err := c.Script(ctx, both, []string{own}, w, i); err != nil || fmt.Sprint(v.Elems[0].Int, v.Elems[1].Int) != fmt.Sprint(w, i) {
						t.Errorf("script: %v %v, want %d and %d", v, err, w, i)
					}
					if s, err := c.Get(ctx, own); s != fmt.Sprint(i+1) || err != nil {
						t.Errorf("GET: %q %v", s, err)
					}
					if v, err := c.Do(ctx, "GET", "none"); !v.IsNull() || err != nil {
						t.Errorf("null: %v %v", v, err)
					}
					var refused ebb.ReplyError
					if _, err := c.Incr(ctx, "text"); !errors.As(err, &refused) || refused.Code() != "ERR" {
						t.Errorf("an error: %v", err)
					}
				}
			})
		}
		all.Wait()
	})
}

// A call in a batch ends with its own context, and the other calls with theirs. The
// timeout of a limiter's requests ends them too.
func TestEachOfManyEndsWithItsContext(t *testing.T) {
	for _, pipelining := range []bool{false, true} {
		t.Run(fmt.Sprintf("pipelining=%v", pipelining), func(t *testing.T) { endWithTheirContexts(t, pipelining) })
	}
}

func endWithTheirContexts(t *testing.T, pipelining bool) {
	p := realserver.NewProcess(t, "redis-server", "--save", "")
	p.Start()
	o := to(p)
	o.AlwaysPipelining = pipelining
	c, err := rueidisebb.Open(testContext(t), o)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	long, ctx := testContext(t), testContext(t)
	canceled, cancel := context.WithCancel(long)
	if _, err := c.Do(ctx, "INCR", "n"); err != nil {
		t.Fatal(err)
	}
	// The deadline of a call that was alone ends the connection, for the calls behind it too.
	passed := func(err error) bool {
		return errors.Is(err, context.DeadlineExceeded) || !pipelining && errors.Is(err, ebb.ErrUnavailable)
	}
	var after sync.WaitGroup
	p.Pause(t)
	for range 8 {
		after.Go(func() {
			short, stop := context.WithTimeout(long, 200*time.Millisecond)
			defer stop()
			if _, err := c.Do(short, "INCR", "n"); !passed(err) {
				t.Errorf("deadline: %v", err)
			}
		})
		after.Go(func() {
			if _, err := c.Do(canceled, "INCR", "n"); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
		})
	}
	cancel()
	after.Wait()
	p.Resume(t)
	var again sync.WaitGroup
	for range 16 {
		again.Go(func() {
			if _, err := c.Do(ctx, "INCR", "m"); err != nil {
				t.Error("afterwards:", err)
			}
		})
	}
	again.Wait()
}
