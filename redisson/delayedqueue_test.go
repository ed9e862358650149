package redisson

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/queue"
)

// javaItem is an item as Redisson packs it, by hand: one byte 8, eight random bytes,
// a little-endian uint64, the payload.
const javaItem = "\x08" + "\xde\xad\xbe\xef\x00\x01\x02\x03" + "\x05\x00\x00\x00\x00\x00\x00\x00" + "hello"

func TestTheLayoutOfADelayedQueueIsRedissons(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx, name := b.Context(), fresh(b, "q")
		s := must(NewDelayedQueue[string](b.Conn, name))(t)
		waiting, deadlines := "redisson_delay_queue:{"+name+"}", "redisson_delay_queue_timeout:{"+name+"}"
		before := now(t, b).UnixMilli()
		ok(t, s.Push(ctx, "hello", time.Hour))

		items := must(b.Do(ctx, "LRANGE", waiting, 0, -1))(t)
		if len(items.Elems) != 1 {
			t.Fatalf("the list holds %s", items)
		}
		got := items.Elems[0].Str
		if len(got) != len(javaItem) || got[:1] != javaItem[:1] || got[9:] != javaItem[9:] {
			t.Errorf("the item is %q, want one like %q", got, javaItem)
		}
		if score := must(must(b.Do(ctx, "ZSCORE", deadlines, got))(t).AsFloat())(t); int64(score) < before+3_600_000 ||
			int64(score) > before+3_660_000 {
			t.Errorf("due at %v, pushed at %v", score, before)
		}
		if delayed, ready, err := s.Len(ctx); delayed != 1 || ready != 0 || err != nil {
			t.Error(delayed, ready, err)
		}
		if !must(s.Remove(ctx, "hello"))(t) || must(s.Remove(ctx, "hello"))(t) {
			t.Error("it is there once")
		}
		if n := must(b.Exists(ctx, waiting, deadlines, name))(t); n != 0 {
			t.Errorf("%d keys are left", n)
		}
		ok(t, s.Push(ctx, "now", 0))
		if got := must(b.Do(ctx, "LRANGE", name, 0, -1))(t); len(got.Elems) != 1 || got.Elems[0].Str != "now" {
			t.Errorf("the target holds %s", got)
		}
	})
}

func TestWhatAnotherClientPutThereIsDelivered(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx, name := b.Context(), "{"+fresh(b, "q")+"}:mail" // a tag of the name's own
		s := must(NewDelayedQueue[string](b.Conn, name))(t)
		due := now(t, b).Add(50 * time.Millisecond).UnixMilli()
		must(b.Do(ctx, "ZADD", "redisson_delay_queue_timeout:"+name, due, javaItem))(t)
		must(b.Do(ctx, "RPUSH", "redisson_delay_queue:"+name, javaItem))(t)
		// An older client's random part is longer.
		must(b.Do(ctx, "ZADD", "redisson_delay_queue_timeout:"+name, due+1,
			"\x10"+strings.Repeat("r", 16)+"\x03\x00\x00\x00\x00\x00\x00\x00old"))(t)
		for _, want := range []string{"hello", "old"} {
			v := must(s.Pop(ctx))(t)
			late := now(t, b).UnixMilli() - due
			if v != want || late < 0 || b.Virtual() && late > 1 {
				t.Errorf("%q after %d ms", v, late)
			}
		}
		if n := must(b.Exists(ctx, "redisson_delay_queue_timeout:"+name, "redisson_delay_queue:"+name))(t); n != 0 {
			t.Error("items are left")
		}
	})
}

func TestPopIsWokenByTheListAndByTheChannel(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx, name := b.Context(), fresh(b, "q")
		s := must(NewDelayedQueue[string](b.Conn, name))(t)
		got := make(chan string, 3)
		for range 3 {
			go func() {
				v, err := s.Pop(ctx)
				if err != nil {
					v = err.Error()
				}
				got <- v
			}()
		}
		b.Pass(20 * time.Millisecond)
		ok(t, s.Push(ctx, "an hour", time.Hour))
		ok(t, s.Push(ctx, "soon", 30*time.Millisecond))
		must(b.Do(ctx, "RPUSH", name, "plain"))(t)
		ok(t, s.Push(ctx, "now", 0))
		all := []string{<-got, <-got, <-got}
		slices.Sort(all)
		same(t, all, "now", "plain", "soon")
		if delayed, ready, err := s.Len(ctx); delayed != 1 || ready != 0 || err != nil {
			t.Error(delayed, ready, err)
		}
	})
}

func TestAWaitForASharedQueueEndsWithTheContext(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		s := must(NewDelayedQueue[string](b.Conn, fresh(b, "q")))(t)
		ctx, cancel := context.WithTimeout(b.Context(), 30*time.Millisecond)
		defer cancel()
		_, err := s.Pop(ctx)
		failsWith(t, err, context.DeadlineExceeded)
		failsWith(t, s.Transfer(ctx), context.DeadlineExceeded)
		ok(t, s.Push(b.Context(), "v", 0))
		if v := must(s.TryPop(b.Context()))(t); v != "v" {
			t.Errorf("%q", v)
		}
		_, err = s.TryPop(b.Context())
		failsWith(t, err, queue.ErrEmpty)
	})
}

