package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

func TestMain(m *testing.M) { backends.Main(m) }

// ways runs a test on every backend, and on the embedded engine with scripts too: ebb's own commands and the
// scripts must not differ.
func ways(t *testing.T, test func(t *testing.T, b *backends.Backend, open func(o Options[string]) *Queue[string])) {
	for _, scripted := range []bool{false, true} {
		name := "best"
		if scripted {
			name = "scripts"
		}
		t.Run(name, func(t *testing.T) {
			backends.Each(t, func(t *testing.T, b *backends.Backend) {
				if scripted && b.Kind != "mem" {
					return // other tests cover it
				}
				name := fresh(b)
				test(t, b, func(o Options[string]) *Queue[string] {
					q := must(New(b.Open(), name, o))(t)
					q.scripted = scripted
					return q
				})
			})
		})
	}
}

// virtual runs a test as ways does, but on the embedded engine alone, where times are exact.
func virtual(t *testing.T, test func(t *testing.T, b *backends.Backend, open func(o Options[string]) *Queue[string])) {
	for _, scripted := range []bool{false, true} {
		t.Run(map[bool]string{false: "commands", true: "scripts"}[scripted], func(t *testing.T) {
			backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
				name := fresh(b)
				test(t, b, func(o Options[string]) *Queue[string] {
					q := must(New(b.Open(), name, o))(t)
					q.scripted = scripted
					return q
				})
			})
		})
	}
}

// fresh returns a name that no other test uses, and no earlier run of this one.
func fresh(b *backends.Backend) string { return b.Name("q") + "-" + kit.ID()[:8] }

// must returns the value of a call, and fails the test if the call failed.
func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func failsWith(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v, want %v", err, want)
	}
}

// drain takes and acknowledges the due jobs.
func drain(t testing.TB, ctx context.Context, q *Queue[string]) (values []string) {
	t.Helper()
	for {
		j, err := q.TryPop(ctx)
		if errors.Is(err, ErrEmpty) {
			return values
		}
		ok(t, err)
		values = append(values, j.Value)
		ok(t, j.Ack(ctx))
	}
}

func same(t testing.TB, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
}

func TestFirstInFirstOut(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		var want []string
		for i := range 20 {
			v := fmt.Sprint("job ", i)
			must(q.Push(ctx, v))(t)
			want = append(want, v)
		}
		var items []Item[string]
		for i := range 20 {
			v := fmt.Sprint("many ", i)
			items = append(items, Item[string]{Value: v})
			want = append(want, v)
		}
		ids := must(q.PushMany(ctx, items))(t)
		if len(ids) != 20 || slices.Contains(ids, "") {
			t.Errorf("ids %q", ids)
		}
		if n := must(q.Len(ctx))(t); n != 40 {
			t.Errorf("%d jobs", n)
		}
		same(t, drain(t, ctx, open(Options[string]{})), want...)
		if n := must(q.Len(ctx))(t); n != 0 {
			t.Errorf("%d jobs are left", n)
		}
	})
}

func TestAJobIsDeliveredWhenItIsDue(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		must(q.Push(ctx, "much later", PushOptions{Delay: time.Hour}))(t)
		_, err := q.TryPop(ctx)
		failsWith(t, err, ErrEmpty)
		if i := must(q.Info(ctx))(t); i.Delayed != 1 || i.NextDue <= 0 || i.NextDue > time.Hour {
			t.Errorf("%+v", i)
		}
		begin := now(t, b)
		must(q.PushMany(ctx, []Item[string]{
			{Value: "late", PushOptions: PushOptions{Delay: 200 * time.Millisecond}},
			{Value: "soon", PushOptions: PushOptions{At: begin.Add(40 * time.Millisecond)}},
		}))(t)
		for _, want := range []string{"soon", "late"} {
			j := must(q.Pop(ctx))(t)
			if j.Value != want || j.Deliveries != 1 {
				t.Errorf("%+v, want %s", j, want)
			}
			if late := now(t, b).Sub(j.Due); late < 0 {
				t.Errorf("%s came %v early", want, -late)
			}
			if b.Virtual() && now(t, b) != j.Due {
				t.Errorf("%s came %v late", want, now(t, b).Sub(j.Due))
			}
			ok(t, j.Ack(ctx))
		}
	})
}

// now returns the backend's time.
func now(t testing.TB, b *backends.Backend) time.Time {
	t.Helper()
	v := must(b.Do(b.Context(), "TIME"))(t)
	sec, us := must(v.Elems[0].AsInt())(t), must(v.Elems[1].AsInt())(t)
	return time.UnixMilli(sec*1000 + us/1000)
}

