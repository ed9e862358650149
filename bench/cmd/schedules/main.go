// Command schedules measures thousands of schedules that are due in the same minute, while it kills the server
// and the workers with kill -9 in each minute.
//
//	go build -o /tmp/ebb github.com/ebbdb/ebb/cmd/ebb
//	go run ./cmd/schedules -system ebb -server /tmp/ebb -minutes 3
//	go run ./cmd/schedules -system queue -server redis-server -minutes 3
//	go run ./cmd/schedules -system asynq -server redis-server -minutes 3 -schedulers 2
//
// It starts the server with appendfsync always, and programs that take jobs and write each delivery to their
// standard output. The systems are the schedules of DQ.SCHEDULE (ebb), those of package queue on any server
// (queue), and the scheduler of github.com/hibiken/asynq (asynq). The result counts occurrences:
//
//	delivered  a worker has got the job
//	skipped    the system counts the occurrence as skipped
//	missed     neither; no system should have one
//	twice      the system added a second job for the occurrence
//	again      deliveries of a job beyond its first one: its worker was killed, or a reply of the server was lost
//	left       jobs that the system still has at the end
//
// Lateness is the time from the minute to the first delivery. Start reading at run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

var (
	system     = flag.String("system", "ebb", "ebb, queue or asynq")
	server     = flag.String("server", "ebb", "the program of the server: ebb or redis-server")
	port       = flag.Int("port", 17390, "the port of the server")
	schedules  = flag.Int("schedules", 10_000, "schedules, each due in each minute")
	minutes    = flag.Int("minutes", 3, "minutes in which schedules are due")
	workers    = flag.Int("workers", 4, "programs that take jobs")
	conns      = flag.Int("conns", 4, "connections of each of these programs")
	schedulers = flag.Int("schedulers", 1, "scheduler programs of asynq")
	kills      = flag.String("kill", "server,worker", "what is killed in each minute: server, worker, scheduler; empty: nothing")
	seed       = flag.Uint64("seed", 1, "of the instants of the kills")
	tail       = flag.Duration("tail", 45*time.Second, "the longest time for jobs that are left at the end")
	verbose    = flag.Bool("v", false, "print the kills")
	role       = flag.String("role", "", "used by the program itself: worker or scheduler")
)

// lead is the least time from the start to the first minute that counts: declaring the schedules and starting
// the programs must end before it.
const lead = 10 * time.Second

// lease is the time after which the job of a killed worker is due again.
const lease = 10 * time.Second

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch *role {
	case "":
		err = run(ctx)
	case "worker":
		err = systems[*system].work(ctx, newJournal(os.Stdout))
	case "scheduler":
		err = runScheduler(ctx)
	default:
		err = fmt.Errorf("-role is %q; it is worker, scheduler or empty", *role)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "schedules:", err)
		os.Exit(1)
	}
}

// tool is a system that runs schedules.
type tool struct {
	// declare adds the schedules, whose first occurrence is the next minute. nil: the schedulers do it.
	declare func(ctx context.Context) error
	// work takes jobs until the context ends.
	work func(ctx context.Context, out *journal) error
	// skipped returns the number of occurrences that the system has counted as skipped. nil: it counts none.
	skipped func(ctx context.Context) (int, error)
	// left returns the number of jobs that the system has, waiting or taken.
	left func(ctx context.Context) (int, error)
}

var systems = map[string]tool{
	"ebb":   {declare: declareEbb, work: workEbb, skipped: skippedEbb, left: leftEbb},
	"queue": {declare: declareQueue, work: workQueue, skipped: skippedQueue, left: leftQueue},
	"asynq": {work: workAsynq, left: leftAsynq},
}

