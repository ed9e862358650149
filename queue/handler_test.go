package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

func TestHeadersGoWithTheJob(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		type key struct{}
		ctx, q := b.Context(), open(Options[string]{Headers: func(ctx context.Context) map[string]string {
			trace, _ := ctx.Value(key{}).(string)
			return map[string]string{"trace": trace, "own": "default"}
		}})
		traced := context.WithValue(ctx, key{}, "t1")
		must(q.Push(traced, "v", PushOptions{ID: "a", Headers: map[string]string{"own": "mine"}}))(t)
		want := map[string]string{"trace": "t1", "own": "mine"}
		if e := must(q.Get(ctx, "a"))(t); e.Value != "v" || !maps.Equal(e.Headers, want) {
			t.Errorf("%+v", e)
		}
		j := must(q.Pop(ctx))(t)
		if j.Value != "v" || !maps.Equal(j.Headers, want) {
			t.Errorf("%+v", j)
		}
		ok(t, j.Bury(ctx, "no good"))
		if d := must(q.DeadLetters(ctx, 1))(t); d[0].Value != "v" || !maps.Equal(d[0].Headers, want) {
			t.Errorf("%+v", d)
		}
		if n := must(q.Redrive(ctx, "a"))(t); n != 1 {
			t.Errorf("%d redriven", n)
		}
		if j := must(q.Pop(ctx))(t); !maps.Equal(j.Headers, want) {
			t.Errorf("%+v", j)
		}
		// The values are unique, whatever their traces.
		u := PushOptions{Unique: time.Minute}
		must(q.Push(traced, "once", u))(t)
		_, err := q.Push(ctx, "once", u)
		failsWith(t, err, ErrDuplicate)
		plain := open(Options[string]{}) // an older program, without headers
		for _, o := range []PushOptions{u, {Unique: time.Minute, Timeout: time.Second}, {Unique: time.Minute, Timeout: time.Minute}} {
			_, err = plain.Push(ctx, "once", o)
			failsWith(t, err, ErrDuplicate)
		}
		_, err = q.Push(ctx, "v", PushOptions{Headers: map[string]string{"big": strings.Repeat("x", maxHeaders)}})
		failsWith(t, err, ebb.ErrArgument)
	})
}

func TestAnEnvelopeIsOpenedAsItWasClosed(t *testing.T) {
	draw.Check(t, func(rt *rapid.T) {
		value := rapid.OneOf(rapid.String(), rapid.Map(rapid.String(), func(s string) string { return envelopeMark + s })).Draw(rt, "value")
		e := envelope{Headers: rapid.MapOf(rapid.StringMatching(`[a-zé]*`), rapid.StringMatching(`.{0,9}`)).Draw(rt, "headers"),
			Timeout: rapid.Int64Range(0, 1<<40).Draw(rt, "timeout"), Before: rapid.Int64Range(0, 9).Draw(rt, "before")}
		payload, err := e.wrap([]byte(value))
		if err != nil {
			rt.Fatal(err)
		}
		got, v := unwrap(string(payload))
		if string(v) != value || got.Timeout != e.Timeout || got.Before != e.Before || !maps.Equal(got.Headers, e.Headers) {
			rt.Fatalf("%+v %q, want %+v %q", got, v, e, value)
		}
		if cut := rapid.IntRange(0, len(payload)).Draw(rt, "cut"); cut < len(payload)-len(value) {
			_, _ = unwrap(string(payload[:cut])) // a damaged payload
		}
	})
}

func TestMiddlewareWrapsTheFunction(t *testing.T) {
	virtual(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		var mu sync.Mutex
		var steps []string
		note := func(s string) {
			mu.Lock()
			defer mu.Unlock()
			steps = append(steps, s)
		}
		layer := func(name string) Middleware[string] {
			return func(next Handler[string]) Handler[string] {
				return func(ctx context.Context, j *Job[string]) error {
					note(name + " before")
					err := next(ctx, j)
					note(fmt.Sprint(name, " after ", err))
					return nil
				}
			}
		}
		q := open(Options[string]{Middleware: []Middleware[string]{layer("outer"), layer("inner")}})
		must(q.Push(b.Context(), "v"))(t)
		stop := running(b, q, 1, func(context.Context, *Job[string]) error { note("run"); return errors.New("bad") })
		b.Until("it is done", func() bool { return must(q.Len(b.Context()))(t) == 0 })
		failsWith(t, stop(), context.Canceled)
		same(t, steps, "outer before", "inner before", "run", "inner after bad", "outer after <nil>")
	})
}

