package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	failed  []string // what failed
	sum     result
	status  int
	stopped bool
}

const (
	statusTests   = 1
	statusTools   = 3
	statusMachine = 4
	statusStopped = 130
)

// toolSteps are the steps whose findings are not those of tests.
var toolSteps = []string{"format", "build", "tidy", "docs", "size", "vet", "lint", "cross"}

// all runs the steps of these names, prints the end, and returns the exit status.
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
	if s.sum.Counts.Flaky > mostFlaky {
		s.fail("flaky", statusTests)
	}
	if s.sum.Counts.Failed > 0 && len(s.failed) == 0 { // a step has lost it
		s.fail("tests", statusTests)
	}
	s.sum.print(s.out, s.took)
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
func (s *steps) fail(what string, status int) {
	s.failed = append(s.failed, what)
	if s.status == 0 || status < s.status {
		s.status = status
	}
}

// step runs one step, and adds what it found.
func (s *steps) step(name string) {
	fmt.Fprintln(s.out, "==", name)
	begin := s.now()
	var said bytes.Buffer
	err := s.run(name, io.MultiWriter(s.out, &said))
	seconds := s.now().Sub(begin).Round(time.Second).Seconds()
	s.took = append(s.took, fmt.Sprintf("%s %.0f s", name, seconds))
	if said.Len() > 0 && !bytes.HasSuffix(said.Bytes(), []byte("\n")) {
		fmt.Fprintln(s.out)
	}
	found, unread := take(s.results())
	if unread != nil {
		fmt.Fprintln(s.out, "testreport:", unread)
	}
	if err != nil || s.stopped {
		// The tests have recorded their failures. Of what else fails, the output tells.
		lines, told := findings(said.String())
		missing := len(found.Missing) > 0 && len(found.Failures) == 0 && !told
		if len(found.Failures) == 0 && !missing && (told || !s.stopped) {
			found.Failures = []string{entry(name+":", lines, repeatStep(name))}
		}
		switch {
		case s.stopped:
			s.fail(name+" (stopped)", statusStopped)
		case missing:
			s.fail(name, statusMachine)
		case slices.Contains(toolSteps, name):
			s.fail(name, statusTools)
		default:
			s.fail(name, statusTests)
		}
	}
	s.sum.add(found)
	fmt.Fprintf(s.out, "-- %s: %.0f s\n", name, seconds)
}

// finding matches the lines of compilers, linters, tests and steps that say what is wrong.
var finding = regexp.MustCompile(`^(vet: )?[^ :]+:\d+:|^FAIL|^panic:|^not ok|^ +location: |error TS|` +
	`^# \S+/|not formatted|not tidy|missing go\.sum|updates to go\.mod|must have`)

// findings returns the last lines of an output that say what is wrong, or, if none does, the last lines of all. told reports which.
func findings(output string) (lines []string, told bool) {
	var all []string
	for line := range strings.SplitSeq(output, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		all = append(all, line)
		// The compiler says the same for each module that imports a package, with a path from the folder of the module.
		same := func(other string) bool { return strings.TrimLeft(other, "./") == strings.TrimLeft(line, "./") }
		if finding.MatchString(line) && !slices.ContainsFunc(lines, same) {
			lines = append(lines, line)
		}
	}
	if told = len(lines) > 0; !told {
		lines = all
	}
	return lines[max(0, len(lines)-mostLines):], told
}

// results is the name of the file in which a step saves what it found.
func (s *steps) results() string { return filepath.Join(s.work, "results") }

// run runs the process of a step until it ends, or until a signal ends it.
func (s *steps) run(name string, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(s.command, "step", name)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), "report="+self, "step="+name, "work="+s.work, "place="+string(s.place), "results="+s.results())
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
