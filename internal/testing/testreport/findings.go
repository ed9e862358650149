package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// findings keeps, of the output of a step, the last lines that say what failed, and the last lines of all.
type findings struct {
	rest        []byte // the beginning of a line, up to mostBytes
	failed, all []string
}

const (
	mostLines   = 6
	mostColumns = 300
	mostBytes   = 4096 // of a line
)

// finding matches the lines of compilers, linters, tests and steps that say what is wrong.
var finding = regexp.MustCompile(`^(vet: )?[^ :]+:\d+:|^FAIL|^panic:|^not ok|^ +location: |error TS|` +
	`^# \S+/|not formatted|not tidy|missing go\.sum|updates to go\.mod|must have`)

// Write never fails.
func (f *findings) Write(p []byte) (int, error) {
	n := len(p)
	for {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		f.rest = append(f.rest, line[:min(len(line), max(0, mostBytes-len(f.rest)))]...)
		if !whole {
			return n, nil
		}
		f.end()
		p = rest
	}
}

func (f *findings) add(line string) {
	if strings.TrimSpace(line) == "" {
		return
	}
	keep := func(lines []string) []string { return append(lines[max(0, len(lines)-mostLines+1):], line) }
	// The compiler says the same for each module that imports a package, with a path from the folder of the module.
	same := func(other string) bool { return strings.TrimLeft(other, "./") == strings.TrimLeft(line, "./") }
	if finding.MatchString(line) && !slices.ContainsFunc(f.failed, same) {
		f.failed = keep(f.failed)
	}
	f.all = keep(f.all)
}

// end adds the line whose end was reached.
func (f *findings) end() {
	f.add(string(f.rest))
	f.rest = f.rest[:0]
}

// found reports whether a line says what failed.
func (f *findings) found() bool {
	f.end()
	return len(f.failed) > 0
}

// describe returns the failure of a step as text, as report.describe does that of a test.
func (f *findings) describe(step string) string {
	if f.found() {
		return entry(step+":", f.failed, repeatStep(step))
	}
	return entry(step+":", f.all, repeatStep(step))
}

// repeatStep is the command that runs a step alone.
func repeatStep(step string) string {
	if step == "lint" { // without EBB_LINT it builds no linter
		return "EBB_LINT=1 .ci/test lint"
	}
	return ".ci/test " + step
}

// entry is the text of a failure: a head, some lines of what was said, and the command that repeats it.
func entry(head string, lines []string, again string) string {
	var text strings.Builder
	fmt.Fprintln(&text, head)
	for _, line := range lines[:min(len(lines), mostLines)] {
		fmt.Fprintf(&text, "    %.*s\n", mostColumns, line)
	}
	fmt.Fprintf(&text, "  again: %s\n", again)
	return text.String()
}
