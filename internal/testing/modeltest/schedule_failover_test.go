package modeltest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/cron"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/resp"
)

var scheduleCuts = flag.Int("schedule.cuts", 3, "number of effects behind which the master is killed; 1: behind each")

// transitions are instants at which a clock on the wall jumps, after transcript.Start: forward, back, by half an
// hour, at midnight, and by two hours.
var transitions = []struct {
	zone string
	at   time.Time
}{
	{"Europe/Berlin", time.Date(2027, 3, 28, 1, 0, 0, 0, time.UTC)},
	{"Europe/Berlin", time.Date(2027, 10, 31, 1, 0, 0, 0, time.UTC)},
	{"Australia/Lord_Howe", time.Date(2027, 4, 3, 15, 0, 0, 0, time.UTC)},
	{"Asia/Beirut", time.Date(2027, 3, 27, 22, 0, 0, 0, time.UTC)},
	{"Antarctica/Troll", time.Date(2027, 10, 31, 1, 0, 0, 0, time.UTC)},
}

// transitionRules are schedules of the queue that crosses a transition; %s is its zone.
var transitionRules = map[string][]string{
	"half":   {"CRON", "30 2 * * *"},
	"twenty": {"CRON", "*/20 0-3 * * *"},
	"hour":   {"CRON", "@hourly"},
	"night":  {"CRON", "5 0 * * *"},
	"late":   {"CRON", "*/15 1,2 * * *"}, // with LATE
	"piled":  {"CRON", "10,50 * * * *"},  // with OVERLAP
	"every":  {"EVERY", "420000"},
}

const (
	hoursAround = 4 * time.Hour
	stepOfTime  = 10 * time.Minute
	lateMillis  = 300_000
)

// crossing is a master whose schedules cross a transition, with all of its effects.
type crossing struct {
	t     *testing.T
	zone  string
	start time.Time
	end   time.Time
	log   []engine.Effect
	times []time.Duration // of each effect: the time of the engine's clock since start
}

// TestSchedulesCrossATransitionOnceWhereverTheMasterDies plays schedules across changes of the clock in virtual
// time. It kills the master behind each transaction of its log. The data goes on in three ways: a replica is promoted
// at once; a replica is promoted after the transition, when more occurrences have passed; the server restarts from
// its file. Each time every occurrence up to the end becomes exactly one job, or is counted as skipped or late.
func TestSchedulesCrossATransitionOnceWhereverTheMasterDies(t *testing.T) {
	rnd := rand.New(rand.NewPCG(draw.Seed(t, 0), 0))
	for _, tr := range transitions {
		t.Run(fmt.Sprint(tr.zone, tr.at.Format("/2006-01-02")), func(t *testing.T) {
			c := &crossing{t: t, zone: tr.zone, start: tr.at.Add(-hoursAround), end: tr.at.Add(hoursAround)}
			c.master(rnd)
			cuts, skip := 0, *scheduleCuts
			if tier.Short() {
				skip = max(skip, len(c.log)/8)
			}
			ticks := 0
			for cut := len(transitionRules) + rnd.IntN(skip); cut <= len(c.log); cut += skip {
				if cut < len(c.log) && c.log[cut].Seq == c.log[cut-1].Seq {
					continue // a part of a transaction is not applied
				}
				if string(c.log[cut-1].Args[0]) == "DQ.STEP" && string(c.log[cut-1].Args[2]) == "TICK" {
					ticks++
				}
				for _, way := range []afterDeath{promotedAtOnce, promotedLater, restarted} {
					c.survive(cut, way, rnd.Uint64())
				}
				cuts++
			}
			t.Logf("%d effects, the master killed at %d of them, %d of these behind a step of a tick", len(c.log), cuts, ticks)
		})
	}
}

