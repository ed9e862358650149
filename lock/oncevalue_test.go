package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/lock"
)

type receipt struct {
	ID     string
	Amount int
}

// eachOnce runs a test on each kind of backend, and in virtual time with scripts too. open opens the work as
// another program would.
func eachOnce(t *testing.T, o lock.OnceValueOptions[receipt], test func(t *testing.T, b *backends.Backend, open func() *lock.OnceValue[receipt])) {
	t.Helper()
	run := func(b *backends.Backend, conn func() *ebb.Conn, t *testing.T) {
		name := b.Name("pay")
		test(t, b, func() *lock.OnceValue[receipt] {
			x, err := lock.NewOnceValue(conn(), name, time.Hour, o)
			must(t, err)
			return x
		})
	}
	t.Run("as-it-is", func(t *testing.T) { backends.Each(t, func(t *testing.T, b *backends.Backend) { run(b, b.Open, t) }) })
	t.Run("scripts", func(t *testing.T) {
		backends.Virtual(t, func(t *testing.T, b *backends.Backend) { run(b, b.Hidden, t) })
	})
}

// pays is work that counts its calls.
func pays(n *atomic.Int64) func(context.Context) (receipt, error) {
	return func(context.Context) (receipt, error) {
		return receipt{fmt.Sprint("r", n.Add(1)), 7}, nil
	}
}

func wantReceipt(t *testing.T, id string, want lock.Outcome) func(v receipt, what lock.Outcome, err error) {
	return func(v receipt, what lock.Outcome, err error) {
		t.Helper()
		if err != nil || v != (receipt{id, 7}) || what != want {
			t.Errorf("got %+v, %v, %v, want %q, %v", v, what, err, id, want)
		}
	}
}

func TestAResultIsKeptForItsSpanAndGivenToLaterCalls(t *testing.T) {
	eachOnce(t, lock.OnceValueOptions[receipt]{}, func(t *testing.T, b *backends.Backend, open func() *lock.OnceValue[receipt]) {
		ctx := b.Context()
		var n atomic.Int64
		x := open()
		if v, what, err := x.State(ctx, "a"); v != (receipt{}) || what != 0 || err != nil {
			t.Error(v, what, err)
		}
		wantReceipt(t, "r1", lock.Did)(x.Do(ctx, "a", pays(&n)))
		wantReceipt(t, "r1", lock.Done)(x.Do(ctx, "a", pays(&n)))
		wantReceipt(t, "r1", lock.Done)(open().TryDo(ctx, "a", pays(&n)))
		wantReceipt(t, "r1", lock.Done)(open().State(ctx, "a"))
		wantReceipt(t, "r2", lock.Did)(x.TryDo(ctx, "b", pays(&n)))
		must(t, x.Delete(ctx, "a", "never"))
		wantReceipt(t, "r3", lock.Did)(x.Do(ctx, "a", pays(&n)))
		if b.Virtual() {
			b.Pass(time.Hour - time.Millisecond)
			wantReceipt(t, "r3", lock.Done)(x.Do(ctx, "a", pays(&n)))
			b.Pass(2 * time.Millisecond)
			wantReceipt(t, "r4", lock.Did)(x.Do(ctx, "a", pays(&n)))
		}
	})
}

