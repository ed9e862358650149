package rueidisebb_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	rueidisebb "github.com/ebbdb/ebb/contrib/rueidis"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/expmap"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/drivertest"
	"github.com/ebbdb/ebb/internal/testing/objects"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/queue"
)

// The objects of the toolkit, on one server each and on a cluster of six nodes.
func TestALimitIsAllowedAndNoMore(t *testing.T) { each(t, alone(limits)) }
func TestALockHasOneHolder(t *testing.T)        { each(t, alone(locks)) }
func TestEveryJobIsDoneOnce(t *testing.T)       { each(t, alone(jobs)) }
func TestEntriesEndAtTheirTime(t *testing.T)    { each(t, alone(entries)) }

func TestEveryObjectKeepsTheRules(t *testing.T) { each(t, alone(rules)) }

func TestWhatACallGaveUpIsGivenBack(t *testing.T) {
	each(t, alone(func(t *testing.T, c *ebb.Conn) { objects.GivenUp(t, c, "up") }))
}

func TestWhatACallGaveUpIsGivenBackOverProxies(t *testing.T) {
	p := realserver.NewProcess(t, realserver.Ebb(t))
	p.Start()
	objects.Proxied(t, p.Addr(), func(t *testing.T, addr string) *ebb.Conn {
		c, err := rueidisebb.Open(testContext(t), rueidis.ClientOption{InitAddress: []string{addr}})
		must(t, err)
		t.Cleanup(func() { must(t, c.Close()) })
		return c
	})
}

// rules are those that the objects keep over go-redis.
func rules(t *testing.T, c *ebb.Conn) {
	s := objects.Site{Conn: c, Name: func(name string) string { return "rules:" + name }, Pass: func(d time.Duration) {
		_ = kit.Sleep(testContext(t), d)
	}}
	objects.Releases(t, s)
	objects.Callbacks(t, s)
	objects.Loops(t, s)
	objects.Names(t, s)
	objects.Deletes(t, s)
}

func alone(test func(*testing.T, *ebb.Conn)) func(*testing.T, *realserver.Process) {
	return func(t *testing.T, p *realserver.Process) { test(t, open(t, p)) }
}

func TestObjectsRunOnACluster(t *testing.T) {
	t.Parallel()
	cluster := backends.NewCluster(t)
	c, err := rueidisebb.Open(testContext(t), rueidis.ClientOption{InitAddress: cluster.Addrs()})
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	if !c.Capabilities().Cluster {
		t.Error("it is not seen to be a cluster")
	}
	t.Run("limit", func(t *testing.T) { limits(t, c) })
	t.Run("lock", func(t *testing.T) { locks(t, c) })
	t.Run("queue", func(t *testing.T) { jobs(t, c) })
	t.Run("batches", func(t *testing.T) { batches(t, c) })
	t.Run("expmap", func(t *testing.T) { entries(t, c) })
	t.Run("rules", func(t *testing.T) { rules(t, c) })
	t.Run("wide", func(t *testing.T) { wideCommands(t, c) })
	t.Run("events", func(t *testing.T) { drivertest.Events(t, c) })
	t.Run("masters", func(t *testing.T) { drivertest.EventsOfMasters(t, c, cluster, "{events}") })
	t.Run("hung", func(t *testing.T) { hungNode(t, cluster) })
	t.Run("moved", func(t *testing.T) { movedSlot(t, c, cluster) })
	t.Run("replicated", func(t *testing.T) { replicatedInACluster(t, c, cluster) })
}

func limits(t *testing.T, c *ebb.Conn) {
	ctx := testContext(t)
	for _, algorithm := range []limit.Algorithm{limit.GCRA, limit.SlidingWindow, limit.SlidingLog, limit.FixedWindow} {
		l, err := limit.New(c, "api-"+algorithm.String(), limit.Per(20, 90*24*time.Hour), limit.FailClosed, limit.Options{Algorithm: algorithm})
		must(t, err)
		var granted atomic.Int64
		var askers sync.WaitGroup
		for range 8 {
			askers.Go(func() {
				for range 10 {
					r, err := l.Allow(ctx, "ann")
					if err != nil {
						t.Error(err)
						return
					}
					if r.Allowed {
						granted.Add(1)
					}
				}
			})
		}
		askers.Wait()
		if n := granted.Load(); n != 20 {
			t.Errorf("%v: %d granted, want 20", algorithm, n)
		}
	}
}

