package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

// playEnv has what this program plays instead of running its tests.
const playEnv = "TESTREPORT_PLAYS"

func TestMain(m *testing.M) {
	switch os.Getenv(playEnv) {
	case "":
		os.Exit(m.Run())
	case "a step":
		os.Exit(play(os.Args[2]))
	case "a process that stays":
		wait()
	case "a process that leaves another":
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{playEnv + "=a process that stays"}
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		fmt.Println(cmd.Process.Pid)
		os.Exit(0)
	}
}

// play is a step, whose name says what it does.
func play(step string) int {
	add := func(r result) {
		if err := r.save(os.Getenv("results")); err != nil {
			panic(err)
		}
	}
	switch step {
	case "good", "docs":
		add(result{Counts: counts{Passed: 3, Out: 1}, Packages: []tested{{"m/a", step, 1.5}, {"m/b", step, 2}}})
	case "unit":
		add(result{Counts: counts{Passed: 1, Failed: 1},
			Failures: []string{"unit: m/a TestX\n    x_test.go:9: no\n  again: go test -run '^TestX$' m/a\n"}})
		fmt.Println("FAIL m/a")
		return 1
	case "flaky":
		for range mostFlaky + 1 {
			add(result{Counts: counts{Flaky: 1},
				Flaky: []string{"flaky: m/a TestY\n    y_test.go:7: once\n    no message\n  again: go test m/a\n"}})
		}
	case "lost":
		add(result{Counts: counts{Passed: 1, Failed: 1}})
	case "build":
		fmt.Println("# m/a\n./a.go:3:1: syntax error")
		return 1
	case "lint":
		fmt.Print("found it")
		return 1
	case "tidy":
		add(result{Missing: []string{"tidy: it cannot run here\n    no network\n  again: .ci/test tidy\n"}})
		return 1
	case "contrib":
		fmt.Println("# m/contrib/gin\n./a.go:3:1: syntax error\nit waits")
		wait()
	case "race":
		add(result{Failures: []string{"race: m/a TestZ\n    it had not ended when go test was stopped\n"}})
		fmt.Println("it waits")
		wait()
	default:
		fmt.Println("there is no such step")
		return 127
	}
	return 0
}

// wait waits for a signal, and ends the process.
func wait() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	<-signals
	os.Exit(1)
}

// runPlayed runs steps that TestMain plays. A signal comes when the output has the text at.
func runPlayed(t *testing.T, at string, names ...string) (status int, out string) {
	t.Helper()
	t.Setenv(playEnv, "a step")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	signals := make(chan os.Signal, 1)
	said := &watched{at: at, do: func() { signals <- syscall.SIGTERM }}
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n := 0
	s := &steps{command: self, work: t.TempDir(), out: said, signals: signals, grace: tier.Patience,
		now: func() time.Time { n++; return begin.Add(time.Duration(n) * time.Second) }}
	return s.all(names), said.String()
}

// watched is a text, whose writer calls a function once when the text at is there.
type watched struct {
	strings.Builder
	at string
	do func()
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Builder.Write(p)
	if w.at != "" && strings.Contains(w.String(), w.at) {
		w.at = ""
		w.do()
	}
	return n, err
}

func TestTheEndOfStepsIsTheAnswer(t *testing.T) {
	for _, c := range []struct {
		steps  string
		status int
		end    string
	}{
		{"good docs", 0, `== time of each step: good 1 s, docs 1 s
== the packages that took longest: b 2.0 s (docs), b 2.0 s (good), a 1.5 s (docs), a 1.5 s (good)
== tests: 6 passed, 0 failed, 0 flaky, 0 skipped, 2 left out (another step runs them)
== passed in 5 s
`},
		{"unit good", 1, `== time of each step: unit 1 s, good 1 s
== the packages that took longest: b 2.0 s (good), a 1.5 s (good)
== failures
unit: m/a TestX
    x_test.go:9: no
  again: go test -run '^TestX$' m/a
== tests: 4 passed, 1 failed, 0 flaky, 0 skipped, 1 left out (another step runs them)
== FAILED: unit, after 5 s
`},
		{"build -- good", 3, `== the other steps are left out
== time of each step: build 1 s
== failures
build:
    # m/a
    ./a.go:3:1: syntax error
  again: .ci/test build
== FAILED: build, after 3 s
`},
		{"good -- lint", 3, `found it
-- lint: 1 s
== time of each step: good 1 s, lint 1 s
== the packages that took longest: b 2.0 s (good), a 1.5 s (good)
== failures
lint:
    found it
  again: EBB_LINT=1 .ci/test lint
== tests: 3 passed, 0 failed, 0 flaky, 0 skipped, 1 left out (another step runs them)
== FAILED: lint, after 5 s
`},
		{"tidy", 4, `== failures
tidy: it cannot run here
    no network
  again: .ci/test tidy
== FAILED: tidy, after 3 s
`},
		{"tidy build", 3, "== FAILED: tidy build, after 5 s\n"},
		{"build unit tidy", 1, "== FAILED: build unit tidy, after 7 s\n"},
		{"lost", 1, "1 passed, 1 failed, 0 flaky, 0 skipped, 0 left out (another step runs them)\n== FAILED: tests, after 3 s\n"},
		{"none", 1, "none:\n    there is no such step\n  again: .ci/test none\n== FAILED: none, after 3 s\n"},
		{"flaky", 1, `== flaky: they failed, and passed when they were tried again alone; the next change mends them
` + strings.Repeat("flaky: m/a TestY\n    y_test.go:7: once\n  again: go test m/a\n", 4) +
			`== tests: 0 passed, 0 failed, 4 flaky, 0 skipped, 0 left out (another step runs them)
== FAILED: flaky, after 3 s
`},
	} {
		t.Run(c.steps, func(t *testing.T) {
			status, out := runPlayed(t, "", strings.Fields(c.steps)...)
			if status != c.status || !strings.HasSuffix(out, c.end) {
				t.Errorf("status %d, want %d; the end is\n%s\nwant\n%s", status, c.status, out, c.end)
			}
		})
	}
}

