package stream_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/queue"
	"github.com/ebbdb/ebb/stream"
)

// native ends the test on a backend without delay queues, after it has seen that s says so.
func native(t *testing.T, b *backends.Backend, s *stream.Stream[string]) bool {
	t.Helper()
	if b.Native() {
		return true
	}
	ctx := b.Context()
	_, atErr := s.AddAt(ctx, time.Now(), "v")
	_, scheduleErr := s.Schedule(ctx, "n", "v", stream.Rule{Every: time.Second})
	_, cancelErr := s.Cancel(ctx, "x")
	for _, err := range []error{atErr, scheduleErr, cancelErr} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("the error is %v", err)
		}
	}
	return false
}

// read returns the next n values of a stream.
func read(t *testing.T, ctx context.Context, s *stream.Stream[string], n int) (all []stream.Entry[string]) {
	t.Helper()
	for e, err := range s.Read(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, e); len(all) == n {
			break
		}
	}
	return all
}

func TestValuesAreAddedAtTheirInstants(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("later"), stream.Options[string]{})
		if !native(t, b, s) {
			return
		}
		must := func(id string, err error) string {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		must(s.AddAfter(ctx, 3*time.Hour, "second", stream.LaterOptions{ID: "two"}))
		gone := must(s.AddAfter(ctx, time.Hour, "cancelled"))
		must(s.AddAfter(ctx, 4*time.Hour, "replaced", stream.LaterOptions{ID: "one"}))
		if _, err := s.AddAfter(ctx, 0, "again", stream.LaterOptions{ID: "one"}); !errors.Is(err, stream.ErrWaits) {
			t.Error("a second value of the id:", err)
		}
		if id := must(s.AddAfter(ctx, 2*time.Hour, "first", stream.LaterOptions{ID: "one", Replace: true})); id != "one" {
			t.Error("the id is", id)
		}
		q, err := queue.New[string](b.Conn, s.Later())
		if err != nil {
			t.Fatal(err)
		}
		if waiting, err := q.Peek(ctx, queue.Delayed); err != nil || len(waiting) != 3 || waiting[1].Value != "first" {
			t.Error("the queue shows", waiting, err)
		}
		if n, err := s.Cancel(ctx, gone, "nothing"); n != 1 || err != nil {
			t.Error("cancelled", n, err)
		}
		must(s.AddAt(ctx, time.UnixMilli(5), "at once"))
		var values []string
		for n, next := range []func() (string, error){
			func() (string, error) { return "", nil },
			func() (string, error) { // the hours above leave a slow machine the time to cancel
				return s.AddAfter(ctx, 20*time.Millisecond, "first", stream.LaterOptions{ID: "one", Replace: true})
			},
			func() (string, error) {
				return s.AddAfter(ctx, 20*time.Millisecond, "second", stream.LaterOptions{ID: "two", Replace: true})
			},
		} {
			must(next())
			values = append(values, read(t, ctx, s, n+1)[n].Value)
		}
		if want := []string{"at once", "first", "second"}; !slices.Equal(values, want) {
			t.Errorf("the stream has %q, want %q", values, want)
		}
	})
}

func TestASchedulesEntriesReachGroupsAndDeadLetters(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("beat"), stream.Options[string]{})
		if !native(t, b, s) {
			return
		}
		g := newGroup(t, s, "g", stream.GroupOptions{MaxDeliveries: 1})
		rule := stream.Rule{Every: 20 * time.Millisecond}
		first, err := s.Schedule(ctx, "beat", "tick", rule)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := s.Schedule(ctx, "beat", "tick", rule); err != nil || again.Before(first) {
			t.Error("declared again, the first entry is at", again, err, "before", first)
		}
		n := 0
		for d, err := range g.Consume(ctx, "c") {
			if err != nil || d.Value != "tick" || d.Time().Before(first) {
				t.Fatal(d, err)
			}
			if n++; n == 3 {
				if err := d.Nack(ctx, 0); err != nil { // the last delivery that MaxDeliveries allows
					t.Fatal(err)
				}
				break
			}
			if err := d.Ack(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := s.Unschedule(ctx, "beat", "other"); n != 1 || err != nil {
			t.Error("unscheduled", n, err)
		}
		dead, err := g.DeadLetters(ctx, "", 10)
		if err != nil || len(dead) != 1 || dead[0].Value != "tick" {
			t.Error("the dead letters are", dead, err)
		}
		if err := s.Delete(ctx); err != nil {
			t.Fatal(err)
		}
		if n, err := b.Exists(ctx, s.Later()); n != 0 || err != nil {
			t.Error("the delay queue is left", err)
		}
	})
}

func TestWhatCannotBeAddedLater(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s := newStream(t, b.Conn, b.Name("bad"), stream.Options[string]{})
		for _, r := range []stream.Rule{{}, {Every: time.Second, Cron: "@daily"}, {Every: time.Second, Zone: "UTC"}, {Zone: "UTC"}} {
			if _, err := s.Schedule(ctx, "n", "v", r); !errors.Is(err, ebb.ErrArgument) {
				t.Errorf("the rule %+v: %v", r, err)
			}
		}
		_, nameErr := s.Schedule(ctx, "", "v", stream.Rule{Every: time.Second})
		_, atErr := s.AddAt(ctx, time.Time{}, "v")
		_, replaceErr := s.AddAfter(ctx, 0, "v", stream.LaterOptions{Replace: true})
		_, starErr := s.AddAfter(ctx, 0, "v", stream.LaterOptions{ID: "*"})
		for i, err := range []error{nameErr, atErr, replaceErr, starErr} {
			if !errors.Is(err, ebb.ErrArgument) {
				t.Errorf("%d: %v", i, err)
			}
		}
	})
}
