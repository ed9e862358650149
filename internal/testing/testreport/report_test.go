package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
)

// read returns the report of some events, and what it printed.
func read(t *testing.T, lines ...string) (*report, string) {
	t.Helper()
	var out strings.Builder
	r := newReport(&out)
	if err := r.read(strings.NewReader(strings.Join(lines, "\n"))); err != nil {
		t.Fatal(err)
	}
	return r, out.String()
}

const (
	passes = `{"Action":"pass","Package":"m/a","Elapsed":1.5}`
	fails  = `{"Action":"output","Package":"m/a","Test":"TestOther","Output":"quiet\n"}
{"Action":"pass","Package":"m/a","Test":"TestOther"}
{"Action":"output","Package":"m/a","Test":"TestX","Output":"    x_test.go:9: one and one is three\n"}
{"Action":"fail","Package":"m/a","Test":"TestX"}
{"Action":"fail","Package":"m/a","Elapsed":0.1}`
	skips = `{"Action":"output","Package":"m/a","Test":"TestX/y","Output":"=== RUN   TestX/y\n"}
{"Action":"output","Package":"m/a","Test":"TestX/y","Output":"    x_test.go:9: lua5.1 is not installed: get it\n"}
{"Action":"output","Package":"m/a","Test":"TestX/y","Output":"--- SKIP: TestX/y (0.00s)\n"}
{"Action":"skip","Package":"m/a","Test":"TestX/y"}`
	unbuilt = `{"ImportPath":"m/a","Action":"build-output","Output":"a.go:1: syntax error\n"}
{"ImportPath":"m/a","Action":"build-fail"}`
)

func TestAFailureIsPrintedWithItsOutputAlone(t *testing.T) {
	r, out := read(t, fails)
	if r.passed() || !strings.Contains(out, "FAIL m/a") || !strings.Contains(out, "one and one is three") || strings.Contains(out, "quiet") {
		t.Errorf("passed: %v; printed:\n%s", r.passed(), out)
	}
}

func TestWhatDoesNotCompileFails(t *testing.T) {
	r, out := read(t, unbuilt, `{"Action":"pass","Package":"m/b"}`)
	if r.passed() || !strings.Contains(out, "syntax error") {
		t.Errorf("passed: %v; printed:\n%s", r.passed(), out)
	}
}

func TestNoPackageAtAllIsAFailure(t *testing.T) {
	r, out := read(t, "go: go.mod: no such file")
	if r.passed() || !strings.Contains(out, "no such file") {
		t.Errorf("passed: %v; printed:\n%s", r.passed(), out)
	}
}

func TestEachSkipIsKeptWithItsReason(t *testing.T) {
	r, out := read(t, skips, passes)
	if !r.passed() || !strings.Contains(out, "ok   m/a (1.5 s)") {
		t.Errorf("passed: %v; printed:\n%s", r.passed(), out)
	}
	if want := []string{"a TestX/y: lua5.1 is not installed: get it"}; !slices.Equal(r.Skipped, want) {
		t.Errorf("%q", r.Skipped)
	}
}

// recorded returns the failures that a report of some events records, without a second try.
func recorded(t *testing.T, lines ...string) string {
	t.Helper()
	r := newReport(io.Discard)
	r.step, r.again = "unit", "go test -race"
	if err := r.read(strings.NewReader(strings.Join(lines, "\n"))); err != nil {
		t.Fatal(err)
	}
	r.record(r.doubtful...)
	return strings.Join(r.Failures, "")
}

func said(test string, lines ...string) string {
	var events []string
	for _, line := range lines {
		e, _ := json.Marshal(event{Action: "output", Package: "m/a", Test: test, Output: line + "\n"})
		events = append(events, string(e))
	}
	return strings.Join(events, "\n")
}

