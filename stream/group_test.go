package stream_test

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/stream"
)

// take takes n deliveries.
func take[T any](t *testing.T, ctx context.Context, g *stream.Group[T], consumer string, n int) (all []*stream.Delivery[T]) {
	t.Helper()
	for d, err := range g.Consume(ctx, consumer) {
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, d); len(all) == n {
			break
		}
	}
	if len(all) != n {
		t.Fatalf("%d deliveries of %d", len(all), n)
	}
	return all
}

func ack[T any](t *testing.T, ctx context.Context, d *stream.Delivery[T]) {
	t.Helper()
	if err := d.Ack(ctx); err != nil {
		t.Error(err)
	}
}

func TestAGroupSharesEntriesOut(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[int]{})
		g := newGroup(t, s, "g", stream.GroupOptions{Batch: 5})
		const n, workers = 100, 4
		for i := range n {
			add(t, ctx, s, i)
		}
		var mu sync.Mutex
		got := map[int]int{}
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for d, err := range g.Consume(ctx, "") {
					if err != nil {
						t.Error(err)
						return
					}
					ack(t, ctx, d)
					mu.Lock()
					got[d.Value]++
					if len(got) == n {
						cancel()
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		for i := range n {
			if got[i] != 1 {
				t.Errorf("%d was delivered %d times", i, got[i])
			}
		}
		if i, err := s.Info(b.Context()); err != nil || i.Groups[0].Pending != 0 || i.Groups[0].Lag != 0 {
			t.Error(i, err)
		}
	})
}

func TestEachGroupGetsEverything(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[int]{})
		add(t, ctx, s, 1, 2)
		one, two := newGroup(t, s, "one", stream.GroupOptions{}), newGroup(t, s, "two", stream.GroupOptions{From: stream.Tail})
		if err := two.Create(ctx); err != nil {
			t.Fatal(err)
		}
		add(t, ctx, s, 3)
		for i, d := range take(t, ctx, one, "a", 3) {
			if d.Value != i+1 {
				t.Error(d.Value)
			}
		}
		if d := take(t, ctx, two, "a", 1)[0]; d.Value != 3 {
			t.Error(d.Value)
		}
	})
}

func TestTheAbandonedIsClaimed(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[string]{})
		g := newGroup(t, s, "g", stream.GroupOptions{ClaimAfter: 50 * time.Millisecond})
		add(t, ctx, s, "work")
		dead := take(t, ctx, g, "dies", 1)[0]
		heir := take(t, ctx, g, "lives", 1)[0]
		if heir.Value != "work" || heir.Deliveries != 2 || dead.Deliveries != 1 {
			t.Error(heir.Value, heir.Deliveries)
		}
		if err := dead.Ack(ctx); !errors.Is(err, stream.ErrLost) {
			t.Error(err)
		}
		if err := dead.Nack(ctx, 0); !errors.Is(err, stream.ErrLost) {
			t.Error(err)
		}
		if err := dead.Extend(ctx); !errors.Is(err, stream.ErrLost) {
			t.Error(err)
		}
		ack(t, ctx, heir)
		ack(t, ctx, heir) // and again
		if err := heir.Extend(ctx); !errors.Is(err, stream.ErrLost) {
			t.Error(err)
		}
	})
}

func TestTheSameConsumerLosesADeliveryToo(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[string]{})
		g := newGroup(t, s, "g", stream.GroupOptions{ClaimAfter: 20 * time.Millisecond})
		add(t, ctx, s, "work")
		old := take(t, ctx, g, "me", 1)[0]
		d := take(t, ctx, g, "me", 1)[0] // another loop of the same name
		for _, err := range []error{old.Ack(ctx), old.Nack(ctx, time.Hour), old.Extend(ctx)} {
			if !errors.Is(err, stream.ErrLost) {
				t.Error(err)
			}
		}
		ack(t, ctx, d)
	})
}

func TestTheAbandonedIsFoundBehindManyThatAreNot(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[int]{})
		g := newGroup(t, s, "g", stream.GroupOptions{ClaimAfter: time.Minute, Batch: 1200})
		const n, kept = 1200, 1150 // a call looks at 500
		for i := range n {
			add(t, ctx, s, i)
		}
		all := take(t, ctx, g, "me", n)
		b.Pass(59 * time.Second)
		for _, d := range all[:kept] {
			if err := d.Extend(ctx); err != nil {
				t.Fatal(err)
			}
		}
		b.Pass(2 * time.Second)
		start := time.Now()
		if d := take(t, ctx, g, "you", n-kept)[0]; d.Value != kept || d.Deliveries != 2 {
			t.Error(d.Value, d.Deliveries)
		}
		if waited := time.Since(start); waited > 200*time.Millisecond {
			t.Error(waited)
		}
	})
}