func locks(t *testing.T, c *ebb.Conn) {
	ctx := testContext(t)
	l, err := lock.New(c, "report")
	must(t, err)
	var inside, last atomic.Int64
	var workers sync.WaitGroup
	for range 6 {
		workers.Go(func() {
			for range 5 {
				lease, err := l.Acquire(ctx, 0)
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d are inside", n)
				}
				if before := last.Swap(lease.Token()); before >= lease.Token() {
					t.Errorf("token %d after %d", lease.Token(), before)
				}
				inside.Add(-1)
				if err := lease.Release(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	lease, err := l.TryAcquire(ctx)
	must(t, err)
	if _, err := l.TryAcquire(ctx); !errors.Is(err, lock.ErrTaken) {
		t.Errorf("a lock that is held: %v", err)
	}
	must(t, lease.Release(ctx))
}

func jobs(t *testing.T, c *ebb.Conn) {
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	q, err := queue.New[string](c, "mail")
	must(t, err)
	const n = 100
	var mu sync.Mutex
	done := map[string]int{}
	ended := make(chan error, 1)
	go func() {
		ended <- q.Run(ctx, 4, func(_ context.Context, j *queue.Job[string]) error {
			mu.Lock()
			defer mu.Unlock()
			done[j.Value]++
			return nil
		})
	}()
	for i := range n {
		_, err := q.Push(ctx, fmt.Sprint("job ", i), queue.PushOptions{Delay: time.Duration(i%3) * 20 * time.Millisecond})
		must(t, err)
	}
	drivertest.Until(t, "all is done", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(done) == n
	})
	drivertest.Until(t, "the queue is empty", func() bool {
		left, err := q.Len(ctx)
		must(t, err)
		return left == 0
	})
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for job, times := range done {
		if times != 1 {
			t.Errorf("%s was done %d times", job, times)
		}
	}
}

func entries(t *testing.T, c *ebb.Conn) {
	ctx := testContext(t)
	m, err := expmap.New[string, int](c, "carts")
	must(t, err)
	must(t, m.Set(ctx, "short", 1, 30*time.Millisecond))
	must(t, m.Set(ctx, "long", 2, time.Hour))
	if n, there, err := m.Get(ctx, "long"); n != 2 || !there || err != nil {
		t.Errorf("long: %d, %v, %v", n, there, err)
	}
	drivertest.Until(t, "the short one is gone", func() bool {
		_, there, err := m.Get(ctx, "short")
		must(t, err)
		return !there
	})
	if n, err := m.Len(ctx); n != 1 || err != nil {
		t.Errorf("%d entries, %v", n, err)
	}
	if n, err := m.Remove(ctx, "long"); n != 1 || err != nil {
		t.Errorf("delete: %v, %v", n, err)
	}
}

func batches(t *testing.T, c *ebb.Conn) {
	ctx := testContext(t)
	var b ebb.Batch
	for i := range 20 {
		b.Do("SET", fmt.Sprint("key", i), i) // on all nodes
	}
	b.Do("PING")
	vs, err := c.Pipeline(ctx, &b)
	if err != nil || len(vs) != 21 {
		t.Fatal(vs, err)
	}
	for i := range 20 {
		if s, err := c.Get(ctx, fmt.Sprint("key", i)); err != nil || s != fmt.Sprint(i) {
			t.Errorf("key%d: %q, %v", i, s, err)
		}
	}
	b.Reset()
	b.Do("INCR", "{a}1")
	b.Do("INCR", "{a}2")
	if vs, err = c.Tx(ctx, &b); err != nil || vs[1].Int != 1 {
		t.Error(vs, err)
	}
	b.Do("INCR", "elsewhere")
	if _, err = c.Tx(ctx, &b); !errors.Is(err, ebb.ErrArgument) {
		t.Errorf("a transaction over nodes: %v", err)
	}
}

// movedSlot moves a slot away from under the client.
func movedSlot(t *testing.T, c *ebb.Conn, cluster *backends.Cluster) {
	ctx := testContext(t)
	must(t, c.Set(ctx, "{m}n", 1))
	from := cluster.Master(cluster.Slot("{m}n"))
	for _, to := range cluster.Masters() {
		if to != from {
			must(t, cluster.MoveSlot(cluster.Slot("{m}n"), to))
			break
		}
	}
	err := c.Watch(ctx, func(w *ebb.Watched) error {
		var b ebb.Batch
		b.Do("INCR", "{m}n")
		_, err := w.Tx(ctx, &b)
		return err
	}, "{m}n")
	must(t, err)
	if s, err := c.Get(ctx, "{m}n"); s != "2" || err != nil {
		t.Errorf("%q, %v", s, err)
	}
}