func TestAFailureIsRecordedWithTheCommandThatRepeatsIt(t *testing.T) {
	const ends = `{"Action":"fail","Package":"m/a","Test":"TestX/y"}
{"Action":"fail","Package":"m/a","Test":"TestX"}
{"Action":"fail","Package":"m/a"}`
	const head, tail = "unit: m/a TestX/y\n", "  again: go test -race -run '^TestX$' m/a\n"
	message := []string{"=== RUN   TestX/y", "    x_test.go:9: differs:", "1", "2", "3", "4", "5", "6", "--- FAIL: TestX/y (0.01s)"}
	for _, c := range []struct {
		name   string
		output []string
		want   string
	}{
		{"short", message[:3], "        x_test.go:9: differs:\n    1\n"},
		{"long", message, "        x_test.go:9: differs:\n    1\n    2\n    3\n    4\n    5\n"},
		{"the error, and then what the test logs at its end", []string{"    x_test.go:9: the cause", "    of two lines", "    more",
			"    x_test.go:15: server 1: stopped", "    x_test.go:15: server 2: stopped",
			"    x_test.go:15: server 3: stopped", "    x_test.go:15: server 4: stopped"},
			"        x_test.go:9: the cause\n        of two lines\n        x_test.go:15: server 1: stopped\n" +
				"        x_test.go:15: server 2: stopped\n" +
				"        x_test.go:15: server 3: stopped\n        x_test.go:15: server 4: stopped\n"},
		{"panic", []string{"panic: no [recovered, repanicked]", "goroutine 8 [running]:", "testing.tRunner.func1.2({0x1, 0x2})",
			"\ttesting/testing.go:1974 +0x232", "panic({0x1?, 0x2?})", "\t/usr/local/go/src/runtime/panic.go:860 +0x13a",
			"m/a.f(...)", "\tm/a/x_test.go:9",
			"m/a.TestX(0x3)", "\tm/a/x_test.go:12 +0x12",
			"testing.tRunner(0x3, 0x4)", "\ttesting/testing.go:2036 +0xea", "created by testing.(*T).Run in goroutine 1",
			"\ttesting/testing.go:2101 +0x4c5"},
			"    panic: no [recovered, repanicked]\n    m/a.f(...)\n    \tm/a/x_test.go:9\n" +
				"    m/a.TestX(0x3)\n    \tm/a/x_test.go:12 +0x12\n"},
		{"race", append([]string{"WARNING: DATA RACE", "Write at x.go:5"}, message...),
			"    WARNING: DATA RACE\n    Write at x.go:5\n        x_test.go:9: differs:\n    1\n    2\n    3\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := recorded(t, said("TestX/y", c.output...), said("TestX", "=== RUN   TestX", "--- FAIL: TestX (0.01s)"), ends)
			end := tail
			if c.name == "panic" { // the package repeats it, and the test alone may not
				end = "  again: go test -race m/a\n"
			}
			if want := head + c.want + end; got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

func TestAPackageThatFailsWithoutATestIsRecorded(t *testing.T) {
	got := recorded(t, said("", "panic: no flag", "main.go:3", "FAIL\tm/a\t0.1s"), `{"Action":"fail","Package":"m/a"}`)
	if want := "unit: m/a \n    panic: no flag\n    main.go:3\n  again: go test -race m/a\n"; got != want {
		t.Errorf("%q", got)
	}
	got = recorded(t, unbuilt, `{"Action":"fail","Package":"m/a","FailedBuild":"m/a"}`)
	if want := "unit: m/a does not compile, or vet has found something\n    a.go:1: syntax error\n  again: go test -race m/a\n"; got != want {
		t.Errorf("%q", got)
	}
}

// A package that takes too long panics in the name of a test, and no test ends.
func TestATestThatEndsItsProcessIsRecorded(t *testing.T) {
	got := recorded(t, said("TestW", "=== RUN   TestW"), said("TestX", "=== RUN   TestX", "panic: test timed out after 1s", "	running tests:"),
		said("", "FAIL	m/a	1.0s"), `{"Action":"fail","Package":"m/a"}`)
	const ended = "    it had not ended when its process did\n  again: go test -race -run "
	want := "unit: m/a TestX\n    panic: test timed out after 1s\n    	running tests:\n" + ended + "'^TestX$' m/a\n" +
		"unit: m/a TestW\n" + ended + "'^TestW$' m/a\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestATimeoutShowsWhereTheTestWaits(t *testing.T) {
	got := recorded(t, said("TestX", "panic: test timed out after 5s", "\trunning tests:", "\t\tTestX (5s)", "", "goroutine 9 [running]:",
		"testing.(*M).startAlarm.func1()", "\ttesting/testing.go:2682 +0x345", "created by time.goFunc", "\ttime/sleep.go:215 +0x2d", "",
		"goroutine 1 [chan receive]:", "testing.(*T).Run(0x1)", "\ttesting/testing.go:2110 +0x4a5", "main.main()", "\t_testmain.go:47 +0x9b", "",
		"goroutine 8 [chan receive]:", "m/a.TestX(0x1)", "\tm/a/x_test.go:9 +0x25", "created by m/a.start in goroutine 7",
		"\tm/a/x_test.go:5 +0x2"),
		`{"Action":"fail","Package":"m/a"}`)
	want := "unit: m/a TestX\n    panic: test timed out after 5s\n    \trunning tests:\n    \t\tTestX (5s)\n" +
		"    m/a.TestX(0x1)\n    \tm/a/x_test.go:9 +0x25\n    created by m/a.start in goroutine 7\n  again: go test -race -run '^TestX$' m/a\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A goroutine that another test has started may panic in the name of any: the package repeats it.
func TestAPanicInAGoroutineIsRepeatedByItsPackage(t *testing.T) {
	got := recorded(t, said("TestX", "panic: late", "goroutine 9 [running]:", "m/a.TestY.func1()", "\tm/a/x_test.go:9 +0x1",
		"created by m/a.TestY in goroutine 7",
		"\tm/a/x_test.go:8 +0x2"), `{"Action":"fail","Package":"m/a"}`)
	want := "unit: m/a TestX\n    panic: late\n    m/a.TestY.func1()\n    \tm/a/x_test.go:9 +0x1\n" +
		"    created by m/a.TestY in goroutine 7\n    \tm/a/x_test.go:8 +0x2\n" +
		"    it had not ended when its process did\n  again: go test -race m/a\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestAPackageThatPassesInSpiteOfATestHasFailed(t *testing.T) {
	lost := `{"Action":"output","Package":"m/a","Test":"TestX","Output":"    x_test.go:9: no\n"}
{"Action":"fail","Package":"m/a","Test":"TestX"}
{"Action":"pass","Package":"m/a"}`
	if r, _ := read(t, lost); r.passed() || len(r.doubtful) > 0 {
		t.Errorf("passed: %v, to be tried again: %v", r.passed(), r.doubtful)
	}
	if got, want := recorded(t, lost), "unit: m/a TestX\n        x_test.go:9: no\n  again: go test -race -run '^TestX$' m/a\n"; got != want {
		t.Errorf("%q", got)
	}
}

func TestAPackageWithoutAnEndIsRecorded(t *testing.T) {
	got := recorded(t, said("", "something"))
	if want := "unit: m/a \n    the package had not ended: go test was stopped, or a test ended the process\n" +
		"  again: go test -race m/a\n"; got != want {
		t.Errorf("%q", got)
	}
}

func TestAPackageWithoutATestSaysSo(t *testing.T) {
	r, out := read(t, passes)
	if r.Counts != (counts{}) || out != "ok   m/a (1.5 s, no test ran)\n" {
		t.Errorf("%q", out)
	}
	if r, out := read(t, skips, passes); r.Counts != (counts{}) || strings.Contains(out, "no test ran") {
		t.Errorf("%q", out)
	}
}

func TestATestThatHadNotEndedIsRecorded(t *testing.T) {
	got := recorded(t, said("TestX", "=== RUN   TestX", "    x_test.go:9: waiting"))
	want := "unit: m/a TestX\n        x_test.go:9: waiting\n    it had not ended when go test was stopped\n" +
		"  again: go test -race -run '^TestX$' m/a\n"
	if got != want {
		t.Errorf("%q", got)
	}
}
