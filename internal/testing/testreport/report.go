package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action, Package, ImportPath, FailedBuild, Test, Output string
	Elapsed                                                float64
	Time                                                   time.Time
}

// report holds the results that were read so far.
type report struct {
	out   io.Writer
	times *timeline // takes when tests run; may be nil
	// output holds the output of tests that have not ended yet, or have failed, by package
	// and test. The test "" is the package itself.
	output map[string]map[string][]string
	builds map[string][]string // the errors of the compiler, by package
	took   map[string]float64  // seconds, of the packages that have ended
	skips  []string
	others bool                // tests that are skipped run in another step
	broken map[string][]string // the tests that failed, of packages that have not ended
	abrupt map[string]bool     // the packages of which a test said that goroutines raced, or that the process ended by itself
	ran    map[string]bool     // the packages of which a test has ended
	fails  int                 // the packages that failed
	counts counts

	doubtful []failure // the failures that a second try may answer
	failed   int       // the others
	failures []string  // those that make the step fail, as describe returns them
	flaky    []string  // the tests that passed when they were tried again, likewise
	step     string
	again    string
}

// counts are numbers of tests, without their parts. Those that are out run in another step.
type counts struct{ Passed, Failed, Flaky, Skipped, Out int }

// failure is a test that failed, or one of its parts.
type failure struct {
	pkg, test string
	output    []string
}

// top returns the name of the test that f is or belongs to.
func (f failure) top() string {
	name, _, _ := strings.Cut(f.test, "/")
	return name
}

func newReport(out io.Writer) *report {
	return &report{
		out: out, output: map[string]map[string][]string{}, builds: map[string][]string{}, took: map[string]float64{},
		broken: map[string][]string{}, abrupt: map[string]bool{}, ran: map[string]bool{},
	}
}

// read reads all events. It prints lines that are not events.
func (r *report) read(from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				fmt.Fprintf(r.out, "%s", line)
			} else {
				r.add(e)
			}
		}
		if err == io.EOF {
			r.unfinished()
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) add(e event) {
	r.times.add(e)
	switch {
	case e.Action == "build-output":
		r.builds[e.ImportPath] = append(r.builds[e.ImportPath], e.Output)
	case e.Action == "build-fail":
		r.failed++
		fmt.Fprintf(r.out, "FAIL %s: it does not compile, or vet has found something\n%s", e.ImportPath, strings.Join(r.builds[e.ImportPath], ""))
		r.record(failure{e.ImportPath, "does not compile, or vet has found something", r.builds[e.ImportPath]})
	case e.Action == "output":
		if r.output[e.Package] == nil {
			r.output[e.Package] = map[string][]string{}
		}
		said := r.output[e.Package]
		said[e.Test] = append(said[e.Test], e.Output)
		if abrupt.MatchString(e.Output) { // the test that it comes under may be another one, which passes
			r.abrupt[e.Package] = true
		}
	case e.Test != "":
		r.endTest(e)
	default:
		r.endPackage(e)
	}
}

func (r *report) endTest(e event) {
	switch e.Action {
	case "skip", "pass", "fail":
		r.ran[e.Package] = true
	}
	whole := !strings.Contains(e.Test, "/")
	switch e.Action {
	case "skip":
		why := reason(r.output[e.Package][e.Test])
		delete(r.output[e.Package], e.Test)
		switch {
		case !r.others:
			r.skips = append(r.skips, fmt.Sprintf("%s %s: %s", path.Base(e.Package), e.Test, why))
			if whole {
				r.counts.Skipped++
			}
		case whole:
			r.counts.Out++
		}
	case "pass":
		delete(r.output[e.Package], e.Test)
		if whole {
			r.counts.Passed++
		}
	case "fail":
		r.broken[e.Package] = append(r.broken[e.Package], e.Test)
		if whole {
			r.counts.Failed++
		}
	}
}

// logged matches the output of t.Log and t.Skip.
var logged = regexp.MustCompile(`^ +[^ :]+\.go:\d+: (.*)`)

// reason returns the last text that a test logged.
func reason(output []string) string {
	for _, line := range slices.Backward(output) {
		if m := logged.FindStringSubmatch(line); m != nil {
			return fmt.Sprintf("%.*s", mostColumns, strings.TrimSpace(m[1]))
		}
	}
	return "no reason given"
}

