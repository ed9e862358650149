package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// outer is a package with one test of each kind.
const outer = `package a

import (
	"net"
	"testing"
	"testing/synctest"

	"m/internal/backends"
)

func dial() { _, _ = net.Dial("tcp", "") }

// TestX meets a socket by a function.
func TestX(t *testing.T) { dial() }

func TestVirtual(t *testing.T) { synctest.Test(t, func(*testing.T) { dial() }) }

func TestBackend(t *testing.T) { backends.Virtual(t, nil); dial() }

func TestSum(t *testing.T) { t.Error(1 + 1) }
`

func TestATestIsOutsideIfItMeetsProcessesOrSockets(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a_test.go"), []byte(outer), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := readSource(dir)
	if err != nil {
		t.Fatal(err)
	}
	for test, want := range map[string]bool{"TestX": true, "TestVirtual": false, "TestSum": false, "TestNone": false} {
		if s.isOutside(test) != want {
			t.Errorf("%s: %v", test, !want)
		}
	}
}

func TestChangedTestsAreNamedByDirectory(t *testing.T) {
	realserver.Program(t, "git")
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("EBB_BASE", "HEAD")
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a/a_test.go", outer)
	write("same/a_test.go", outer)
	for _, args := range [][]string{{"init", "-q"}, {"add", "."},
		{"-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", "a"}} {
		if out, err := git(args...); err != nil {
			t.Fatal(out, err)
		}
	}
	edited := strings.Replace(outer, `"tcp", ""`, `"tcp", "x"`, 1)
	write("a/a_test.go", strings.Replace(edited, "func TestSum", "func helps() {}\n\nfunc TestSum", 1))
	write("b/b_test.go", "package b\n\nfunc TestNew(t *testing.T) {}\n\nfunc TestMain(m *testing.M) {}\n\nfunc helps() {}\n")
	var out strings.Builder
	if err := printChanged(&out); err != nil {
		t.Fatal(err)
	}
	if want := "a ^(TestBackend|TestVirtual|TestX)$\nb ^(TestNew)$\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// tried returns what the second tries make of the failures in events. results are the events of each run, and edited is a test that the
// change edits.
func tried(t *testing.T, edited, events string, results ...string) (r *report, failures, flaky string, runs int) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a_test.go"), []byte(outer), 0o600); err != nil {
		t.Fatal(err)
	}
	r = newReport(io.Discard)
	r.step, r.again = "unit", "go test"
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	s := &secondTries{
		report: r, stopped: func() bool { return false },
		source: func(string) (source, error) { return readSource(dir) },
		isNew:  func(_ source, test string) bool { return test == edited },
		run: func(_, test string) *report {
			again := newReport(io.Discard)
			again.step, again.again = r.step, r.again
			events := results[runs]
			if test != "" {
				events = strings.ReplaceAll(events, "TestX", test)
			}
			if err := again.read(strings.NewReader(events)); err != nil {
				t.Fatal(err)
			}
			runs++
			return again
		},
	}
	s.all()
	return r, strings.Join(r.Failures, ""), strings.Join(r.Flaky, ""), runs
}

func TestAFailedTestIsTriedAgain(t *testing.T) {
	const (
		good  = `{"Action":"pass","Package":"m/a","Test":"TestX"}` + "\n" + passes
		panic = `{"Action":"output","Package":"m/a","Test":"TestX","Output":"panic: no\n"}` + "\n" + fails
	)
	many := ""
	for i := range mostTests + 1 {
		many += fmt.Sprintf(`{"Action":"fail","Package":"m/a","Test":"TestX%d"}`+"\n", i)
	}
	many += `{"Action":"fail","Package":"m/a","Elapsed":0.1}`
	for _, c := range []struct {
		name, events string
		results      []string
		passed       bool
		runs         int
	}{
		{"passes at once", fails, []string{good, good}, true, 2},
		{"passes later", fails, []string{fails, good, good}, true, 3},
		{"fails each time", fails, []string{fails, fails, good}, false, 2},
		{"is not there", fails, []string{passes, passes}, false, 2},
		{"panics again", fails, []string{panic, good}, false, 1},
		{"panics", panic, []string{good}, false, 0},
		{"races", strings.Replace(panic, "panic: no", "WARNING: DATA RACE", 1), []string{good}, false, 0},
		{"races in the name of a test that passes", `{"Action":"output","Package":"m/a","Test":"TestY","Output":"WARNING: DATA RACE\n"}` + "\n" +
			`{"Action":"pass","Package":"m/a","Test":"TestY"}` + "\n" + fails, []string{good}, false, 0},
		{"ends its process", `{"Action":"output","Package":"m/a","Test":"TestY","Output":"=== RUN   TestY\n"}` + "\n" + fails,
			[]string{good}, false, 0},
		{"is a part in virtual time", strings.ReplaceAll(fails, `"TestX"`, `"TestX/mem"`), []string{good}, false, 0},
		{"calls Virtual", strings.ReplaceAll(fails, "TestX", "TestBackend"), []string{good}, false, 0},
		{"does not compile", unbuilt, []string{good}, false, 0},
		{"in memory", strings.ReplaceAll(fails, "TestX", "TestSum"), []string{good}, false, 0},
		{"in virtual time", strings.ReplaceAll(fails, "TestX", "TestVirtual"), []string{good}, false, 0},
		{"too many", many, []string{good}, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, failures, flaky, runs := tried(t, "", c.events, c.results...)
			if r.passed() != c.passed || runs != c.runs {
				t.Errorf("passed: %v, %d runs", r.passed(), runs)
			}
			if (flaky != "") != c.passed || (failures != "") == c.passed {
				t.Errorf("failures:\n%sflaky:\n%s", failures, flaky)
			}
			if c.passed && (r.Counts != counts{Passed: 1, Flaky: 1} || !strings.Contains(flaky, "one and one is three")) {
				t.Errorf("%+v, flaky:\n%s", r.Counts, flaky)
			}
		})
	}
}

// TestMain looks for goroutines after tests that pass: what it finds, the failure of a flaky test has hidden.
func TestAPackageWithAFlakyTestRunsOnceMore(t *testing.T) {
	good := `{"Action":"pass","Package":"m/a","Test":"TestX"}` + "\n" + passes
	leaks := `{"Action":"pass","Package":"m/a","Test":"TestX"}
{"Action":"output","Package":"m/a","Output":"goroutines are left\n"}
{"Action":"fail","Package":"m/a","Elapsed":0.1}`
	r, failures, flaky, runs := tried(t, "", fails, good, leaks)
	if r.passed() || runs != 2 || flaky == "" || failures != "unit: m/a \n    goroutines are left\n  again: go test m/a\n" {
		t.Errorf("passed: %v, %d runs, failures:\n%sflaky:\n%s", r.passed(), runs, failures, flaky)
	}
}

func TestAFlakyTestThatTheChangeEditsFails(t *testing.T) {
	good := `{"Action":"pass","Package":"m/a","Test":"TestX"}` + "\n" + passes
	r, failures, flaky, _ := tried(t, "TestX", fails, good)
	if r.passed() || flaky == "" || !strings.Contains(failures, "this change adds or edits it") {
		t.Errorf("passed: %v, failures:\n%sflaky:\n%s", r.passed(), failures, flaky)
	}
}