func TestAWaiterIsWoken(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		got := make(chan string, 3)
		for range 3 {
			go func() {
				j, err := q.Pop(ctx)
				if err == nil {
					err = j.Ack(ctx)
				}
				if err != nil {
					got <- err.Error()
					return
				}
				got <- j.Value
			}()
		}
		b.Pass(20 * time.Millisecond)
		other := open(Options[string]{})
		must(other.Push(ctx, "an hour", PushOptions{Delay: time.Hour}))(t)
		must(other.Push(ctx, "soon", PushOptions{Delay: 30 * time.Millisecond}))(t)
		must(other.Push(ctx, "a"))(t)
		must(other.Push(ctx, "b"))(t)
		all := []string{<-got, <-got, <-got}
		slices.Sort(all)
		same(t, all, "a", "b", "soon")
	})
}

func TestALeaseThatEndsBringsTheJobBack(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		id := must(q.Push(ctx, "v"))(t)
		first := must(open(Options[string]{Lease: 50 * time.Millisecond}).Pop(ctx))(t)
		begin := now(t, b)
		if b.Virtual() {
			b.Pass(50 * time.Millisecond)
			_, err := q.TryPop(ctx)
			failsWith(t, err, ErrEmpty)
		}
		second := must(q.Pop(ctx))(t)
		if second.ID != id || second.Deliveries != 2 || second.Token <= first.Token {
			t.Errorf("%+v after %+v", second, first)
		}
		if took := now(t, b).Sub(begin); b.Virtual() && took != 51*time.Millisecond {
			t.Errorf("after %v", took)
		}
		failsWith(t, first.Ack(ctx), ErrLost)
		failsWith(t, first.Nack(ctx, 0), ErrLost)
		failsWith(t, first.Extend(ctx, time.Hour), ErrLost)
		ok(t, second.Extend(ctx, time.Hour))
		if b.Virtual() {
			b.Pass(time.Minute)
		}
		ok(t, second.Ack(ctx))
		ok(t, second.Ack(ctx))
		if i := must(q.Info(ctx))(t); i.Len() != 0 {
			t.Errorf("%+v", i)
		}
	})
}

func TestAfterItsLastDeliveryAJobIsADeadLetter(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		o := Options[string]{MaxDeliveries: 2, Backoff: func(n int) time.Duration { return time.Duration(n) * 20 * time.Millisecond }}
		ctx, q := b.Context(), open(o)
		must(q.Push(ctx, "fails", PushOptions{ID: "f"}))(t)
		begin := now(t, b)
		j := must(q.Pop(ctx))(t)
		ok(t, j.Fail(ctx, errors.New("first")))
		j = must(q.Pop(ctx))(t)
		if took := now(t, b).Sub(begin); b.Virtual() && took != 20*time.Millisecond {
			t.Errorf("came back after %v", took)
		}
		ok(t, j.Fail(ctx, errors.New("second")))
		must(q.Push(ctx, "crashes", PushOptions{ID: "c"}))(t)
		o.Lease = 20 * time.Millisecond
		hasty := open(o)
		must(hasty.Pop(ctx))(t)
		must(hasty.Pop(ctx))(t)
		b.Pass(30 * time.Millisecond)
		must(q.Push(ctx, "hopeless", PushOptions{ID: "h"}))(t)
		j = must(q.Pop(ctx))(t)
		ok(t, j.Fail(ctx, fmt.Errorf("bad address: %w", ErrPermanent)))

		dead := must(q.DeadLetters(ctx, 10))(t)
		if len(dead) != 3 {
			t.Fatalf("%+v", dead)
		}
		for i, want := range []Dead[string]{
			{ID: "f", Value: "fails", Deliveries: 2, Reason: "second"},
			{ID: "c", Value: "crashes", Deliveries: 2, Reason: leaseOver},
			{ID: "h", Value: "hopeless", Deliveries: 1, Reason: "bad address: " + ErrPermanent.Error()},
		} {
			if got := dead[i]; got.ID != want.ID || got.Value != want.Value || got.Deliveries != want.Deliveries || got.Reason != want.Reason || got.Err != nil {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
		if i := must(q.Info(ctx))(t); i.Dead != 3 || i.Len() != 0 {
			t.Errorf("%+v", i)
		}
		if n := must(q.Redrive(ctx, "f", "absent"))(t); n != 1 {
			t.Errorf("redriven %d", n)
		}
		if n := must(q.Discard(ctx, "c", "absent"))(t); n != 1 {
			t.Errorf("discarded %d", n)
		}
		j = must(q.Pop(ctx))(t)
		if j.ID != "f" || j.Value != "fails" || j.Deliveries != 1 {
			t.Errorf("%+v", j)
		}
		if dead := must(q.DeadLetters(ctx, 10))(t); len(dead) != 1 || dead[0].ID != "h" {
			t.Errorf("%+v", dead)
		}
	})
}