func (r *report) endPackage(e event) {
	said := r.output[e.Package]
	if e.Action == "pass" && len(r.broken[e.Package]) > 0 { // its TestMain has lost the status of the tests
		e.Action, r.abrupt[e.Package] = "fail", true
	}
	switch e.Action {
	case "fail":
		r.fails++
		fmt.Fprintf(r.out, "FAIL %s (%.1f s)\n", e.Package, e.Elapsed)
		r.failPackage(e)
		for _, test := range slices.Sorted(maps.Keys(said)) {
			fmt.Fprint(r.out, strings.Join(said[test], ""))
		}
	case "pass":
		cached := ""
		if !r.ran[e.Package] {
			cached = ", no test ran"
		}
		if slices.ContainsFunc(said[""], func(line string) bool { return strings.HasSuffix(line, "\t(cached)\n") }) {
			cached += ", the result is from before"
		}
		fmt.Fprintf(r.out, "ok   %s (%.1f s%s)\n", e.Package, e.Elapsed, cached)
	case "skip": // it has no tests
	default:
		return
	}
	r.took[e.Package] = e.Elapsed
	delete(r.output, e.Package)
	delete(r.broken, e.Package)
}

// failPackage notes the failures of a package that has ended. A test that failed alone may be doubtful; a
// package that ended abruptly, before the end of its tests or without a failed test, is not.
func (r *report) failPackage(e event) {
	found, cut := r.failuresOf(e), r.cut(e.Package, "it had not ended when its process did\n")
	if len(r.broken[e.Package]) > 0 && len(cut) == 0 && !r.abrupt[e.Package] {
		r.doubtful = append(r.doubtful, found...)
		return
	}
	r.failed++
	if len(cut) > 0 && len(r.broken[e.Package]) == 0 {
		found = cut
	} else {
		found = append(found, cut...)
	}
	for _, f := range found {
		r.record(f)
	}
}

// cut returns the tests of a package that had begun and did not end, those first that say why the process ended.
func (r *report) cut(pkg, why string) (found []failure) {
	said := r.output[pkg]
	for _, test := range slices.Sorted(maps.Keys(said)) {
		if test == "" || slices.Contains(r.broken[pkg], test) {
			continue
		}
		f := failure{pkg, test, append(slices.Clone(said[test]), why)}
		if slices.ContainsFunc(said[test], abrupt.MatchString) {
			found = slices.Insert(found, 0, f)
		} else {
			found = append(found, f)
		}
	}
	return found
}

// failuresOf returns the failures of a package: its tests that failed, without those of which only a part did, or else the
// package itself.
func (r *report) failuresOf(e event) (found []failure) {
	broken := r.broken[e.Package]
	for _, test := range broken {
		if !slices.ContainsFunc(broken, func(other string) bool { return strings.HasPrefix(other, test+"/") }) {
			found = append(found, failure{e.Package, test, r.output[e.Package][test]})
		}
	}
	if len(broken) == 0 && len(r.builds[e.FailedBuild]) == 0 {
		found = append(found, failure{e.Package, "", slices.Concat(r.builds[e.Package], r.output[e.Package][""])})
	}
	return found
}

// unfinished records the tests that had not ended when the output ended: go test was stopped.
func (r *report) unfinished() {
	for _, pkg := range slices.Sorted(maps.Keys(r.output)) {
		r.failed++
		var found []failure
		if len(r.broken[pkg]) > 0 {
			found = r.failuresOf(event{Package: pkg})
		}
		found = append(found, r.cut(pkg, "it had not ended when go test was stopped\n")...)
		if len(found) == 0 {
			found = []failure{{pkg, "", []string{"the package had not ended: go test was stopped, or a test ended the process\n"}}}
		}
		for _, f := range found {
			r.record(f)
		}
	}
}

var (
	noise  = regexp.MustCompile(`^(=== |PASS$|FAIL$|exit status |FAIL\t| *--- )`)
	abrupt = regexp.MustCompile(`DATA RACE|race detected (during|outside of)|^panic:|^fatal error:`)
)

