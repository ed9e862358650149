package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// steps runs the steps of a command one after the other. Each is a process, with a group of its own where the system has groups.
type steps struct {
	command string
	work    string // a folder for files of the run
	place   place
	out     io.Writer
	now     func() time.Time
	signals <-chan os.Signal
	grace   time.Duration // the time that a step has after a signal to say what it knows

	took    []string // the name and the time of each step
	failed  []string // the names of steps that failed
	results []result
	status  int
	stopped bool
}

const (
	statusTests   = 1
	statusTools   = 3
	statusMachine = 4
	statusStopped = 130
	mostFlaky     = 3 // more flaky tests than that are a failure
)

// toolSteps are the steps whose findings are not those of tests.
var toolSteps = []string{"format", "build", "tidy", "docs", "size", "vet", "lint", "cross"}

// all runs the steps of these names, prints the summary, and returns the exit status.
func (s *steps) all(names []string) int {
	begin := s.now()
	for _, name := range names {
		if name == "--" && len(s.failed) == 0 {
			continue
		}
		if name == "--" {
			fmt.Fprintln(s.out, "== the other steps are left out")
			break
		}
		if s.step(name); s.stopped {
			break
		}
	}
	sum := summarize(s.results)
	if sum.counts.Flaky > mostFlaky {
		s.failed = append(s.failed, "flaky")
		s.fail(statusTests)
	}
	if sum.counts.Failed > 0 && len(s.failed) == 0 { // a step has lost it
		s.failed = append(s.failed, "tests")
		s.fail(statusTests)
	}
	sum.print(s.out, s.took)
	if seconds := s.now().Sub(begin).Round(time.Second).Seconds(); len(s.failed) == 0 {
		fmt.Fprintf(s.out, "== passed in %.0f s\n", seconds)
	} else {
		fmt.Fprintf(s.out, "== FAILED: %s, after %.0f s\n", strings.Join(s.failed, " "), seconds)
	}
	if s.stopped {
		return statusStopped
	}
	return s.status
}

// fail makes a status that of the run, unless the run has failed for a reason that says more about the change: a test says more than
// a tool, and a tool more than the machine.
func (s *steps) fail(status int) {
	if s.status == 0 || status < s.status {
		s.status = status
	}
}

// step runs one step, and records what it found.
func (s *steps) step(name string) {
	fmt.Fprintln(s.out, "==", name)
	begin := s.now()
	said := &findings{}
	err := s.run(name, io.MultiWriter(s.out, said))
	seconds := s.now().Sub(begin).Round(time.Second).Seconds()
	s.took = append(s.took, fmt.Sprintf("%s %.0f s", name, seconds))
	if len(said.rest) > 0 {
		fmt.Fprintln(s.out)
	}

	known := len(s.results)
	s.read()
	added := summarize(s.results[min(known, len(s.results)):])
	switch {
	case s.stopped:
		s.failed = append(s.failed, name+" (stopped)")
		if len(added.failures) == 0 && said.found() {
			s.note(name, said)
		}
	case err != nil:
		s.failed = append(s.failed, name)
		switch {
		case len(added.missing) > 0 && len(added.failures) == 0 && !said.found():
			s.fail(statusMachine)
		case slices.Contains(toolSteps, name):
			s.fail(statusTools)
		default:
			s.fail(statusTests)
		}
		// The tests have recorded their failures. Of what else fails, the output tells.
		if len(added.failures) == 0 && (len(added.missing) == 0 || said.found()) {
			s.note(name, said)
		}
	}
	fmt.Fprintf(s.out, "-- %s: %.0f s\n", name, seconds)
}

// note adds what a step said to the results.
func (s *steps) note(name string, said *findings) {
	if err := (result{Step: name, Failures: []string{said.describe(name)}}).addTo(s.file()); err != nil {
		fmt.Fprintln(s.out, "testreport:", err)
	}
	s.read()
}

// read reads the results that the steps have added.
func (s *steps) read() {
	all, err := readResults(s.file())
	if err != nil {
		fmt.Fprintln(s.out, "testreport:", err)
	}
	s.results = all
}

// file is the name of the file to which the steps add their results.
func (s *steps) file() string { return filepath.Join(s.work, "results") }

// run runs the process of a step until it ends, or until a signal ends it.
func (s *steps) run(name string, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(s.command, "step", name)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), "report="+self, "step="+name, "work="+s.work, "place="+string(s.place), "results="+s.file())
	cmd.WaitDelay = s.grace // a process that the step has left may hold its output
	group(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var late <-chan time.Time
	for {
		select {
		case err := <-ended:
			if errors.Is(err, exec.ErrWaitDelay) {
				fmt.Fprintln(out, "FAIL: the step has ended, and a process that it started still holds its output")
			}
			return err
		case <-s.signals:
			s.stopped = true
			_ = endGroup(cmd, syscall.SIGTERM)
			late = time.After(s.grace)
		case <-late:
			_ = endGroup(cmd, syscall.SIGKILL)
		}
	}
}
