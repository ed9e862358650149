package crashtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/queue"
)

// occurrences has the jobs of schedules that consumers have seen.
type occurrences struct {
	mu    sync.Mutex // guards what follows
	runs  map[string]int
	acked map[string]bool
	again []string        // jobs that a consumer got after a consumer's Ack had returned nil
	safe  map[string]bool // jobs of acked whose Ack a replica had
	last  time.Time
}

func (o *occurrences) got(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.runs[id]++
	o.last = time.Now()
	if o.acked[id] {
		o.again = append(o.again, id)
	}
}

func (o *occurrences) done(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.acked[id] = true
}

// count returns how many jobs have been delivered, and the time of the last delivery.
func (o *occurrences) count() (int, time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.runs), o.last
}

// consume takes jobs and acknowledges them until the context ends.
func (o *occurrences) consume(ctx context.Context, q *queue.Queue[string]) {
	for ctx.Err() == nil {
		job, err := q.Pop(ctx)
		if err != nil {
			continue // the master is away
		}
		o.got(job.ID)
		if job.Ack(ctx) == nil {
			o.done(job.ID)
		}
	}
}

// scheduleRules are the rules of the test, by name, with the spans between their occurrences.
func scheduleRules() map[string]queue.Rule {
	rules := map[string]queue.Rule{"second": queue.Cron("* * * * * *", "")}
	for i := range 8 {
		rules[fmt.Sprint("every", i)] = queue.Every(scheduleSpan)
	}
	return rules
}

const scheduleSpan = 250 * time.Millisecond

// TestSchedulesSurviveAFailover runs schedules of package queue while the master is killed and Sentinel promotes its
// replica, on redis-server, where consumers run the schedules, and on ebb, which runs them itself. Consumers use a
// view that waits for the replica. Then no acknowledged job comes again, and each occurrence has been a job of a
// consumer, or it is counted as skipped.
func TestSchedulesSurviveAFailover(t *testing.T) {
	t.Parallel()
	for _, name := range []string{realserver.Redis7, us} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := name
			if name == us {
				program = realserver.Ebb(t)
			} else {
				program = realserver.Program(t, filepath.Base(program))
			}
			failOverSchedules(t, startGroup(t, program))
		})
	}
}

func failOverSchedules(t *testing.T, g *group) {
	ctx := t.Context()
	tier.Eventually(t, "the sentinels see a master and its replica", func() bool { return g.healthy(ctx) })
	seen := &occurrences{runs: map[string]int{}, acked: map[string]bool{}}
	running, stop := context.WithCancel(ctx)
	var consumers sync.WaitGroup
	defer consumers.Wait()
	defer stop()
	open := func() *queue.Queue[string] {
		c, err := ebb.Open(ctx, "redis+sentinel://"+strings.Join(g.addrs(), ",")+"/shop/0?dial_timeout=1s&read_timeout=2s")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		q, err := queue.New[string](c.Replicated(1, time.Second), "jobs", queue.Options[string]{Lease: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	q := open()
	first := map[string]time.Time{}
	for name, rule := range scheduleRules() {
		at, err := q.Schedule(ctx, name, "x", rule, queue.ScheduleOptions{Overlap: true})
		if err != nil {
			t.Fatal(err)
		}
		first[name] = at
	}
	for range 3 {
		own := open()
		consumers.Go(func() { seen.consume(running, own) })
	}
	for round := range roundsOr(1) {
		before, _ := seen.count()
		tier.Eventually(t, "schedules run", func() bool { n, _ := seen.count(); return n > before+60 })
		m, err := g.master(ctx)
		if err != nil {
			t.Fatal(err)
		}
		killed := time.Now()
		m.Kill()
		tier.Eventually(t, "another master is named", func() bool { return g.moved(ctx, m) })
		moved := time.Now()
		m.Start("--replicaof", fmt.Sprint("127.0.0.1 ", g.other(m).Port)) // consumers get no job before the new master has a replica
		tier.Eventually(t, "schedules run at another master", func() bool { _, at := seen.count(); return at.After(moved) })
		_, again := seen.count()
		tier.Eventually(t, "the old master follows the new one", func() bool { return g.healthy(ctx) })
		t.Logf("round %d: schedules ran again after %.1f s", round, again.Sub(killed).Seconds())
	}
	all := endSchedules(t, q)
	stop()
	consumers.Wait()
	seen.check(t, all, first)
}

// endSchedules reads the schedules, removes them, and waits until the jobs are done.
func endSchedules(t *testing.T, q *queue.Queue[string]) (all []queue.Scheduled[string]) {
	t.Helper()
	ctx := t.Context()
	tier.Eventually(t, "the schedules end", func() (ended bool) {
		var err error
		if all == nil {
			if all, err = q.Schedules(ctx); err != nil {
				return false
			}
		}
		for _, s := range all {
			if _, err := q.Unschedule(ctx, s.Name); err != nil && !errors.Is(err, ebb.ErrNotReplicated) {
				return false
			}
		}
		i, err := q.Info(ctx)
		return err == nil && i.Schedules == 0 && i.Ready+i.Delayed+i.Leased == 0
	})
	return all
}

// check compares what consumers have seen with the schedules at the end. No job may have come again after its Ack.
func (o *occurrences) check(t *testing.T, all []queue.Scheduled[string], first map[string]time.Time) {
	t.Helper()
	o.checkCounts(t, all, first)
	if len(o.again) > 0 {
		t.Errorf("%d acknowledged jobs came again, such as %s", len(o.again), o.again[0])
	}
}

// checkCounts checks that each occurrence of a schedule is counted once, and that consumers have seen as many jobs as
// are counted.
func (o *occurrences) checkCounts(t *testing.T, all []queue.Scheduled[string], first map[string]time.Time) {
	t.Helper()
	if len(all) != len(first) {
		t.Errorf("there are %d schedules after the failovers, want %d", len(all), len(first))
	}
	runs, total, skipped := 0, int64(0), int64(0)
	for _, s := range all {
		span := scheduleSpan
		if s.Name == "second" {
			span = time.Second
		}
		want, seen := int64(s.Next.Sub(first[s.Name])/span), int64(0)
		for at := first[s.Name]; at.Before(s.Next); at = at.Add(span) {
			if o.runs[fmt.Sprintf("%s@%d", s.Name, at.UnixMilli())] > 0 {
				seen++
			}
		}
		if s.Runs+s.Skipped+s.Late != want {
			t.Errorf("%s counts %d runs, %d skipped and %d late, want %d occurrences in all", s.Name, s.Runs, s.Skipped, s.Late, want)
		}
		if seen < s.Runs {
			t.Errorf("%s: consumers have seen %d jobs, the schedule counts %d", s.Name, seen, s.Runs)
		}
		total, skipped = total+want, skipped+s.Skipped
	}
	for _, n := range o.runs {
		runs += n
	}
	t.Logf("%d occurrences, %d skipped, %d jobs delivered %d times; delivered after their Ack: %d", total, skipped,
		len(o.runs), runs, len(o.again))
}

// TestSchedulesLoseOnlyWhatReplicationLost promotes a replica while the consumers still use the old master, and kills
// that later, so that the new master lacks its last steps. The new master repeats the occurrences that did not reach
// it, or counts them. It repeats no other: what was acknowledged before the promotion stays done.
func TestSchedulesLoseOnlyWhatReplicationLost(t *testing.T) {
	t.Parallel()
	for _, name := range []string{realserver.Redis7, us} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := name
			if name == us {
				program = realserver.Ebb(t)
			}
			loseUnreplicated(t, program)
		})
	}
}