func TestUniqueKeepsOutOthersLikeIt(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		o := PushOptions{Unique: time.Hour}
		must(q.Push(ctx, "same", o))(t)
		_, err := q.Push(ctx, "same", o)
		failsWith(t, err, ErrDuplicate)
		must(q.Push(ctx, "other", o))(t)
		o.ID = "x"
		must(q.Push(ctx, "1", o))(t)
		same(t, drain(t, ctx, q), "same", "other", "1")
		_, err = q.Push(ctx, "2", o)
		failsWith(t, err, ErrDuplicate)
		o.ID, o.Unique = "y", 20*time.Millisecond
		must(q.Push(ctx, "y1", o))(t)
		same(t, drain(t, ctx, q), "y1")
		b.Pass(21 * time.Millisecond)
		must(q.Push(ctx, "y2", o))(t)
		same(t, drain(t, ctx, q), "y2")
		must(q.Push(ctx, "2", PushOptions{ID: "x"}))(t)
		_, err = q.Push(ctx, "3", PushOptions{ID: "x"})
		failsWith(t, err, ErrDuplicate)
		ids, err := q.PushMany(ctx, []Item[string]{{Value: "4"}, {Value: "5", PushOptions: PushOptions{ID: "x"}}})
		failsWith(t, err, ErrDuplicate)
		if len(ids) != 2 || ids[0] == "" || ids[1] != "" {
			t.Errorf("%q", ids)
		}
		same(t, drain(t, ctx, q), "2", "4")
	})
}

func TestABoundRefuses(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{MaxLen: 2})
		must(q.Push(ctx, "a"))(t)
		ids, err := q.PushMany(ctx, []Item[string]{{Value: "b"}, {Value: "c"}})
		failsWith(t, err, ErrFull)
		if ids[0] == "" || ids[1] != "" {
			t.Errorf("%q", ids)
		}
		j := must(q.Pop(ctx))(t)
		_, err = q.Push(ctx, "d")
		failsWith(t, err, ErrFull)
		ok(t, j.Ack(ctx))
		must(q.Push(ctx, "e"))(t)
		same(t, drain(t, ctx, q), "b", "e")
	})
}

func TestABoundBlocksWithTheContext(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{MaxLen: 2, Overflow: Block})
		must(q.PushMany(ctx, []Item[string]{{Value: "a"}, {Value: "b"}}))(t)
		var err error
		late := false // a push whose outcome is not known may be done after the first Pop
		for patience := 30 * time.Millisecond; patience < 10*time.Second; patience *= 3 {
			short, cancel := context.WithTimeout(ctx, patience)
			_, err = q.Push(short, "c")
			cancel()
			failsWith(t, err, context.DeadlineExceeded)
			if errors.Is(err, ErrFull) || b.Virtual() {
				break // its time was over while it waited for room
			}
			late = true
		}
		failsWith(t, err, ErrFull)
		done := make(chan error)
		go func() {
			_, err := q.PushMany(ctx, []Item[string]{{Value: "d"}, {Value: "e"}})
			done <- err
		}()
		var got []string
		for !slices.Contains(got, "e") {
			j := must(q.Pop(ctx))(t)
			if j.Value != "c" || !late {
				got = append(got, j.Value)
			}
			ok(t, j.Ack(ctx))
		}
		ok(t, <-done)
		same(t, got, "a", "b", "d", "e")
	})
}

func TestABoundDropsTheOldest(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{MaxLen: 3, Overflow: DropOldest})
		must(q.PushMany(ctx, []Item[string]{{Value: "a"}, {Value: "b"}, {Value: "c"}, {Value: "d"}}))(t)
		j := must(q.Pop(ctx))(t)
		if j.Value != "b" {
			t.Errorf("%q", j.Value)
		}
		must(q.Push(ctx, "e"))(t) // c is dropped, b is leased
		ok(t, j.Ack(ctx))
		same(t, drain(t, ctx, q), "d", "e")
		for _, v := range []string{"f", "g", "h"} {
			must(q.Push(ctx, v))(t)
			must(q.Pop(ctx))(t)
		}
		_, err := q.Push(ctx, "i")
		failsWith(t, err, ErrFull)
	})
}

func TestAnItemThatIsNotTakenInTimeIsDropped(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		must(q.Push(ctx, "short", PushOptions{TTL: 30 * time.Millisecond}))(t)
		must(q.Push(ctx, "later", PushOptions{TTL: 30 * time.Millisecond, Delay: 50 * time.Millisecond}))(t)
		must(q.Push(ctx, "stays"))(t)
		b.Pass(31 * time.Millisecond)
		if b.Virtual() {
			if i := must(q.Info(ctx))(t); i.Delayed != 1 || i.Ready != 1 {
				t.Errorf("%+v", i)
			}
		}
		b.Pass(70 * time.Millisecond)
		same(t, drain(t, ctx, q), "stays")
	})
}