func TestDeadLettersAreBounded(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[int]{})
		g := newGroup(t, s, "g", stream.GroupOptions{MaxDeliveries: 1, DeadLen: 10, Batch: 250})
		for i := range 250 {
			add(t, ctx, s, i)
		}
		for _, d := range take(t, ctx, g, "me", 250) {
			if err := d.Nack(ctx, 0); err != nil {
				t.Fatal(err)
			}
		}
		dead, err := g.DeadLetters(ctx, "", 1000)
		if err != nil || len(dead) < 10 || len(dead) > 150 || dead[len(dead)-1].Value != 249 { // whole nodes go
			t.Error(len(dead), err)
		}
	})
}

func TestExtendKeepsADelivery(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[string]{})
		g := newGroup(t, s, "g", stream.GroupOptions{ClaimAfter: time.Minute})
		add(t, ctx, s, "long work")
		d := take(t, ctx, g, "me", 1)[0]
		for range 5 {
			b.Pass(59 * time.Second)
			if err := d.Extend(ctx); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		if other := take(t, ctx, g, "you", 1)[0]; other.Deliveries != 2 {
			t.Error(other.Deliveries)
		}
		if waited := time.Since(start); waited < time.Minute || waited > time.Minute+2*time.Millisecond {
			t.Error(waited)
		}
	})
}

func TestANackComesAgainAfterItsDelay(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[string]{})
		g := newGroup(t, s, "g", stream.GroupOptions{ClaimAfter: 5 * time.Millisecond})
		add(t, ctx, s, "fails")
		d := take(t, ctx, g, "me", 1)[0]
		const delay = 80 * time.Millisecond
		start := time.Now()
		if err := d.Nack(ctx, delay); err != nil {
			t.Fatal(err)
		}
		d = take(t, ctx, g, "you", 1)[0]
		waited := time.Since(start)
		if d.Deliveries != 2 || waited < delay-time.Millisecond {
			t.Error(d.Deliveries, waited) // longer than ClaimAfter: the delay counts
		}
		if b.Virtual() && waited > delay+2*time.Millisecond {
			t.Error(waited)
		}
		if err := d.Nack(ctx, 0); err != nil {
			t.Fatal(err)
		}
		ack(t, ctx, take(t, ctx, g, "you", 1)[0])
		if n, err := b.Do(ctx, "ZCARD", "{"+b.Name("log")+"}:retry:g"); n.Int != 0 || err != nil {
			t.Error(n, err)
		}
	})
}

func TestASettledDeliveryStaysSettled(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[string]{})
		g := newGroup(t, s, "g", stream.GroupOptions{MaxDeliveries: 2})
		add(t, ctx, s, "x")
		retry := "{" + b.Name("log") + "}:retry:g"
		score := func() float64 {
			v, err := b.Do(ctx, "ZRANGE", retry, 0, -1, "WITHSCORES")
			if err != nil {
				t.Fatal(err)
			}
			all, _ := v.AsStrings()
			if len(v.Elems) == 1 { // RESP3: pairs
				all, _ = v.Elems[0].AsStrings()
			}
			if len(all) != 2 {
				return 0
			}
			n, _ := strconv.ParseFloat(all[1], 64)
			return n
		}
		d := take(t, ctx, g, "me", 1)[0]
		again := stream.Copy(d) // as after a Nack whose reply was lost
		if err := d.Nack(ctx, time.Hour); err != nil {
			t.Fatal(err)
		}
		due := score()
		b.Pass(5 * time.Millisecond)
		for _, err := range []error{d.Nack(ctx, 0), d.Ack(ctx), again.Nack(ctx, 0)} {
			if err != nil {
				t.Error(err)
			}
		}
		if now := score(); now != due || due == 0 {
			t.Error("due", due, "and then", now)
		}
		if err := d.Extend(ctx); !errors.Is(err, stream.ErrLost) {
			t.Error("it was handed back, and extended:", err)
		}
		if now := score(); now != due {
			t.Error("due", due, "and then", now)
		}
		if _, err := b.Do(ctx, "ZADD", retry, 0, d.ID); err != nil { // an hour passes
			t.Fatal(err)
		}
		d = take(t, ctx, g, "me", 1)[0]
		again = stream.Copy(d)
		for _, err := range []error{d.Nack(ctx, 0), again.Nack(ctx, 0), stream.Copy(d).Ack(ctx)} { // a dead letter, once
			if err != nil {
				t.Error(err)
			}
		}
		if dead, err := g.DeadLetters(ctx, "", 10); len(dead) != 1 || err != nil {
			t.Error(dead, err)
		}
		add(t, ctx, s, "y")
		d = take(t, ctx, g, "me", 1)[0]
		if err := stream.Copy(d).Ack(ctx); err != nil {
			t.Error(err)
		}
		if err := d.Nack(ctx, 0); !errors.Is(err, stream.ErrLost) {
			t.Error("it was acknowledged, and handed back:", err)
		}
	})
}

