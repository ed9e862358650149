package wake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

// broker is a backend that can only be subscribed to.
type broker struct {
	conn.Driver // nil: nothing else is called
	subscribe   func(ctx context.Context) error
	calls       atomic.Int32 // of Subscribe
	open        atomic.Int32 // subscriptions that are not closed

	mu   sync.Mutex
	feed *feed // the last one
}

type feed struct {
	b      *broker
	events chan event
	done   chan struct{}
	once   sync.Once
}

type event struct {
	payload string
	err     error
}

var errRefused, errEnded = errors.New("NOPERM no subscriptions"), errors.New("the client reads too slowly")

func (b *broker) Subscribe(ctx context.Context, _ conn.SubscribeKind, _ []string) (conn.Feed, error) {
	b.calls.Add(1)
	if b.subscribe != nil {
		if err := b.subscribe(ctx); err != nil {
			return nil, err
		}
	}
	b.open.Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.feed = &feed{b: b, events: make(chan event, 16), done: make(chan struct{})}
	return b.feed, nil
}

func (f *feed) Next(ctx context.Context) (conn.Message, error) {
	select {
	case e := <-f.events:
		return conn.Message{Payload: e.payload}, e.err
	case <-ctx.Done():
		return conn.Message{}, ctx.Err()
	case <-f.done:
		return conn.Message{}, conn.ErrClosed
	}
}

func (f *feed) Close() error {
	f.once.Do(func() {
		close(f.done)
		f.b.open.Add(-1)
	})
	return nil
}

// send delivers an event to the subscription, and returns when the Dispatcher has acted on it.
func (b *broker) send(e event) {
	b.mu.Lock()
	f := b.feed
	b.mu.Unlock()
	f.events <- e
	synctest.Wait()
}

// woken returns the owners of the waiters with a pending wake-up, and takes it.
func woken(ws ...*Waiter) (all []string) {
	for _, w := range ws {
		select {
		case <-w.C:
			all = append(all, w.owner)
		default:
		}
	}
	return all
}

func wantWoken(t *testing.T, ws []*Waiter, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := woken(ws...); !slices.Equal(got, want) {
		t.Errorf("%q are awake, want %q", got, want)
	}
}

// dispatch runs a test in virtual time with three waiters, a, b and c, of a channel that is
// subscribed to. At its end no subscription is left.
func dispatch(t *testing.T, ch Channel, test func(t *testing.T, b *broker, d *Dispatcher, ws []*Waiter)) {
	synctest.Test(t, func(t *testing.T) {
		b := &broker{}
		ch.Conn, ch.Name = conn.New(b), "wake"
		d := ch.Open()
		if err := d.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		ws := []*Waiter{d.Join("a"), d.Join("b"), d.Join("c")}
		test(t, b, d, ws)
		for _, w := range ws {
			w.Leave(false)
		}
		d.Close()
		if n := b.open.Load(); n != 0 || ch.Find() != nil {
			t.Errorf("%d subscriptions are left, and the dispatcher %v", n, ch.Find())
		}
	})
}

func TestAMessageWakesTheWaiterThatItNames(t *testing.T) {
	dispatch(t, Channel{Wakes: Named}, func(t *testing.T, b *broker, _ *Dispatcher, ws []*Waiter) {
		b.send(event{payload: "b"})
		wantWoken(t, ws, "b")
		b.send(event{payload: "of another process"})
		wantWoken(t, ws)
		b.send(event{})
		wantWoken(t, ws, "a")
	})
}

func TestAMessageWakesTheFirstWaiterWithoutAPendingWakeUp(t *testing.T) {
	dispatch(t, Channel{Wakes: One}, func(t *testing.T, b *broker, _ *Dispatcher, ws []*Waiter) {
		b.send(event{payload: "1"})
		b.send(event{payload: "2"})
		wantWoken(t, ws, "a", "b")
		for range 4 {
			b.send(event{payload: "x"})
		}
		wantWoken(t, ws, "a", "b", "c")
	})
}

func TestAMessageWakesAllWaiters(t *testing.T) {
	dispatch(t, Channel{Wakes: All}, func(t *testing.T, b *broker, _ *Dispatcher, ws []*Waiter) {
		b.send(event{payload: "b"})
		wantWoken(t, ws, "a", "b", "c")
	})
}

