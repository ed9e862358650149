package main

import (
	"bufio"
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
	result
	out     io.Writer
	times   *timeline           // takes when tests run; may be nil
	running map[string]*running // the packages that have not ended
	builds  map[string][]string // the errors of the compiler, by package
	others  bool                // tests that are skipped run in another step
	step    string
	again   string // the command that repeats a test, without its name and its package

	broken   int       // the packages that failed
	doubtful []failure // the failures that a second try may answer
	failed   int       // the others
}

// running is a package that is being tested.
type running struct {
	output map[string][]string // of the tests that have not ended, or have failed; "" is the package itself
	failed []string            // the tests that failed
	abrupt bool                // a test said that goroutines raced, or that the process ended by itself
	ran    bool                // a test has ended
}

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
	return &report{out: out, running: map[string]*running{}, builds: map[string][]string{}}
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
	p := r.running[e.Package]
	if p == nil {
		p = &running{output: map[string][]string{}}
	}
	switch e.Action {
	case "build-output":
		r.builds[e.ImportPath] = append(r.builds[e.ImportPath], e.Output)
	case "build-fail":
		r.failed++
		fmt.Fprintf(r.out, "FAIL %s: it does not compile, or vet has found something\n%s", e.ImportPath, strings.Join(r.builds[e.ImportPath], ""))
		r.record(failure{e.ImportPath, "does not compile, or vet has found something", r.builds[e.ImportPath]})
	case "output":
		r.running[e.Package] = p
		p.output[e.Test] = append(p.output[e.Test], e.Output)
		p.abrupt = p.abrupt || abrupt.MatchString(e.Output) // the test that it comes under may be another one, which passes
	case "pass", "fail", "skip":
		if e.Test == "" {
			delete(r.running, e.Package)
			r.endPackage(e, p)
		} else {
			r.running[e.Package] = p
			r.endTest(e, p)
		}
	}
}

