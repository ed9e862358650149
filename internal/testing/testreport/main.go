// Command testreport runs the steps of .ci/test and their tests, and says at the end what they found.
//
//	testreport steps WORK COMMAND STEP...
//
// runs COMMAND once for each step, as `COMMAND step NAME`, and then prints the summary: what was skipped, the time of each step, each
// failure with the command that repeats it, the flaky tests, the counts and the verdict. It does so too when a signal stops it. A step
// called -- stands for none: if one before it has failed, the others are left out. A step finds in its environment the variables
// report (this program), step (its name), work (a folder for its files), place (the temporary folder of its tests) and results, a file
// that collects what the summary prints. The end removes the folder WORK. The exit status is 0, 1 if tests failed, 3 if only tools
// found something (toolSteps), 4 if the steps that failed lacked a program or the network, or 130 after a signal.
//
//	testreport test [-others] [-in DIRS [-at N]] go test -json [-flag=value ...] PACKAGES
//
// is what a step calls. It prints a line for each package, the output of tests that failed. With -in it does so in each of these
// folders, in N of them at a time. It fails if a test, a package or a build failed, if no package was tested,
// if no test has the names of -run, if the tests left files or processes, or if a flaky test is one that was added or edited since
// the commit EBB_BASE (HEAD~1).
//
// It tries a failed test again, alone and at most twice, if its result can depend on what happens outside of its process:
// on other processes, sockets or the machine's clock. It does so for ten tests at most, and never after a data race, a
// panic or an error of the compiler. A test that passes then is flaky.
//
//	testreport skip REASON    notes that a step cannot run here; with EBB_REQUIRE=1 it fails
//	testreport changed        names the tests that a change adds or edits since EBB_BASE: `make again` runs them many times
//
// gotestsum and the go command cannot do four things of these. They do not say what tests left behind, and which test did (place.go).
// They do not tell a test that depends on other processes, sockets or the machine's clock from one that a second try would only excuse, nor
// an old flaky test from one that the change adds (again.go, source.go). They do not sum up several steps, among them linters
// and builds (results.go). And they lose what was found when a signal stops them (steps.go).
//
// Start reading at steps.all.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "testreport: a mode is missing: steps, test, skip or changed")
		os.Exit(2)
	}
	args := os.Args[2:]
	status, err := 0, error(nil)
	switch os.Args[1] {
	case "steps":
		status, err = runSteps(args, signals)
	case "test":
		status, err = runTests(args, func() bool { return len(signals) > 0 })
	case "skip":
		status, err = skip(strings.Join(args, " "))
	case "changed":
		err = printChanged(os.Stdout)
	default:
		err = fmt.Errorf("there is no mode %q", os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		status = statusTests
	}
	os.Exit(status)
}

// runSteps runs the steps of a command, and returns the exit status.
func runSteps(args []string, signals <-chan os.Signal) (int, error) {
	if len(args) < 3 {
		return 0, fmt.Errorf("steps takes a folder, a command and the names of steps, got %q", args)
	}
	work, parent := args[0], adopt()
	defer os.RemoveAll(work)
	at, unlock, err := claim(work)
	if err != nil {
		return 0, err
	}
	defer unlock()
	defer func() { at.release(parent) }()
	s := &steps{command: args[1], work: work, place: at, out: os.Stdout, now: time.Now, signals: signals, grace: 20 * time.Second}
	return s.all(args[2:]), nil
}

// runTests runs the command of `go test` that args has behind the flags.
func runTests(args []string, stopped func() bool) (int, error) {
	flags := flag.NewFlagSet("test", flag.ExitOnError)
	others := flags.Bool("others", false, "skipped tests run in another step: count them as left out, and do not name them")
	in := flags.String("in", ".", "the folders in which the tests run, with blanks between them")
	atOnce := flags.Int("at", 1, "the number of folders whose tests run at a time")
	_ = flags.Parse(args) // it exits
	if flags.NArg() < 2 || *atOnce < 1 {
		return 0, fmt.Errorf("test takes the command that it runs, such as go test -json ./..., and -at of at least 1, got %q", args)
	}
	tests := &tests{command: flags.Args(), dirs: strings.Fields(*in), atOnce: *atOnce, others: *others, times: &timeline{}, stopped: stopped}
	at := place(os.Getenv("place"))
	if at == "" { // by hand: what the tests leave is not told from what others have
		return statusOf(tests.all()), nil
	}
	if err := os.Setenv("TMPDIR", string(at)); err != nil {
		return 0, err
	}
	parent := adopt()
	passed := tests.all()
	if stopped() { // the end of the run removes what is left
		return statusTests, nil
	}
	var found result
	step := os.Getenv("step")
	for _, left := range at.left(patience, parent, tests.times) {
		const limit = 40
		fmt.Printf("FAIL: the tests left %s:\n%s\n", left.kind, strings.Join(left.lines[:min(limit, len(left.lines))], "\n"))
		found.Failures = append(found.Failures, entry(fmt.Sprintf("%s: the tests left %s", step, left.kind), left.lines, repeatStep(step)))
	}
	if found.Failures == nil {
		return statusOf(passed), nil
	}
	// go test keeps the result of a package that has passed and left something.
	if out, err := exec.Command("go", "clean", "-testcache").CombinedOutput(); err != nil {
		fmt.Printf("go clean -testcache: %v\n%s", err, out)
	}
	return statusTests, found.save(os.Getenv("results"))
}

func statusOf(passed bool) int {
	if passed {
		return 0
	}
	return statusTests
}

// skip notes that the step cannot run here, and why.
func skip(reason string) (int, error) {
	fmt.Println("skipped:", reason)
	step := os.Getenv("step")
	r := result{Skipped: []string{fmt.Sprintf("step %s: %s", step, reason)}}
	if os.Getenv("EBB_REQUIRE") != "1" {
		return 0, r.save(os.Getenv("results"))
	}
	r.Missing = []string{entry(step+": it cannot run here", []string{reason}, repeatStep(step))}
	return statusTests, r.save(os.Getenv("results"))
}
