package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// tests has the options with which the tests of a step run.
type tests struct {
	command []string // such as go test -json ./...
	dirs    []string // the folders in which it runs
	atOnce  int      // in how many of them at a time
	others  bool     // tests that are skipped run in another step
	times   *timeline
	stopped func() bool
	based   bool // there is a commit with which the change begins
}

// all runs the tests in each folder, saves the results, and reports whether they passed. The output of folders that are tested beside
// each other does not mix.
func (t *tests) all() bool {
	_, err := git("rev-parse", "--verify", "--quiet", base()+"^{commit}")
	if t.based = err == nil; !t.based {
		fmt.Println("testreport: no test is known to be new: set EBB_BASE, or fetch the commit before:", err)
		if os.Getenv("CI") == "true" {
			return false
		}
	}
	var folders sync.WaitGroup
	passed := make([]bool, len(t.dirs))
	running := make(chan struct{}, t.atOnce)
	for i, dir := range t.dirs {
		running <- struct{}{}
		folders.Go(func() {
			defer func() { <-running }()
			if t.stopped() {
				return
			}
			var said bytes.Buffer
			out := io.Writer(os.Stdout)
			if t.atOnce > 1 {
				out = &said
			}
			if len(t.dirs) > 1 {
				fmt.Fprintln(out, dir)
			}
			passed[i] = t.in(dir, out)
			_, _ = os.Stdout.Write(said.Bytes()) // one call
		})
	}
	folders.Wait()
	return !slices.Contains(passed, false)
}

// in runs the tests in a folder, tries again what may be flaky, saves the results, and reports whether the tests passed.
func (t *tests) in(dir string, out io.Writer) bool {
	r := newReport(out)
	r.times, r.others, r.step, r.again = t.times, t.others, os.Getenv("step"), repeats(dir, t.command)
	ended, err := run(r, dir, t.command)
	if err == nil {
		trying := &secondTries{
			report: r, run: runAgain(dir, t.command), stopped: t.stopped,
			source: func(pkg string) (source, error) { return sourceOf(dir, pkg) },
			isNew:  func(s source, test string) bool { return t.based && s.changed()[test] },
		}
		trying.all()
		if len(r.Packages) > 0 && r.Counts == (counts{}) {
			r.failed++
			r.record(failure{"", "no test ran: none has the names of -run, or GOFLAGS leaves all out", nil})
		}
		err = r.save(os.Getenv("results"))
	}
	if err != nil {
		fmt.Fprintln(out, "testreport:", err)
		return false
	}
	// A flaky test explains why go test has failed only if its package is one that failed.
	return r.passed() && (ended || r.Counts.Flaky > 0 && r.broken > 0)
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
		again := slices.Clone(args[:2])
		for _, flag := range args[2:] {
			name, _, _ := strings.Cut(flag, "=")
			if strings.HasPrefix(flag, "-") && name != "-count" && name != "-vet" && (test == "" || name != "-run" && name != "-skip") {
				again = append(again, flag) // and not the packages
			}
		}
		again = append(again, "-count=1", "-vet=off")
		if test != "" {
			again = append(again, "-run=^"+test+"$")
		}
		r := newReport(io.Discard)
		r.step, r.again = os.Getenv("step"), repeats(dir, args)
		ended, err := run(r, dir, append(again, pkg))
		if err != nil || !ended {
			r.failed++
		}
		return r
	}
}

// sourceOf reads the test files of a package, which is named in the folder dir.
func sourceOf(dir, pkg string) (source, error) {
	cmd := exec.Command("go", "list", "-f", "{{.Dir}}", pkg)
	cmd.Dir = dir
	of, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pkg, err)
	}
	return readSource(strings.TrimSpace(string(of)))
}

// base is the commit with which the change begins.
func base() string { return cmp.Or(os.Getenv("EBB_BASE"), "HEAD~1") }