func TestAJobEndsAtItsTimeout(t *testing.T) {
	virtual(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{Timeout: 20 * time.Second, MaxDeliveries: 1})
		must(q.Push(ctx, "v", PushOptions{Timeout: 5 * time.Second}))(t)
		must(q.Push(ctx, "w"))(t)
		var took sync.Map
		stop := running(b, q, 1, func(ctx context.Context, j *Job[string]) error {
			begin := time.Now()
			<-ctx.Done()
			took.Store(j.Value, time.Since(begin))
			if !errors.Is(context.Cause(ctx), ErrTimeout) {
				t.Errorf("the cause is %v", context.Cause(ctx))
			}
			return ctx.Err()
		})
		b.Until("both are dead", func() bool { return must(q.Info(ctx))(t).Dead == 2 })
		failsWith(t, stop(), context.Canceled)
		for v, want := range map[string]time.Duration{"v": 5 * time.Second, "w": 20 * time.Second} {
			if d, _ := took.Load(v); d != want {
				t.Errorf("%s took %v, want %v", v, d, want)
			}
		}
		for _, d := range must(q.DeadLetters(ctx, 2))(t) {
			if !strings.Contains(d.Reason, ErrTimeout.Error()) {
				t.Errorf("%+v", d)
			}
		}
	})
}

func TestAPostponedJobHasNotFailed(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{MaxDeliveries: 2})
		must(q.Push(ctx, "v", PushOptions{ID: "a", Headers: map[string]string{"k": "h"}}))(t)
		for i := range 5 {
			j := must(q.Pop(ctx))(t)
			if j.Deliveries != 1 || j.Value != "v" || j.Headers["k"] != "h" {
				t.Fatalf("time %d: %+v", i, j)
			}
			ok(t, j.Postpone(ctx, time.Millisecond))
		}
		j := must(q.Pop(ctx))(t)
		ok(t, j.Nack(ctx, 0))
		// The earlier failure still counts: the job is dead after the second one.
		j = must(q.Pop(ctx))(t)
		if j.Deliveries != 2 {
			t.Errorf("%+v", j)
		}
		ok(t, j.Postpone(ctx, 0))
		j = must(q.Pop(ctx))(t)
		if j.Deliveries != 2 {
			t.Errorf("%+v", j)
		}
		ok(t, j.Nack(ctx, 0))
		dead := must(q.DeadLetters(ctx, 2))(t)
		if len(dead) != 1 || dead[0].Deliveries != 2 || dead[0].Value != "v" {
			t.Fatalf("%+v", dead)
		}
		// A redriven job starts from attempt 1.
		must(q.Redrive(ctx, "a"))(t)
		if j = must(q.Pop(ctx))(t); j.Deliveries != 1 {
			t.Errorf("%+v", j)
		}
		ok(t, second(q.Requeue(ctx, j.ID)))
		failsWith(t, j.Postpone(ctx, 0), ErrLost)
	})
}

func TestAJobWithTheLargestHeadersCanBePostponed(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		frame := len(`{"h":{"k":""}}`)
		must(q.Push(ctx, "v", PushOptions{Headers: map[string]string{"k": strings.Repeat("x", maxHeaders-frame)}}))(t)
		ok(t, must(q.Pop(ctx))(t).Nack(ctx, 0))
		ok(t, must(q.Pop(ctx))(t).Postpone(ctx, 0))
		if j := must(q.Pop(ctx))(t); j.Deliveries != 2 || len(j.Headers["k"]) != maxHeaders-frame {
			t.Errorf("%d deliveries, a header of %d bytes", j.Deliveries, len(j.Headers["k"]))
		}
	})
}

func TestTextThatIsNotUTF8IsRefused(t *testing.T) {
	virtual(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{Keep: time.Minute})
		for k, v := range map[string]string{"k\xff": "v", "k": "caf\xe9"} {
			_, err := q.Push(ctx, "v", PushOptions{Headers: map[string]string{k: v}})
			failsWith(t, err, ebb.ErrArgument)
		}
		must(q.Push(ctx, "v"))(t)
		failsWith(t, must(q.Pop(ctx))(t).Progress(ctx, 0.5, "caf\xe9"), ebb.ErrArgument)
	})
}

func TestLimitRunsSoManyJobsOfAKey(t *testing.T) {
	virtual(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx := b.Context()
		var mu sync.Mutex
		runs, most := map[string]int{}, map[string]int{}
		take := func(_ context.Context, key string) (bool, time.Duration, func(), error) {
			mu.Lock()
			defer mu.Unlock()
			if runs[key] >= 2 {
				return false, 0, nil, nil
			}
			runs[key]++
			return true, 0, func() {
				mu.Lock()
				defer mu.Unlock()
				runs[key]--
			}, nil
		}
		q := open(Options[string]{MaxDeliveries: 1, Middleware: []Middleware[string]{
			Limit(func(j *Job[string]) string { return j.Value }, take)}})
		for range 6 {
			must(q.Push(ctx, "ann"))(t)
			must(q.Push(ctx, "bob"))(t)
		}
		done := atomic.Int32{}
		stop := running(b, q, 12, func(ctx context.Context, j *Job[string]) error {
			mu.Lock()
			most[j.Value] = max(most[j.Value], runs[j.Value])
			mu.Unlock()
			done.Add(1)
			return kit.Sleep(ctx, 50*time.Millisecond)
		})
		b.Until("all are done", func() bool { return must(q.Len(ctx))(t) == 0 })
		failsWith(t, stop(), context.Canceled)
		if done.Load() != 12 || most["ann"] != 2 || most["bob"] != 2 || must(q.Info(ctx))(t).Dead != 0 {
			t.Errorf("%d done, at most %v at a time", done.Load(), most)
		}
	})
}

func second[T any](_ T, err error) error { return err }
