package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// journal is the standard output of a worker. A line is in the pipe when its method returns, so a kill -9 of the
// worker does not lose it.
type journal struct {
	mu sync.Mutex
	w  *bufio.Writer
}

func newJournal(w io.Writer) *journal { return &journal{w: bufio.NewWriter(w)} }

// delivery is one delivery of a job.
type delivery struct {
	name string // of the schedule
	job  string // the job: a second one of an occurrence has another
	due  int64  // ms since 1970
	at   int64  // µs since 1970
	nth  int    // of the job, from 1; 0: the system does not say
}

// delivered writes deliveries.
func (j *journal) delivered(all ...delivery) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, d := range all {
		fmt.Fprintf(j.w, "got %s %s %d %d %d\n", d.name, d.job, d.due, d.at, d.nth)
	}
	return j.w.Flush()
}

// done writes jobs that the server has removed for the worker.
func (j *journal) done(all ...delivery) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, d := range all {
		fmt.Fprintf(j.w, "done %s %s %d %d %d\n", d.name, d.job, d.due, d.at, d.nth)
	}
	return j.w.Flush()
}

// record has the runs that all workers have written.
type record struct {
	mu      sync.Mutex
	runs    map[occurrence]*occurred
	dues    map[string]int64 // of jobs, by their first delivery
	strange []string         // lines that are wrong
}

type occurrence struct {
	name string
	due  int64
}

// occurred is the outcome of an occurrence.
type occurred struct {
	first      int64 // the first delivery, in µs since 1970
	deliveries int
	firsts     int            // deliveries that the system calls the first one
	jobs       map[string]int // how often each of its jobs was done
}

func newRecord() *record { return &record{runs: map[occurrence]*occurred{}, dues: map[string]int64{}} }

// add takes a line of a worker.
func (r *record) add(line string) {
	var kind string
	var d delivery
	_, err := fmt.Sscan(line, &kind, &d.name, &d.job, &d.due, &d.at, &d.nth)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || kind != "got" && kind != "done" {
		r.strange = append(r.strange, line)
		return
	}
	if due, known := r.dues[d.job]; known {
		d.due = due // asynq: the task is run again in a later minute
	} else {
		r.dues[strings.Clone(d.job)] = d.due
	}
	at := occurrence{strings.Clone(d.name), d.due}
	o := r.runs[at]
	if o == nil {
		o = &occurred{first: d.at, jobs: map[string]int{}}
		r.runs[at] = o
	}
	if _, known := o.jobs[d.job]; !known {
		o.jobs[strings.Clone(d.job)] = 0
	}
	if kind == "done" {
		o.jobs[d.job]++
		return
	}
	o.first = min(o.first, d.at)
	o.deliveries++
	if d.nth == 1 {
		o.firsts++
	}
}

// tally is the sum of the occurrences of some minutes.
type tally struct {
	delivered, twice, again int
	late                    []time.Duration
}

// tally counts the occurrences of the minutes.
func (r *record) tally(first time.Time, minutes int) (t tally) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for o, run := range r.runs {
		if o.due < first.UnixMilli() || o.due >= first.Add(time.Duration(minutes)*time.Minute).UnixMilli() {
			continue
		}
		done := 0
		for _, n := range run.jobs {
			done += n
		}
		t.delivered++
		// An occurrence is added twice if it has two jobs, or one with two first deliveries, or one that the server
		// removed twice. Workers of asynq do not see the removal.
		if len(run.jobs) > 1 || run.firsts > 1 || run.firsts > 0 && done > 1 {
			t.twice++
		}
		t.again += run.deliveries - len(run.jobs)
		t.late = append(t.late, time.Duration(run.first-o.due*1000)*time.Microsecond)
	}
	slices.Sort(t.late)
	return t
}

// at returns a quantile of the lateness.
func (t *tally) at(share float64) time.Duration {
	if len(t.late) == 0 {
		return 0
	}
	return t.late[min(len(t.late)-1, int(share*float64(len(t.late))))].Round(time.Millisecond)
}
