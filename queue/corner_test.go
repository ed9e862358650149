package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
				b.Pass(10 * time.Millisecond) // it waits, and knows of nothing to come
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
		const jobs = 450 // more than two calls settle
		ctx, q := b.Context(), open(Options[string]{Lease: 20 * time.Millisecond})
		must(q.PushMany(ctx, make([]Item[string], jobs)))(t)
		for left := jobs; left > 0; {
			left -= len(must(q.store().take(ctx, left, 1))(t).jobs)
		}
		b.Pass(5 * time.Millisecond)
		if q.native() {
			return // the server does it
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

// ending is a codec that cannot read, and says so too late.
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

func TestANegativeDelayIsNone(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		must(q.Push(ctx, "v"))(t)
		begin := now(t, b)
		ok(t, must(q.Pop(ctx))(t).Nack(ctx, -time.Hour))
		if j := must(q.TryPop(ctx))(t); j.Due.Before(begin) {
			t.Errorf("due at %v, before %v", j.Due, begin)
		}
	})
}

func TestIdsAreThoseOfTheirJobsAlsoAfterAWaitForRoom(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{MaxLen: 2, Overflow: Block})
		items := []Item[string]{{Value: "-", PushOptions: PushOptions{ID: "taken"}}}
		want := []string{""} // it is there already
		for i := range 6 {
			want = append(want, fmt.Sprint(i))
			items = append(items, Item[string]{PushOptions: PushOptions{ID: want[i+1]}})
		}
		must(q.Push(ctx, "-", PushOptions{ID: "taken", Delay: time.Hour}))(t)
		done := make(chan []string)
		go func() {
			ids, err := q.PushMany(ctx, items)
			if !errors.Is(err, ErrDuplicate) {
				t.Error(err)
			}
			done <- ids
		}()
		for range 6 {
			ok(t, must(q.Pop(ctx))(t).Ack(ctx))
		}
		same(t, <-done, want...)
	})
}

func TestAPushThatIsSentTwiceIsOneJob(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		for _, scripted := range []bool{false, true} {
			d := &between{c: b.Conn}
			q := must(New[string](ebb.Use(d), fresh(b)))(t)
			q.scripted = scripted
			d.call = func(ctx context.Context, _ string, run func() (ebb.Value, error)) (ebb.Value, error) {
				if v, err := run(); err != nil {
					return v, err
				}
				return run()
			}
			ctx := b.Context()
			id := must(q.Push(ctx, "v"))(t)
			d.call = nil
			j := must(q.TryPop(ctx))(t)
			if j.ID != id || must(q.Len(ctx))(t) != 1 {
				t.Errorf("%q, and there is %+v", id, j)
			}
		}
	})
}

func TestDeadLettersOfOneIdAndInstantHaveTheirOwnReasons(t *testing.T) {
	virtual(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) { // where the clock stands still
		ctx, q := b.Context(), open(Options[string]{MaxDeliveries: 1})
		want := map[string]string{}
		for _, kill := range []func(j *Job[string], reason string) error{
			func(j *Job[string], reason string) error { return j.Fail(ctx, errors.New(reason)) },
			func(j *Job[string], reason string) error { return j.Bury(ctx, reason) },
		} {
			for range 3 {
				v := fmt.Sprint("v", len(want))
				must(q.Push(ctx, v, PushOptions{ID: "a"}))(t)
				want[v] = "reason of " + v
				ok(t, kill(must(q.Pop(ctx))(t), want[v]))
			}
		}
		got := map[string]string{}
		for _, d := range must(q.DeadLetters(ctx, 10))(t) {
			got[d.Value] = d.Reason
		}
		if !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

func TestAReasonIsFoundByTheIdThatTheJobHad(t *testing.T) {
	for _, x := range []struct {
		id   string
		died int64
		want string
	}{
		{"a", 1_800_000_000_000, "a@1800000000000"},
		{"a:1800000000000", 1_800_000_000_000, "a@1800000000000"}, // there was such a letter
		{"a:1800000000007", 1_800_000_000_000, "a@1800000000000"}, // and seven more in that ms
		{"a:1799999999999", 1_800_000_000_000, "a:1799999999999@1800000000000"},
		{"a:1800000001000", 1_800_000_000_000, "a:1800000001000@1800000000000"},
		{"order:42", 1_800_000_000_000, "order:42@1800000000000"},
		{"order:x", 1_800_000_000_000, "order:x@1800000000000"},
	} {
		if got := reasonField(x.id, x.died); got != x.want {
			t.Errorf("%s died at %d: %s, want %s", x.id, x.died, got, x.want)
		}
	}
}

// TestEbbsQueueShowsAsItIs is of what only the layout by ebb's commands has.
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
		must(b.Do(ctx, "DQ.POP", kit.Key(q.Name(), "dead")))(t) // by another program, which has not settled it
		if i := must(q.Info(ctx))(t); i.Dead != 2 || i.NextDue != 800*time.Millisecond {
			t.Errorf("%+v", i)
		}
	})
}