func (r *report) endTest(e event, p *running) {
	n := 1
	if strings.Contains(e.Test, "/") {
		n = 0 // a part of a test is not counted
	}
	p.ran = true
	switch {
	case e.Action == "fail":
		p.failed = append(p.failed, e.Test)
		r.Counts.Failed += n
		return
	case e.Action == "pass":
		r.Counts.Passed += n
	case r.others:
		r.Counts.Out += n
	default:
		r.Counts.Skipped += n
		r.Skipped = append(r.Skipped, fmt.Sprintf("%s %s: %s", path.Base(e.Package), e.Test, reason(p.output[e.Test])))
	}
	delete(p.output, e.Test)
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

func (r *report) endPackage(e event, p *running) {
	r.Packages = append(r.Packages, tested{e.Package, r.step, e.Elapsed})
	switch {
	case e.Action == "fail" || len(p.failed) > 0: // its TestMain may have lost the status of the tests
		p.abrupt = p.abrupt || e.Action == "pass"
		r.broken++
		fmt.Fprintf(r.out, "FAIL %s (%.1f s)\n", e.Package, e.Elapsed)
		r.failPackage(e, p)
		for _, test := range slices.Sorted(maps.Keys(p.output)) {
			fmt.Fprint(r.out, strings.Join(p.output[test], ""))
		}
	case e.Action == "pass":
		how := ""
		if !p.ran {
			how = ", no test ran"
		}
		if slices.ContainsFunc(p.output[""], func(line string) bool { return strings.HasSuffix(line, "\t(cached)\n") }) {
			how += ", the result is from before"
		}
		fmt.Fprintf(r.out, "ok   %s (%.1f s%s)\n", e.Package, e.Elapsed, how)
	}
}

// failPackage notes the failures of a package that has ended. A test that failed alone may be doubtful; a
// package that ended abruptly, before the end of its tests or without a failed test, is not.
func (r *report) failPackage(e event, p *running) {
	found, cut := p.failures(e.Package, "it had not ended when its process did\n")
	if len(p.failed) > 0 && !cut && !p.abrupt {
		r.doubtful = append(r.doubtful, found...)
		return
	}
	r.failed++
	if len(found) == 0 && len(r.builds[e.FailedBuild]) == 0 {
		found = []failure{{e.Package, "", slices.Concat(r.builds[e.Package], p.output[""])}}
	}
	r.record(found...)
}

// failures returns the tests of a package that failed, without those of which only a part did, and then those that had begun and did
// not end, first the ones that say why. cut reports whether there are such.
func (p *running) failures(pkg, why string) (found []failure, cut bool) {
	for _, test := range p.failed {
		if !slices.ContainsFunc(p.failed, func(other string) bool { return strings.HasPrefix(other, test+"/") }) {
			found = append(found, failure{pkg, test, p.output[test]})
		}
	}
	var silent []failure
	for _, test := range slices.Sorted(maps.Keys(p.output)) {
		f := failure{pkg, test, append(slices.Clone(p.output[test]), why)}
		switch {
		case test == "" || slices.Contains(p.failed, test):
		case slices.ContainsFunc(f.output, abrupt.MatchString):
			found, cut = append(found, f), true
		default:
			silent, cut = append(silent, f), true
		}
	}
	return append(found, silent...), cut
}

// unfinished records the tests that had not ended when the output ended: go test was stopped.
func (r *report) unfinished() {
	for _, pkg := range slices.Sorted(maps.Keys(r.running)) {
		r.failed++
		found, _ := r.running[pkg].failures(pkg, "it had not ended when go test was stopped\n")
		if len(found) == 0 {
			found = []failure{{pkg, "", []string{"the package had not ended: go test was stopped, or a test ended the process\n"}}}
		}
		r.record(found...)
	}
}

var (
	noise  = regexp.MustCompile(`^(=== |PASS$|FAIL$|exit status |FAIL\t| *--- )`)
	abrupt = regexp.MustCompile(`DATA RACE|race detected (during|outside of)|^panic:|^fatal error:`)
	ended  = regexp.MustCompile(`^panic:|^fatal error:`)
)

// record appends failures to those that make the step fail.
func (r *report) record(all ...failure) {
	for _, f := range all {
		r.Failures = append(r.Failures, r.describe(f))
	}
}

// describe returns a failure as text: where it was, the six lines of the output that say most, and how to repeat it.
func (r *report) describe(f failure) string {
	var lines []string
	for _, line := range strings.Split(strings.Join(f.output, ""), "\n") {
		if strings.TrimSpace(line) != "" && !noise.MatchString(line) {
			lines = append(lines, line)
		}
	}
	alone := testName.MatchString(f.test)
	if from := slices.IndexFunc(lines, abrupt.MatchString); from >= 0 {
		lines = ownFrames(lines[from:])
		// A goroutine of a different test may have ended the process.
		alone = alone && (!ended.MatchString(lines[0]) || strings.HasPrefix(lines[0], "panic: test timed out"))
	} else {
		lines = messages(lines)
	}
	pkg, _, _ := strings.Cut(f.pkg, " ") // "m/a [m/a.test]" is the package with its tests
	run := ""
	if alone {
		run = fmt.Sprintf(" -run '^%s$'", f.top())
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

// ownFrames returns the lines of a panic or race without the frames of the standard library and the heads of goroutines.
func ownFrames(lines []string) (own []string) {
	for i, line := range lines {
		called := i+1 < len(lines) && libraryFrame.MatchString(lines[i+1])
		if !called && !libraryFrame.MatchString(line) && !strings.HasPrefix(line, "goroutine ") {
			own = append(own, line)
		}
	}
	return own
}

// libraryFrame matches the place in a file of the standard library, which stands below the function.
var libraryFrame = regexp.MustCompile(`^\s+_testmain\.go:|^\s+(/.*/src/)?` +
	`(context|internal/\w+|io|net|os|reflect|runtime|sync|syscall|testing|time)(/\w+)*/\w+\.go:\d+`)

// passed reports whether there were packages, and none failed.
func (r *report) passed() bool { return r.failed == 0 && len(r.doubtful) == 0 && len(r.Packages) > 0 }
