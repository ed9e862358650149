package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

// ledger records the outcomes of jobs.
type ledger struct {
	mu   sync.Mutex // guards what follows
	done map[string]int
}

func (l *ledger) note(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done[id]++
}

// settle fails the test unless every job is done or dead, and the queue is empty.
func (l *ledger) settle(t testing.TB, ctx context.Context, q *Queue[string], ids map[string]bool) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	dead := map[string]bool{}
	for _, d := range must(q.DeadLetters(ctx, 10_000))(t) {
		dead[d.ID] = true
	}
	for id := range ids {
		if l.done[id] == 0 && !dead[id] {
			t.Errorf("job %s is lost", id)
		}
	}
	if len(l.done) > len(ids) {
		t.Errorf("%d jobs were done, %d pushed", len(l.done), len(ids))
	}
	t.Logf("%d jobs: %d done, %d dead", len(ids), len(l.done), len(dead))
}

func TestJobsInAreJobsDoneAndDead(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		const producers, each, consumers = 3, 40, 3
		o := Options[string]{Lease: 40 * time.Millisecond, MaxDeliveries: 3, Backoff: func(int) time.Duration { return time.Millisecond }}
		ctx, q, l, ids, rnd := b.Context(), open(o), &ledger{done: map[string]int{}}, map[string]bool{}, draw.Rand(t)
		var pushing sync.WaitGroup
		for p := range producers {
			for i := range each {
				ids[fmt.Sprint(p, "-", i)] = true
			}
			pushing.Go(func() {
				mine := open(o)
				for i := range each {
					id := fmt.Sprint(p, "-", i)
					if _, err := mine.Push(ctx, "v", PushOptions{ID: id, Delay: draw.Below(rnd, 20*time.Millisecond), Priority: rnd.IntN(3)}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		inner, stop := context.WithCancel(ctx)
		var working sync.WaitGroup
		for range consumers {
			mine := open(o)
			working.Go(func() {
				for inner.Err() == nil {
					run, crash := context.WithCancel(inner)
					err := mine.Run(run, 4, func(ctx context.Context, j *Job[string]) error {
						switch rnd.IntN(12) {
						case 0:
							return errors.New("no")
						case 1: // simulates the death of the process: the job is not settled
							j.settled.Store(true)
							return nil
						case 2:
							crash()
						}
						_ = kit.Sleep(ctx, draw.Below(rnd, 2*time.Millisecond))
						l.note(j.ID)
						return nil
					})
					crash()
					if inner.Err() == nil && !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				}
			})
		}
		pushing.Wait()
		b.Until("the queue is empty", func() bool { return must(q.Len(ctx))(t) == 0 })
		stop()
		working.Wait()
		l.settle(t, ctx, q, ids)
	})
}

func TestNoAcknowledgedPushIsLostWhenTheServerIsKilled(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		const jobs = 150
		ctx, q, l, ids := b.Context(), open(Options[string]{Lease: 300 * time.Millisecond}), &ledger{done: map[string]int{}}, map[string]bool{}
		stop := running(b, q, 4, func(ctx context.Context, j *Job[string]) error {
			l.note(j.ID)
			return nil
		})
		half := make(chan struct{})
		var pushing sync.WaitGroup
		producer := open(Options[string]{})
		pushing.Go(func() {
			for i := range jobs {
				if i == jobs/2 {
					close(half)
				}
				id := fmt.Sprint(i)
				ids[id] = true
				for tries := 0; ; tries++ {
					_, err := producer.Push(ctx, "v", PushOptions{ID: id, Unique: time.Hour})
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
		<-half
		b.Fault()
		pushing.Wait()
		b.Until("the queue is empty", func() bool {
			n, err := q.Len(ctx)
			return n == 0 && err == nil
		})
		failsWith(t, stop(), context.Canceled)
		l.settle(t, ctx, q, ids)
	})
}

func TestContextsThatEndAnywhereLoseNothing(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		const jobs = 60
		o := Options[string]{Lease: 100 * time.Millisecond, MaxDeliveries: -1}
		ctx, q, l, ids, rnd := b.Context(), open(o), &ledger{done: map[string]int{}}, map[string]bool{}, draw.Rand(t)
		brief := func(tries int) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			// A machine that is so busy that no attempt succeeds gets more time.
			timer := time.AfterFunc(draw.Below(rnd, 3*time.Millisecond<<min(tries/16, 6)), cancel) // a cancellation, not a deadline
			return ctx, func() { timer.Stop(); cancel() }
		}
		for i := range jobs {
			ids[fmt.Sprint(i)] = true
		}
		var working sync.WaitGroup
		inner, stop := context.WithCancel(ctx)
		defer working.Wait()
		defer stop()
		for range 3 {
			mine := open(o)
			working.Go(func() {
				for tries := 0; inner.Err() == nil; tries++ {
					short, cancel := brief(tries)
					j, err := mine.Pop(short)
					if err == nil {
						l.note(j.ID)
						if err = j.Ack(short); err == nil {
							tries = 0
						} else if !errors.Is(err, context.Canceled) && !errors.Is(err, ErrLost) {
							t.Error(err)
						}
					} else if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					cancel()
				}
			})
		}
		for id := range ids {
			for tries := 0; ; tries++ {
				short, cancel := brief(tries)
				_, err := q.Push(short, "v", PushOptions{ID: id, Delay: draw.Below(rnd, 5*time.Millisecond), Unique: time.Hour})
				cancel()
				if err == nil || errors.Is(err, ErrDuplicate) {
					break
				}
				failsWith(t, err, context.Canceled)
			}
		}
		b.Until("the queue is empty", func() bool { return must(q.Len(ctx))(t) == 0 })
		stop()
		working.Wait()
		l.settle(t, ctx, q, ids)
	})
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		q := open(Options[string]{})
		ctx, cancel := context.WithTimeout(b.Context(), 30*time.Millisecond)
		defer cancel()
		_, err := q.Pop(ctx)
		failsWith(t, err, context.DeadlineExceeded)
		_, err = q.Pop(ctx)
		failsWith(t, err, context.DeadlineExceeded)
	})
}

