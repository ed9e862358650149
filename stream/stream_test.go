package stream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/stream"
)

func TestMain(m *testing.M) { backends.Main(m) }

func newStream[T any](t *testing.T, c *ebb.Conn, name string, o stream.Options[T]) *stream.Stream[T] {
	t.Helper()
	s, err := stream.New(c, name, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newGroup[T any](t *testing.T, s *stream.Stream[T], name string, o stream.GroupOptions) *stream.Group[T] {
	t.Helper()
	g, err := s.Group(name, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func add[T any](t *testing.T, ctx context.Context, s *stream.Stream[T], values ...T) (ids []string) {
	t.Helper()
	for _, v := range values {
		id, err := s.Add(ctx, v)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

func TestAReaderSeesEverythingInOrderAndWaitsForMore(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[int]{})
		ids := add(t, ctx, s, 0, 1, 2)
		n := 0
		for e, err := range s.Read(ctx, "") {
			if err != nil || e.Value != n {
				t.Fatal(e, err, "want", n)
			}
			if n < 10 && n >= 2 {
				ids = append(ids, add(t, ctx, s, n+1)...)
			}
			if n++; n == 11 {
				break
			}
		}
		if e, err := s.Range(ctx, ids[3], "+", 2); len(e) != 2 || e[0].Value != 3 || e[0].ID != ids[3] || err != nil {
			t.Error(e, err)
		}
		for e, err := range s.Read(ctx, ids[9]) {
			if e.Value != 10 || err != nil || e.Time().Before(time.UnixMilli(0)) {
				t.Error(e, err)
			}
			break
		}
		if n, err := s.Remove(ctx, ids[0], "1-1"); n != 1 || err != nil {
			t.Error(n, err)
		}
		if n, err := s.Len(ctx); n != 10 || err != nil {
			t.Error(n, err)
		}
	})
}

func TestATailReaderMissesNothingFromItsStartOn(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[string]{})
		add(t, ctx, s, "before")
		got := make(chan string, 10)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for e, err := range s.Read(ctx, stream.Tail) {
				if err != nil {
					t.Error(err)
				}
				select {
				case got <- e.Value:
				case <-ctx.Done(): // there may be more than the consumer takes
				}
			}
		}()
		seen := ""
		b.Until("it reads", func() bool { // it may begin after the first ones
			add(t, ctx, s, "after")
			select {
			case seen = <-got:
				return true
			default:
				return false
			}
		})
		if seen != "after" {
			t.Error(seen)
		}
		cancel()
		<-done
	})
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		s := newStream(t, b.Conn, b.Name("quiet"), stream.Options[string]{})
		g := newGroup(t, s, "g", stream.GroupOptions{})
		for _, wait := range []func(context.Context){
			func(ctx context.Context) {
				for e, err := range s.Read(ctx, "") {
					t.Error(e, err)
				}
			},
			func(ctx context.Context) {
				for d, err := range g.Consume(ctx, "") {
					t.Error(d, err)
				}
			},
		} {
			for _, after := range []time.Duration{0, time.Millisecond, 30 * time.Millisecond} {
				ctx, cancel := context.WithCancel(b.Context())
				timer := time.AfterFunc(after, cancel)
				wait(ctx)
				timer.Stop()
				cancel()
			}
		}
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		if _, err := s.Add(ctx, "x"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		b.Until("the consumers have left", func() bool {
			i, err := s.Info(b.Context())
			return err == nil && len(i.Groups) == 1 && i.Groups[0].Consumers == 0
		})
	})
}

func TestRetentionByTime(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		const keep = 100 * time.Millisecond
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[int]{Retention: keep})
		var many []int
		for i := range 250 { // more than a node
			many = append(many, i)
		}
		add(t, ctx, s, many...)
		b.Pass(keep + 20*time.Millisecond)
		id := add(t, ctx, s, -1)[0]
		e, err := s.Range(ctx, "-", "+", 1000)
		if err != nil || len(e) == 0 || e[len(e)-1].ID != id {
			t.Fatal(e, err)
		}
		if len(e) > 151 {
			t.Errorf("%d are left", len(e))
		}
		if _, err := s.Trim(ctx); err != nil {
			t.Error(err)
		}
		e, err = s.Range(ctx, "-", "+", 1000)
		if len(e) > 1 || err != nil || b.Virtual() && len(e) != 1 {
			t.Error(len(e), err)
		}
		b.Pass(keep + 20*time.Millisecond)
		if n, err := s.Trim(ctx); n != int64(len(e)) || err != nil {
			t.Error(n, err)
		}
	})
}

func TestAnEntryStaysForItsRetentionToTheMillisecond(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[int]{Retention: time.Hour})
		add(t, ctx, s, 1)
		b.Pass(time.Hour)
		if n, err := s.Trim(ctx); n != 0 || err != nil {
			t.Error(n, err)
		}
		b.Pass(time.Millisecond)
		if n, err := s.Trim(ctx); n != 1 || err != nil {
			t.Error(n, err)
		}
	})
}