func TestAWaiterThatLeavesPassesItsWakeUpOn(t *testing.T) {
	dispatch(t, Channel{Wakes: One}, func(t *testing.T, b *broker, d *Dispatcher, ws []*Waiter) {
		w := d.Join("d")
		w.Leave(true)
		wantWoken(t, ws, "a")
		w = d.Join("d")
		w.Leave(false)
		wantWoken(t, ws)
	})
}

func TestAllWaitersWakeWhereMessagesMayBeMissing(t *testing.T) {
	for _, wakes := range []Wakes{Named, One, All} {
		dispatch(t, Channel{Wakes: wakes}, func(t *testing.T, b *broker, _ *Dispatcher, ws []*Waiter) {
			b.send(event{err: fmt.Errorf("lost: %w", conn.ErrInterrupted)})
			wantWoken(t, ws, "a", "b", "c")
			b.send(event{err: errEnded})
			wantWoken(t, ws, "a", "b", "c")
			if n := b.open.Load(); n != 0 {
				t.Errorf("%d subscriptions after the end", n)
			}
			time.Sleep(firstPause)
			wantWoken(t, ws, "a", "b", "c") // there is another one
			b.send(event{payload: "a"})
			if got := woken(ws...); len(got) == 0 || got[0] != "a" {
				t.Errorf("the next message wakes %q", got)
			}
		})
	}
}

func TestOneOfThoseThatSettleIsAwakeAtATime(t *testing.T) {
	dispatch(t, Channel{Wakes: One, Settles: true}, func(t *testing.T, b *broker, d *Dispatcher, ws []*Waiter) {
		b.send(event{})
		b.send(event{})
		wantWoken(t, ws, "a") // and the second message is missed
		if !ws[0].Settle() {
			t.Error("a does not send its request again, which may have been earlier than the message")
		}
		b.send(event{})
		if !ws[0].Settle() || ws[0].Settle() {
			t.Error("a is to send its request again, once")
		}
		b.send(event{})
		wantWoken(t, ws, "a")
		b.send(event{})
		ws[0].Leave(true) // a ends without having got anything
		wantWoken(t, ws, "b")
		if !ws[1].Settle() {
			t.Error("the message that a missed is lost")
		}
		ws[0] = d.Join("a")
		ws[1].Leave(false) // b has got it
		ws[1] = d.Join("b")
		wantWoken(t, ws)
	})
}

func TestAWakeUpOfThisProcessNeedsNoMessage(t *testing.T) {
	dispatch(t, Channel{Wakes: Named}, func(t *testing.T, _ *broker, d *Dispatcher, ws []*Waiter) {
		if d.channel.Find() != d {
			t.Error("the dispatcher is not found")
		}
		d.Wake("")
		wantWoken(t, ws, "a")
	})
}

func TestUsersOfEqualChannelsShareASubscription(t *testing.T) {
	dispatch(t, Channel{}, func(t *testing.T, b *broker, d *Dispatcher, _ []*Waiter) {
		if other := d.channel.Open(); other != d || b.calls.Load() != 1 {
			t.Errorf("%d subscriptions", b.calls.Load())
		}
		d.Close()
		if b.open.Load() != 1 {
			t.Error("the subscription is closed before the last user")
		}
		other := d.channel
		other.Name = "other"
		o := other.Open()
		if err := o.Ready(t.Context()); err != nil || o == d || b.open.Load() != 2 {
			t.Errorf("another channel has no subscription of its own: %v", err)
		}
		o.Close()
	})
}

func TestAWaiterKeepsItsNameWhenAnotherOfTheSameOwnerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broker{subscribe: func(context.Context) error { return nil }}
		d := Channel{Conn: conn.New(b), Name: "wake"}.Open()
		defer d.Close()
		first, second := d.Join("owner"), d.Join("owner")
		defer second.Leave(false)
		synctest.Wait()
		select {
		case <-second.C: // of the subscription that began
		default:
		}
		first.Leave(false)
		d.Wake("owner")
		select {
		case <-second.C:
		default:
			t.Error("a message to the owner woke no waiter")
		}
	})
}

func TestReadyReportsTheErrorOfSubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := atomic.Bool{}
		b := &broker{subscribe: func(context.Context) error {
			time.Sleep(time.Millisecond)
			if refuse.Load() {
				return errRefused
			}
			return nil
		}}
		ch := Channel{Conn: conn.New(b), Name: "wake"}
		refuse.Store(true)
		d, begin := ch.Open(), time.Now()
		if err := d.Ready(t.Context()); !errors.Is(err, errRefused) || time.Since(begin) != time.Millisecond {
			t.Errorf("Ready: %v after %v", err, time.Since(begin))
		}
		refuse.Store(false)
		time.Sleep(time.Second)
		if err := d.Ready(t.Context()); err != nil {
			t.Errorf("Ready: %v, but there is a subscription", err)
		}
		refuse.Store(true)
		b.send(event{err: errEnded})
		if err := d.Ready(t.Context()); !errors.Is(err, errEnded) {
			t.Errorf("Ready: %v", err)
		}
		d.Close()
	})
}

func TestReadyEndsWithItsContextAndCloseEndsTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broker{subscribe: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		d := Channel{Conn: conn.New(b), Name: "wake"}.Open()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := d.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ready: %v", err)
		}
		d.Close() // else the bubble does not end
	})
}

func TestARefusedSubscriptionIsTriedLessAndLessOften(t *testing.T) {
	for wakes, want := range map[Wakes]int{Named: 0, One: 1, All: 0} {
		synctest.Test(t, func(t *testing.T) {
			b := &broker{subscribe: func(context.Context) error { return errRefused }}
			d := Channel{Conn: conn.New(b), Name: "wake", Wakes: wakes}.Open()
			ws := []*Waiter{d.Join("a"), d.Join("b")}
			synctest.Wait()
			if n := len(woken(ws...)); n != want {
				t.Errorf("%d waiters poll after an attempt, want %d", n, want)
			}
			time.Sleep(time.Minute)
			if n := b.calls.Load(); n < 120 || n > 250 {
				t.Errorf("%d attempts in a minute", n)
			}
			for _, w := range ws {
				w.Leave(false)
			}
			d.Close()
		})
	}
}

// Waiters take ready items, as consumers take jobs. Some leave and come again; the first stays.
func TestNoWaiterSleepsWhileThereIsSomethingToTake(t *testing.T) {
	draw.Check(t, func(rt *rapid.T) {
		settles := rapid.Bool().Draw(rt, "settles")
		stays := rapid.SliceOfN(rapid.IntRange(1, 40), 0, 4).Draw(rt, "stays") // in ms
		puts := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 10).Draw(rt, "puts")
		synctest.Test(t, func(t *testing.T) {
			b := &broker{}
			ch := Channel{Conn: conn.New(b), Name: "wake", Wakes: One, Settles: settles}
			end, cancel := context.WithCancel(t.Context())
			var ready, put atomic.Int64
			take := func() (ok bool) {
				time.Sleep(time.Millisecond) // the way to the backend
				if ok = ready.Load() > 0; ok {
					ready.Add(-1)
				}
				time.Sleep(time.Millisecond) // and back
				return ok
			}
			wait := func(ctx context.Context) {
				d := ch.Open()
				defer d.Close()
				w, got := d.Join(""), false
				for ctx.Err() == nil && !got {
					if got = take(); got || settles && w.Settle() {
						continue
					}
					select {
					case <-w.C:
					case <-ctx.Done():
					}
				}
				w.Leave(!got || !settles)
				if settles && got {
					d.Wake("") // as a release does
				}
			}
			var all sync.WaitGroup
			for _, ms := range append([]int{1e6}, stays...) {
				all.Go(func() {
					for end.Err() == nil {
						ctx, cancel := context.WithTimeout(end, time.Duration(ms)*time.Millisecond)
						wait(ctx)
						cancel()
					}
				})
			}
			hold := ch.Open()
			for _, n := range puts {
				time.Sleep(3 * time.Millisecond)
				for range n {
					put.Add(1)
					ready.Add(1)
					b.send(event{})
				}
			}
			time.Sleep(time.Duration(2*put.Load()+10) * time.Millisecond)
			if n := ready.Load(); n > 0 {
				rt.Errorf("%d of %d are left, although a waiter sleeps", n, put.Load())
			}
			cancel()
			all.Wait()
			hold.Close()
			if n := b.open.Load(); n != 0 {
				rt.Errorf("%d subscriptions are left", n)
			}
		})
	})
}