// broken is a codec that cannot decode.
type broken struct{ ebb.Codec[string] }

func (broken) Decode([]byte) (string, error) {
	return "", fmt.Errorf("%w: another version", ebb.ErrValue)
}

func TestWhatCannotBeReadBecomesADeadLetter(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		must(q.Push(ctx, "v", PushOptions{ID: "x"}))(t)
		other := open(Options[string]{MaxDeliveries: 2, Backoff: func(int) time.Duration { return 0 }, Codec: broken{ebb.CodecOf[string]()}})
		_, err := other.TryPop(ctx)
		failsWith(t, err, ErrEmpty)
		dead := must(other.DeadLetters(ctx, 10))(t)
		if len(dead) != 1 || dead[0].ID != "x" || !errors.Is(dead[0].Err, ebb.ErrValue) {
			t.Errorf("%+v", dead)
		}
	})
}

func TestLimitsThatWereForgottenAreToldAgain(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{MaxDeliveries: 1})
		_, err := q.TryPop(ctx)
		failsWith(t, err, ErrEmpty)
		must(b.Del(ctx, q.Name()))(t)
		must(q.Push(ctx, "v"))(t)
		j := must(q.TryPop(ctx))(t)
		ok(t, j.Nack(ctx, 0))
		_, err = q.TryPop(ctx)
		failsWith(t, err, ErrEmpty)
		if dead := must(q.DeadLetters(ctx, 10))(t); len(dead) != 1 {
			t.Errorf("%+v", dead)
		}
	})
}

func TestAQueueOfWhichPartsWereDeletedWorksOn(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{Lease: 20 * time.Millisecond})
		for _, suffix := range []string{"jobs", "waiting", "events", "last"} {
			must(q.PushMany(ctx, []Item[string]{{Value: "a"}, {Value: "b", PushOptions: PushOptions{TTL: time.Hour}}}))(t)
			must(q.Pop(ctx))(t)
			must(b.Del(ctx, kit.Key(q.Name(), suffix)))(t)
			b.Pass(30 * time.Millisecond)
			must(q.Push(ctx, "new", PushOptions{ID: "new", Priority: 9}))(t)
			j := must(q.Pop(ctx))(t)
			if j.Value != "new" {
				t.Fatalf("without %s: %+v", suffix, j)
			}
			if err := j.Ack(ctx); err != nil && !errors.Is(err, ErrLost) {
				t.Fatal(err)
			}
			must(q.Cancel(ctx, "new"))(t)
			must(q.Info(ctx))(t)
		}
	})
}