// javaSide does with plain commands, through a client of its own, what Redisson does
// in a JVM.
type javaSide struct {
	c    *redis.Client
	name string
	sent int
}

func (j *javaSide) offer(ctx context.Context, payload string, due int64) error {
	j.sent++
	item := fmt.Sprintf("\x08java%04d%c\x00\x00\x00\x00\x00\x00\x00%s", j.sent, rune(len(payload)), payload)
	deadlines := "redisson_delay_queue_timeout:{" + j.name + "}"
	err := j.c.ZAdd(ctx, deadlines, redis.Z{Score: float64(due), Member: item}).Err()
	if err == nil {
		err = j.c.RPush(ctx, "redisson_delay_queue:{"+j.name+"}", item).Err()
	}
	if err != nil {
		return err
	}
	if first := j.c.ZRange(ctx, deadlines, 0, 0).Val(); len(first) == 1 && first[0] == item {
		return j.c.Publish(ctx, "redisson_delay_queue_channel:{"+j.name+"}", due).Err()
	}
	return nil
}

func TestGoAndJavaShareAQueue(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		if !strings.HasPrefix(b.URL(), "redis://") {
			return // the other client takes one server's address
		}
		ctx, name := b.Context(), fresh(b, "q")
		java := &javaSide{c: redis.NewClient(must(redis.ParseURL(b.URL()))(t)), name: name}
		defer func() { ok(t, java.c.Close()) }()
		s := must(NewDelayedQueue[string](b.Conn, name))(t)

		// From Java to Go, with the message that a new first item is due.
		result := make(chan string, 1)
		go func() {
			v, err := s.Pop(ctx)
			result <- fmt.Sprint(v, err)
		}()
		at := now(t, b).UnixMilli()
		ok(t, java.offer(ctx, "later", at+3_600_000))
		ok(t, java.offer(ctx, "soon", at+40))
		if v := <-result; v != "soon<nil>" {
			t.Errorf("Go took %q", v)
		}

		// From Go to Java: Go receives the message and moves the job, Java takes it.
		heard := java.c.Subscribe(ctx, "redisson_delay_queue_channel:{"+name+"}")
		defer func() { _ = heard.Close() }()
		must(heard.Receive(ctx))(t)
		moving, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- s.Transfer(moving) }()
		before := now(t, b).UnixMilli()
		ok(t, s.Push(ctx, "from Go", 30*time.Millisecond))
		m := must(heard.ReceiveMessage(ctx))(t)
		var due int64
		if _, err := fmt.Sscan(m.Payload, &due); err != nil || due < before+30 {
			t.Errorf("the message says %q, pushed at %d", m.Payload, before)
		}
		taken := must(java.c.BLPop(ctx, 10*time.Second, name).Result())(t)
		if len(taken) != 2 || taken[1] != "from Go" {
			t.Errorf("Java took %q", taken)
		}
		stop()
		failsWith(t, <-done, context.Canceled)
	})
}

// hanging is a backend whose first Block has no reply until the deadline of its context.
type hanging struct {
	conn.Driver // nil: the rest is not called
	c           *ebb.Conn
	blocks      atomic.Int64
}

func (d *hanging) Do(ctx context.Context, args []any) (ebb.Value, error) { return d.c.Do(ctx, args...) }

func (d *hanging) Block(ctx context.Context, args []any) (ebb.Value, error) {
	if d.blocks.Add(1) > 1 {
		return d.c.Block(ctx, args...)
	}
	at, _ := ctx.Deadline()
	if err := kit.Sleep(ctx, time.Until(at)-20*time.Millisecond); err != nil { // client libraries notice a deadline a little early, or late
		return ebb.Value{}, err
	}
	return ebb.Value{}, fmt.Errorf("no reply: %w", context.DeadlineExceeded)
}

func (d *hanging) Pipeline(ctx context.Context, cmds [][]any) ([]ebb.Value, error) {
	var b ebb.Batch
	for _, args := range cmds {
		b.Do(args...)
	}
	return d.c.Pipeline(ctx, &b)
}

func (d *hanging) Subscribe(ctx context.Context, _ conn.SubscribeKind, names []string) (conn.Feed, error) {
	return d.c.Subscribe(ctx, names...)
}

func (d *hanging) Capabilities() ebb.Capabilities {
	caps := d.c.Capabilities()
	caps.Embedded = false
	return caps
}

func (d *hanging) String() string { return "hanging" }
func (d *hanging) Close() error   { return nil }

func TestAConsumerOutlivesAServerThatHangs(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := must(NewDelayedQueue[string](ebb.Use(&hanging{c: b.Conn}), fresh(b, "q")))(t)
		var pushing sync.WaitGroup
		pushing.Go(func() {
			if err := errors.Join(kit.Sleep(ctx, time.Minute), s.Push(ctx, "work", 0)); err != nil {
				t.Error(err)
			}
		})
		if v, err := s.Pop(ctx); err != nil || v != "work" {
			t.Error(v, err)
		}
		pushing.Wait()
	})
}