func TestAStoppedRunSaysWhatItKnows(t *testing.T) {
	status, out := runPlayed(t, "it waits", "unit", "race", "good")
	want := `-- race: 1 s
== time of each step: unit 1 s, race 1 s
== failures
unit: m/a TestX
    x_test.go:9: no
  again: go test -run '^TestX$' m/a
race: m/a TestZ
    it had not ended when go test was stopped
== tests: 1 passed, 1 failed, 0 flaky, 0 skipped, 0 left out (another step runs them)
== FAILED: unit race (stopped), after 5 s
`
	if status != statusStopped || !strings.HasSuffix(out, want) {
		t.Errorf("status %d; the end is\n%s\nwant\n%s", status, out, want)
	}
}

func TestAStoppedStepSaysWhatItFound(t *testing.T) {
	status, out := runPlayed(t, "it waits", "contrib")
	want := "== failures\ncontrib:\n    # m/contrib/gin\n    ./a.go:3:1: syntax error\n  again: .ci/test contrib\n" +
		"== FAILED: contrib (stopped), after 3 s\n"
	if status != statusStopped || !strings.HasSuffix(out, want) {
		t.Errorf("status %d; the end is\n%s\nwant\n%s", status, out, want)
	}
}

func TestAPartOfALineOfResultsIsReported(t *testing.T) {
	name := filepath.Join(t.TempDir(), "results")
	whole := result{Skipped: []string{"a TestX: no reason"}}
	for range 2 {
		if err := whole.save(name); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, info.Size()-5); err != nil {
		t.Fatal(err)
	}
	sum, err := take(name)
	if err == nil || !slices.Equal(sum.Skipped, whole.Skipped) {
		t.Errorf("%+v, %v", sum, err)
	}
	if sum, err := take(name); err != nil || sum.Skipped != nil {
		t.Errorf("no file: %+v, %v", sum, err)
	}
}

func TestFindingsAreTheLinesThatSayWhatFailed(t *testing.T) {
	many := ""
	for i := range 9 {
		many += fmt.Sprintf("%d\n", i)
	}
	for _, c := range []struct {
		output string
		told   bool
		want   string
	}{
		{"go: downloading x\nx.go:1:2: unused variable\n\ncontrib/gin/go.mod:1: go.mod or go.sum is not tidy\nbye", true,
			"x.go:1:2: unused variable|contrib/gin/go.mod:1: go.mod or go.sum is not tidy"},
		{"clock/a.go:3:29: no\n# m/contrib\n../../clock/a.go:3:29: no\n# m/contrib\n", true, "clock/a.go:3:29: no|# m/contrib"},
		{many, false, "3|4|5|6|7|8"},
	} {
		if lines, told := findings(c.output); strings.Join(lines, "|") != c.want || told != c.told {
			t.Errorf("%q: %q, %v, want %q", c.output, lines, told, c.want)
		}
	}
	want := "vet:\n    " + strings.Repeat("x", mostColumns) + "\n  again: x\n"
	if got := entry("vet:", []string{strings.Repeat("x", 400)}, "x"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSkipsAreGroupedByTheirReason(t *testing.T) {
	var out strings.Builder
	result{Skipped: []string{"b TestY: lua5.1 is not installed: get it", "a TestX: lua5.1 is not installed: get it",
		"b TestY: lua5.1 is not installed: get it", "step ui: npm is missing"}}.printSkipped(&out)
	want := "== skipped: 3\n    2  lua5.1 is not installed: get it (a TestX, ...)\n    1  npm is missing (step ui)\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestTheEndHasRoomForManyFailures(t *testing.T) {
	var all result
	for i := range 12 {
		lines := []string{"    1", "    2", "    3", "    4", "    5", "    6"}
		text := entry(fmt.Sprintf("unit: m/a Test%d", i), lines, "go test")
		texts := []string{text}
		all.add(result{Failures: texts, Flaky: texts, Counts: counts{Failed: 1}, Packages: []tested{{"m/a", "unit", 1}}})
	}
	var out strings.Builder
	all.print(&out, []string{"unit 1 s"})
	if lines := strings.Count(out.String(), "\n"); lines >= 60 || !strings.Contains(out.String(), "and 2 more, above") {
		t.Errorf("%d lines:\n%s", lines, out.String())
	}
	_, after, _ := strings.Cut(out.String(), "== failures\n")
	if n := len(regexp.MustCompile(`(?m)^  again: go test$`).FindAllString(after, -1)); n != mostFailures {
		t.Errorf("%d commands", n)
	}
}