func TestOneCallDoesTheWorkAndTheOthersWaitOrHearSo(t *testing.T) {
	eachOnce(t, lock.OnceValueOptions[receipt]{}, func(t *testing.T, b *backends.Backend, open func() *lock.OnceValue[receipt]) {
		ctx := b.Context()
		var n, did atomic.Int64
		begun, end := make(chan struct{}), make(chan struct{})
		var calls sync.WaitGroup
		do := func(x *lock.OnceValue[receipt]) {
			v, what, err := x.Do(ctx, "a", func(context.Context) (receipt, error) {
				close(begun)
				<-end
				return pays(&n)(ctx)
			})
			if err != nil || v != (receipt{"r1", 7}) {
				t.Error(v, what, err)
			}
			if what == lock.Did {
				did.Add(1)
			}
		}
		x, y := open(), open()
		calls.Go(func() { do(x) })
		<-begun
		for range 8 {
			calls.Go(func() { do(y) })
		}
		if _, what, err := y.TryDo(ctx, "a", pays(&n)); what != lock.Doing || !errors.Is(err, lock.ErrTaken) {
			t.Error(what, err)
		}
		if _, what, err := y.State(ctx, "a"); what != lock.Doing || err != nil {
			t.Error(what, err)
		}
		for _, wait := range []time.Duration{0, 20 * time.Millisecond} {
			short, cancel := context.WithTimeout(ctx, wait)
			if _, what, err := y.Do(short, "a", pays(&n)); what != 0 || !errors.Is(err, context.DeadlineExceeded) {
				t.Error(what, err)
			}
			cancel()
		}
		close(end)
		calls.Wait()
		if n.Load() != 1 || did.Load() != 1 {
			t.Errorf("the work was done %d times, and %d calls say that they did it", n.Load(), did.Load())
		}
	})
}

func TestWorkThatFailsOrPanicsKeepsNothingAndGivesUpItsTurn(t *testing.T) {
	eachOnce(t, lock.OnceValueOptions[receipt]{Lease: time.Hour}, func(t *testing.T, b *backends.Backend, open func() *lock.OnceValue[receipt]) {
		ctx := b.Context()
		var n atomic.Int64
		x, failed := open(), errors.New("declined")
		if _, what, err := x.Do(ctx, "a", func(context.Context) (receipt, error) { return receipt{}, failed }); what != lock.Did || !errors.Is(err, failed) {
			t.Error(what, err)
		}
		wantReceipt(t, "r1", lock.Did)(open().TryDo(ctx, "a", pays(&n)))
		func() {
			defer func() {
				if recover() != "broken" {
					t.Error("the panic did not reach the caller")
				}
			}()
			_, _, _ = x.Do(ctx, "b", func(context.Context) (receipt, error) { panic("broken") })
		}()
		wantReceipt(t, "r2", lock.Did)(open().TryDo(ctx, "b", pays(&n)))
		if _, _, err := x.Do(ctx, "c", nil); !errors.Is(err, ebb.ErrArgument) {
			t.Error(err)
		}
	})
}

func TestAWaitingCallGetsTheTurnOfWorkThatFailed(t *testing.T) {
	eachOnce(t, lock.OnceValueOptions[receipt]{Lease: time.Hour}, func(t *testing.T, b *backends.Backend, open func() *lock.OnceValue[receipt]) {
		ctx := b.Context()
		var n atomic.Int64
		x, y := open(), open()
		begun, end := make(chan struct{}), make(chan struct{})
		var calls sync.WaitGroup
		calls.Go(func() {
			_, _, err := x.Do(ctx, "a", func(context.Context) (receipt, error) {
				close(begun)
				<-end
				return receipt{}, errors.New("declined")
			})
			if err == nil {
				t.Error("no error")
			}
		})
		<-begun
		calls.Go(func() { wantReceipt(t, "r1", lock.Did)(y.Do(ctx, "a", pays(&n))) })
		b.Pass(10 * time.Millisecond)
		close(end)
		calls.Wait()
	})
}