func run(ctx context.Context) error {
	s, ok := systems[*system]
	if !ok {
		return fmt.Errorf("-system is %q; it is ebb, queue or asynq", *system)
	}
	dir, err := os.MkdirTemp("", "schedules")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	first := time.Now().Add(lead).Truncate(time.Minute).Add(time.Minute)
	wait(ctx, time.Until(first.Add(-time.Minute+time.Second))) // an occurrence before the first one would be counted as well
	record := newRecord()
	programs := newPrograms(record)
	defer programs.stop()
	if err := programs.server(dir); err != nil {
		return err
	}
	began := time.Now()
	if s.declare != nil {
		if err := s.declare(ctx); err != nil {
			return fmt.Errorf("declare the schedules: %w", err)
		}
	} else {
		for range *schedulers {
			if err := programs.add("scheduler"); err != nil {
				return err
			}
		}
	}
	declared := time.Since(began)
	for range *workers {
		if err := programs.add("worker"); err != nil {
			return err
		}
	}
	if time.Now().After(first) {
		return fmt.Errorf("declaring took %v, longer than the time to the first minute", declared)
	}
	if err := play(ctx, programs, first); err != nil {
		return err
	}
	return report(ctx, s, record, first, programs.killed)
}

// play lets the minutes pass, with kills.
func play(ctx context.Context, p *programs, first time.Time) error {
	draw := rand.New(rand.NewPCG(*seed, 0))
	type kill struct {
		after time.Duration
		what  string
	}
	for m := range *minutes {
		minute := first.Add(time.Duration(m) * time.Minute)
		var all []kill
		between := func(from, to time.Duration) time.Duration { return from + time.Duration(draw.Int64N(int64(to-from))) }
		for _, what := range strings.FieldsFunc(*kills, func(r rune) bool { return r == ',' }) {
			// The first kill falls into the tick, and the second one into the work. Both are drawn for all systems, so that
			// the instants of a seed are the same.
			a, b := between(-20*time.Millisecond, 150*time.Millisecond), between(200*time.Millisecond, 3*time.Second)
			all = append(all, kill{a, what}, kill{b, what})
		}
		slices.SortFunc(all, func(a, b kill) int { return int(a.after - b.after) })
		for _, k := range all {
			wait(ctx, time.Until(minute.Add(k.after)))
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if *verbose {
				fmt.Fprintf(os.Stderr, "minute %d, %v: kill -9 of a %s\n", m+1, time.Since(minute).Round(time.Millisecond), k.what)
			}
			if err := p.kill(k.what, draw); err != nil {
				return fmt.Errorf("kill a %s: %w", k.what, err)
			}
		}
	}
	wait(ctx, time.Until(first.Add(time.Duration(*minutes-1)*time.Minute+5*time.Second)))
	return ctx.Err()
}

// report waits for the jobs that are left, and prints the result.
func report(ctx context.Context, s tool, r *record, first time.Time, killed map[string]int) error {
	// The minute after the last one must not begin before the end.
	until := first.Add(time.Duration(*minutes-1)*time.Minute + min(*tail, 50*time.Second))
	left := 1
	for left > 0 && time.Now().Before(until) && ctx.Err() == nil {
		wait(ctx, 500*time.Millisecond)
		var err error
		if left, err = s.left(ctx); err != nil {
			return err
		}
	}
	wait(ctx, 500*time.Millisecond) // for the lines of workers
	result := r.tally(first, *minutes)
	skipped := 0
	if s.skipped != nil {
		var err error
		if skipped, err = s.skipped(ctx); err != nil {
			return err
		}
	}
	name := *system
	if name == "asynq" {
		name = fmt.Sprintf("asynq, %d scheduler(s)", *schedulers)
	}
	expected := *schedules * *minutes
	fmt.Printf("| system | occurrences | delivered | skipped | missed | twice | again | left | late: p50 | p99 | max | kill -9 of |\n")
	fmt.Printf("|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	fmt.Printf("| %s | %d | %d | %d | %d | %d | %d | %d | %v | %v | %v | %s |\n", name, expected, result.delivered, skipped,
		expected-result.delivered-skipped, result.twice, result.again, left, result.at(0.5), result.at(0.99), result.at(1), counts(killed))
	if len(r.strange) > 0 {
		return fmt.Errorf("workers wrote lines that are wrong, such as %q", r.strange[0])
	}
	if ctx.Err() != nil {
		return errors.New("the measurement was interrupted")
	}
	return nil
}

// counts prints counts by name.
func counts(of map[string]int) string {
	var parts []string
	for _, name := range []string{"server", "worker", "scheduler"} {
		if of[name] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", of[name], name))
		}
	}
	return strings.Join(parts, ", ")
}

// wait waits for a time, or for the end of the context.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
