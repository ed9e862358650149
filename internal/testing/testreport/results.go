package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

// result is the part of a run of go test, or of a step, in the end of the output. Each of its texts but those of Skipped is made by entry.
type result struct {
	Skipped  []string // "what: reason"
	Failures []string // of tests and tools
	Missing  []string // of what cannot run because the machine or the network lacks something
	Flaky    []string // of tests that passed when they were tried again
	Counts   counts
	Packages []tested
}

// counts are numbers of tests, without their parts. Those that are out run in another step.
type counts struct{ Passed, Failed, Flaky, Skipped, Out int }

// tested is a package whose tests have ended.
type tested struct {
	Name, Step string
	Seconds    float64
}

const (
	mostLines     = 6 // of an entry
	mostColumns   = 300
	mostFailures  = 10
	wholeFailures = 2 // of the others the end has three lines, as of a flaky test
	mostPackages  = 5
	mostFlaky     = 3 // more flaky tests than that are a failure
)

// entry is the text of a failure: a head, some lines of what was said, and the command that repeats it.
func entry(head string, lines []string, again string) string {
	var text strings.Builder
	fmt.Fprintln(&text, head)
	for _, line := range lines[:min(len(lines), mostLines)] {
		fmt.Fprintf(&text, "    %.*s\n", mostColumns, line)
	}
	fmt.Fprintf(&text, "  again: %s\n", again)
	return text.String()
}

// repeatStep is the command that runs a step alone.
func repeatStep(step string) string {
	if step == "lint" { // without EBB_LINT it builds no linter
		return "EBB_LINT=1 .ci/test lint"
	}
	return ".ci/test " + step
}

// add adds what another run or step has found.
func (r *result) add(o result) {
	r.Skipped = append(r.Skipped, o.Skipped...)
	r.Failures = append(r.Failures, o.Failures...)
	r.Missing = append(r.Missing, o.Missing...)
	r.Flaky = append(r.Flaky, o.Flaky...)
	r.Packages = append(r.Packages, o.Packages...)
	r.Counts.Passed += o.Counts.Passed
	r.Counts.Failed += o.Counts.Failed
	r.Counts.Flaky += o.Counts.Flaky
	r.Counts.Skipped += o.Counts.Skipped
	r.Counts.Out += o.Counts.Out
}

// save appends r to a file, as a line of JSON. Without a name, outside of a run, it does nothing.
func (r result) save(name string) error {
	if name == "" {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(line, '\n')); err != nil { // one call, so that lines do not mix
		return err
	}
	return f.Close()
}

// take returns the sum of what was saved in a file, and removes the file. A process that was killed may have written a part of a line.
func take(name string) (sum result, err error) {
	f, err := os.Open(name)
	if os.IsNotExist(err) {
		return sum, nil
	}
	if err != nil {
		return sum, err
	}
	defer os.Remove(name)
	defer f.Close()
	for lines := json.NewDecoder(f); lines.More(); {
		var r result
		if err := lines.Decode(&r); err != nil {
			return sum, fmt.Errorf("%s: %w", name, err)
		}
		sum.add(r)
	}
	return sum, nil
}

// print prints the end of a run but for the verdict. took has the name and the time of each step.
func (r result) print(out io.Writer, took []string) {
	r.printSkipped(out)
	fmt.Fprintf(out, "== time of each step: %s\n", strings.Join(took, ", "))
	if slowest := r.slowest(); slowest != "" {
		fmt.Fprintf(out, "== the packages that took longest: %s\n", slowest)
	}
	if len(r.Flaky) > 0 {
		fmt.Fprintln(out, "== flaky: they failed, and passed when they were tried again alone; the next change mends them")
		printTexts(out, r.Flaky, mostFlaky+1, 0)
	}
	if failures := slices.Concat(r.Failures, r.Missing); len(failures) > 0 {
		fmt.Fprintln(out, "== failures")
		printTexts(out, failures, mostFailures, wholeFailures)
	}
	if c := r.Counts; c != (counts{}) {
		fmt.Fprintf(out, "== tests: %d passed, %d failed, %d flaky, %d skipped, %d left out (another step runs them)\n",
			c.Passed, c.Failed, c.Flaky, c.Skipped, c.Out)
	}
}

// printSkipped prints how many were skipped for each reason, and the first of them.
func (r result) printSkipped(out io.Writer) {
	all := slices.Compact(slices.Sorted(slices.Values(r.Skipped)))
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(out, "== skipped: %d\n", len(all))
	var reasons []string
	tests := map[string][]string{}
	for _, line := range all {
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

// slowest names the packages that took longest.
func (r result) slowest() string {
	all := slices.SortedFunc(slices.Values(r.Packages), func(a, b tested) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Step, b.Step), cmp.Compare(a.Name, b.Name))
	})
	var names []string
	for _, p := range all[:min(mostPackages, len(all))] {
		names = append(names, fmt.Sprintf("%s %.1f s (%s)", path.Base(p.Name), p.Seconds, p.Step))
	}
	return strings.Join(names, ", ")
}

// printTexts prints the first texts, some of them whole, and of the others the head, the first line and the command.
func printTexts(out io.Writer, texts []string, most, whole int) {
	for i, text := range texts[:min(len(texts), most)] {
		lines := slices.Collect(strings.Lines(text))
		if i >= whole && len(lines) > 3 {
			lines = []string{lines[0], lines[1], lines[len(lines)-1]}
		}
		fmt.Fprint(out, strings.Join(lines, ""))
	}
	if more := len(texts) - most; more > 0 {
		fmt.Fprintf(out, "and %d more, above\n", more)
	}
}