func TestWorkWhoseLeaseIsLostKeepsNothingAndSaysSo(t *testing.T) {
	eachOnce(t, lock.OnceValueOptions[receipt]{Lease: short}, func(t *testing.T, b *backends.Backend, open func() *lock.OnceValue[receipt]) {
		ctx := b.Context()
		var n atomic.Int64
		x, y := open(), open()
		// Delete ends the lease; another call does the work meanwhile.
		v, what, err := x.Do(ctx, "a", func(inside context.Context) (receipt, error) {
			must(t, y.Delete(ctx, "a"))
			wantReceipt(t, "r1", lock.Did)(y.TryDo(ctx, "a", pays(&n)))
			<-inside.Done()
			if cause := context.Cause(inside); !errors.Is(cause, lock.ErrLost) {
				t.Error(cause)
			}
			return receipt{"lost", 7}, nil
		})
		if v.ID != "lost" || what != lock.Did || !errors.Is(err, lock.ErrLost) {
			t.Error(v, what, err)
		}
		// A function that returns the error of its context: the cause says why the context ended.
		_, what, err = x.Do(ctx, "b", func(inside context.Context) (receipt, error) {
			must(t, y.Delete(ctx, "b"))
			<-inside.Done()
			return receipt{}, inside.Err()
		})
		if what != lock.Did || !errors.Is(err, lock.ErrLost) || !errors.Is(err, context.Canceled) {
			t.Error(what, err)
		}
		wantReceipt(t, "r1", lock.Done)(y.State(ctx, "a"))
		wantReceipt(t, "r2", lock.Did)(y.TryDo(ctx, "b", pays(&n)))
	})
}

