// Command testreport runs `go test -json`. It prints one line for each package, and the output of tests that failed;
// at the end the packages that took longest.
//
//	testreport [flags] go test -json [-flag=value ...] PACKAGES
//
// It tries a failed test again, alone and at most twice, if its result can depend on what happens outside of its process:
// on other processes, sockets or the machine's clock. It does so for ten tests at most, and never after a data race, a
// panic or an error of the compiler. A test that passes then is flaky.
//
// It appends to the files that its flags name. A line of -skipped is a skipped test: the package, the test and the
// reason. -failures and -flaky get the step and the test, up to six indented lines of what the test said, and the command
// that repeats it. A line of -counts has the numbers of tests that passed, failed, were flaky, were skipped and are left out, and a
// line of -seconds a package and how long it took. A signal does not end it: it reads on until `go test` has ended.
//
// It exits with status 1 if a test, a package or a build failed, if no package was tested or no test has the names of -run, or if
// a flaky test is one that was added or edited since the commit EBB_BASE (HEAD~1).
//
//	testreport -changed
//
// names those tests: `make again` runs them many times.
//
//	testreport -commits
//
// checks the messages of the commits since EBB_BASE (HEAD~1).
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() {
	var to outputs
	flag.StringVar(&to.skipped, "skipped", os.DevNull, "the file to which skipped tests are appended")
	flag.StringVar(&to.failures, "failures", os.DevNull, "the file to which failures are appended")
	flag.StringVar(&to.flaky, "flaky", os.DevNull, "the file to which flaky tests are appended")
	flag.StringVar(&to.counts, "counts", os.DevNull, "the file to which the numbers of tests are appended")
	flag.StringVar(&to.seconds, "seconds", os.DevNull, "the file to which the time of each package is appended")
	others := flag.Bool("others", false, "skipped tests run in another step: count them as left out, and do not name them")
	changed := flag.Bool("changed", false, "run nothing: print a line for each directory with tests that were added or edited since "+
		"EBB_BASE, and a pattern for -run that finds them")
	commits := flag.Bool("commits", false, "run nothing: check the messages of the commits since EBB_BASE")
	step := flag.String("step", "test", "the name of the step in failures")
	again := flag.String("again", "go test", "the command that repeats a failure, without -run and the package")
	flag.Parse()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)

	var err error
	switch {
	case *changed:
		err = printChanged(os.Stdout)
	case *commits:
		err = checkCommits(os.Stdout)
	default:
		r := newReport(os.Stdout)
		r.step, r.again, r.others = *step, *again, *others
		err = r.test(to, flag.Args(), func() bool { return len(signals) > 0 })
	}
	switch err {
	case nil:
	case errFailed:
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
}

// outputs are the names of the files to which the results are appended.
type outputs struct{ skipped, failures, flaky, counts, seconds string }

// test runs a command, such as go test -json ./..., tries again what may be flaky until stopped, and appends the results to
// files. If tests have failed, the error is errFailed.
func (r *report) test(names outputs, command []string, stopped func() bool) error {
	var files []*os.File
	for _, name := range []string{names.skipped, names.failures, names.flaky, names.counts, names.seconds} {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	r.failures = files[1]
	ended, err := run(r, command)
	if err != nil {
		return err
	}
	trying := &secondTries{
		report: r, flaky: files[2], run: runAlone(command), source: sourceOf,
		stopped: stopped,
	}
	if trying.changed, trying.top, err = changedTests(); err != nil {
		if os.Getenv("CI") == "true" {
			return fmt.Errorf("no test is known to be new: %w", err)
		}
		fmt.Fprintln(os.Stderr, "testreport: no test is known to be new:", err)
	}
	trying.all()
	r.write(files[0], files[3], files[4])
	r.slowest(8)
	if !r.chosenRan(command) {
		r.failed++
		r.record(failure{"", "no test has the names of -run", nil})
	}
	// A flaky test explains why go test has failed only if its package is one that failed.
	if !r.passed() || !ended && (r.counts.flaky == 0 || r.fails == 0) {
		return errFailed
	}
	for _, f := range files {
		err = f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// write writes the skipped tests, the numbers of tests, and the time of each package.
func (r *report) write(skipped, counts, seconds io.Writer) {
	for _, line := range r.skips {
		fmt.Fprintln(skipped, line)
	}
	fmt.Fprintln(counts, r.counts.passed, r.counts.failed, r.counts.flaky, r.counts.skipped, r.counts.out)
	for _, pkg := range slices.Sorted(maps.Keys(r.took)) {
		fmt.Fprintf(seconds, "%.1f %s %s\n", r.took[pkg], r.step, pkg)
	}
}

var errFailed = fmt.Errorf("tests failed")

// run runs a command that writes events, reads them into r, and reports whether the command ended with status 0.
func run(r *report, args []string) (bool, error) {
	if len(args) == 0 {
		return false, fmt.Errorf("testreport takes the command that it runs, such as go test -json ./...")
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	if err := r.read(out); err != nil {
		return false, err
	}
	return cmd.Wait() == nil, nil
}

// runAlone returns a function that runs one test as args, a command of go test, runs all.
func runAlone(args []string) func(pkg, test string) *report {
	chosen := func(s string) bool {
		for _, flag := range []string{"-run=", "-skip=", "-count=", "-vet="} {
			if strings.HasPrefix(s, flag) {
				return true
			}
		}
		return !strings.HasPrefix(s, "-")
	}
	return func(pkg, test string) *report {
		all := slices.Concat(args[:2], slices.DeleteFunc(slices.Clone(args[2:]), chosen), []string{"-count=1", "-vet=off", "-run=^" + test + "$", pkg})
		r := newReport(io.Discard)
		ended, err := run(r, all)
		if err != nil || !ended {
			r.failed++
		}
		return r
	}
}

// sourceOf reads the test files of a package.
func sourceOf(pkg string) (*source, error) {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", pkg).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pkg, err)
	}
	return readSource(strings.TrimSpace(string(dir)))
}

// changedTests returns what the working tree changes since EBB_BASE, and the top of the repository.
func changedTests() (changes, string, error) {
	top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return nil, "", fmt.Errorf("git rev-parse: %w", err)
	}
	all, err := changesSince(base())
	return all, strings.TrimSpace(string(top)), err
}

// base is the commit with which the change begins.
func base() string { return cmp.Or(os.Getenv("EBB_BASE"), "HEAD~1") }
