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
// is what a step calls. It prints a line for each package, the output of tests that failed, and the packages that took longest. With -in
// it does so in each of these folders, in N of them at a time. It fails if a test, a package or a build failed, if no package was tested,
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
// and builds (summary.go). And they lose what was found when a signal stops them (steps.go).
//
// Start reading at steps.all.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// errFailed says that something was found, and was printed.
var errFailed = errors.New("tests failed")

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "testreport: a mode is missing: steps, test, skip or changed")
		os.Exit(2)
	}
	args := os.Args[2:]
	var err error
	switch os.Args[1] {
	case "steps":
		os.Exit(runSteps(args, signals))
	case "test":
		err = runTests(args, func() bool { return len(signals) > 0 })
	case "skip":
		err = skip(strings.Join(args, " "))
	case "changed":
		err = printChanged(os.Stdout)
	default:
		err = fmt.Errorf("there is no mode %q", os.Args[1])
	}
	if err != nil {
		if err != errFailed {
			fmt.Fprintln(os.Stderr, "testreport:", err)
		}
		os.Exit(1)
	}
}

// runSteps runs the steps of a command, and returns the exit status.
func runSteps(args []string, signals <-chan os.Signal) int {
	if len(args) < 3 {
		fmt.Fprintln(os.Stderr, "testreport: steps takes a folder, a command and the names of steps")
		return 2
	}
	work, parent := args[0], adopt()
	defer os.RemoveAll(work)
	at, err := claim(work)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		return 1
	}
	defer func() { at.release(parent) }()
	s := &steps{command: args[1], work: work, place: at, out: os.Stdout, now: time.Now, signals: signals, grace: 20 * time.Second}
	return s.all(args[2:])
}

// runTests runs the command of `go test` that args has behind the flags.
func runTests(args []string, stopped func() bool) error {
	flags := flag.NewFlagSet("test", flag.ExitOnError)
	others := flags.Bool("others", false, "skipped tests run in another step: count them as left out, and do not name them")
	in := flags.String("in", ".", "the folders in which the tests run, with blanks between them")
	atOnce := flags.Int("at", 1, "the number of folders whose tests run at a time")
	_ = flags.Parse(args) // it exits
	at := place(os.Getenv("place"))
	if at == "" { // by hand: what the tests leave is not told from what others have
		return testAll(strings.Fields(*in), *atOnce, flags.Args(), *others, nil, stopped)
	}
	if err := os.Setenv("TMPDIR", string(at)); err != nil {
		return err
	}
	parent, times := adopt(), &timeline{}
	err := testAll(strings.Fields(*in), *atOnce, flags.Args(), *others, times, stopped)
	if stopped() {
		if err != nil && err != errFailed {
			fmt.Fprintln(os.Stderr, "testreport:", err)
		}
		return errFailed // the end of the run removes what is left
	}
	if left := at.left(patience, parent, times); left != nil {
		left.print(os.Stdout)
		forgetResults()
		return cmp.Or(err, left.result().add(), errFailed)
	}
	return err
}

// forgetResults makes go test run all tests again: it keeps the result of a package that has passed and left something.
func forgetResults() {
	if out, err := exec.Command("go", "clean", "-testcache").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "testreport: go clean -testcache: %v\n%s", err, out)
	}
}

// skip notes that the step cannot run here, and why.
func skip(reason string) error {
	fmt.Println("skipped:", reason)
	r := result{Step: os.Getenv("step"), Skipped: []string{fmt.Sprintf("step %s: %s", os.Getenv("step"), reason)}}
	if os.Getenv("EBB_REQUIRE") != "1" {
		return r.add()
	}
	r.Missing = []string{fmt.Sprintf("%s: it cannot run here\n    %s\n  again: .ci/test %[1]s\n", r.Step, reason)}
	if err := r.add(); err != nil {
		return err
	}
	return errFailed
}
