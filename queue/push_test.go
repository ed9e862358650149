package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

func TestANegativeDelayIsNone(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		must(q.Push(ctx, "v"))(t)
		begin := now(t, b)
		ok(t, must(q.Pop(ctx))(t).Nack(ctx, -time.Hour))
		if j := must(q.TryPop(ctx))(t); j.Due.Before(begin) {
			t.Errorf("due at %v, before %v", j.Due, begin)
		}
	})
}

func TestIdsAreThoseOfTheirJobsAlsoAfterAWaitForRoom(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{MaxLen: 2, Overflow: Block})
		items := []Item[string]{{Value: "-", PushOptions: PushOptions{ID: "taken"}}}
		want := []string{""} // the job exists already
		for i := range 6 {
			want = append(want, fmt.Sprint(i))
			items = append(items, Item[string]{PushOptions: PushOptions{ID: want[i+1]}})
		}
		must(q.Push(ctx, "-", PushOptions{ID: "taken", Delay: time.Hour}))(t)
		done := make(chan []string)
		go func() {
			ids, err := q.PushMany(ctx, items)
			if !errors.Is(err, ErrDuplicate) {
				t.Error(err)
			}
			done <- ids
		}()
		for range 6 {
			ok(t, must(q.Pop(ctx))(t).Ack(ctx))
		}
		same(t, <-done, want...)
	})
}

func TestAPushThatIsSentTwiceIsOneJob(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		for _, scripted := range []bool{false, true} {
			d := &between{c: b.Conn}
			q := must(New[string](ebb.Use(d), fresh(b)))(t)
			q.scripted = scripted
			d.call = func(ctx context.Context, _ string, run func() (ebb.Value, error)) (ebb.Value, error) {
				if v, err := run(); err != nil {
					return v, err
				}
				return run()
			}
			ctx := b.Context()
			id := must(q.Push(ctx, "v"))(t)
			d.call = nil
			j := must(q.TryPop(ctx))(t)
			if j.ID != id || must(q.Len(ctx))(t) != 1 {
				t.Errorf("%q, and there is %+v", id, j)
			}
		}
	})
}

func TestAPushThatIsRepeatedWithUniqueRunsNoJobTwice(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		q, err := New[string](b.Conn, b.Name("jobs"))
		if err != nil {
			t.Fatal(err)
		}
		ctx := b.Context()
		for _, c := range []struct {
			o     PushOptions
			again error
		}{
			{PushOptions{ID: "by its id"}, nil}, // without Unique it would run twice
			{PushOptions{ID: "and unique", Unique: time.Hour}, ErrDuplicate},
		} {
			if _, err := q.Push(ctx, "x", c.o); err != nil {
				t.Fatal(err)
			}
			j, err := q.Pop(ctx)
			if err == nil {
				err = j.Ack(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := q.Push(ctx, "x", c.o); !errors.Is(err, c.again) {
				t.Errorf("%+v: %v", c.o, err)
			}
			if err := q.Delete(ctx); err != nil {
				t.Fatal(err)
			}
		}
	})
}