func TestWhatWasDeletedCannotBeExtended(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[string]{})
		g := newGroup(t, s, "g", stream.GroupOptions{})
		ids := add(t, ctx, s, "x")
		d := take(t, ctx, g, "me", 1)[0]
		if n, err := s.Remove(ctx); n != 0 || err != nil {
			t.Error(n, err)
		}
		if _, err := s.Remove(ctx, ids...); err != nil {
			t.Fatal(err)
		}
		if err := d.Extend(ctx); !errors.Is(err, stream.ErrLost) {
			t.Error(err)
		}
	})
}

func TestConsumersThatDiedAreForgotten(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[string]{})
		g := newGroup(t, s, "g", stream.GroupOptions{ClaimAfter: time.Second})
		add(t, ctx, s, "x", "y")
		take(t, ctx, g, strings.Repeat("d", 32), 1) // and dies
		take(t, ctx, g, "named", 1)
		b.Pass(23 * time.Hour)
		consumers := func() int64 {
			n := 0
			for d, err := range g.Consume(ctx, "") {
				if err != nil {
					t.Fatal(err)
				}
				ack(t, ctx, d)
				if n++; n == 2 {
					break
				}
			}
			add(t, ctx, s, "x", "y")
			i, err := s.Info(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return i.Groups[0].Consumers
		}
		if n := consumers(); n != 2 {
			t.Error(n, "consumers after 23 hours")
		}
		b.Pass(2 * time.Hour)
		if n := consumers(); n != 1 {
			t.Error(n, "consumers after a day")
		}
	})
}

func TestRedriveDropsLettersWithoutAValue(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[string]{})
		g := newGroup(t, s, "g", stream.GroupOptions{})
		letter := func(args ...any) {
			if _, err := b.Do(ctx, append([]any{"XADD", "{" + b.Name("log") + "}:dead:g", "*"}, args...)...); err != nil {
				t.Fatal(err)
			}
		}
		for range 100 { // what one call moves
			letter("id", "1-1")
		}
		letter("v", "x", "id", "1-2")
		letter("v", "y", "id", "1-3")
		if n, err := g.Redrive(ctx, 101); n != 1 || err != nil {
			t.Error(n, err)
		}
		if n, err := g.Redrive(ctx, 1000); n != 1 || err != nil {
			t.Error(n, err)
		}
		if e, err := s.Range(ctx, "-", "+", 10); len(e) != 2 || e[0].Value != "x" || err != nil {
			t.Error(e, err)
		}
	})
}

func TestTheRetrySetHasATTL(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[string]{})
		g := newGroup(t, s, "g", stream.GroupOptions{})
		add(t, ctx, s, "x")
		if err := take(t, ctx, g, "me", 1)[0].Nack(ctx, time.Minute); err != nil {
			t.Fatal(err)
		}
		ttl, err := b.TTL(ctx, "{"+b.Name("log")+"}:retry:g")
		if err != nil || ttl < time.Hour || ttl > 2*time.Hour {
			t.Error(ttl, err)
		}
		add(t, ctx, s, "y", "z")
		for _, delay := range []time.Duration{5 * time.Hour, time.Minute} { // the longest counts
			if err := take(t, ctx, g, "me", 1)[0].Nack(ctx, delay); err != nil {
				t.Fatal(err)
			}
		}
		if ttl, err = b.TTL(ctx, "{"+b.Name("log")+"}:retry:g"); err != nil || ttl < 5*time.Hour+time.Minute {
			t.Error(ttl, err)
		}
	})
}

