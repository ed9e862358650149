package main

import (
	"os"
	"path/filepath"
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

func TestEachSkipIsWrittenWithItsReason(t *testing.T) {
	r, out := read(t, skips, passes)
	if !r.passed() || !strings.Contains(out, "ok   m/a (1.5 s)") {
		t.Errorf("passed: %v; printed:\n%s", r.passed(), out)
	}
	name := filepath.Join(t.TempDir(), "skipped")
	if err := r.append(name); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "a TestX/y: lua5.1 is not installed: get it\n" {
		t.Errorf("%q, %v", text, err)
	}
}
