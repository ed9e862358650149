package queue

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

func TestAScheduleAddsAJobAtEachOccurrence(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		const span = 50 * time.Millisecond
		first := must(q.Schedule(ctx, "beat", "x", Every(span), ScheduleOptions{Overlap: true, Priority: 3}))(t)
		var got sync.Map
		var consumers sync.WaitGroup
		for range 3 {
			consumers.Go(func() {
				for range 3 {
					j, err := q.Pop(ctx)
					if err == nil {
						err = j.Ack(ctx)
					}
					if err != nil {
						t.Error(err)
						return
					}
					if _, twice := got.LoadOrStore(j.ID, j.Due); twice || j.Value != "x" || j.ID != fmt.Sprintf("beat@%d", j.Due.UnixMilli()) {
						t.Errorf("%+v", j)
					}
					if off := j.Due.Sub(first); off < 0 || off%span != 0 {
						t.Errorf("%s is %v after the first", j.ID, off)
					}
				}
			})
		}
		consumers.Wait()
		all := must(q.Schedules(ctx))(t)
		if len(all) != 1 || all[0].Name != "beat" || all[0].Value != "x" || all[0].Rule != Every(span) || all[0].Runs < 9 || !all[0].Next.After(all[0].Last) {
			t.Errorf("%+v", all)
		}
		if n := must(q.Unschedule(ctx, "beat", "other"))(t); n != 1 {
			t.Errorf("%d removed", n)
		}
		if i := must(q.Info(ctx))(t); i.Schedules != 0 || i.NextOccurrence != -1 {
			t.Errorf("%+v", i)
		}
	})
}

func TestACronScheduleRunsOnTheMillisecond(t *testing.T) {
	tier.Sequential(t)
	virtual(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		next := must(q.Schedule(ctx, "report", "daily", Cron("0 9 * * *", "Europe/Berlin")))(t)
		if i := must(q.Info(ctx))(t); i.Schedules != 1 || i.NextOccurrence != next.Sub(now(t, b)) {
			t.Errorf("%+v, next %v", i, next)
		}
		berlin := must(time.LoadLocation("Europe/Berlin"))(t)
		for day := range 3 {
			j := must(q.Pop(ctx))(t)
			if at := now(t, b); !at.Equal(next.Add(time.Duration(day)*24*time.Hour)) || !at.Equal(j.Due) || at.In(berlin).Hour() != 9 {
				t.Errorf("day %d at %v, due %v", day, at, j.Due)
			}
			ok(t, j.Ack(ctx))
		}
	})
}

func TestAnOccurrenceIsSkippedWhileTheJobBeforeIsInTheQueue(t *testing.T) {
	virtual(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{Lease: time.Hour})
		must(q.Schedule(ctx, "beat", "x", Every(time.Second)))(t)
		j := must(q.Pop(ctx))(t)
		for range 3 {
			b.Pass(time.Second)
			_, err := q.TryPop(ctx)
			failsWith(t, err, ErrEmpty)
		}
		s := must(q.Schedules(ctx))(t)[0]
		if s.Runs != 1 || s.Skipped != 3 || !s.Last.Equal(j.Due) {
			t.Errorf("%+v", s)
		}
		ok(t, j.Ack(ctx))
		if next := must(q.Pop(ctx))(t); next.Due.Sub(j.Due) != 4*time.Second {
			t.Errorf("the next is due %v after it", next.Due.Sub(j.Due))
		}
	})
}

func TestADeclaredScheduleGoesOn(t *testing.T) {
	virtual(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		first := must(q.Schedule(ctx, "beat", "x", Every(time.Minute)))(t)
		b.Pass(10 * time.Second)
		if again := must(q.Schedule(ctx, "beat", "y", Every(time.Minute)))(t); !again.Equal(first) {
			t.Errorf("declared again it is due at %v, not %v", again, first)
		}
		if j := must(q.Pop(ctx))(t); j.Value != "y" || !j.Due.Equal(first) {
			t.Errorf("%+v", j)
		}
		if changed := must(q.Schedule(ctx, "beat", "y", Every(2*time.Minute)))(t); changed.Sub(now(t, b)) != 2*time.Minute {
			t.Errorf("changed it is due at %v", changed)
		}
	})
}

func TestAScheduleEndsAfterUntil(t *testing.T) {
	virtual(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		from := now(t, b).Add(time.Hour)
		next := must(q.Schedule(ctx, "twice", "x", Every(time.Minute), ScheduleOptions{From: from, Until: from.Add(time.Minute)}))(t)
		if !next.Equal(from) {
			t.Errorf("first at %v, want %v", next, from)
		}
		for i := range 2 {
			j := must(q.Pop(ctx))(t)
			if want := from.Add(time.Duration(i) * time.Minute); !j.Due.Equal(want) {
				t.Errorf("due %v, want %v", j.Due, want)
			}
			ok(t, j.Ack(ctx))
		}
		if all := must(q.Schedules(ctx))(t); len(all) != 0 {
			t.Errorf("%+v", all)
		}
		_, err := q.Schedule(ctx, "past", "x", Every(time.Minute), ScheduleOptions{Until: from})
		failsWith(t, err, ErrNever)
	})
}

func TestAfterATimeWithoutConsumersOneOccurrenceRuns(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		ctx, q := b.Context(), must(New[string](b.Open(), fresh(b)))(t)
		q.scripted = true
		first := must(q.Schedule(ctx, "beat", "x", Every(time.Minute)))(t)
		must(q.Schedule(ctx, "punctual", "x", Every(time.Minute), ScheduleOptions{Late: time.Second}))(t)
		b.Pass(time.Hour + 30*time.Second)
		j := must(q.TryPop(ctx))(t)
		if j.ID[:4] != "beat" || j.Due.Sub(first) != 59*time.Minute {
			t.Errorf("%s is due %v after the first", j.ID, j.Due.Sub(first))
		}
		_, err := q.TryPop(ctx)
		failsWith(t, err, ErrEmpty)
		all := must(q.Schedules(ctx))(t)
		if all[0].Runs != 1 || all[0].Skipped != 59 || all[1].Runs != 0 || all[1].Skipped != 59 || all[1].Late != 1 {
			t.Errorf("%+v", all)
		}
	})
}

