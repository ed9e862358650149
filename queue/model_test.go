package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

// pair is a queue on ebb's own commands and one on scripts, on one clock: the same calls on both must give
// the same results.
type pair struct {
	t       *rapid.T
	n, s    *Queue[string]
	held    [][2]*Job[string]
	pushed  int
	planned bool // there was a schedule
	ctx     context.Context
}

func (p *pair) both(what string, do func(q *Queue[string]) string) {
	p.t.Helper()
	if n, s := do(p.n), do(p.s); n != s {
		p.t.Fatalf("%s:\nby commands %s\nby scripts  %s", what, n, s)
	}
}

// kind returns the one of this package's errors that err is.
func kind(err error) string {
	for _, e := range []error{ErrDuplicate, ErrEmpty, ErrFull, ErrLost, ErrNoJob} {
		if errors.Is(err, e) {
			return e.Error()
		}
	}
	return fmt.Sprint(err)
}

func TestCommandsAndScriptsCannotBeToldApart(t *testing.T) {
	clock := clock.NewManual(time.UnixMilli(1_800_000_000_000))
	c := must(ebb.Open(t.Context(), "mem://", ebb.Options{Clock: clock}))(t)
	defer func() { ok(t, c.Close()) }()
	runs := 0
	draw.Check(t, func(rt *rapid.T) {
		runs++
		n, s := fmt.Sprint("n", runs), fmt.Sprint("s", runs)
		p := &pair{t: rt, ctx: t.Context()}
		o := Options[string]{Lease: 50 * time.Millisecond,
			MaxDeliveries: rapid.SampledFrom([]int{-1, 1, 2, 3}).Draw(rt, "deliveries"),
			MaxLen:        rapid.SampledFrom([]int64{0, 3, 6}).Draw(rt, "most"),
			Backoff:       func(n int) time.Duration { return time.Duration(n*n) * 7 * time.Millisecond }}
		if o.MaxLen > 0 && rapid.Bool().Draw(rt, "drops") {
			o.Overflow = DropOldest
		}
		p.n, p.s = must(New(c, n, o))(t), must(New(c, s, o))(t)
		p.s.scripted = true
		ok(t, (&native{c: c, name: n, max: p.n.o.MaxDeliveries, configured: &p.n.configured}).configure(t.Context()))
		rt.Repeat(map[string]func(*rapid.T){
			"":        p.compare,
			"push":    p.push,
			"pop":     p.pop,
			"settle":  p.settle,
			"cancel":  p.cancel,
			"letters": p.letters,
			"plan":    p.plan,
			"manage":  p.manage,
			"pass": func(rt *rapid.T) {
				left := ms(rt, "pass", 0, 1, 6, 7, 49, 50, 51, 120)
				for ; p.planned && left > 0; left -= time.Millisecond { // both handle each occurrence at its time
					clock.Advance(time.Millisecond)
					p.notice()
				}
				clock.Advance(left)
			},
		})
	})
}

func ms(rt *rapid.T, what string, n ...int) time.Duration {
	return time.Duration(rapid.SampledFrom(n).Draw(rt, what)) * time.Millisecond
}

func (p *pair) push(rt *rapid.T) {
	ids := rapid.SampledFrom([]string{"", "", "a", "b", "c", "d"})
	var items []Item[string]
	for range rapid.IntRange(1, 3).Draw(rt, "jobs") {
		p.pushed++
		it := Item[string]{Value: fmt.Sprint("v", p.pushed), PushOptions: PushOptions{
			ID: ids.Draw(rt, "id"), Delay: ms(rt, "delay", 0, 0, 0, 1, 10, 50),
			Priority: rapid.SampledFrom([]int{0, 0, 0, 1, 9}).Draw(rt, "priority"),
			TTL:      ms(rt, "ttl", 0, 0, 0, 1, 30), Unique: ms(rt, "unique", 0, 0, 0, 1, 60)}}
		it.Replace = it.ID != "" && rapid.IntRange(0, 2).Draw(rt, "replace") == 0
		if it.Unique > 0 && rapid.Bool().Draw(rt, "like another") {
			it.Value = "like"
		}
		items = append(items, it)
	}
	p.both("push", func(q *Queue[string]) string {
		got, err := q.PushMany(p.ctx, items)
		for i := range got {
			if got[i] != "" && items[i].ID == "" {
				got[i] = "made"
			}
		}
		return fmt.Sprint(got, kind(err))
	})
}

func (p *pair) pop(rt *rapid.T) {
	var js [2]*Job[string]
	i := 0
	p.both("pop", func(q *Queue[string]) string {
		j, err := q.TryPop(p.ctx)
		if err != nil {
			return kind(err)
		}
		js[i] = j
		i++
		return fmt.Sprint(j.Value, j.Deliveries, j.Due.UnixMilli())
	})
	if js[0] != nil {
		p.held = append(p.held, js)
	}
}

