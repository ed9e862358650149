package queue

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

func TestAPausedQueueDeliversNothing(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		must(q.Push(ctx, "a"))(t)
		held := must(q.Pop(ctx))(t)
		ok(t, q.Pause(ctx, 0))
		must(q.Push(ctx, "b"))(t)
		_, err := q.TryPop(ctx)
		failsWith(t, err, ErrEmpty)
		if i := must(q.Info(ctx))(t); !i.Paused || !i.PausedUntil.IsZero() || i.Ready != 1 {
			t.Errorf("%+v", i)
		}
		ok(t, held.Ack(ctx))
		got := make(chan string)
		go func() {
			j, err := open(Options[string]{}).Pop(ctx)
			if err != nil {
				got <- err.Error()
				return
			}
			got <- j.Value
		}()
		b.Pass(30 * time.Millisecond)
		select {
		case v := <-got:
			t.Fatalf("a paused queue delivered %s", v)
		default:
		}
		ok(t, q.Resume(ctx))
		if v := <-got; v != "b" {
			t.Error(v)
		}
		if i := must(q.Info(ctx))(t); i.Paused {
			t.Errorf("%+v", i)
		}
		ok(t, q.Resume(ctx))
	})
}

func TestAPauseEndsByItself(t *testing.T) {
	virtual(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		must(q.Push(ctx, "a"))(t)
		ok(t, q.Pause(ctx, time.Hour))
		begin := now(t, b)
		if i := must(q.Info(ctx))(t); !i.PausedUntil.Equal(begin.Add(time.Hour)) {
			t.Errorf("paused until %v, want an hour after %v", i.PausedUntil, begin)
		}
		must(q.Pop(ctx))(t)
		if d := now(t, b).Sub(begin); d != time.Hour+time.Millisecond {
			t.Errorf("it came after %v", d)
		}
		// A shorter pause replaces a longer one, even for a consumer that already waits.
		must(q.Push(ctx, "b"))(t)
		ok(t, q.Pause(ctx, 0))
		begin = now(t, b)
		went := make(chan error)
		go func() { _, err := q.Pop(ctx); went <- err }()
		b.Pass(time.Minute)
		ok(t, q.Pause(ctx, time.Second))
		ok(t, <-went)
		if d := now(t, b).Sub(begin); d != time.Minute+time.Second+time.Millisecond {
			t.Errorf("it came after %v", d)
		}
	})
}

func TestPeekShowsJobsByStatePageByPage(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		push := func(id string, o PushOptions) {
			o.ID = id
			must(q.Push(ctx, "v-"+id, o))(t)
		}
		for i := range 3 {
			push(fmt.Sprint("taken", i), PushOptions{Priority: 9})
		}
		var js []*Job[string]
		for range 3 {
			js = append(js, must(q.TryPop(ctx))(t))
		}
		push("low", PushOptions{})
		push("high", PushOptions{Priority: 5})
		push("mid1", PushOptions{Priority: 3})
		push("mid2", PushOptions{Priority: 3})
		push("in2h", PushOptions{Delay: 2 * time.Hour, Priority: 7})
		push("in3h", PushOptions{Delay: 3 * time.Hour})
		push("in1h", PushOptions{Delay: time.Hour, TTL: time.Minute})
		want := map[State][]string{
			Ready:   {"high", "mid1", "mid2", "low"},
			Delayed: {"in1h", "in2h", "in3h"},
			Leased:  {"taken0", "taken1", "taken2"},
			All:     {"high", "mid1", "mid2", "low", "in1h", "in2h", "in3h", "taken0", "taken1", "taken2"},
		}
		for state, ids := range want {
			for _, size := range []int{0, 1, 2, 3} {
				var got []string
				for o := (PeekOptions{Count: size}); ; {
					page := must(q.Peek(ctx, state, o))(t)
					for _, e := range page {
						got = append(got, e.ID)
						if e.Value != "v-"+e.ID || e.Err != nil || state != All && e.State != state || (e.State == Leased) == e.Until.IsZero() {
							t.Errorf("%+v", e)
						}
					}
					if len(page) == 0 || size == 0 {
						break
					}
					if o.After = page[len(page)-1].ID; len(page) > size {
						t.Errorf("a page of %d", len(page))
					}
				}
				same(t, got, ids...)
			}
		}
		e := must(q.Get(ctx, "in1h"))(t)
		if e.State != Delayed || e.Expires.Sub(e.Due) != time.Minute || e.Token != 0 || e.Priority != 0 || e.Deliveries != 0 {
			t.Errorf("%+v", e)
		}
		e = must(q.Get(ctx, "taken1"))(t)
		if e.State != Leased || e.Token != js[1].Token || e.Until.Before(e.Due) || e.Priority != 9 || e.Deliveries != 1 || !e.Expires.IsZero() {
			t.Errorf("%+v, want %+v", e, js[1])
		}
		_, err := q.Get(ctx, "none")
		failsWith(t, err, ErrNoJob)
		_, err = q.Peek(ctx, All, PeekOptions{After: "none"})
		failsWith(t, err, ErrNoJob)
		for _, bad := range []func() error{
			func() error { _, err := q.Peek(ctx, 7); return err },
			func() error { _, err := q.Peek(ctx, All, PeekOptions{Count: -1}); return err },
			func() error { return q.Pause(ctx, -1) },
			func() error { return q.Reschedule(ctx, "low", -1) },
		} {
			failsWith(t, bad(), ebb.ErrArgument)
		}
	})
}

