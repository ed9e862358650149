package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// timeline is when each test ran, without its parts. Several reports may add to one at the same time; a nil one takes nothing.
type timeline struct {
	mu   sync.Mutex
	runs []testRun
}

type testRun struct {
	pkg, test string
	from, to  time.Time // to is zero while it runs
}

// add takes the begin and the end of a test.
func (l *timeline) add(e event) {
	if l == nil || e.Test == "" || strings.Contains(e.Test, "/") {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e.Action {
	case "run":
		l.runs = append(l.runs, testRun{pkg: e.Package, test: e.Test, from: e.Time})
	case "pass", "fail", "skip":
		for i := len(l.runs) - 1; i >= 0; i-- {
			if r := &l.runs[i]; r.test == e.Test && r.pkg == e.Package {
				r.to = e.Time
				return
			}
		}
	}
}

// at returns the tests that ran at an instant, those of the package in dir alone if there are any. The instants of events are some
// milliseconds late, and those of processes have steps of 10 ms.
func (l *timeline) at(t time.Time, dir string) (tests []string) {
	const late = 50 * time.Millisecond
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var here []string
	for _, r := range l.runs {
		if t.Before(r.from.Add(-late)) || !r.to.IsZero() && t.After(r.to.Add(late)) {
			continue
		}
		tests = append(tests, r.pkg+" "+r.test)
		if path.Base(r.pkg) == filepath.Base(dir) {
			here = append(here, r.test)
		}
	}
	if len(here) > 0 {
		tests = here
	}
	slices.Sort(tests)
	return slices.Compact(tests)
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