func loseUnreplicated(t *testing.T, program string) {
	master := realserver.NewProcess(t, program, "--repl-diskless-sync-delay", "0")
	master.Start()
	replica := realserver.NewProcess(t, program, "--replicaof", fmt.Sprint("127.0.0.1 ", master.Port))
	replica.Start()
	seen := &occurrences{runs: map[string]int{}, acked: map[string]bool{}}
	open := func(p *realserver.Process) (*ebb.Conn, *queue.Queue[string]) {
		c, err := ebb.Open(t.Context(), "redis://"+p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		q, err := queue.New[string](c, "jobs", queue.Options[string]{Lease: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return c, q
	}
	c, q := open(master)
	first := map[string]time.Time{}
	for name, rule := range scheduleRules() {
		at, err := q.Schedule(t.Context(), name, "x", rule, queue.ScheduleOptions{Overlap: true})
		if err != nil {
			t.Fatal(err)
		}
		first[name] = at
	}
	end := seen.begin(t, q)
	tier.Eventually(t, "schedules run", func() bool { n, _ := seen.count(); return n > 60 })
	tier.Eventually(t, "the replica has everything", func() bool {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		v, err := c.Do(t.Context(), "WAIT", 1, 1000) // no Ack can be noted meanwhile
		if err != nil || v.Int != 1 {
			return false
		}
		seen.safe = maps.Clone(seen.acked)
		return true
	})
	tier.Eventually(t, "the replica is promoted", func() bool { return ask(t, replica, "REPLICAOF", "NO", "ONE").Err() == nil })
	safe, _ := seen.count()
	tier.Eventually(t, "schedules run at the old master", func() bool { n, _ := seen.count(); return n > safe+60 })
	master.Kill()
	end()
	_, q = open(replica)
	end = seen.begin(t, q)
	before, _ := seen.count()
	tier.Eventually(t, "schedules run at the new master", func() bool { n, _ := seen.count(); return n > before+60 })
	all := endSchedules(t, q)
	end()
	seen.checkCounts(t, all, first)
	again := 0
	for _, id := range seen.again {
		if seen.safe[id] {
			t.Errorf("job %s came again, although the replica had its Ack", id)
		}
		again++
	}
	if len(seen.safe) == 0 {
		t.Error("the replica had no Ack")
	}
	t.Logf("%d jobs were done before the promotion; %d of the later ones came again", len(seen.safe), again)
}

// begin starts consumers; the function that it returns ends them.
func (o *occurrences) begin(t *testing.T, q *queue.Queue[string]) (end func()) {
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { o.consume(ctx, q) })
	}
	return func() {
		stop()
		all.Wait()
	}
}
