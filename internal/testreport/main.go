// Command testreport reads what `go test -json` writes. It prints one line for each
// package, and the output of tests that failed; at the end the packages that took longest.
//
//	go test -json ./... | testreport -skipped FILE -failures FILE -step NAME -again "go test"
//
// It appends to the first file one line for each skipped test: the package, the test and the reason. To the second file it
// appends each failure as soon as it knows it: the step and the test, up to six indented lines of what the test said, and
// the command that repeats it. A signal does not end it: it reads on until `go test` has ended.
// It exits with status 1 if a test, a package or a build failed, or if no package was
// tested.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

func main() {
	skipped := flag.String("skipped", "", "the file to which skipped tests are appended")
	failures := flag.String("failures", "", "the file to which failures are appended")
	step := flag.String("step", "test", "the name of the step in failures")
	again := flag.String("again", "go test", "the command that repeats a failure, without -run and the package")
	flag.Parse()
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	r := newReport(os.Stdout)
	r.step, r.again = *step, *again
	if *failures != "" {
		f, err := os.OpenFile(*failures, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			fmt.Fprintln(os.Stderr, "testreport:", err)
			os.Exit(2)
		}
		r.failures = f
	}
	err := r.read(os.Stdin)
	if err == nil && *skipped != "" {
		err = r.append(*skipped)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	r.slowest(8)
	if !r.passed() {
		os.Exit(1)
	}
}

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action, Package, ImportPath, FailedBuild, Test, Output string
	Elapsed                                                float64
}

// report holds the results that were read so far.
type report struct {
	out io.Writer
	// output holds the output of tests that have not ended yet, or have failed, by package
	// and test. The test "" is the package itself.
	output map[string]map[string][]string
	builds map[string][]string // the errors of the compiler, by package
	took   map[string]float64  // seconds, of the packages that have ended
	skips  []string
	broken map[string][]string // the tests that failed, of packages that have not ended
	failed int

	failures    io.Writer
	step, again string
}