func TestDeadLettersAfterSoManyDeliveries(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[string]{})
		g := newGroup(t, s, "g", stream.GroupOptions{MaxDeliveries: 3, ClaimAfter: 5 * time.Millisecond})
		id := add(t, ctx, s, "poison")[0]
		for i := range 3 {
			d := take(t, ctx, g, "me", 1)[0]
			if d.Deliveries != i+1 {
				t.Error(d.Deliveries)
			}
			if i < 2 {
				if err := d.Nack(ctx, 0); err != nil {
					t.Fatal(err)
				}
			} // and the last consumer dies
		}
		b.Pass(10 * time.Millisecond)
		add(t, ctx, s, "fine")
		if d := take(t, ctx, g, "me", 1)[0]; d.Value != "fine" {
			t.Error(d.Value)
		} else {
			ack(t, ctx, d)
		}
		var dead []stream.Dead[string]
		b.Until("the letter is dead", func() bool {
			var err error
			dead, err = g.DeadLetters(ctx, "", 10)
			if err != nil {
				t.Fatal(err)
			}
			return len(dead) > 0
		})
		if len(dead) != 1 || dead[0].Value != "poison" || dead[0].Original != id || dead[0].Deliveries != 3 {
			t.Error(dead)
		}
		if more, err := g.DeadLetters(ctx, dead[0].ID, 10); len(more) != 0 || err != nil {
			t.Error(more, err)
		}
		if n, err := g.Redrive(ctx, 10); n != 1 || err != nil {
			t.Error(n, err)
		}
		if d := take(t, ctx, g, "me", 1)[0]; d.Value != "poison" || d.Deliveries != 1 {
			t.Error(d.Value, d.Deliveries)
		}
	})
}

func TestANackOfTheLastDeliveryBuriesAtOnce(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[string]{})
		g := newGroup(t, s, "g", stream.GroupOptions{MaxDeliveries: 1, DeadTTL: time.Hour})
		add(t, ctx, s, "x")
		if err := take(t, ctx, g, "me", 1)[0].Nack(ctx, time.Hour); err != nil {
			t.Fatal(err)
		}
		if dead, err := g.DeadLetters(ctx, "", 10); len(dead) != 1 || err != nil {
			t.Error(dead, err)
		}
		if i, err := s.Info(ctx); err != nil || i.Groups[0].Pending != 0 {
			t.Error(i, err)
		}
		if ttl, err := b.TTL(ctx, "{"+b.Name("log")+"}:dead:g"); err != nil || ttl <= 0 || ttl > time.Hour {
			t.Error(ttl, err)
		}
	})
}

func TestWhatWasTrimmedWhilePendingIsForgotten(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[string]{})
		g := newGroup(t, s, "g", stream.GroupOptions{ClaimAfter: time.Millisecond})
		ids := add(t, ctx, s, "a", "b")
		take(t, ctx, g, "dies", 1)
		if _, err := s.Remove(ctx, ids[0]); err != nil {
			t.Fatal(err)
		}
		b.Pass(5 * time.Millisecond)
		if d := take(t, ctx, g, "me", 1)[0]; d.Value != "b" {
			t.Error(d.Value)
		} else {
			ack(t, ctx, d)
		}
		if i, err := s.Info(ctx); err != nil || i.Groups[0].Pending != 0 {
			t.Error(i, err)
		}
	})
}

func TestAVanishedGroupIsMadeAgain(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[int]{})
		g := newGroup(t, s, "g", stream.GroupOptions{})
		add(t, ctx, s, 1)
		n := 0
		for d, err := range g.Consume(ctx, "me") {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == 2 {
				if d.Value != 2 {
					t.Error(d.Value)
				}
				break
			}
			if _, err := b.Del(ctx, b.Name("log")); err != nil {
				t.Fatal(err)
			}
			add(t, ctx, s, 2)
		}
		for range 2 { // the second time there is none
			if err := g.Destroy(ctx); err != nil {
				t.Error(err)
			}
		}
		text, err := stream.New[int](b.Conn, b.Name("text"))
		if err == nil {
			err = b.Set(ctx, b.Name("text"), "no stream")
		}
		if err != nil {
			t.Fatal(err)
		}
		var refused ebb.ReplyError
		if err := newGroup(t, text, "g", stream.GroupOptions{}).Destroy(ctx); !errors.As(err, &refused) || refused.Code() != "WRONGTYPE" {
			t.Error(err)
		}
		late := newGroup(t, s, "late", stream.GroupOptions{From: stream.Tail})
		if err := late.Create(ctx); err != nil {
			t.Fatal(err)
		}
		add(t, ctx, s, 3)
		for d, err := range late.Consume(ctx, "me") {
			if err != nil {
				t.Fatal(err)
			}
			if d.Value == 4 {
				break
			}
			if _, err := b.Del(ctx, b.Name("log")); err != nil {
				t.Fatal(err)
			}
			add(t, ctx, s, 4) // before it is made again: it misses nothing
		}
	})
}