func TestACancelledJobIsGone(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		for _, id := range []string{"leased", "ready", "delayed"} {
			o := PushOptions{ID: id}
			if id == "delayed" {
				o.Delay = time.Hour
			}
			must(q.Push(ctx, id, o))(t)
		}
		j := must(q.Pop(ctx))(t)
		if n := must(q.Cancel(ctx, "leased", "ready", "delayed", "absent"))(t); n != 3 {
			t.Errorf("%d", n)
		}
		failsWith(t, j.Ack(ctx), ErrLost)
		if i := must(q.Info(ctx))(t); i.Len() != 0 {
			t.Errorf("%+v", i)
		}
	})
}

func TestTheHighestPriorityGoesFirst(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		for i, p := range []int{0, 9, 5, 0, 9, 5} {
			must(q.Push(ctx, fmt.Sprint(p, "-", i), PushOptions{Priority: p}))(t)
		}
		must(q.Push(ctx, "delayed", PushOptions{Priority: 9, Delay: time.Hour}))(t)
		same(t, drain(t, ctx, q), "9-1", "9-4", "5-2", "5-5", "0-0", "0-3")
	})
}

func TestConsumeYieldsUntilTheContextEnds(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		q := open(Options[string]{})
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		for i := range 3 {
			must(q.Push(ctx, fmt.Sprint(i), PushOptions{Delay: time.Duration(i) * 10 * time.Millisecond}))(t)
		}
		var got []string
		for j, err := range q.Consume(ctx) {
			if err != nil {
				failsWith(t, err, context.Canceled)
				break
			}
			ok(t, j.Ack(ctx))
			if got = append(got, j.Value); len(got) == 3 {
				cancel()
			}
		}
		same(t, got, "0", "1", "2")
	})
}

func TestWrongOptionsAreRefused(t *testing.T) {
	c := must(ebb.Open(t.Context(), "mem://"))(t)
	defer func() { ok(t, c.Close()) }()
	for _, o := range []Options[string]{
		{Lease: time.Microsecond}, {MaxDeliveries: 1 << 16}, {MaxLen: -1}, {Overflow: 9}, {Overflow: Block}, {Grace: -1},
	} {
		_, err := New(c, "q", o)
		failsWith(t, err, ebb.ErrArgument)
	}
	_, err := New[string](c, "")
	failsWith(t, err, ebb.ErrArgument)
	q := must(New[string](c, "q"))(t)
	for _, o := range []PushOptions{
		{Delay: -1}, {Delay: 1, At: time.Unix(1, 0)}, {At: time.Unix(-1, 0)}, {At: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}, {Priority: 10}, {TTL: -1},
		{Unique: -1}, {ID: "*"},
	} {
		_, err := q.Push(t.Context(), "v", o)
		failsWith(t, err, ebb.ErrArgument)
	}
	failsWith(t, q.Run(t.Context(), 0, nil), ebb.ErrArgument)
	if want := `queue "q" (lease 30s, 16 deliveries; DQ.* of ebb)`; q.String() != want {
		t.Errorf("%s, want %s", q, want)
	}
}

func TestReplaceRunsAJobOnceAfterTheLastPush(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{MaxLen: 1})
		o := PushOptions{ID: "a", Delay: time.Hour, Replace: true, Unique: time.Minute}
		for i := range 3 {
			must(q.Push(ctx, fmt.Sprint("v", i), o))(t)
		}
		o.Delay, o.Priority = 0, 3
		must(q.Push(ctx, "last", o))(t)
		if e := must(q.Get(ctx, "a"))(t); e.Value != "last" || e.State != Ready || e.Priority != 3 {
			t.Errorf("%+v", e)
		}
		_, err := q.Push(ctx, "other", PushOptions{ID: "b", Replace: true})
		failsWith(t, err, ErrFull)
		j := must(q.Pop(ctx))(t)
		_, err = q.Push(ctx, "late", o)
		failsWith(t, err, ErrDuplicate)
		ok(t, j.Nack(ctx, time.Hour))
		must(q.Push(ctx, "again", o))(t)
		if j = must(q.Pop(ctx))(t); j.Value != "again" || j.Deliveries != 1 {
			t.Errorf("%+v", j)
		}
		ok(t, j.Ack(ctx))
		_, err = q.Push(ctx, "done", o) // Unique applies to a job that no longer waits
		failsWith(t, err, ErrDuplicate)
		_, err = q.Push(ctx, "v", PushOptions{Replace: true})
		failsWith(t, err, ebb.ErrArgument)
	})
}