func TestAConsumerOutlivesAServerThatHangs(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		name := fresh(b)
		d := &between{c: b.Conn, far: true}
		hung := func(ctx context.Context) error { // client libraries notice a deadline a little early, or late
			at, _ := ctx.Deadline()
			if err := kit.Sleep(ctx, time.Until(at)-20*time.Millisecond); err != nil {
				return err
			}
			return fmt.Errorf("no reply: %w", context.DeadlineExceeded)
		}
		var pops atomic.Int64
		d.call = func(ctx context.Context, command string, run func() (ebb.Value, error)) (ebb.Value, error) {
			if command == "DQ.POP" && pops.Add(1) == 1 {
				return ebb.Value{}, hung(ctx)
			}
			return run()
		}
		ctx := b.Context()
		q := must(New[string](ebb.Use(d), name))(t)
		must(q.Push(ctx, "work"))(t)
		if j, err := q.Pop(ctx); err != nil || j.Value != "work" {
			t.Error(j, err)
		}
	})
}

// ErrFull says that the backend does not have the job.
func TestAPushThatWasCutOffIsNotRefused(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		name := fresh(b)
		ctx, cancel := context.WithCancel(b.Context())
		d := &between{c: b.Conn, far: true}
		pushes := 0
		d.call = func(_ context.Context, command string, run func() (ebb.Value, error)) (ebb.Value, error) {
			if command != "DQ.ADD" {
				return run()
			}
			pushes++
			if pushes < 3 { // the first job, and a second that is refused
				return run()
			}
			must(b.Del(b.Context(), name))(t)
			v, err := run()
			cancel() // after the backend has the job, and before its reply
			return v, cmp.Or(err, ctx.Err())
		}
		q := must(New[string](ebb.Use(d), name, Options[string]{MaxLen: 1, Overflow: Block}))(t)
		must(q.Push(ctx, "first"))(t)
		_, err := q.Push(ctx, "second")
		failsWith(t, err, context.Canceled)
		if n := must(q.Len(b.Context()))(t); errors.Is(err, ErrFull) || n != 1 {
			t.Errorf("%v, with %d jobs", err, n)
		}
	})
}

func TestAUserWithoutChannelsNeedsNone(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		c := b.Quiet()
		if c == nil {
			return
		}
		ctx, name := b.Context(), fresh(b)
		q := must(New[string](c, name))(t)
		must(q.Push(ctx, "work"))(t)
		must(q.Push(ctx, "later", PushOptions{Delay: 20 * time.Millisecond}))(t)
		for _, want := range []string{"work", "later"} {
			j := must(q.Pop(ctx))(t)
			if err := errors.Join(j.Extend(ctx, time.Second), j.Ack(ctx)); err != nil || j.Value != want || j.Deliveries != 1 {
				t.Error(j, err)
			}
		}
	})
}

func TestAJobMayFallDueInCenturies(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		must(q.Push(ctx, "later", PushOptions{Delay: math.MaxInt64}))(t)
		if i := must(q.Info(ctx))(t); i.Delayed != 1 || i.NextDue < 100*365*24*time.Hour {
			t.Errorf("%+v", i)
		}
	})
}

func TestANewConsumerDrainsAQueueThatHasFilledTheMemory(t *testing.T) {
	backends.Except(t, []string{"sentinel", "cluster"}, func(t *testing.T, b *backends.Backend) {
		ctx, name := b.Context(), fresh(b)
		must(must(New(b.Conn, name, Options[string]{}))(t).Push(ctx, "v"))(t)
		set := func(bytes int) { must(b.Do(ctx, "CONFIG", "SET", "maxmemory", bytes))(t) }
		set(1)
		defer set(0)
		q := must(New(b.Open(), name, Options[string]{MaxDeliveries: 3}))(t)
		_, err := q.Push(ctx, "w")
		if !outOfMemory(err) {
			t.Fatal("there is memory:", err)
		}
		ok(t, must(q.TryPop(ctx))(t).Ack(ctx))
		_, err = q.TryPop(ctx)
		failsWith(t, err, ErrEmpty)
		_, err = must(New(b.Open(), fresh(b), Options[string]{}))(t).TryPop(ctx) // the queue does not exist
		failsWith(t, err, ErrEmpty)
	})
}
