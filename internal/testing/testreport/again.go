package main

import (
	"fmt"
	"slices"
	"strings"
)

// secondTries tries the doubtful failures of a report again. The report gets the flaky tests among them.
type secondTries struct {
	report  *report
	run     func(pkg, test string) *report   // runs one test, or without a name those of the package
	source  func(pkg string) (source, error) // reads the test files of a package
	isNew   func(s source, test string) bool // whether the change adds or edits a test
	stopped func() bool                      // after a signal no test is tried
}

const (
	mostTests = 10 // more failures than that have a cause in common
	tries     = 2
)

// all tries the tests, and records in the report those that fail each time, and the flaky ones that the change adds or edits.
func (s *secondTries) all() {
	type test struct{ pkg, name string }
	var order []test
	parts := map[test][]failure{}
	for _, f := range s.report.doubtful {
		t := test{f.pkg, f.top()}
		if parts[t] == nil {
			order = append(order, t)
		}
		parts[t] = append(parts[t], f)
	}
	s.report.doubtful = nil
	var flaky []string // packages
	for _, t := range order {
		functions, err := s.source(t.pkg)
		doubtful := err == nil && len(order) <= mostTests && !slices.ContainsFunc(parts[t], isVirtual) && functions.isOutside(t.name)
		if !doubtful || !s.passes(t.pkg, t.name) {
			s.report.failed++
			s.report.record(parts[t]...)
			continue
		}
		flaky = append(flaky, t.pkg)
		s.report.Counts.Failed--
		s.report.Counts.Flaky++
		edited := s.isNew(functions, t.name)
		for _, f := range parts[t] {
			s.report.Flaky = append(s.report.Flaky, s.report.describe(f))
			if edited {
				s.report.failed++
				f.output = append(f.output, "a second try passed: the test is flaky, and this change adds or edits it\n")
				s.report.record(f)
			}
		}
	}
	slices.Sort(flaky)
	for _, pkg := range slices.Compact(flaky) {
		s.whole(pkg)
	}
}

// whole runs a package of which a test was flaky once more: what its TestMain says after tests that pass, such as that goroutines are
// left, it has not said.
func (s *secondTries) whole(pkg string) {
	if s.report.failed > 0 || s.stopped() {
		return
	}
	r := s.run(pkg, "")
	fmt.Fprintf(s.report.out, "again, the whole package: %s: %s\n", pkg, outcome(r.passed()))
	if r.passed() {
		return
	}
	s.report.failed++
	r.record(r.doubtful...)
	if len(r.Failures) == 0 {
		r.record(failure{pkg, "", []string{"the second run of the package failed\n"}})
	}
	s.report.Failures = append(s.report.Failures, r.Failures...)
}

func outcome(passed bool) string {
	if passed {
		return "passed"
	}
	return "failed"
}

// isVirtual reports whether a failure is of a part of a test that package backends runs in virtual time.
func isVirtual(f failure) bool { return strings.HasPrefix(f.test+"/", f.top()+"/mem/") }

// passes reports whether a test passes when it is tried again. The rules read files, which do not change.
func (s *secondTries) passes(pkg, test string) bool {
	for try := 1; try <= tries && s.report.step != "rules" && !s.stopped(); try++ {
		r := s.run(pkg, test)
		passed := r.passed() && r.Counts.Passed > 0
		fmt.Fprintf(s.report.out, "again, alone: %s %s, try %d of %d: %s\n", pkg, test, try, tries, outcome(passed))
		if passed {
			return true
		}
		if r.failed > 0 && len(r.doubtful) == 0 { // not a test that failed: a race, a panic, a package
			return false
		}
	}
	return false
}