func newReport(out io.Writer) *report {
	return &report{
		out: out, output: map[string]map[string][]string{}, builds: map[string][]string{}, took: map[string]float64{},
		broken: map[string][]string{}, failures: io.Discard,
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
	switch {
	case e.Action == "build-output":
		r.builds[e.ImportPath] = append(r.builds[e.ImportPath], e.Output)
	case e.Action == "build-fail":
		r.failed++
		fmt.Fprintf(r.out, "FAIL %s: it does not compile\n%s", e.ImportPath, strings.Join(r.builds[e.ImportPath], ""))
		r.record(e.ImportPath, "does not compile", r.builds[e.ImportPath])
	case e.Action == "output":
		if r.output[e.Package] == nil {
			r.output[e.Package] = map[string][]string{}
		}
		said := r.output[e.Package]
		said[e.Test] = append(said[e.Test], e.Output)
	case e.Test != "":
		r.endTest(e)
	default:
		r.endPackage(e)
	}
}

func (r *report) endTest(e event) {
	switch e.Action {
	case "skip":
		r.skips = append(r.skips, fmt.Sprintf("%s %s: %s", path.Base(e.Package), e.Test, reason(r.output[e.Package][e.Test])))
		delete(r.output[e.Package], e.Test)
	case "pass":
		delete(r.output[e.Package], e.Test)
	case "fail":
		r.broken[e.Package] = append(r.broken[e.Package], e.Test)
	}
}

// logged matches the output of t.Log and t.Skip.
var logged = regexp.MustCompile(`^ +[^ :]+\.go:\d+: (.*)`)

// reason returns the last text that a test logged.
func reason(output []string) string {
	for _, line := range slices.Backward(output) {
		if m := logged.FindStringSubmatch(line); m != nil {
			return strings.TrimSpace(m[1])
		}
	}
	return "no reason given"
}

func (r *report) endPackage(e event) {
	said := r.output[e.Package]
	switch e.Action {
	case "fail":
		r.failed++
		fmt.Fprintf(r.out, "FAIL %s (%.1f s)\n", e.Package, e.Elapsed)
		r.recordTests(e)
		for _, test := range sortedKeys(said) {
			fmt.Fprint(r.out, strings.Join(said[test], ""))
		}
	case "pass":
		cached := ""
		if slices.ContainsFunc(said[""], func(line string) bool { return strings.HasSuffix(line, "\t(cached)\n") }) {
			cached = ", the result is from before"
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

// recordTests records the failures of a package that has ended: its tests that failed, without those of which only a part
// did, or else the package itself.
func (r *report) recordTests(e event) {
	broken := r.broken[e.Package]
	for _, test := range broken {
		if !slices.ContainsFunc(broken, func(other string) bool { return strings.HasPrefix(other, test+"/") }) {
			r.record(e.Package, test, r.output[e.Package][test])
		}
	}
	if len(broken) == 0 && len(r.builds[e.FailedBuild]) == 0 {
		r.record(e.Package, "", slices.Concat(r.builds[e.Package], r.output[e.Package][""]))
	}
}

// unfinished records the tests that had not ended when the output ended: go test was stopped.
func (r *report) unfinished() {
	for _, pkg := range sortedKeys(r.output) {
		r.failed++
		if len(r.broken[pkg]) > 0 {
			r.recordTests(event{Package: pkg})
		}
		for _, test := range sortedKeys(r.output[pkg]) {
			if test != "" && !slices.Contains(r.broken[pkg], test) {
				r.record(pkg, test, append(r.output[pkg][test], "it had not ended when go test was stopped\n"))
			}
		}
	}
}

var (
	noise  = regexp.MustCompile(`^(=== |PASS$|FAIL$|exit status |FAIL\t| *--- )`)
	abrupt = regexp.MustCompile(`DATA RACE|^panic:|^fatal error:|panic: test timed out`)
)

// record appends a failure: where it was, the six lines of the output that say most, and how to repeat it.
func (r *report) record(pkg, what string, output []string) {
	const most = 6
	var lines []string
	for _, line := range strings.Split(strings.Join(output, ""), "\n") {
		if strings.TrimSpace(line) != "" && !noise.MatchString(line) {
			lines = append(lines, line)
		}
	}
	from := slices.IndexFunc(lines, abrupt.MatchString)
	if from < 0 { // the last message of the test, from its beginning, with what stands before it as far as there is room
		from = len(lines) - most
		for i, line := range slices.Backward(lines) {
			if logged.MatchString(line) {
				from = min(from, i)
				break
			}
		}
	}
	pkg, _, _ = strings.Cut(pkg, " ") // "m/a [m/a.test]" is the package with its tests
	fmt.Fprintf(r.failures, "%s: %s %s\n", r.step, pkg, what)
	for _, line := range lines[max(0, from):min(len(lines), max(0, from)+most)] {
		fmt.Fprintf(r.failures, "    %.300s\n", line)
	}
	run := ""
	if strings.HasPrefix(what, "Test") || strings.HasPrefix(what, "Example") || strings.HasPrefix(what, "Fuzz") {
		name, _, _ := strings.Cut(what, "/")
		run = fmt.Sprintf(" -run '^%s$'", name)
	}
	fmt.Fprintf(r.failures, "  again: %s%s %s\n", r.again, run, pkg)
}

// passed reports whether there were packages, and none failed.
func (r *report) passed() bool { return r.failed == 0 && len(r.took) > 0 }

func (r *report) append(name string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	for _, line := range r.skips {
		if _, err := fmt.Fprintln(f, line); err != nil {
			_ = f.Close()
			return err
		}
	}
	return f.Close()
}

// slowest prints the n packages that took longest.
func (r *report) slowest(n int) {
	all := sortedKeys(r.took)
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(r.took[b], r.took[a]) })
	var parts []string
	for _, p := range all[:min(n, len(all))] {
		parts = append(parts, fmt.Sprintf("%s %.1f s", path.Base(p), r.took[p]))
	}
	fmt.Fprintf(r.out, "%d packages; the slowest: %s\n", len(all), strings.Join(parts, ", "))
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
