package topic_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/topic"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { backends.Main(m) }

type order struct {
	ID   int
	Item string
}

func newTopic[T any](t *testing.T, c *ebb.Conn, name string, o topic.Options[T]) *topic.Topic[T] {
	t.Helper()
	p, err := topic.New(c, name, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func subscribe[T any](t *testing.T, ctx context.Context, p *topic.Topic[T]) *topic.Subscription[T] {
	t.Helper()
	s, err := p.Subscribe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func publish[T any](t *testing.T, ctx context.Context, p *topic.Topic[T], v T) {
	t.Helper()
	if _, err := p.Publish(ctx, v); err != nil {
		t.Fatal(err)
	}
}

func TestEverySubscriberGetsEveryMessageInOrder(t *testing.T) { everySubscriber(t, false) }
func TestShardedTopicsDoToo(t *testing.T)                     { everySubscriber(t, true) }

func everySubscriber(t *testing.T, sharded bool) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		p := newTopic(t, b.Conn, b.Name("orders"), topic.Options[order]{Sharded: sharded})
		one, two := subscribe(t, ctx, p), subscribe(t, ctx, newTopic(t, b.Open(), b.Name("orders"), topic.Options[order]{Sharded: sharded}))
		const n = 100
		for i := range n {
			publish(t, ctx, p, order{i, "tea"})
		}
		for _, s := range []*topic.Subscription[order]{one, two} {
			for i := range n {
				m, err := s.Next(ctx)
				if err != nil || m.Value != (order{i, "tea"}) || m.Channel != b.Name("orders") {
					t.Fatal(i, m, err)
				}
			}
		}
	})
}

func TestPublishSaysHowManyListen(t *testing.T) {
	// A node of a cluster says how many listen there.
	backends.Except(t, []string{"cluster"}, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		p := newTopic(t, b.Conn, b.Name("n"), topic.Options[string]{})
		if n, err := p.Publish(ctx, "unheard"); n != 0 || err != nil {
			t.Error(n, err)
		}
		s := subscribe(t, ctx, p)
		if n, err := p.Publish(ctx, "one"); n != 1 || err != nil {
			t.Error(n, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		b.Until("no subscriber is left", func() bool {
			n, err := p.Publish(ctx, "x")
			return n == 0 && err == nil
		})
	})
}

func TestPatternsReceiveTheTopicsThatMatch(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s, err := topic.PSubscribe(ctx, b.Conn, topic.Options[int]{}, b.Name("eu.*"), b.Name("us.ny"))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for i, name := range []string{"eu.de", "us.la", "us.ny", "eu.fr"} {
			publish(t, ctx, newTopic(t, b.Conn, b.Name(name), topic.Options[int]{}), i)
		}
		for _, want := range []topic.Message[int]{
			{b.Name("eu.de"), b.Name("eu.*"), 0}, {b.Name("us.ny"), b.Name("us.ny"), 2}, {b.Name("eu.fr"), b.Name("eu.*"), 3},
		} {
			if m, err := s.Next(ctx); m != want || err != nil {
				t.Error(m, err, "want", want)
			}
		}
	})
}

func TestASlowSubscriberIsCutOffAndTold(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		p := newTopic(t, b.Conn, b.Name("slow"), topic.Options[int]{Backlog: 10})
		s := subscribe(t, ctx, p)
		b.Until("the subscription is cut", func() bool {
			publish(t, ctx, p, 7)
			return s.Err() != nil
		})
		got := 0
		var last error
		for m, err := range s.All(ctx) {
			if err == nil && m.Value == 7 {
				got++
			}
			last = err
		}
		if got != 10 || !errors.Is(last, topic.ErrSlow) {
			t.Error(got, last)
		}
		if _, err := s.Next(ctx); !errors.Is(err, topic.ErrSlow) {
			t.Error("and once more:", err)
		}
	})
}

