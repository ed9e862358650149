package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

func TestAWaiterHearsOfTheFirstOfSeveral(t *testing.T) {
	for what, items := range map[string][]Item[string]{
		"due at the same time": {
			{Value: "low", PushOptions: PushOptions{Delay: 40 * time.Millisecond}},
			{Value: "it", PushOptions: PushOptions{Delay: 40 * time.Millisecond, Priority: 9}},
		},
		"one of them dropped again": {
			{Value: "dropped", PushOptions: PushOptions{Delay: 10 * time.Millisecond}},
			{Value: "low", PushOptions: PushOptions{Delay: 50 * time.Millisecond}},
			{Value: "it", PushOptions: PushOptions{Delay: 40 * time.Millisecond}},
		},
	} {
		t.Run(what, func(t *testing.T) {
			ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
				ctx, q := b.Context(), open(Options[string]{MaxLen: 2, Overflow: DropOldest})
				got := make(chan string, 1)
				go func() {
					j, err := q.Pop(ctx)
					if err != nil {
						got <- err.Error()
						return
					}
					got <- j.Value
				}()
				b.Pass(10 * time.Millisecond) // the consumer waits, and knows of no future job
				begin := now(t, b)
				must(open(q.o).PushMany(ctx, items))(t)
				if v := <-got; v != "it" {
					t.Errorf("%q came first", v)
				}
				if took := now(t, b).Sub(begin); b.Virtual() && took != 40*time.Millisecond {
					t.Errorf("after %v", took)
				}
			})
		})
	}
}

func TestManyJobsThatWereNotTakenInTimeAreDroppedBitByBit(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		items := make([]Item[string], 1100)
		for i := range items {
			items[i] = Item[string]{Value: "late", PushOptions: PushOptions{TTL: time.Millisecond, Priority: 1}}
		}
		must(q.PushMany(ctx, items))(t)
		must(q.Push(ctx, "stays"))(t)
		b.Pass(3 * time.Millisecond)
		same(t, drain(t, ctx, q), "stays")

		ids := make([]string, len(items))
		for i := range items {
			items[i] = Item[string]{Value: "v", PushOptions: PushOptions{ID: fmt.Sprint(i), Delay: time.Hour}}
			ids[i] = items[i].ID
		}
		must(q.PushMany(ctx, items))(t)
		if n := must(q.Cancel(ctx, ids...))(t); n != int64(len(ids)) {
			t.Errorf("cancelled %d", n)
		}
	})
}

func TestAWaiterDoesNotRestWhileThereIsMuchToTidyUp(t *testing.T) {
	virtual(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		late := make([]Item[string], 2000) // ten calls drop them
		for i := range late {
			late[i].PushOptions = PushOptions{TTL: time.Millisecond, Priority: 1}
		}
		must(q.PushMany(ctx, late))(t)
		must(q.Push(ctx, "stays"))(t)
		b.Pass(3 * time.Millisecond)
		begin := now(t, b)
		if j := must(q.Pop(ctx))(t); j.Value != "stays" {
			t.Errorf("%+v", j)
		}
		if took := now(t, b).Sub(begin); took != 0 {
			t.Errorf("after %v", took)
		}
	})
}

func TestManyLeasesThatEndTogetherAreAllSettled(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		const jobs = 450 // settling them takes more than two calls
		ctx, q := b.Context(), open(Options[string]{Lease: 20 * time.Millisecond})
		must(q.PushMany(ctx, make([]Item[string], jobs)))(t)
		for left := jobs; left > 0; {
			left -= len(must(q.store().take(ctx, left, 1))(t).jobs)
		}
		b.Pass(5 * time.Millisecond)
		if q.native() {
			return // the server does this
		}
		done := map[string]bool{}
		for len(done) < jobs {
			taken := must(q.store().take(ctx, maxPop, time.Hour.Milliseconds()))(t)
			for _, r := range taken.jobs {
				if done[r.id] || r.deliveries != 2 {
					t.Fatalf("%+v", r)
				}
				done[r.id] = true
			}
			if len(taken.jobs) == 0 && taken.wait != 0 {
				t.Fatalf("%d jobs came back, and no more for %v", len(done), taken.wait)
			}
		}
	})
}

// ending is a codec that cannot decode, and reports that too late.
type ending struct {
	ebb.Codec[string]
	end func()
}

func (c ending) Decode([]byte) (string, error) {
	c.end()
	return "", fmt.Errorf("%w: another version", ebb.ErrValue)
}

func TestWhatCannotBeReadIsGivenBackAlthoughTheContextHasEnded(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, end := context.WithCancel(b.Context())
		q := open(Options[string]{MaxDeliveries: 1, Codec: ending{ebb.CodecOf[string](), end}})
		must(q.Push(ctx, "v"))(t)
		_, err := q.Pop(ctx)
		failsWith(t, err, context.Canceled)
		if i := must(q.Info(b.Context()))(t); i.Leased != 0 || i.Dead != 1 {
			t.Errorf("%+v", i)
		}
	})
}