func TestTrimKeepsMaxLenExactly(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[int]{MaxLen: 10, Retention: time.Hour})
		for i := range 300 {
			add(t, ctx, s, i)
		}
		if n, err := s.Len(ctx); n < 10 || n > 210 || err != nil {
			t.Error(n, err)
		}
		if _, err := s.Trim(ctx); err != nil {
			t.Error(err)
		}
		e, err := s.Range(ctx, "-", "+", 100)
		if len(e) != 10 || e[0].Value != 290 || err != nil {
			t.Error(len(e), err)
		}
	})
}

func TestInfo(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[int]{Retention: time.Hour})
		if i, err := s.Info(ctx); i.Len != 0 || len(i.Groups) != 0 || err != nil {
			t.Error(i, err)
		}
		g := newGroup(t, s, "billing", stream.GroupOptions{})
		if err := g.Create(ctx); err != nil {
			t.Fatal(err)
		}
		ids := add(t, ctx, s, 1, 2, 3)
		take(t, ctx, g, "me", 1)
		i, err := s.Info(ctx)
		want := stream.GroupInfo{Name: "billing", Consumers: 1, Pending: 1, Lag: 2, LastDelivered: ids[0]}
		if err != nil || i.Len != 3 || i.First != ids[0] || i.LastID != ids[2] || !slices.Equal(i.Groups, []stream.GroupInfo{want}) {
			t.Error(i, err)
		}
	})
}

func TestUnreadableEntriesAreTold(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[int]{})
		for _, args := range [][]any{{"v", "no number"}, {"other", "1"}, {"v", "7"}} {
			if _, err := b.Do(ctx, append([]any{"XADD", b.Name("log"), "*"}, args...)...); err != nil {
				t.Fatal(err)
			}
		}
		bad := 0
		for e, err := range s.Read(ctx, "") {
			if errors.Is(err, ebb.ErrValue) && e.ID != "" {
				bad++
				continue
			}
			if e.Value != 7 || err != nil {
				t.Error(e, err)
			}
			break
		}
		if bad != 2 {
			t.Error(bad)
		}
	})
}

// addKept adds values that no failover loses: on backends that may lose the latest
// writes it waits until a replica has them.
func addKept(t *testing.T, b *backends.Backend, name string, values ...int) {
	t.Helper()
	c := b.Conn
	if b.Kind == "sentinel" || b.Kind == "cluster" {
		c = b.Replicated(1, 2*time.Second)
	}
	s := newStream(t, c, name, stream.Options[int]{})
	for _, v := range values {
		b.Until("it is added", func() bool { _, err := s.Add(b.Context(), v); return err == nil })
	}
}

func TestAReaderGoesOnAfterAFault(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		var writer sync.WaitGroup
		defer writer.Wait()
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[int]{Retention: time.Hour})
		addKept(t, b, b.Name("log"), 0, 1)
		last, faulty := -1, false
		for e, err := range s.Read(ctx, "") {
			if err != nil {
				t.Log("told:", err)
				continue
			}
			if e.Value != last && e.Value != last+1 {
				t.Fatal(e.Value, "after", last)
			}
			if last = e.Value; last == 2 {
				break
			}
			if last < 1 || faulty { // an addition that was tried again may be there twice
				continue
			}
			if faulty = b.FaultAt(b.Name("log")); !faulty {
				break
			}
			writer.Go(func() { // entries that are added while roles change may be lost: more come
				for ctx.Err() == nil {
					_, _ = s.Add(ctx, 2)
					b.Pass(20 * time.Millisecond)
				}
			})
		}
		if faulty && last != 2 {
			t.Error("it ended after", last, ctx.Err())
		}
	})
}

func TestAnotherTypeIsTheLastError(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		if err := b.Set(ctx, b.Name("log"), "x"); err != nil {
			t.Fatal(err)
		}
		s := newStream(t, b.Conn, b.Name("log"), stream.Options[int]{})
		n := 0
		for _, err := range s.Read(ctx, "") {
			var r ebb.ReplyError
			if n++; !errors.As(err, &r) || r.Code() != "WRONGTYPE" {
				t.Error(err)
			}
		}
		for _, err := range newGroup(t, s, "g", stream.GroupOptions{}).Consume(ctx, "me") {
			var r ebb.ReplyError
			if n++; !errors.As(err, &r) || r.Code() != "WRONGTYPE" {
				t.Error(err)
			}
		}
		if n != 2 {
			t.Error(n, "errors")
		}
	})
}

func TestBadOptionsAreRefused(t *testing.T) {
	if _, err := stream.New(new(ebb.Conn), "x", stream.Options[int]{MaxLen: -1}); !errors.Is(err, ebb.ErrArgument) {
		t.Error(err)
	}
	s, err := stream.New(new(ebb.Conn), "x", stream.Options[int]{MaxLen: 5, Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Group("", stream.GroupOptions{}); !errors.Is(err, ebb.ErrArgument) {
		t.Error(err)
	}
	if got := fmt.Sprint(s); got != `stream "x" (about 5 entries of the last 1h0m0s are kept)` {
		t.Error(got)
	}
}