func TestAnInterruptionIsTold(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		name := b.Name("fault")
		p := newTopic(t, b.Conn, name, topic.Options[int]{})
		s := subscribe(t, ctx, p)
		publish(t, ctx, p, 1)
		if m, err := s.Next(ctx); m.Value != 1 || err != nil {
			t.Fatal(m, err)
		}
		if !b.FaultAt(name) { // of a cluster the node that serves the channel
			return
		}
		if _, err := s.Next(ctx); !errors.Is(err, ebb.ErrInterrupted) {
			t.Fatal(err)
		}
		b.Until("a message arrives again", func() bool {
			_, _ = p.Publish(ctx, 2) // the server may still be starting
			return s.Waiting() > 0
		})
		for { // once more when it was made again
			m, err := s.Next(ctx)
			if errors.Is(err, ebb.ErrInterrupted) {
				b.Until("a message arrives", func() bool {
					_, _ = p.Publish(ctx, 2)
					return s.Waiting() > 0
				})
				continue
			}
			if m.Value != 2 || err != nil {
				t.Error(m, err)
			}
			return
		}
	})
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		s := subscribe(t, b.Context(), newTopic(t, b.Conn, b.Name("quiet"), topic.Options[string]{}))
		ctx, cancel := context.WithTimeout(b.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		for m, err := range s.All(ctx) {
			t.Error("yielded", m, err)
		}
		if _, err := newTopic(t, b.Conn, b.Name("quiet"), topic.Options[string]{}).Subscribe(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func TestCloseEndsANextThatWaits(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := subscribe(t, ctx, newTopic(t, b.Conn, b.Name("quiet"), topic.Options[string]{}))
		var waiter sync.WaitGroup
		waiter.Go(func() {
			if _, err := s.Next(ctx); !errors.Is(err, ebb.ErrClosed) {
				t.Error(err)
			}
		})
		b.Pass(5 * time.Millisecond)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		waiter.Wait()
	})
}

func TestCloseDropsWhatWaits(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		p := newTopic(t, b.Conn, b.Name("left"), topic.Options[int]{})
		s := subscribe(t, ctx, p)
		publish(t, ctx, p, 1)
		b.Until("it waits", func() bool { return s.Waiting() == 1 })
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		if m, err := s.Next(ctx); !errors.Is(err, ebb.ErrClosed) || !errors.Is(s.Err(), ebb.ErrClosed) {
			t.Error(m, err, s.Err())
		}
		for m, err := range s.All(ctx) {
			t.Error(m, err)
		}
	})
}

func TestAnUnreadableMessageIsToldAndTheNextComes(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		p := newTopic(t, b.Conn, b.Name("mixed"), topic.Options[int]{})
		s := subscribe(t, ctx, p)
		if _, err := b.Publish(ctx, b.Name("mixed"), "no number"); err != nil {
			t.Fatal(err)
		}
		publish(t, ctx, p, 5)
		if _, err := s.Next(ctx); !errors.Is(err, ebb.ErrValue) {
			t.Error(err)
		}
		if m, err := s.Next(ctx); m.Value != 5 || err != nil {
			t.Error(m, err)
		}
	})
}

func TestManyPublishersLoseNothing(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		p := newTopic(t, b.Conn, b.Name("many"), topic.Options[string]{})
		s := subscribe(t, ctx, p)
		const writers, each = 4, 50
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					if _, err := p.Publish(ctx, fmt.Sprintf("%d/%d", w, i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		var next [writers]int
		for range writers * each {
			m, err := s.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			var w, i int
			if _, err := fmt.Sscanf(m.Value, "%d/%d", &w, &i); err != nil || next[w] != i {
				t.Fatal(m, "want", next[w], err)
			}
			next[w]++
		}
		wg.Wait()
	})
}

func TestBadOptionsAreRefused(t *testing.T) {
	if _, err := topic.New(nil, "x", topic.Options[int]{Backlog: -1}); !errors.Is(err, ebb.ErrArgument) {
		t.Error(err)
	}
	if _, err := topic.New[int](nil, ""); !errors.Is(err, ebb.ErrArgument) {
		t.Error(err)
	}
	if _, err := topic.PSubscribe(t.Context(), nil, topic.Options[int]{Sharded: true}, "*"); !errors.Is(err, ebb.ErrArgument) {
		t.Error(err)
	}
}

// The model of a subscription is a slice: the messages since, but none
// after the backlog was full.
func TestASubscriptionIsASlice(t *testing.T) {
	c, err := ebb.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	draw.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		const limit = 5
		p, err := topic.New(c, "model", topic.Options[int]{Backlog: limit})
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.Subscribe(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var model []int
		n := 0
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				if len(model) == limit {
					t.Skip("full")
				}
				n++
				if _, err := p.Publish(ctx, n); err != nil {
					t.Fatal(err)
				}
				model = append(model, n)
			},
			"next": func(t *rapid.T) {
				if len(model) == 0 {
					t.Skip("empty")
				}
				m, err := s.Next(ctx)
				if err != nil || m.Value != model[0] {
					t.Fatal(m, err, "want", model[0])
				}
				model = model[1:]
			},
		})
	})
}