func TestRequeueMakesJobsDueNow(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		must(q.Push(ctx, "hangs", PushOptions{ID: "hangs", TTL: time.Hour}))(t)
		hung := must(q.Pop(ctx))(t)
		must(q.Push(ctx, "dies", PushOptions{ID: "dies"}))(t)
		ok(t, must(q.Pop(ctx))(t).Bury(ctx, "no good"))
		must(q.Push(ctx, "late", PushOptions{ID: "late", Delay: time.Hour, Priority: 4}))(t)
		if n := must(q.Requeue(ctx, "hangs", "dies", "late", "none"))(t); n != 3 {
			t.Errorf("%d requeued", n)
		}
		failsWith(t, hung.Ack(ctx), ErrLost)
		if i := must(q.Info(ctx))(t); i.Ready != 3 || i.Dead != 0 {
			t.Errorf("%+v", i)
		}
		for _, want := range []string{"late", "hangs", "dies"} {
			j := must(q.Pop(ctx))(t)
			if j.Value != want || j.Deliveries != 1 {
				t.Errorf("%+v, want %s", j, want)
			}
			ok(t, j.Ack(ctx))
		}
	})
}

func TestAJobThatAnOperatorRunsAgainCountsFromOne(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx := b.Context()
		o := Options[string]{MaxDeliveries: 3, Backoff: func(int) time.Duration { return 0 }}
		q := open(o)
		o.Lease = 50 * time.Millisecond
		short := open(o)
		again := map[string]func(id string) error{
			"requeue":    func(id string) error { return second(q.Requeue(ctx, id)) },
			"reschedule": func(id string) error { return q.Reschedule(ctx, id, 0) },
			"redrive":    func(id string) error { return second(q.Redrive(ctx, id)) },
		}
		value := envelopeMark + "\x05no envelope"
		for name, run := range again {
			long := map[string]string{"n": "1", "k": strings.Repeat("x,\"n\":2}", 40)}
			for i, o := range []PushOptions{{}, {Timeout: time.Hour}, {Headers: long}} {
				for _, v := range []string{"v", value} {
					o.ID = fmt.Sprint(name, i, len(v))
					must(q.Push(ctx, v, o))(t)
					for range 2 {
						ok(t, must(q.Pop(ctx))(t).Fail(ctx, errors.New("no")))
					}
					ok(t, must(q.Pop(ctx))(t).Postpone(ctx, 0))
					if name == "redrive" { // its leases end, so that the server makes the dead letter
						b.Until("the job is dead", func() bool {
							_, err := short.TryPop(ctx)
							b.Pass(51 * time.Millisecond)
							return errors.Is(err, ErrEmpty) && must(q.Info(ctx))(t).Dead == 1
						})
					}
					ok(t, run(o.ID))
					j := must(q.Pop(ctx))(t)
					if j.Deliveries != 1 || j.Value != v || !maps.Equal(j.Headers, o.Headers) || j.timeout != o.Timeout {
						t.Errorf("%s: %+v", o.ID, j)
					}
					ok(t, j.Ack(ctx))
				}
			}
		}
	})
}

