package main

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
)

// summary is what the end of a run says about its results.
type summary struct {
	skipped                  []string // each once
	failures, missing, flaky []string
	seconds                  []seconds // the slowest package first
	counts                   counts
	tested                   bool
}

type seconds struct {
	took      float64
	pkg, step string
}

const (
	mostFailures  = 10
	wholeFailures = 2 // of the others the end has three lines
	mostPackages  = 5
	mostFlakyText = 12 // lines
)

func summarize(results []result) summary {
	var s summary
	for _, r := range results {
		s.skipped = append(s.skipped, r.Skipped...)
		s.failures = append(s.failures, r.Failures...)
		s.missing = append(s.missing, r.Missing...)
		s.flaky = append(s.flaky, r.Flaky...)
		s.tested = s.tested || r.Counts != counts{}
		s.counts.add(r.Counts)
		for pkg, took := range r.Seconds {
			s.seconds = append(s.seconds, seconds{took, pkg, r.Step})
		}
	}
	slices.Sort(s.skipped)
	s.skipped = slices.Compact(s.skipped)
	slices.SortFunc(s.seconds, func(a, b seconds) int {
		return cmp.Or(cmp.Compare(b.took, a.took), cmp.Compare(a.step, b.step), cmp.Compare(a.pkg, b.pkg))
	})
	return s
}

func (c *counts) add(d counts) {
	c.Passed += d.Passed
	c.Failed += d.Failed
	c.Flaky += d.Flaky
	c.Skipped += d.Skipped
	c.Out += d.Out
}

// print prints the summary but for the verdict. took has the name and the time of each step.
func (s summary) print(out io.Writer, took []string) {
	s.printSkipped(out)
	fmt.Fprintf(out, "== time of each step: %s\n", strings.Join(took, ", "))
	if len(s.seconds) > 0 {
		var slowest []string
		for _, p := range s.seconds[:min(mostPackages, len(s.seconds))] {
			slowest = append(slowest, fmt.Sprintf("%s %.1f s (%s)", path.Base(p.pkg), p.took, p.step))
		}
		fmt.Fprintf(out, "== the packages that took longest: %s\n", strings.Join(slowest, ", "))
	}
	if len(s.flaky) > 0 {
		fmt.Fprintln(out, "== flaky: they failed, and passed when they were tried again alone; the next change mends them")
		printFlaky(out, s.flaky)
	}
	if failures := append(slices.Clone(s.failures), s.missing...); len(failures) > 0 {
		fmt.Fprintln(out, "== failures")
		printFailures(out, failures)
	}
	if c := s.counts; s.tested {
		fmt.Fprintf(out, "== tests: %d passed, %d failed, %d flaky, %d skipped, %d left out (another step runs them)\n",
			c.Passed, c.Failed, c.Flaky, c.Skipped, c.Out)
	}
}

// printSkipped prints how many were skipped for each reason, and the first of them.
func (s summary) printSkipped(out io.Writer) {
	if len(s.skipped) == 0 {
		return
	}
	fmt.Fprintf(out, "== skipped: %d\n", len(s.skipped))
	var reasons []string
	tests := map[string][]string{}
	for _, line := range s.skipped {
		test, reason, _ := strings.Cut(line, ": ")
		if tests[reason] == nil {
			reasons = append(reasons, reason)
		}
		tests[reason] = append(tests[reason], test)
	}
	for _, reason := range reasons {
		more := ""
		if len(tests[reason]) > 1 {
			more = ", ..."
		}
		fmt.Fprintf(out, "  %3d  %s (%s%s)\n", len(tests[reason]), reason, tests[reason][0], more)
	}
}

// flakyLine matches what the end says about a flaky test: its name, its messages, and how to repeat it.
var flakyLine = regexp.MustCompile(`^([^ ]|    .*_test\.go:|  again:)`)

func printFlaky(out io.Writer, flaky []string) {
	n := 0
	for line := range strings.Lines(strings.Join(flaky, "")) {
		if flakyLine.MatchString(line) && n < mostFlakyText {
			fmt.Fprint(out, line)
			n++
		}
	}
}

// printFailures prints the first failures, some of them in full.
func printFailures(out io.Writer, failures []string) {
	for i, text := range failures[:min(len(failures), mostFailures)] {
		lines := slices.Collect(strings.Lines(text))
		if i >= wholeFailures && len(lines) > 3 {
			lines = []string{lines[0], lines[1], lines[len(lines)-1]}
		}
		fmt.Fprint(out, strings.Join(lines, ""))
	}
	if more := len(failures) - mostFailures; more > 0 {
		fmt.Fprintf(out, "and %d more, above\n", more)
	}
}
