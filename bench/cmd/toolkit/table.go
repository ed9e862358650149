package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// subject is a benchmark and the form of its table.
type subject struct {
	name, title string
	kind        int
}

const (
	throughput = iota // operations a second; ratios to the fastest other library on redis-server
	inProcess         // the same, without servers
	pickups           // milliseconds
	delayed           // milliseconds
)

var subjects = []subject{
	{"Limiter", "limiter through go-redis, grants a second", throughput},
	{"LimiterRueidis", "limiter through rueidis, grants a second", throughput},
	{"Ceiling", "upper bound of the client library: GETs a second", throughput},
	{"Lock", "lock through go-redis, each goroutine its own, taken and released, a second", throughput},
	{"LockRueidis", "lock through rueidis, each goroutine its own, taken and released, a second", throughput},
	{"LockContended", "one lock that 64 goroutines take in turns, a second", throughput},
	{"QueueJobs", "jobs a second, 8 producers, 64 workers", throughput},
	{"QueuePickup", "from push to the worker's start, an idle queue, ms", pickups},
	{"QueueDelayed", "lateness of delayed jobs (below zero: early), ms", delayed},
	{"LimiterInProcess", "limiter in process, grants a second", inProcess},
}

// choose returns the subjects whose names match a regular expression.
func choose(expression string) ([]subject, error) {
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, err
	}
	chosen := slices.Clone(subjects)
	chosen = slices.DeleteFunc(chosen, func(s subject) bool { return !re.MatchString(s.name) })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no subject matches %q", expression)
	}
	return chosen, nil
}

func (s subject) benchtime(o options) string {
	switch s.kind {
	case pickups:
		return strconv.Itoa(o.pickups) + "x"
	case delayed:
		return strconv.Itoa(o.delayed) + "x"
	}
	return o.time.String()
}

// results are values by subject, column ("redis c=64"), contender and unit, in the
// order in which they were seen.
type results map[string]*result

type result struct {
	columns, contenders []string
	cells               map[cell][]float64
}

type cell struct{ column, contender, unit string }

var processors = regexp.MustCompile(`-\d+$`)

// parse reads the lines of benchmarks.
func parse(r io.Reader) (results, error) {
	all := results{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		parts := strings.Split(processors.ReplaceAllString(words[0], ""), "/")
		if len(parts) != 4 {
			continue
		}
		name := strings.TrimPrefix(parts[0], "Benchmark")
		column, contender := parts[1]+" "+parts[2], parts[3]
		r := all[name]
		if r == nil {
			r = &result{cells: map[cell][]float64{}}
			all[name] = r
		}
		if !slices.Contains(r.columns, column) {
			r.columns = append(r.columns, column)
		}
		if !slices.Contains(r.contenders, contender) {
			r.contenders = append(r.contenders, contender)
		}
		for i := 2; i+1 < len(words); i += 2 {
			v, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", lines.Text(), err)
			}
			c := cell{column, contender, words[i+1]}
			r.cells[c] = append(r.cells[c], v)
		}
	}
	return all, lines.Err()
}

// ours reports whether a contender is ebb's toolkit.
func ours(contender string) bool { return contender == "ebb" || strings.HasPrefix(contender, "ebb-") }

// median returns the median of the rounds; ok is false if there is none.
func (r *result) median(c cell) (v float64, ok bool) {
	all := slices.Sorted(slices.Values(r.cells[c]))
	if len(all) == 0 {
		return 0, false
	}
	if n := len(all); n%2 == 0 {
		return (all[n/2-1] + all[n/2]) / 2, true
	}
	return all[len(all)/2], true
}

func (s subject) print(w io.Writer, all results) error {
	r := all[s.name]
	if r == nil {
		_, err := fmt.Fprintf(w, "%s: no results\n\n", s.title)
		return err
	}
	fmt.Fprintln(w, s.title)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	if s.kind == pickups || s.kind == delayed {
		r.printSpans(t)
	} else {
		r.printRates(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// printRates prints a row for each contender. The number after a rate is its ratio to the
// fastest other library at the same concurrency, on redis-server if the benchmark has
// servers.
func (r *result) printRates(w io.Writer) {
	fmt.Fprintf(w, "  \t%s\t\n", strings.Join(r.columns, "\t"))
	for _, name := range r.contenders {
		fmt.Fprintf(w, "  %s\t", name)
		for _, column := range r.columns {
			v, ok := r.median(cell{column, name, "op/s"})
			if !ok {
				fmt.Fprint(w, "-\t")
				continue
			}
			ratio := "      "
			if base := r.fastest(strings.Replace(column, "ebb ", "redis ", 1)); base > 0 {
				ratio = fmt.Sprintf("%5.2fx", v/base)
			}
			fmt.Fprintf(w, "%s %s\t", thousands(v), ratio)
		}
		fmt.Fprintln(w)
	}
}

// fastest returns the best rate of other libraries in a column, 0 if there is none.
func (r *result) fastest(column string) (best float64) {
	for _, name := range r.contenders {
		if v, ok := r.median(cell{column, name, "op/s"}); ok && !ours(name) {
			best = max(best, v)
		}
	}
	return best
}

func (r *result) printSpans(w io.Writer) {
	units := []string{"p50-ms", "p99-ms", "max-ms", "min-ms"}
	fmt.Fprint(w, "  \t")
	for _, u := range units {
		fmt.Fprintf(w, "%s\t", strings.TrimSuffix(u, "-ms"))
	}
	fmt.Fprintln(w)
	for _, column := range r.columns {
		server, _, _ := strings.Cut(column, " ")
		for _, name := range r.contenders {
			fmt.Fprintf(w, "  %s on %s\t", name, server)
			for _, u := range units {
				if v, ok := r.median(cell{column, name, u}); ok {
					fmt.Fprintf(w, "%.2f\t", v)
				} else {
					fmt.Fprint(w, "-\t")
				}
			}
			fmt.Fprintln(w)
		}
	}
}

// thousands writes a whole number as 12,345.
func thousands(v float64) string {
	s := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
