package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// findings keeps, of the output of a step, the last lines that say what failed, and the last lines of all.
type findings struct {
	rest        []byte // the beginning of a line
	failed, all []string
}

const (
	mostLines   = 6
	mostColumns = 300
)

// finding matches the lines of compilers, linters, tests and steps that say what is wrong.
var finding = regexp.MustCompile(`^(vet: )?[^ :]+:\d+:|^FAIL|^panic:|^not ok|error TS|` +
	`^# \S+/|not formatted|not tidy|missing go\.sum|updates to go\.mod|must have`)

// Write never fails.
func (f *findings) Write(p []byte) (int, error) {
	f.rest = append(f.rest, p...)
	for {
		line, rest, whole := bytes.Cut(f.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		f.add(string(line))
		f.rest = rest
	}
}

func (f *findings) add(line string) {
	if strings.TrimSpace(line) == "" {
		return
	}
	keep := func(lines []string) []string { return append(lines[max(0, len(lines)-mostLines+1):], line) }
	if finding.MatchString(line) {
		f.failed = keep(f.failed)
	}
	f.all = keep(f.all)
}

// end adds what stands after the last end of a line.
func (f *findings) end() {
	f.add(string(f.rest))
	f.rest = nil
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