func TestRescheduleMovesAJobThatWaits(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		must(q.Push(ctx, "a", PushOptions{ID: "a", TTL: time.Minute, Priority: 2}))(t)
		ok(t, q.Reschedule(ctx, "a", time.Hour))
		e := must(q.Get(ctx, "a"))(t)
		if e.State != Delayed || e.Expires.Sub(e.Due) != time.Minute || e.Priority != 2 {
			t.Errorf("%+v", e)
		}
		waited := make(chan error)
		go func() { _, err := q.Pop(ctx); waited <- err }()
		b.Pass(20 * time.Millisecond)
		ok(t, q.Reschedule(ctx, "a", 0))
		ok(t, <-waited)
		failsWith(t, q.Reschedule(ctx, "a", 0), ErrNoJob) // it is leased
		failsWith(t, q.Reschedule(ctx, "b", 0), ErrNoJob)
	})
}

// Only DQ.ADD can make a job whose id is empty. In PeekOptions.After the empty id means the beginning.
func TestPagesGoOnBehindAnEmptyID(t *testing.T) {
	virtual(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{MaxDeliveries: 1})
		if !q.native() {
			return
		}
		ids := []string{"a", "", "b", "c"}
		for _, id := range ids {
			must(b.Do(ctx, "DQ.ADD", q.name, id, "v"))(t)
		}
		for _, size := range []int{1, 2, 3, 4, 5} {
			var got []string
			for o := (PeekOptions{Count: size}); len(got) <= len(ids); {
				page := must(q.Peek(ctx, Ready, o))(t)
				for _, e := range page {
					got = append(got, e.ID)
				}
				if len(page) == 0 {
					break
				}
				o.After = page[len(page)-1].ID
			}
			if !slices.Equal(got, ids) {
				t.Errorf("pages of %d: %q, want %q", size, got, ids)
			}
		}
		for range ids {
			ok(t, must(q.TryPop(ctx))(t).Bury(ctx, "no"))
		}
		for _, size := range []int{1, 2, 3, 4, 5} {
			seen := map[string]int{}
			for last, pages := "", 0; pages <= len(ids); pages++ {
				page := must(q.DeadLettersAfter(ctx, last, size))(t)
				for _, d := range page {
					seen[d.ID]++
				}
				if len(page) == 0 {
					break
				}
				last = page[len(page)-1].ID
			}
			if fmt.Sprint(seen) != "map[:1 a:1 b:1 c:1]" {
				t.Errorf("dead letters in pages of %d: %v", size, seen)
			}
		}
	})
}

func TestDeadLettersPageByPage(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		want := map[string]bool{}
		for i := range 7 {
			id := fmt.Sprint("job", i)
			must(q.Push(ctx, id, PushOptions{ID: id}))(t)
			ok(t, must(q.Pop(ctx))(t).Bury(ctx, "reason "+id))
			want[id] = true
		}
		last := ""
		for {
			page := must(q.DeadLettersAfter(ctx, last, 3))(t)
			for _, d := range page {
				if !want[d.ID] || d.Reason != "reason "+d.ID {
					t.Errorf("%+v", d)
				}
				delete(want, d.ID)
			}
			if len(page) == 0 {
				break
			}
			last = page[len(page)-1].ID
		}
		if len(want) > 0 {
			t.Errorf("%v are missing", want)
		}
		_, err := q.DeadLettersAfter(ctx, "none", 3)
		if !errors.Is(err, ErrNoJob) {
			t.Error(err)
		}
	})
}