func TestADueOccurrenceOutlivesItsSchedule(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		for _, end := range []func() error{
			func() error { return second(q.Schedule(ctx, "s", "new", Every(time.Hour))) },
			func() error { return second(q.Unschedule(ctx, "s", "none")) },
		} {
			must(q.Schedule(ctx, "s", "old", Every(30*time.Millisecond)))(t)
			b.Pass(31 * time.Millisecond) // there is no consumer
			ok(t, end())
			if j := must(q.TryPop(ctx))(t); j.Value != "old" {
				t.Errorf("%+v", j)
			} else {
				ok(t, j.Ack(ctx))
			}
			must(q.Unschedule(ctx, "s"))(t)
		}
		if n := must(q.Len(ctx))(t); n != 0 && b.Virtual() { // on a real backend the machine may have slept for another occurrence
			t.Errorf("%d jobs are left", n)
		}
	})
}

func TestAScheduleThatThisProgramCannotReadStopsNoOther(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		ctx, q := b.Context(), must(New[string](b.Open(), fresh(b)))(t)
		q.scripted = true
		s := &scripts{c: q.c, name: q.name}
		must(q.Schedule(ctx, "beat", "x", Every(time.Minute)))(t)
		cron, ticks := s.scheduleKeys()[0], s.scheduleKeys()[1]
		must(b.Do(ctx, "HSET", cron, "new", `{"lunar":true}`))(t)
		must(b.Do(ctx, "ZADD", ticks, 1, "new", 1, "lost"))(t)
		if j := must(q.Pop(ctx))(t); j.Value != "x" {
			t.Errorf("%+v", j)
		}
		if v := must(b.Do(ctx, "ZRANGE", ticks, 0, -1))(t); len(v.Elems) != 2 {
			t.Errorf("the order holds %v", v)
		}
		_, err := q.Schedules(ctx)
		failsWith(t, err, ebb.ErrValue)
		must(q.Schedule(ctx, "new", "mine", Every(time.Minute)))(t)
		if all := must(q.Schedules(ctx))(t); len(all) != 2 {
			t.Errorf("%+v", all)
		}
		ok(t, q.Delete(ctx))
		if n := must(b.Do(ctx, "EXISTS", cron, ticks))(t); n.Int != 0 {
			t.Errorf("%d keys are left", n.Int)
		}
	})
}

func TestWrongSchedulesAreRefused(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		for _, c := range []struct {
			name string
			rule Rule
			o    ScheduleOptions
			want string
		}{
			{"", Every(time.Second), ScheduleOptions{}, "0 bytes"},
			{strings.Repeat("n", 256), Every(time.Second), ScheduleOptions{}, "256 bytes"},
			{"s", Rule{}, ScheduleOptions{}, "at least 10 ms"},
			{"s", Every(time.Millisecond), ScheduleOptions{}, "at least 10 ms"},
			{"s", Cron("0 9 * *", ""), ScheduleOptions{}, "0 9 * *"},
			{"s", Cron("0 9 * * *", "Mars/Olympus"), ScheduleOptions{}, "time zone"},
			{"s", Every(time.Second), ScheduleOptions{Late: -1}, "Late"},
			{"s", Every(time.Second), ScheduleOptions{TTL: -1}, "TTL"},
			{"s", Every(time.Second), ScheduleOptions{Priority: 10}, "Priority"},
			{"s", Every(time.Second), ScheduleOptions{From: time.Unix(-1, 0)}, "From"},
			{"s", Every(time.Second), ScheduleOptions{Until: time.Unix(1<<40, 0)}, "Until"},
		} {
			_, err := q.Schedule(ctx, c.name, "x", c.rule, c.o)
			if !errors.Is(err, ebb.ErrArgument) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v %+v: %v, want %s", c.rule, c.o, err, c.want)
			}
		}
		_, err := q.Schedule(ctx, "s", "x", Cron("0 0 30 2 *", ""))
		failsWith(t, err, ErrNever)
		if all := must(q.Schedules(ctx))(t); len(all) != 0 {
			t.Errorf("%+v", all)
		}
	})
}

func TestAQueueHasAtMostSoManySchedules(t *testing.T) {
	tier.Sequential(t)
	virtual(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		for i := range 10_000 {
			must(q.Schedule(ctx, fmt.Sprint(i), "x", Every(time.Hour)))(t)
		}
		_, err := q.Schedule(ctx, "more", "x", Every(time.Hour))
		failsWith(t, err, ErrFull)
		must(q.Schedule(ctx, "7", "y", Every(time.Hour)))(t)
		b.Pass(time.Hour)
		for range 10_000 {
			ok(t, must(q.TryPop(ctx))(t).Ack(ctx))
		}
		_, err = q.TryPop(ctx)
		failsWith(t, err, ErrEmpty)
	})
}

func TestARuleSaysWhatItIs(t *testing.T) {
	for want, r := range map[string]Rule{
		"every 1m0s":                          Every(time.Minute),
		`cron "0 9 * * 1-5" in Europe/Berlin`: Cron("0 9 * * 1-5", "Europe/Berlin"),
		`cron "@daily" in UTC`:                Cron("@daily", ""),
	} {
		if r.String() != want {
			t.Errorf("%s, want %s", r, want)
		}
	}
}