// node returns an engine whose clock shows the start.
func (c *crossing) node() *transcript.Engine {
	c.t.Helper()
	e, err := transcript.NewEngine()
	if err == nil {
		err = e.Advance(c.start.Sub(transcript.Start))
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return e
}

func (c *crossing) do(e *transcript.Engine, args ...string) resp.Value {
	c.t.Helper()
	v, err := e.Do(1, args...)
	if err == nil {
		err = v.Err()
	}
	if err != nil {
		c.t.Fatalf("%v: %v", args, err)
	}
	return v
}

// master plays the whole crossing and keeps the effects.
func (c *crossing) master(rnd *rand.Rand) {
	e := c.node()
	defer e.Close()
	for name, rule := range transitionRules {
		args := append([]string{"DQ.SCHEDULE", "q", name, "x"}, rule...)
		if rule[0] == "CRON" {
			args = append(args, "TZ", c.zone)
		}
		switch name {
		case "late":
			args = append(args, "LATE", strconv.Itoa(lateMillis))
		case "piled":
			args = append(args, "OVERLAP")
		}
		c.do(e, args...)
	}
	c.keep(e, 0)
	for at := time.Duration(0); c.start.Add(at).Before(c.end); {
		at += stepOfTime
		if err := e.Advance(stepOfTime); err != nil {
			c.t.Fatal(err)
		}
		c.work(e, rnd)
		c.keep(e, at)
	}
}

func (c *crossing) keep(e *transcript.Engine, at time.Duration) {
	for _, eff := range e.DB.Drain() {
		c.log = append(c.log, eff)
		c.times = append(c.times, at)
	}
}

// work takes the jobs that are due, and acknowledges most of them. The lease of the others is longer than the test.
func (c *crossing) work(e *transcript.Engine, rnd *rand.Rand) {
	for _, job := range c.do(e, "DQ.POP", "q", "COUNT", "100", "LEASE", "864000000").Elems {
		if rnd.IntN(8) > 0 {
			c.do(e, "DQ.ACK", "q", job.Elems[0].Str, job.Elems[3].String())
		}
	}
}

type afterDeath string

const (
	promotedAtOnce afterDeath = "a replica is promoted at once"
	promotedLater  afterDeath = "a replica is promoted after the transition"
	restarted      afterDeath = "the server restarts"
)

// survive plays the time after the death of the master behind an effect, and counts occurrences.
func (c *crossing) survive(cut int, way afterDeath, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	e := c.node()
	defer e.Close()
	at := c.times[cut-1]
	if way == restarted {
		e.DB.BeginLoad()
	} else {
		e.DB.SetReplica(true)
	}
	if err := e.Advance(at); err != nil { // the replica's clock runs all the time
		c.t.Fatal(err)
	}
	if err := e.Service.Replay(c.log[:cut]); err != nil {
		c.t.Fatal(err)
	}
	e.DB.Drain()
	if way == promotedLater {
		for later := c.end.Sub(c.start) - hoursAround + time.Hour; at < later; at += stepOfTime {
			if err := e.Advance(stepOfTime); err != nil {
				c.t.Fatal(err)
			}
			c.do(e, "DQ.PEEK", "q") // a replica notices times, and changes nothing
		}
		if n := len(e.DB.Drain()); n > 0 {
			c.t.Fatalf("a replica has logged %d effects", n)
		}
	}
	if way == restarted {
		e.DB.EndLoad()
	} else {
		e.DB.SetReplica(false)
	}
	for c.start.Add(at).Before(c.end) {
		d := min(stepOfTime, c.end.Sub(c.start.Add(at)))
		at += d
		if err := e.Advance(d); err != nil {
			c.t.Fatal(err)
		}
		c.work(e, rnd)
	}
	c.work(e, rnd)
	left := map[string]bool{}
	for _, job := range c.do(e, "DQ.PEEK", "q", "STATE", "ALL", "COUNT", "1000").Elems {
		left[job.Elems[0].Str] = true
	}
	c.count(append(slices.Clone(c.log[:cut]), e.DB.Drain()...), left, fmt.Sprintf("%s, behind effect %d, %q", way, cut, c.log[cut-1].Args))
}

// count compares the ticks of a log with the occurrences of the rules. Each job must have been acknowledged, or be
// in the queue.
func (c *crossing) count(log []engine.Effect, left map[string]bool, what string) {
	jobs, counted := map[string][]int64{}, map[string]int64{}
	number := func(b []byte) int64 {
		n, err := strconv.ParseInt(string(b), 10, 64)
		if err != nil {
			c.t.Fatal(err)
		}
		return n
	}
	for _, e := range log {
		switch {
		case string(e.Args[0]) == "DQ.ACK":
			left[string(e.Args[2])] = true
		case string(e.Args[0]) == "DQ.STEP" && string(e.Args[2]) == "TICK":
			name := string(e.Args[3])
			if due := number(e.Args[4]); due != 0 {
				jobs[name] = append(jobs[name], due)
			}
			counted[name] += number(e.Args[6]) + number(e.Args[7])
		}
	}
	total := 0
	for name, all := range jobs {
		total += len(all)
		for _, due := range all {
			if id := fmt.Sprintf("%s@%d", name, due); !left[id] {
				c.t.Fatalf("%s: the job %s is neither done nor in the queue", what, id)
			}
		}
	}
	if total != len(left) {
		c.t.Fatalf("%s: %d jobs are done or in the queue, want %d", what, len(left), total)
	}
	for name, rule := range transitionRules {
		want := c.occurrences(rule)
		got := slices.Sorted(slices.Values(jobs[name]))
		if n := len(slices.Compact(slices.Clone(got))); n != len(got) {
			c.t.Fatalf("%s: %s: an occurrence became two jobs: %d", what, name, got)
		}
		for _, due := range got {
			if !slices.Contains(want, due) {
				c.t.Fatalf("%s: %s: there was a job at %d, want some of %d", what, name, due, want)
			}
		}
		if n := int64(len(got)) + counted[name]; n != int64(len(want)) {
			c.t.Fatalf("%s: %s: %d jobs and %d counted occurrences, want %d in all: %d, jobs %d", what, name, len(got),
				counted[name], len(want), want, got)
		}
	}
}

// occurrences returns the times of a rule from the start, which is excluded, to the end.
func (c *crossing) occurrences(rule []string) (all []int64) {
	from, through := c.start.UnixMilli(), c.end.UnixMilli()
	if rule[0] == "EVERY" {
		every, _ := strconv.ParseInt(rule[1], 10, 64)
		for at := from + every; at <= through; at += every {
			all = append(all, at)
		}
		return all
	}
	e, err := cron.Parse(rule[1], c.zone)
	if err != nil {
		c.t.Fatal(err)
	}
	for at := e.Next(from / 1000); at != 0 && at*1000 <= through; at = e.Next(at) {
		all = append(all, at*1000)
	}
	return all
}