// After a pause of the process the timer of a lease fires some time later than the work's first look at its context.
func TestWorkWhoseLeaseRanOutInAPauseHearsSoBeforeItsTimer(t *testing.T) {
	const lease = time.Hour // no timer fires during the test
	options := lock.OnceValueOptions[receipt]{Lease: lease}
	eachOnce(t, options, func(t *testing.T, b *backends.Backend, open func() *lock.OnceValue[receipt]) {
		_, _, err := open().Do(b.Context(), "a", func(inside context.Context) (receipt, error) {
			lock.PauseWork[receipt](inside, lease/2)
			must(t, inside.Err())
			lock.PauseWork[receipt](inside, lease/2)
			return receipt{}, inside.Err()
		})
		if !errors.Is(err, lock.ErrLost) || !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestLongWorkKeepsItsTurnAlsoWhenItsContextHasEnded(t *testing.T) {
	eachOnce(t, lock.OnceValueOptions[receipt]{Lease: short}, func(t *testing.T, b *backends.Backend, open func() *lock.OnceValue[receipt]) {
		var n atomic.Int64
		x, y := open(), open()
		ctx, cancel := context.WithCancel(b.Context())
		wantReceipt(t, "r1", lock.Did)(x.Do(ctx, "a", func(inside context.Context) (receipt, error) {
			cancel()
			<-inside.Done()
			b.Pass(3 * short)
			if _, what, err := y.TryDo(b.Context(), "a", pays(&n)); what != lock.Doing || !errors.Is(err, lock.ErrTaken) {
				t.Error(what, err)
			}
			return pays(&n)(inside)
		}))
		wantReceipt(t, "r1", lock.Done)(y.TryDo(b.Context(), "a", pays(&n)))
	})
}

func TestTheWorkOfAProgramThatDiedIsDoneAgainAfterItsLease(t *testing.T) {
	eachOnce(t, lock.OnceValueOptions[receipt]{Lease: short}, func(t *testing.T, b *backends.Backend, open func() *lock.OnceValue[receipt]) {
		ctx := b.Context()
		var n atomic.Int64
		// A connection that loses every request stands for a program that died.
		c, f := backends.Faulty(open2(b, t))
		x, err := lock.NewOnceValue(c, b.Name("dead"), time.Hour, lock.OnceValueOptions[receipt]{Lease: short})
		must(t, err)
		y, err := lock.NewOnceValue(open2(b, t), b.Name("dead"), time.Hour, lock.OnceValueOptions[receipt]{Lease: short})
		must(t, err)
		began := time.Now()
		_, what, err := x.Do(ctx, "a", func(inside context.Context) (receipt, error) {
			f.LoseRequests(1 << 20)
			wantReceipt(t, "r1", lock.Did)(y.Do(ctx, "a", pays(&n)))
			<-inside.Done() // the call can no longer prove its lease
			f.LoseRequests(0)
			return receipt{"lost", 7}, nil
		})
		if what != lock.Did || !errors.Is(err, lock.ErrLost) {
			t.Error(what, err)
		}
		if d := time.Since(began); b.Virtual() && (d < short || d > 2*short) {
			t.Error("it took", d)
		}
		wantReceipt(t, "r1", lock.Done)(y.TryDo(ctx, "a", pays(&n)))
	})
}

func open2(b *backends.Backend, t *testing.T) *ebb.Conn {
	if strings.Contains(t.Name(), "/scripts/") {
		return b.Hidden()
	}
	return b.Open()
}

func TestAResultWhoseReplyWasLostIsKept(t *testing.T) {
	eachOnce(t, lock.OnceValueOptions[receipt]{}, func(t *testing.T, b *backends.Backend, _ func() *lock.OnceValue[receipt]) {
		ctx := b.Context()
		c, f := backends.Faulty(open2(b, t))
		x, err := lock.NewOnceValue[receipt](c, b.Name("cut"), time.Hour)
		must(t, err)
		for i, lose := range []func(int){f.LoseReplies, f.LoseRequests} {
			for _, times := range []int{1, 2} {
				key, n := fmt.Sprint(i, times), atomic.Int64{}
				wantReceipt(t, "r1", lock.Did)(x.Do(ctx, key, func(ctx context.Context) (receipt, error) {
					lose(times)
					return pays(&n)(ctx)
				}))
				wantReceipt(t, "r1", lock.Done)(x.TryDo(ctx, key, pays(&n)))
			}
		}
	})
}

// Random calls of two programs, some of which fail or panic.
func TestTheWorkOfAKeyRunsOneAtATimeAndItsResultStays(t *testing.T) {
	eachOnce(t, lock.OnceValueOptions[receipt]{}, func(t *testing.T, b *backends.Backend, open func() *lock.OnceValue[receipt]) {
		ctx := b.Context()
		const keys, calls = 3, 12
		var inside [keys]atomic.Int64
		var results [keys]sync.Map
		programs := []*lock.OnceValue[receipt]{open(), open()}
		var all sync.WaitGroup
		for i := range calls * 2 {
			all.Go(func() {
				random := rand.New(rand.NewPCG(uint64(i), 1))
				for range 20 {
					key, fate := random.IntN(keys), random.IntN(3)
					do := programs[i%2].Do
					if random.IntN(2) == 0 {
						do = programs[i%2].TryDo
					}
					v, what, err := attempt(func() (receipt, lock.Outcome, error) {
						return do(ctx, fmt.Sprint(key), func(context.Context) (receipt, error) {
							if inside[key].Add(1) != 1 {
								t.Error("two calls do the work of", key)
							}
							defer inside[key].Add(-1)
							switch fate {
							case 0:
								return receipt{}, errDeclined
							case 1:
								panic(errDeclined)
							}
							return receipt{fmt.Sprint(i, random.Int()), key}, nil
						})
					})
					switch {
					case err == nil:
						results[key].Store(v, what)
					case !errors.Is(err, errDeclined) && !errors.Is(err, lock.ErrTaken):
						t.Error(what, err)
					}
				}
			})
		}
		all.Wait()
		for key := range keys {
			n := 0
			results[key].Range(func(any, any) bool { n++; return true })
			if v, what, err := programs[0].State(ctx, fmt.Sprint(key)); n > 1 || n == 1 && (what != lock.Done || err != nil) {
				t.Errorf("key %d has %d results, the last is %v, %v, %v", key, n, v, what, err)
			}
		}
	})
}

var errDeclined = errors.New("declined")

// attempt returns a panic as an error.
func attempt(do func() (receipt, lock.Outcome, error)) (v receipt, what lock.Outcome, err error) {
	defer func() {
		if p, ok := recover().(error); ok {
			err = p
		}
	}()
	return do()
}

func TestAWaitOutlivesABackendThatIsAway(t *testing.T) {
	eachOnce(t, lock.OnceValueOptions[receipt]{Lease: time.Hour}, func(t *testing.T, b *backends.Backend, open func() *lock.OnceValue[receipt]) {
		ctx := b.Context()
		var n atomic.Int64
		c, f := backends.Faulty(open2(b, t))
		name := b.Name("away")
		x, err := lock.NewOnceValue(open2(b, t), name, time.Hour, lock.OnceValueOptions[receipt]{Lease: time.Hour})
		must(t, err)
		y, err := lock.NewOnceValue(c, name, time.Hour, lock.OnceValueOptions[receipt]{Lease: time.Hour})
		must(t, err)
		var waiting sync.WaitGroup
		wantReceipt(t, "r1", lock.Did)(x.Do(ctx, "a", func(ctx context.Context) (receipt, error) {
			asked := make(chan struct{})
			f.Before(func() { // the first request arrives, and the next ones do not
				f.Before(func() {
					f.LoseRequests(3)
					close(asked)
				})
			})
			waiting.Go(func() { wantReceipt(t, "r1", lock.Done)(y.Do(b.Context(), "a", pays(&n))) })
			<-asked
			return pays(&n)(ctx)
		}))
		waiting.Wait()
	})
}

func TestWhereTheBackendElectsNoProgramWorkFailsAtOnce(t *testing.T) {
	backends.Except(t, []string{"sentinel", "cluster"}, func(t *testing.T, b *backends.Backend) {
		set := func(n int) {
			_, err := b.Do(context.Background(), "CONFIG", "SET", "min-replicas-to-write", n)
			must(t, err)
		}
		set(100)
		defer set(0)
		x, err := lock.NewOnceValue(b.Open(), b.Name("pay"), time.Hour, lock.OnceValueOptions[receipt]{})
		must(t, err)
		var n atomic.Int64
		for name, do := range map[string]func(context.Context, string, func(context.Context) (receipt, error)) (receipt, lock.Outcome, error){
			"Do": x.Do, "TryDo": x.TryDo,
		} {
			_, _, err := do(b.Context(), "k", pays(&n))
			var refused ebb.ReplyError
			if !errors.As(err, &refused) || refused.Code() != "NOREPLICAS" || n.Load() != 0 {
				t.Errorf("%s: %v after %d runs; want NOREPLICAS", name, err, n.Load())
			}
		}
	})
}

func TestAKeyOfAnotherProgramIsNoResult(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx, name := b.Context(), b.Name("foreign")
		x, err := lock.NewOnceValue[receipt](b.Conn, name, time.Hour)
		must(t, err)
		must(t, b.Set(ctx, "{"+name+":a}", strings.Repeat("9", 17)+"{}", ebb.SetOptions{TTL: time.Hour}))
		var n atomic.Int64
		if _, _, err := x.Do(ctx, "a", pays(&n)); !errors.Is(err, ebb.ErrValue) || n.Load() != 0 {
			t.Error(err, n.Load())
		}
		if s := x.String(); !strings.Contains(s, map[bool]string{true: "GETFRESH of ebb", false: "a Lua script on"}[b.Native()]) {
			t.Error(s)
		}
	})
}

func TestTheOptionsOfAOnceValueAreChecked(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		for _, o := range []lock.OnceValueOptions[int]{{Lease: time.Millisecond}, {Lease: 2 * time.Hour}, {Lease: -1}} {
			if _, err := lock.NewOnceValue(b.Conn, "x", time.Hour, o); !errors.Is(err, ebb.ErrArgument) {
				t.Error(o, err)
			}
		}
		for _, ttl := range []time.Duration{0, -1, 1, 20 * 365 * 24 * time.Hour} {
			if _, err := lock.NewOnceValue[int](b.Conn, "x", ttl); !errors.Is(err, ebb.ErrArgument) {
				t.Error(ttl, err)
			}
		}
		if _, err := lock.NewOnceValue[func()](b.Conn, "x", time.Hour); !errors.Is(err, ebb.ErrArgument) {
			t.Error(err)
		}
	})
}
