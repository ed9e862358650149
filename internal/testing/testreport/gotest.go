package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// testAll runs a command such as go test -json ./... once in each of the folders, atOnce of them at a time, and adds the results to those
// of the run, and to times when each test ran. The output of folders that are tested beside each other does not mix.
func testAll(dirs []string, atOnce int, command []string, others bool, times *timeline, stopped func() bool) error {
	if len(command) < 2 || atOnce < 1 {
		return fmt.Errorf("test takes the command that it runs, such as go test -json ./..., and -at of at least 1")
	}
	var (
		tests   sync.WaitGroup
		mu      sync.Mutex // guards errs and failed, and os.Stdout if there are several folders at a time
		errs    []error
		failed  bool
		running = make(chan struct{}, atOnce)
	)
	for _, dir := range each(dirs) {
		running <- struct{}{}
		tests.Go(func() {
			defer func() { <-running }()
			if stopped() {
				return
			}
			var said bytes.Buffer
			out := io.Writer(os.Stdout)
			if atOnce > 1 {
				out = &said
			}
			if len(dirs) > 1 {
				fmt.Fprintln(out, dir)
			}
			r := newReport(out)
			r.times = times
			err := r.test(dir, command, others, stopped)
			mu.Lock()
			defer mu.Unlock()
			fmt.Printf("%s", said.Bytes())
			if err == errFailed {
				failed = true
			} else {
				errs = append(errs, err)
			}
		})
	}
	tests.Wait()
	if err := errors.Join(errs...); err != nil || !failed {
		return err
	}
	return errFailed
}

// each returns the folders, each of them once.
func each(dirs []string) (all []string) {
	for _, dir := range dirs {
		if dir = filepath.Clean(dir); !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	return all
}

// test runs a command, such as go test -json ./..., in the folder dir, tries again what may be flaky until stopped, and adds the results
// to those of the run. If tests have failed, the error is errFailed.
func (r *report) test(dir string, command []string, others bool, stopped func() bool) error {
	r.step, r.others, r.again = os.Getenv("step"), others, repeats(dir, command)
	// The change is asked for before the tests: a signal that ends them ends git too, and their failures are to be recorded then.
	changed, top, err := changedTests()
	if err != nil {
		if os.Getenv("CI") == "true" {
			return fmt.Errorf("no test is known to be new, so that none runs: set EBB_BASE, or fetch the commit before: %w", err)
		}
		fmt.Fprintln(r.out, "testreport: no test is known to be new:", err)
	}
	ended, err := run(r, dir, command)
	if err != nil {
		return err
	}
	trying := &secondTries{
		report: r, run: runAgain(dir, command), stopped: stopped, changed: changed, top: top,
		source: func(pkg string) (*source, error) { return sourceOf(dir, pkg) },
	}
	trying.all()
	r.slowest(8)
	if len(r.took) > 0 && !r.ranAny() {
		r.failed++
		r.record(failure{"", "no test ran: none has the names of -run, or GOFLAGS leaves all out", nil})
	}
	if err := r.result().add(); err != nil {
		return err
	}
	// A flaky test explains why go test has failed only if its package is one that failed.
	if !r.passed() || !ended && (r.counts.Flaky == 0 || r.fails == 0) {
		return errFailed
	}
	return nil
}

func (r *report) result() result {
	return result{Step: r.step, Skipped: r.skips, Failures: r.failures, Flaky: r.flaky, Counts: r.counts, Seconds: r.took}
}

// repeats returns the command by which a reader repeats a test, without -run and the package.
func repeats(dir string, command []string) string {
	var words []string
	if dir != "." {
		words = append(words, "cd", filepath.ToSlash(dir), "&&")
	}
	for _, name := range []string{"EBB_FULL", "EBB_SEED", "EBB_BACKENDS", "EBB_PROGRAMS"} {
		if value := os.Getenv(name); value != "" {
			words = append(words, name+"="+value)
		}
	}
	words = append(words, "go", "test")
	for _, flag := range []string{"-race", "-short", "-vet=all"} {
		if slices.Contains(command, flag) {
			words = append(words, flag)
		}
	}
	return strings.Join(words, " ")
}

// run runs a command that writes events in the folder dir, reads them into r, and reports whether the command ended with status 0.
func run(r *report, dir string, args []string) (bool, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
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

// runAgain returns a function that runs one test as args, a command of go test in the folder dir, runs all. Without the name of a test
// it runs those of a package that args runs.
func runAgain(dir string, args []string) func(pkg, test string) *report {
	return func(pkg, test string) *report {
		dropped := []string{"-count=", "-vet="}
		if test != "" {
			dropped = append(dropped, "-run=", "-skip=")
		}
		all := slices.DeleteFunc(slices.Clone(args), func(s string) bool {
			return slices.ContainsFunc(dropped, func(flag string) bool { return strings.HasPrefix(s, flag) })
		})
		flags := slices.IndexFunc(all[2:], func(s string) bool { return !strings.HasPrefix(s, "-") })
		if flags >= 0 {
			all = all[:2+flags] // without the packages
		}
		all = append(all, "-count=1", "-vet=off")
		if test != "" {
			all = append(all, "-run=^"+test+"$")
		}
		r := newReport(io.Discard)
		r.step, r.again = os.Getenv("step"), repeats(dir, args)
		ended, err := run(r, dir, append(all, pkg))
		if err != nil || !ended {
			r.failed++
		}
		return r
	}
}

// sourceOf reads the test files of a package, which is named in the folder dir.
func sourceOf(dir, pkg string) (*source, error) {
	cmd := exec.Command("go", "list", "-f", "{{.Dir}}", pkg)
	cmd.Dir = dir
	of, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pkg, err)
	}
	return readSource(strings.TrimSpace(string(of)))
}

// changedTests returns what the working tree changes since EBB_BASE, and the top of the repository.
func changedTests() (changes, string, error) {
	top, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return nil, "", err
	}
	all, err := changesSince(base())
	return all, strings.TrimSpace(top), err
}

// base is the commit with which the change begins.
func base() string { return cmp.Or(os.Getenv("EBB_BASE"), "HEAD~1") }
