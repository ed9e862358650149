package expiries

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

func TestMain(m *testing.M) { backends.Main(m) }

// listening runs a test in virtual time with a stream of n expiries, "1" and on, and
// a listener of the group "g" to start.
func listening(t *testing.T, n int, test func(b *ebbtest.Backend, listen func(o Options, fn func(item string) error))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		ctx, stop := context.WithCancel(t.Context())
		f := &Feed{
			Conn: b.Conn, Stream: "s", Native: func() bool { return false },
			Sweep: func(context.Context, string) (int64, error) { return -1, nil },
		}
		b.Data.Do("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
		for i := range n {
			b.Data.Do("XADD", "s", "*", "key", "k", "item", fmt.Sprint(i+1), "deadline", 1, "fired-at", 2)
		}
		done := make(chan error, 1)
		test(b, func(o Options, fn func(item string) error) {
			o.Group = "g"
			go func() {
				done <- f.Listen(ctx, o, func(_ context.Context, e Entry) error { return fn(e.Item) })
			}()
		})
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// pass lets time pass in the bubble, for its timers and the backend alike.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestWhatFailsAgainAndAgainKeepsNothingBehindItFromItsTurn(t *testing.T) {
	const n = 400
	listening(t, n, func(b *ebbtest.Backend, listen func(Options, func(string) error)) {
		b.Data.Do("XREADGROUP", "GROUP", "g", "dead", "COUNT", n, "STREAMS", "s", ">")
		pass(2 * time.Second)
		var good atomic.Int64
		listen(Options{Redeliver: time.Second}, func(item string) error {
			if item == fmt.Sprint(n) {
				good.Add(1)
				return nil
			}
			return errors.New("no good")
		})
		pass(5 * time.Second)
		if good.Load() != 1 {
			t.Error("the last one came", good.Load(), "times")
		}
	})
}

func TestWhatWasTakenWhenAConnectionWasLostComesSoon(t *testing.T) {
	for lost, failures := range map[string]int64{"XREADGROUP": 1, "XACK": 0} { // XACK is sent again at once
		t.Run(lost, func(t *testing.T) {
			listening(t, 3, func(b *ebbtest.Backend, listen func(Options, func(string) error)) {
				var once atomic.Bool
				b.Intercept(func(cmd []string) error {
					if cmd[0] == lost && (lost == "XACK" || cmd[len(cmd)-1] == ">") && once.CompareAndSwap(false, true) {
						return ebbtest.ErrLost
					}
					return nil
				})
				var heard, failed atomic.Int64
				listen(Options{Redeliver: time.Hour, Failed: func(error) { failed.Add(1) }}, func(string) error {
					heard.Add(1)
					return nil
				})
				pass(2 * time.Second)
				if heard.Load() < 3 || failed.Load() != failures {
					t.Errorf("%d of 3 were heard, and of %d failures", heard.Load(), failed.Load())
				}
				b.Intercept(nil)
				if v := b.Data.Do("XPENDING", "s", "g"); v.Elems[0].Int != 0 {
					t.Error("still pending:", v)
				}
			})
		})
	}
}

func TestAListenerOutlivesAServerThatHangsWhenTheWorkIsDone(t *testing.T) {
	listening(t, 2, func(b *ebbtest.Backend, listen func(Options, func(string) error)) {
		var heard, failed atomic.Int64
		listen(Options{Redeliver: time.Hour, Failed: func(error) { failed.Add(1) }}, func(string) error {
			if heard.Add(1) == 1 {
				b.Hang()
			}
			return nil
		})
		pass(2 * kit.ReleaseFor)
		b.GoOn()
		pass(2 * time.Second)
		if heard.Load() < 2 || failed.Load() == 0 {
			t.Errorf("%d of 2 were heard, and of %d failures", heard.Load(), failed.Load())
		}
		if v := b.Data.Do("XPENDING", "s", "g"); v.Elems[0].Int != 0 {
			t.Error("still pending:", v)
		}
	})
}

func TestAListenerOutlivesAServerThatCannotJustNow(t *testing.T) {
	for _, reply := range []string{"OOM command not allowed", "LOADING come back later", "READONLY it is a replica", "MISCONF no disk"} {
		listening(t, 1, func(b *ebbtest.Backend, listen func(Options, func(string) error)) {
			b.SetError(reply)
			var heard atomic.Int64
			listen(Options{Redeliver: time.Hour}, func(string) error { heard.Add(1); return nil })
			pass(2 * time.Second)
			b.SetError("")
			pass(2 * time.Second)
			if heard.Load() != 1 {
				t.Error(reply, heard.Load())
			}
		})
	}
}

func TestAStreamThatIsNotWrittenEndsByItself(t *testing.T) {
	listening(t, 0, func(b *ebbtest.Backend, listen func(Options, func(string) error)) {
		listen(Options{Redeliver: time.Hour}, func(string) error { return nil })
		pass(time.Second)
		if d := b.Data.TTL("s"); d > Keep || d < Keep-time.Minute {
			t.Error(d)
		}
	})
}

func TestAPassingConsumersNameEndsWithItUnlessItOwes(t *testing.T) {
	for owes, want := range map[bool]int{false: 0, true: 1} {
		synctest.Test(t, func(t *testing.T) {
			b := ebbtest.Run(t)
			ctx, stop := context.WithCancel(t.Context())
			f := &Feed{
				Conn: b.Conn, Stream: "s", Native: func() bool { return false },
				Sweep: func(context.Context, string) (int64, error) { return -1, nil },
			}
			b.Data.Do("XADD", "s", "*", "key", "k", "item", "1", "deadline", 1, "fired-at", 2)
			err := f.Listen(ctx, Options{Group: "g", Redeliver: time.Hour}, func(context.Context, Entry) error {
				stop()
				if owes {
					return errors.New("not done")
				}
				return nil
			})
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if v := b.Data.Do("XINFO", "CONSUMERS", "s", "g"); len(v.Elems) != want {
				t.Errorf("%d consumers, want %d: %s", len(v.Elems), want, v)
			}
		})
	}
}
