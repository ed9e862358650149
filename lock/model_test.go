package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/lock"
)

// twin holds the grants of one implementation: ebb's commands, or the scripts.
type twin struct {
	rw   *lock.RW
	sem  *lock.Semaphore
	held []*lock.Lease
	die  []context.CancelFunc // ends the renewals of a lease
	last map[string]int64     // tokens
}

// take keeps a lease, and returns the outcome, which must be the same with the other implementation.
func (w *twin) take(t *rapid.T, of string, ask func(ctx context.Context) (*lock.Lease, error)) string {
	ctx, cancel := context.WithCancel(context.Background())
	lease, err := ask(ctx)
	if errors.Is(err, lock.ErrTaken) {
		cancel()
		return "taken"
	}
	if err != nil {
		t.Fatal(err)
	}
	if lease.Token() <= w.last[of] {
		t.Fatalf("token %d after %d", lease.Token(), w.last[of])
	}
	w.last[of] = lease.Token()
	w.held, w.die = append(w.held, lease), append(w.die, cancel)
	return "granted"
}

func outcome(err error) string {
	switch {
	case errors.Is(err, lock.ErrLost):
		return "lost"
	case errors.Is(err, context.Canceled):
		return "ended"
	case err != nil:
		return err.Error()
	}
	return "ok"
}

// TestScriptsDoWhatTheCommandsDo runs read-write locks and semaphores both ways, in
// virtual time, and compares each outcome.
func TestScriptsDoWhatTheCommandsDo(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		round := 0
		draw.Check(struct{ rapid.TB }{t}, func(t *rapid.T) {
			round++
			const ttl = 300 * time.Millisecond
			opts := lock.Options{TTL: ttl}
			var ways [2]*twin
			for i, c := range []*backends.Backend{b, {Conn: b.Hidden()}} {
				w := &twin{last: map[string]int64{}}
				var err error
				if w.rw, err = lock.NewRW(c.Conn, fmt.Sprint("rw", i, round), opts); err != nil {
					t.Fatal(err)
				}
				if w.sem, err = lock.NewSemaphore(c.Conn, fmt.Sprint("sem", i, round), 3, opts); err != nil {
					t.Fatal(err)
				}
				ways[i] = w
			}
			defer func() {
				for _, w := range ways {
					for i, lease := range w.held {
						_ = lease.Release(context.Background())
						w.die[i]()
					}
				}
			}()
			same := func(what string, do func(w *twin) string) {
				native, scripts := do(ways[0]), do(ways[1])
				if native != scripts {
					t.Fatalf("%s: %s by commands, %s by scripts", what, native, scripts)
				}
			}
			one := func(what string, do func(w *twin, i int) string) {
				if n := len(ways[0].held); n > 0 {
					i := rapid.IntRange(0, n-1).Draw(t, "lease")
					same(what, func(w *twin) string { return do(w, i) })
				}
			}
			t.Repeat(map[string]func(*rapid.T){
				"alone": func(t *rapid.T) {
					same("alone", func(w *twin) string { return w.take(t, "rw", w.rw.TryAcquire) })
				},
				"share": func(t *rapid.T) {
					same("share", func(w *twin) string { return w.take(t, "rw", w.rw.TryShare) })
				},
				"permits": func(t *rapid.T) {
					n := rapid.Int64Range(1, 3).Draw(t, "n")
					same("permits", func(w *twin) string {
						return w.take(t, "sem", func(ctx context.Context) (*lock.Lease, error) { return w.sem.TryAcquire(ctx, n) })
					})
				},
				"renew": func(*rapid.T) {
					one("renew", func(w *twin, i int) string { return outcome(w.held[i].Renew(context.Background())) })
				},
				"release": func(*rapid.T) {
					one("release", func(w *twin, i int) string { return outcome(w.held[i].Release(context.Background())) })
				},
				"die": func(*rapid.T) {
					one("die", func(w *twin, i int) string { w.die[i](); return "" })
				},
				// No pass ends within a millisecond of a renewal or of the end of a lease, which are at multiples of 100
				// ms from the end of another: events of the same instant happen in any order.
				"pass": func(t *rapid.T) {
					time.Sleep(time.Duration(rapid.SampledFrom([]int{7, 107, 207, 307, 1007}).Draw(t, "ms")) * time.Millisecond)
					synctest.Wait()
				},
			})
		})
	})
}

// lockCall is one request of a history: for a lease, or for the release of the one with a token.
type lockCall struct {
	release bool
	token   int64
}

// lockState is the token of the holder (0: none) and the greatest token so far.
type lockState struct{ held, last int64 }

// lockModel is a lock with fencing tokens.
var lockModel = porcupine.Model{
	Init: func() any { return lockState{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(lockState), input.(lockCall), output.(int64)
		switch {
		case in.release && out == 1:
			return s.held == in.token, lockState{0, s.last}
		case in.release:
			return s.held != in.token, s
		case out == 0:
			return s.held != 0, s
		}
		return s.held == 0 && out > s.last, lockState{out, out}
	},
}

func TestALockIsLinearizable(t *testing.T) {
	together(t, func(t *testing.T, b *backends.Backend, make func(kind string, ttl time.Duration) acquirer) {
		ctx := b.Context()
		for kind := range exclusive {
			var clock atomic.Int64 // orders calls and returns
			var mu sync.Mutex
			var history []porcupine.Operation
			var wg sync.WaitGroup
			for client := range 6 {
				l := make(kind, time.Minute)
				rng := rand.New(rand.NewPCG(1, uint64(client)))
				wg.Go(func() {
					note := func(in lockCall, call, out int64) {
						mu.Lock()
						defer mu.Unlock()
						history = append(history, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: clock.Add(1)})
					}
					for range 12 {
						call := clock.Add(1)
						lease, err := l.TryAcquire(ctx)
						if err != nil {
							if !errors.Is(err, lock.ErrTaken) {
								t.Error(err)
							}
							note(lockCall{}, call, 0)
							continue
						}
						note(lockCall{}, call, lease.Token())
						if rng.IntN(2) == 0 {
							_ = kit.Sleep(ctx, time.Millisecond)
						}
						call = clock.Add(1)
						if err := lease.Release(ctx); err != nil {
							t.Error(err)
						}
						note(lockCall{release: true, token: lease.Token()}, call, 1)
					}
				})
			}
			wg.Wait()
			if got := porcupine.CheckOperationsTimeout(lockModel, history, 20*time.Second); got == porcupine.Illegal {
				t.Errorf("%s: the history of %d calls is not that of a lock", kind, len(history))
			}
		}
	})
}
