package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// timeline has the begins and ends of tests, without their parts. Several reports may add to one at the same time; a nil one takes nothing.
type timeline struct {
	mu     sync.Mutex
	events []event
}

func (l *timeline) add(e event) {
	if l == nil || e.Test == "" || strings.Contains(e.Test, "/") || !slices.Contains([]string{"run", "pass", "fail", "skip"}, e.Action) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// at returns the tests that ran at an instant, those of the package in dir alone if there are any. The instants of events are some
// milliseconds late, and those of processes have steps of 10 ms.
func (l *timeline) at(t time.Time, dir string) []string {
	const late = 50 * time.Millisecond
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	others, here := map[string]bool{}, map[string]bool{}
	for _, e := range l.events {
		tests, name := others, e.Package+" "+e.Test
		if path.Base(e.Package) == filepath.Base(dir) {
			tests, name = here, e.Test
		}
		if e.Action != "run" && e.Time.Before(t.Add(-late)) {
			delete(tests, name)
		} else if e.Action == "run" && e.Time.Before(t.Add(late)) {
			tests[name] = true
		}
	}
	if len(here) > 0 {
		others = here
	}
	return slices.Sorted(maps.Keys(others))
}

// began returns when a process began, to 10 ms; the zero time: it is not known. It needs Linux's /proc.
func began(id int) time.Time {
	up, _ := os.ReadFile("/proc/uptime")
	fields, uptime := stat(id), 0.0
	if len(fields) < 20 {
		return time.Time{}
	}
	ticks, err := strconv.ParseInt(fields[19], 10, 64)
	if _, bad := fmt.Sscan(string(up), &uptime); err != nil || bad != nil {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(ticks)*10*time.Millisecond - time.Duration(uptime*1e9))
}