func TestAConsumerGoesOnAfterAFault(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[int]{})
		g := newGroup(t, s, "g", stream.GroupOptions{ClaimAfter: 200 * time.Millisecond})
		addKept(t, b, b.Name("log"), 1, 2, 3)
		got, faulty := map[int]bool{}, false
		for d, err := range g.Consume(ctx, "me") {
			if err != nil {
				if !errors.Is(err, ebb.ErrUnavailable) {
					t.Log("told:", err)
				}
				continue
			}
			if !faulty {
				if faulty = b.FaultAt(b.Name("log")); !faulty {
					break
				}
			}
			b.Until("it is acknowledged, or comes again", func() bool {
				err = d.Ack(ctx)
				return err == nil || errors.Is(err, stream.ErrLost)
			})
			if got[d.Value] = got[d.Value] || err == nil; got[1] && got[2] && got[3] {
				break
			}
		}
		if faulty && !(got[1] && got[2] && got[3]) {
			t.Error("it ended with", got, ctx.Err())
		}
	})
}

func TestRedriveIsForTheGroupAlone(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[string]{})
		g := newGroup(t, s, "g", stream.GroupOptions{MaxDeliveries: 1})
		other := newGroup(t, s, "other", stream.GroupOptions{})
		ids := add(t, ctx, s, "there", "gone")
		for range 2 {
			if err := take(t, ctx, g, "me", 1)[0].Nack(ctx, 0); err != nil {
				t.Fatal(err)
			}
			if err := take(t, ctx, other, "me", 1)[0].Ack(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Remove(ctx, ids[1]); err != nil {
			t.Fatal(err)
		}
		if n, err := g.Redrive(ctx, 10); n != 2 || err != nil {
			t.Fatal(n, err)
		}
		add(t, ctx, s, "next")
		if d := take(t, ctx, other, "me", 1)[0]; d.Value != "next" {
			t.Errorf("the other group gets %q", d.Value)
		}
		got := map[string]string{}
		for range 3 {
			d := take(t, ctx, g, "me", 1)[0]
			got[d.Value] = d.ID
			if err := d.Ack(ctx); err != nil || d.Deliveries != 1 {
				t.Error(d.Deliveries, err)
			}
		}
		if len(got) != 3 || got["there"] != ids[0] {
			t.Error(got, ids)
		}
		if i, err := s.Info(ctx); err != nil || i.Groups[0].Pending != 0 {
			t.Errorf("%+v %v", i, err)
		}
	})
}

func TestAConsumerOfAFullServerReadsAGroupThatExists(t *testing.T) {
	backends.Except(t, []string{"sentinel", "cluster"}, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[int]{})
		g := newGroup(t, s, "g", stream.GroupOptions{})
		if err := g.Create(ctx); err != nil {
			t.Fatal(err)
		}
		add(t, ctx, s, 7)
		set := func(bytes int) {
			if _, err := b.Do(ctx, "CONFIG", "SET", "maxmemory", bytes); err != nil {
				t.Fatal(err)
			}
		}
		set(1)
		defer set(0)
		first := func(group string) (*stream.Delivery[int], error) {
			next, stop := iter.Pull2(newGroup(t, s, group, stream.GroupOptions{}).Consume(ctx, "c"))
			defer stop()
			d, err, _ := next()
			return d, err
		}
		d, err := first("g")
		if err != nil || d.Value != 7 {
			t.Fatal(d, err)
		}
		ack(t, ctx, d)
		if _, err := first("new"); err == nil || !strings.Contains(err.Error(), "OOM") {
			t.Error("a group that does not exist:", err)
		}
	})
}