func (p *pair) settle(rt *rapid.T) {
	if len(p.held) == 0 {
		return
	}
	at := rapid.IntRange(0, len(p.held)-1).Draw(rt, "job")
	js := p.held[at]
	how := rapid.SampledFrom([]string{"ack", "nack", "fail", "bury", "extend", "extend", "postpone"}).Draw(rt, "how")
	d := ms(rt, "by", 0, 1, 20, 100)
	p.both(how, func(q *Queue[string]) string {
		j, ctx := js[0], p.ctx
		if q == p.s {
			j = js[1]
		}
		switch how {
		case "ack":
			return kind(j.Ack(ctx))
		case "postpone":
			return kind(j.Postpone(ctx, d))
		case "nack":
			return kind(j.Nack(ctx, d))
		case "fail":
			return kind(j.Fail(ctx, errors.New(j.Value+" failed")))
		case "bury":
			return kind(j.Bury(ctx, j.Value+" buried"))
		}
		return kind(j.Extend(ctx, d))
	})
	if how != "extend" {
		p.held = slices.Delete(p.held, at, at+1)
	}
}

func (p *pair) cancel(rt *rapid.T) {
	ids := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 2).Draw(rt, "ids")
	p.both("cancel", func(q *Queue[string]) string { return fmt.Sprint(q.Cancel(p.ctx, ids...)) })
}

func (p *pair) letters(rt *rapid.T) {
	ids := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 2).Draw(rt, "ids")
	if rapid.Bool().Draw(rt, "redrive") {
		p.both("redrive", func(q *Queue[string]) string { return fmt.Sprint(q.Redrive(p.ctx, ids...)) })
		return
	}
	p.both("discard", func(q *Queue[string]) string { return fmt.Sprint(q.Discard(p.ctx, ids...)) })
}

func (p *pair) plan(rt *rapid.T) {
	name := rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "name")
	if rapid.IntRange(0, 3).Draw(rt, "unschedule") == 0 {
		p.both("unschedule", func(q *Queue[string]) string { return fmt.Sprint(q.Unschedule(p.ctx, name)) })
		return
	}
	p.planned = true
	rule := Every(ms(rt, "every", 10, 25, 60))
	o := ScheduleOptions{Late: ms(rt, "late", 0, 0, 5), TTL: ms(rt, "ttl", 0, 0, 30), Overlap: rapid.Bool().Draw(rt, "overlap"),
		Priority: rapid.SampledFrom([]int{0, 0, 9}).Draw(rt, "priority")}
	p.both("schedule", func(q *Queue[string]) string {
		next, err := q.Schedule(p.ctx, name, "planned", rule, o)
		return fmt.Sprint(next, kind(err))
	})
}

func (p *pair) manage(rt *rapid.T) {
	id := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "id")
	d := ms(rt, "by", 1, 5, 40)
	switch rapid.SampledFrom([]string{"pause", "resume", "resume", "requeue", "reschedule"}).Draw(rt, "how") {
	case "pause":
		p.both("pause", func(q *Queue[string]) string { return kind(q.Pause(p.ctx, d)) })
	case "resume":
		p.both("resume", func(q *Queue[string]) string { return kind(q.Resume(p.ctx)) })
	case "requeue":
		p.both("requeue", func(q *Queue[string]) string { return fmt.Sprint(q.Requeue(p.ctx, id)) })
	case "reschedule":
		p.both("reschedule", func(q *Queue[string]) string { return kind(q.Reschedule(p.ctx, id, d)) })
	}
}

// entries describes jobs without the parts that may differ: generated ids, and tokens.
func entries(all []Entry[string]) string {
	for i := range all {
		if e := &all[i]; len(e.ID) > 1 && !strings.Contains(e.ID, "@") {
			e.ID = "made"
		}
		all[i].Token = 0
	}
	return fmt.Sprintf("%+v", all)
}

// notice lets both queues handle the schedules that are due. With scripts that happens when a consumer asks
// for jobs, even for none.
func (p *pair) notice() {
	p.t.Helper()
	if _, err := p.n.Len(p.ctx); err != nil {
		p.t.Fatal(err)
	}
	if _, err := (&scripts{c: p.s.c, name: p.s.name}).take(p.ctx, 0, 1); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pair) compare(*rapid.T) {
	p.notice()
	p.both("schedules", func(q *Queue[string]) string {
		all, err := q.Schedules(p.ctx)
		return fmt.Sprintf("%+v %v", all, err)
	})
	p.both("info", func(q *Queue[string]) string {
		i, err := q.Info(p.ctx)
		return fmt.Sprintf("%+v %v", i, err)
	})
	p.both("peek", func(q *Queue[string]) string {
		all, err := q.Peek(p.ctx, All)
		return fmt.Sprint(entries(all), kind(err))
	})
	p.both("get", func(q *Queue[string]) string {
		e, err := q.Get(p.ctx, "a")
		return fmt.Sprint(entries([]Entry[string]{e}), kind(err))
	})
	p.both("dead letters", func(q *Queue[string]) string {
		dead, err := q.DeadLetters(p.ctx, 100)
		for i := range dead {
			for k := range dead[:i] { // ebb's commands do not distinguish two of the same id
				if one, other := &dead[k], &dead[i]; one.Died.Equal(other.Died) && strings.HasPrefix(other.ID, one.ID+":") {
					one.Reason, other.Reason, one.Deliveries, other.Deliveries = "", "", 0, 0
				}
			}
			if id, _, _ := strings.Cut(dead[i].ID, ":"); len(id) > 1 {
				dead[i].ID = "made"
			}
		}
		slices.SortFunc(dead, func(a, b Dead[string]) int {
			return cmp.Or(a.Died.Compare(b.Died), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.ID, b.ID))
		})
		return fmt.Sprintf("%+v %v", dead, err)
	})
}
