package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/backends"
)

func TestDeadLettersOfOneIdAndInstantHaveTheirOwnReasons(t *testing.T) {
	virtual(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) { // on a clock that stands still
		ctx, q := b.Context(), open(Options[string]{MaxDeliveries: 1})
		want := map[string]string{}
		for _, kill := range []func(j *Job[string], reason string) error{
			func(j *Job[string], reason string) error { return j.Fail(ctx, errors.New(reason)) },
			func(j *Job[string], reason string) error { return j.Bury(ctx, reason) },
		} {
			for range 3 {
				v := fmt.Sprint("v", len(want))
				must(q.Push(ctx, v, PushOptions{ID: "a"}))(t)
				want[v] = "reason of " + v
				ok(t, kill(must(q.Pop(ctx))(t), want[v]))
			}
		}
		got := map[string]string{}
		for _, d := range must(q.DeadLetters(ctx, 10))(t) {
			got[d.Value] = d.Reason
		}
		if !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

func TestAReasonIsFoundByTheIdThatTheJobHad(t *testing.T) {
	for _, x := range []struct {
		id   string
		died int64
		want string
	}{
		{"a", 1_800_000_000_000, "a@1800000000000"},
		{"a:1800000000000", 1_800_000_000_000, "a@1800000000000"}, // there was such a letter before
		{"a:1800000000007", 1_800_000_000_000, "a@1800000000000"}, // and there were seven more in that ms
		{"a:1799999999999", 1_800_000_000_000, "a:1799999999999@1800000000000"},
		{"a:1800000001000", 1_800_000_000_000, "a:1800000001000@1800000000000"},
		{"order:42", 1_800_000_000_000, "order:42@1800000000000"},
		{"order:x", 1_800_000_000_000, "order:x@1800000000000"},
	} {
		if got := reasonField(x.id, x.died); got != x.want {
			t.Errorf("%s died at %d: %s, want %s", x.id, x.died, got, x.want)
		}
	}
}

func TestTheEndOfRunDoesNotReviveWhatIsHopeless(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		began := make(chan struct{})
		stop := running(b, q, 1, func(ctx context.Context, j *Job[string]) error {
			close(began)
			<-ctx.Done()
			return fmt.Errorf("no such address: %w", ErrPermanent)
		})
		must(q.Push(ctx, "v"))(t)
		<-began
		failsWith(t, stop(), context.Canceled)
		if i := must(q.Info(ctx))(t); i.Dead != 1 || i.Len() != 0 {
			t.Errorf("%+v", i)
		}
	})
}