// record appends a failure to those that make the step fail.
func (r *report) record(f failure) { r.failures = append(r.failures, r.describe(f)) }

// describe returns a failure as text: where it was, the six lines of the output that say most, and how to repeat it.
func (r *report) describe(f failure) string {
	var lines []string
	for _, line := range strings.Split(strings.Join(f.output, ""), "\n") {
		if strings.TrimSpace(line) != "" && !noise.MatchString(line) {
			lines = append(lines, line)
		}
	}
	whole := false // the package repeats it, and the test alone may not
	if from := slices.IndexFunc(lines, abrupt.MatchString); from >= 0 {
		lines = ownFrames(lines[from:])
		whole = ofAGoroutine(lines)
	} else {
		lines = messages(lines)
	}
	pkg, _, _ := strings.Cut(f.pkg, " ") // "m/a [m/a.test]" is the package with its tests
	run := ""
	if name := f.top(); whole {
	} else if testName.MatchString(name) {
		run = fmt.Sprintf(" -run '^%s$'", name)
	}
	return entry(fmt.Sprintf("%s: %s %s", r.step, pkg, f.test), lines, fmt.Sprintf("%s%s %s", r.again, run, pkg))
}

// messages returns the last message of a test, from its beginning, with what stands before it as far as there is room. If the test has
// logged more, the first two lines of the first message come first: it may say why the test failed, and the others what it did then.
func messages(lines []string) []string {
	first, last := slices.IndexFunc(lines, logged.MatchString), len(lines)
	for last > 0 && !logged.MatchString(lines[last-1]) {
		last--
	}
	from := max(0, min(last-1, len(lines)-mostLines))
	if first < 0 || first >= from {
		return lines[from:]
	}
	return slices.Concat(lines[first:first+2], lines[max(first+2, min(last-1, len(lines)-mostLines+2)):])
}

// ownFrames returns the lines of a panic or race without the frames of the standard library, and without goroutines of which
// nothing else is left.
func ownFrames(lines []string) (own []string) {
	for i := 0; i < len(lines); i++ {
		switch {
		case i+1 < len(lines) && libraryFrame.MatchString(lines[i+1]):
			i++
		case libraryFrame.MatchString(lines[i]):
		case goroutineHead.MatchString(lines[i]) && len(own) > 0 && goroutineHead.MatchString(own[len(own)-1]):
			own[len(own)-1] = lines[i]
		default:
			own = append(own, lines[i])
		}
	}
	return own
}

// ofAGoroutine reports whether the goroutine that a panic names first is one that a test has started.
func ofAGoroutine(lines []string) bool {
	if strings.HasPrefix(lines[0], "panic: test timed out") {
		return false
	}
	heads := 0
	for _, line := range lines {
		if goroutineHead.MatchString(line) {
			heads++
		}
		if heads == 1 && strings.HasPrefix(line, "created by ") {
			return true
		}
	}
	return false
}

var (
	libraryFrame = regexp.MustCompile(`^\s+_testmain\.go:|^\s+(/.*/src/)?` +
		`(context|internal/\w+|io|net|os|reflect|runtime|sync|syscall|testing|time)(/\w+)*/\w+\.go:\d+`)
	goroutineHead = regexp.MustCompile(`^goroutine \d+ \[`)
)

// ranAny reports whether a test ran or was skipped.
func (r *report) ranAny() bool {
	return r.counts.Passed+r.counts.Failed+r.counts.Skipped+r.counts.Out > 0
}

// passed reports whether there were packages, and none failed.
func (r *report) passed() bool { return r.failed == 0 && len(r.doubtful) == 0 && len(r.took) > 0 }

// slowest prints the n packages that took longest.
func (r *report) slowest(n int) {
	all := slices.Sorted(maps.Keys(r.took))
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(r.took[b], r.took[a]) })
	var parts []string
	for _, p := range all[:min(n, len(all))] {
		parts = append(parts, fmt.Sprintf("%s %.1f s", path.Base(p), r.took[p]))
	}
	fmt.Fprintf(r.out, "%d packages; the slowest: %s\n", len(all), strings.Join(parts, ", "))
}