// TestEbbsQueueShowsAsItIs tests the layout of ebb's commands alone.
func TestEbbsQueueShowsAsItIs(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		ctx, q := b.Context(), must(New(b.Conn, fresh(b), Options[string]{MaxDeliveries: 1}))(t)
		must(q.PushMany(ctx, []Item[string]{{Value: "fails"}, {Value: "is buried"}, {Value: "later", PushOptions: PushOptions{Delay: 1500 * time.Millisecond}}}))(t)
		ok(t, must(q.Pop(ctx))(t).Fail(ctx, errors.New("no")))
		ok(t, must(q.Pop(ctx))(t).Bury(ctx, "never"))
		b.Pass(700 * time.Millisecond)
		why := kit.Key(q.Name(), "why")
		fields := must(b.Do(ctx, "HKEYS", why))(t).Elems
		if len(fields) != 2 {
			t.Errorf("%v", fields)
		}
		for _, f := range fields {
			v := must(b.Do(ctx, "HPTTL", why, "FIELDS", 1, f.String()))(t)
			if left := time.Duration(v.Elems[0].Int) * time.Millisecond; left != reasonTTL-700*time.Millisecond {
				t.Errorf("%s is known for %v", f, left)
			}
		}
		must(b.Do(ctx, "DQ.POP", kit.Key(q.Name(), "dead")))(t) // another program takes it, and does not settle it
		if i := must(q.Info(ctx))(t); i.Dead != 2 || i.NextDue != 800*time.Millisecond {
			t.Errorf("%+v", i)
		}
	})
}

func TestAFunctionThatEndsItsGoroutineLeavesTheJobToItsLease(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q, runs := b.Context(), open(Options[string]{Lease: 60 * time.Millisecond}), atomic.Int32{}
		stop := running(b, q, 1, func(ctx context.Context, j *Job[string]) error {
			if runs.Add(1) == 1 {
				runtime.Goexit()
			}
			return nil
		})
		must(q.Push(ctx, "v"))(t)
		b.Until("it comes back", func() bool { return must(q.Len(ctx))(t) == 0 })
		failsWith(t, stop(), context.Canceled)
		if n := runs.Load(); n < 2 || n > 2 && b.Virtual() { // on a real backend the machine may have slept for a lease
			t.Errorf("%d runs", n)
		}
	})
}

func TestJobsGoOnWhileTheirSlotMoves(t *testing.T) {
	backends.Asked(t, []string{"cluster"}, func(t *testing.T, b *backends.Backend) {
		ctx, name, cluster := b.Context(), fresh(b), b.Cluster()
		o := Options[string]{Lease: 10 * time.Second}
		q, l, ids := must(New(b.Open(), name, o))(t), &ledger{done: map[string]int{}}, map[string]bool{}
		stop := running(b, q, 3, func(ctx context.Context, j *Job[string]) error {
			l.note(j.ID)
			return nil
		})
		var pushing sync.WaitGroup
		producer, end := must(New(b.Open(), name, o))(t), make(chan struct{})
		pushing.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-end:
					return
				default:
				}
				id := fmt.Sprint(i)
				ids[id] = true
				for tries := 0; ; tries++ {
					_, err := producer.Push(ctx, "v", PushOptions{ID: id, Delay: time.Duration(i%7) * time.Millisecond, Unique: time.Minute})
					if err == nil || errors.Is(err, ErrDuplicate) {
						break
					}
					if !ebb.Temporary(err) || kit.Sleep(ctx, kit.Backoff(time.Millisecond, 50*time.Millisecond, tries)) != nil {
						t.Error(err)
						return
					}
				}
			}
		})
		count := func() int {
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.done)
		}
		slot := cluster.Slot(kit.Key(name, "jobs"))
		for range 2 { // there and back
			before, from := count(), cluster.Master(slot)
			b.Until("jobs are done", func() bool { return count() > before+20 })
			for _, to := range cluster.Masters() {
				if to != from {
					ok(t, cluster.MoveSlot(slot, to))
					break
				}
			}
		}
		before := count()
		b.Until("jobs are done after it", func() bool { return count() > before+20 })
		close(end)
		pushing.Wait()
		b.Until("the queue is empty", func() bool {
			n, err := q.Len(ctx)
			return n == 0 && err == nil
		})
		failsWith(t, stop(), context.Canceled)
		l.settle(t, ctx, q, ids)
		for id, n := range l.done {
			if n > 1 {
				t.Errorf("job %s was done %d times", id, n)
			}
		}
	})
}