func TestTheEndOfRunDoesNotReviveWhatIsHopeless(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		began := make(chan struct{})
		stop := running(b, q, 1, func(ctx context.Context, j *Job[string]) error {
			close(began)
			<-ctx.Done()
			return fmt.Errorf("no such address: %w", ErrPermanent)
		})
		must(q.Push(ctx, "v"))(t)
		<-began
		failsWith(t, stop(), context.Canceled)
		if i := must(q.Info(ctx))(t); i.Dead != 1 || i.Len() != 0 {
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
		if n := runs.Load(); n < 2 || n > 2 && b.Virtual() { // elsewhere the machine may have slept for a lease
			t.Errorf("%d runs", n)
		}
	})
}

// fewReplicas makes a backend one of which the replicas may be away: what a call did is
// beside the error.
func fewReplicas(away *atomic.Bool) func(context.Context, string, func() (ebb.Value, error)) (ebb.Value, error) {
	return func(_ context.Context, _ string, run func() (ebb.Value, error)) (ebb.Value, error) {
		v, err := run()
		if err == nil && away.Load() {
			err = fmt.Errorf("%w: %w", ebb.ErrNotReplicated, ebb.ErrUnavailable)
		}
		return v, err
	}
}

func TestJobsAreNotSpentWhileReplicasAreAway(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		for _, scripted := range []bool{false, true} {
			away, d := atomic.Bool{}, &between{c: b.Conn}
			d.call = fewReplicas(&away)
			ctx, o := b.Context(), Options[string]{Lease: 50 * time.Millisecond, MaxDeliveries: 2}
			q := must(New(ebb.Use(d), fresh(b), o))(t)
			q.scripted = scripted
			_, err := q.TryPop(ctx) // so that the queue knows its limits
			failsWith(t, err, ErrEmpty)
			must(q.PushMany(ctx, []Item[string]{{Value: "a"}, {Value: "b"}}))(t)
			away.Store(true)
			var popping sync.WaitGroup
			for range 2 {
				popping.Go(func() {
					j, err := q.Pop(ctx)
					if err == nil && j.Deliveries != 1 {
						err = fmt.Errorf("delivered %d times", j.Deliveries)
					}
					if err == nil {
						err = j.Ack(ctx)
					}
					if err != nil {
						t.Error(err)
					}
					if away.Load() {
						t.Error("the lease is on no replica")
					}
				})
			}
			b.Pass(time.Minute)
			away.Store(false)
			popping.Wait()

			away.Store(true)
			_, err = q.Push(ctx, "c")
			failsWith(t, err, ebb.ErrNotReplicated)
			short, cancel := context.WithTimeout(ctx, time.Second)
			_, err = q.Pop(short)
			failsWith(t, err, context.DeadlineExceeded)
			cancel()
			away.Store(false)
			if j := must(q.Pop(ctx))(t); j.Value != "c" || j.Deliveries != 2 {
				t.Errorf("%+v", j)
			}
		}
	})
}

