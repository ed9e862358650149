package objects

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/expmap"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/queue"
	"github.com/ebbdb/ebb/stream"
	"github.com/ebbdb/ebb/topic"
)

// view returns a view of a backend with a prefix, which is a pattern by its characters.
func view(t *testing.T, b *backends.Backend, prefix string) *ebb.Conn {
	t.Helper()
	c, err := b.WithPrefix(prefix)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func made[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestOptionsPrefixIsThatOfTheConn(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		url := b.URL()
		if url == "" {
			url = "mem://prefixed"
		}
		c := made[*ebb.Conn](t)(ebb.Open(b.Context(), url, ebb.Options{Prefix: "shop:"}))
		defer c.Close()
		if c.Prefix() != "shop:" {
			t.Errorf("%s has the prefix %q", c, c.Prefix())
		}
		if _, err := ebb.Open(b.Context(), url, ebb.Options{Prefix: "{"}); !errors.Is(err, ebb.ErrArgument) {
			t.Errorf("a prefix of braces: %v, want ErrArgument", err)
		}
	})
}

func TestAMessageNamesItsTopicWithoutThePrefix(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		one, other := view(t, b, "a*[b]-:"), view(t, b, "axb:")
		name := b.Name("orders")
		mine, theirs := made[*topic.Topic[string]](t)(topic.New[string](one, name)), made[*topic.Topic[string]](t)(topic.New[string](other, name))
		sub := made[*topic.Subscription[string]](t)(mine.Subscribe(b.Context()))
		all := made[*topic.Subscription[string]](t)(topic.PSubscribe(b.Context(), one, topic.Options[string]{}, "*orders"))
		defer sub.Close()
		defer all.Close()
		for _, o := range []*topic.Topic[string]{theirs, mine} {
			made[int64](t)(o.Publish(b.Context(), o.String()))
		}
		for _, s := range []*topic.Subscription[string]{sub, all} {
			m := made[topic.Message[string]](t)(s.Next(b.Context()))
			if m.Channel != name || m.Value != mine.String() || s == all && m.Pattern != "*orders" {
				t.Errorf("a message of %s on %q by %q", m.Value, m.Channel, m.Pattern)
			}
		}
	})
}

func TestAListenerHearsItsPrefixOnly(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		name := b.Name("sessions")
		heard := func(prefix string) (m *expmap.Map[string, string], next func() string) {
			m = made[*expmap.Map[string, string]](t)(expmap.New(view(t, b, prefix), name, expmap.Options[string, string]{Events: true}))
			return m, func() (value string) {
				ctx, cancel := context.WithCancel(b.Context())
				defer cancel()
				err := m.OnExpired(ctx, "l", func(_ context.Context, e expmap.Expired[string, string]) error {
					value = e.Value
					cancel()
					return nil
				})
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				return value
			}
		}
		one, ofOne := heard("one:")
		other, ofOther := heard("other:")
		for value, m := range map[string]*expmap.Map[string, string]{"of one": one, "of other": other} {
			if err := m.Set(b.Context(), "k", value, time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
		b.Pass(5 * time.Millisecond)
		if v, w := ofOne(), ofOther(); v != "of one" || w != "of other" {
			t.Errorf("the listeners hear %q and %q", v, w)
		}
	})
}

func TestNamesComeBackWithoutThePrefix(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		c := view(t, b, "shop:")
		name := b.Name("x")
		l := made[*limit.Limiter](t)(limit.New(c, name, limit.PerHour(1), limit.FailClosed))
		q := made[*queue.Queue[string]](t)(queue.New[string](c, name))
		k := made[*lock.Lock](t)(lock.New(c, name))
		if l.Name() != name || q.Name() != name || k.Name() != name {
			t.Errorf("the names are %q, %q and %q, want %q", l.Name(), q.Name(), k.Name(), name)
		}
		leases := made[*lock.Leases](t)(made[*lock.Many](t)(lock.Multi(k)).TryAcquire(b.Context()))
		if leases.Token(name) == 0 {
			t.Error("the leases have no token of that name")
		}
		if err := leases.Release(b.Context()); err != nil {
			t.Error(err)
		}
		same := made[*lock.Lock](t)(lock.New(b.Conn, "shop:"+name))
		if _, err := lock.Multi(k, same); !errors.Is(err, ebb.ErrArgument) {
			t.Errorf("the same lock by two Conns: %v, want ErrArgument", err)
		}
	})
}

func TestTheQueueOfAStreamHasThePrefixOnce(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		if !b.Capabilities().Native {
			return // the delay queue of a stream is of ebb alone
		}
		c := view(t, b, "shop:")
		for _, name := range []string{b.Name("s"), "{" + b.Name("s") + "}:s"} {
			s := made[*stream.Stream[string]](t)(stream.New[string](c, name))
			made[string](t)(s.AddAfter(b.Context(), time.Hour, "later"))
			q := made[*queue.Queue[string]](t)(queue.New[string](c, s.Later()))
			if n := made[queue.Info](t)(q.Info(b.Context())); n.Delayed != 1 {
				t.Errorf("the queue %s of %s has %+v", q, s, n)
			}
		}
	})
}