// TestWhatTheMasterAloneHasIsSaid is the table of docs/toolkit/queue.md.
func TestWhatTheMasterAloneHasIsSaid(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		away, d := atomic.Bool{}, &between{c: b.Conn}
		d.call = fewReplicas(&away)
		ctx, q := b.Context(), must(New(ebb.Use(d), fresh(b), Options[string]{Lease: 3 * time.Second}))(t)
		_, err := q.TryPop(ctx) // so that the queue knows its limits
		failsWith(t, err, ErrEmpty)

		away.Store(true)
		_, err = q.Push(ctx, "v", PushOptions{ID: "v"})
		failsWith(t, err, ebb.ErrNotReplicated)
		_, err = q.TryPop(ctx) // no consumer has a lease on it
		failsWith(t, err, ebb.ErrNotReplicated)
		away.Store(false)
		_, err = q.Push(ctx, "v", PushOptions{ID: "v"})
		failsWith(t, err, ErrDuplicate)
		j := must(q.Pop(ctx))(t)
		if j.Deliveries != 2 {
			t.Errorf("%+v", j)
		}
		away.Store(true)
		failsWith(t, j.Ack(ctx), ebb.ErrNotReplicated)
		away.Store(false)
		failsWith(t, j.Ack(ctx), ErrLost)

		cause, took := make(chan error), time.Duration(0)
		must(q.Push(ctx, "runs"))(t)
		begin := time.Now()
		stop := running(b, q, 1, func(ctx context.Context, _ *Job[string]) error {
			<-ctx.Done()
			took = time.Since(begin)
			cause <- context.Cause(ctx)
			return nil
		})
		b.Pass(1500 * time.Millisecond) // extended once
		away.Store(true)
		failsWith(t, <-cause, ErrLost)
		failsWith(t, stop(), context.Canceled)
		if took != 4*time.Second {
			t.Errorf("lost after %v", took)
		}
	})
}

func TestALeaseThatIsLostBeforeItIsReplicatedHasNoHolder(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		away, d := atomic.Bool{}, &between{c: b.Conn}
		d.call = fewReplicas(&away)
		ctx, q := b.Context(), must(New[string](ebb.Use(d), fresh(b)))(t)
		_, err := q.TryPop(ctx) // so that the queue knows its limits
		failsWith(t, err, ErrEmpty)
		id := must(q.Push(ctx, "cancelled"))(t)
		away.Store(true)
		got := popping(ctx, q)
		b.Pass(time.Second)
		direct := must(New[string](b.Conn, q.Name()))(t)
		if i := must(direct.Info(ctx))(t); i.Leased != 1 {
			t.Errorf("%+v", i)
		}
		must(direct.Cancel(ctx, id))(t)
		away.Store(false)
		b.Pass(10 * time.Second)
		must(q.Push(ctx, "other"))(t)
		if v, _ := got(time.Now()); v != "other" {
			t.Errorf("%q", v)
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

func TestAPushThatIsRepeatedWithUniqueRunsNoJobTwice(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		q, err := New[string](b.Conn, b.Name("jobs"))
		if err != nil {
			t.Fatal(err)
		}
		ctx := b.Context()
		for _, c := range []struct {
			o     PushOptions
			again error
		}{
			{PushOptions{ID: "by its id"}, nil}, // so it would run twice
			{PushOptions{ID: "and unique", Unique: time.Hour}, ErrDuplicate},
		} {
			if _, err := q.Push(ctx, "x", c.o); err != nil {
				t.Fatal(err)
			}
			j, err := q.Pop(ctx)
			if err == nil {
				err = j.Ack(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := q.Push(ctx, "x", c.o); !errors.Is(err, c.again) {
				t.Errorf("%+v: %v", c.o, err)
			}
			if err := q.Delete(ctx); err != nil {
				t.Fatal(err)
			}
		}
	})
}
