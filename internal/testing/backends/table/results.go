package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is a line of go test -json.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build output
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

// outcome is the outcome of a test on a backend.
type outcome uint8

const (
	absent outcome = iota // the test is not for the backend
	passed
	skipped
	failed
	running // the test did not end
)

var marks = [...]string{absent: "-", passed: "ok", skipped: "skip", failed: "FAIL", running: "lost"}

// cell is a test on a backend.
type cell struct {
	outcome outcome
	seconds float64
}

// row is a test: of a package, on every backend.
type row struct {
	pkg, test string
	cells     map[string]cell
}

// results collects events.
type results struct {
	kinds  []string
	module string
	rows   map[string]*row
	order  []string
	output map[string][]string // of each test, and of packages and builds
	failed []string            // keys of output
	other  map[string]outcome  // of tests that run on no backend, or are above those that do
	odd    []string            // packages that failed without a test that did
}

func newResults(kinds []string, module string) *results {
	return &results{kinds: kinds, module: module, rows: map[string]*row{}, output: map[string][]string{}, other: map[string]outcome{}}
}

// read reads events until its input ends. Other lines are a program's own output.
func (r *results) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if strings.TrimSpace(line) != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) == nil {
				r.add(e)
			} else {
				r.output[""] = append(r.output[""], line)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// empty reports whether there was nothing to read: go test did not even begin.
func (r *results) empty() bool {
	return len(r.rows) == 0 && len(r.other) == 0 && len(r.failed) == 0
}

func (r *results) add(e event) {
	key := e.Package + e.ImportPath
	if e.Test != "" {
		key += " " + e.Test
	}
	switch e.Action {
	case "output", "build-output":
		r.output[key] = append(r.output[key], e.Output)
		return
	case "run":
		r.note(e, running)
	case "pass":
		r.note(e, passed)
	case "skip":
		r.note(e, skipped)
	case "fail":
		r.note(e, failed)
		if e.FailedBuild != "" {
			key = e.FailedBuild
		}
		r.failed = append(r.failed, key)
	default:
		return
	}
	if e.Action == "pass" {
		delete(r.output, key) // only failures are asked for
	}
}

// note stores the outcome of a test on a backend.
func (r *results) note(e event, o outcome) {
	pkg := strings.TrimPrefix(e.Package, r.module)
	if e.Test == "" {
		if o == failed {
			r.odd = append(r.odd, pkg)
		}
		return
	}
	test, kind := r.split(e.Test)
	if kind == "" {
		if !strings.Contains(e.Test, "/") {
			r.other[pkg+" "+e.Test] = o
		}
		return
	}
	id := pkg + " " + test
	w := r.rows[id]
	if w == nil {
		w = &row{pkg, test, map[string]cell{}}
		r.rows[id] = w
		r.order = append(r.order, id)
	}
	c := w.cells[kind]
	c.seconds += e.Elapsed
	if c.outcome == running || c.outcome < o {
		c.outcome = o
	}
	w.cells[kind] = c
}

// split finds the backend in a test's name. The part of the name up to it is the test;
// subtests below it count with it.
func (r *results) split(name string) (test, kind string) {
	parts := strings.Split(name, "/")
	for i, p := range parts[1:] {
		if slices.Contains(r.kinds, p) && i == len(parts)-2 {
			return strings.Join(parts[:i+1], "/"), p
		}
	}
	return name, ""
}

// write prints the table: a line for each test, and the sums.
func (r *results) write(w io.Writer) error {
	kinds := slices.DeleteFunc(slices.Clone(r.kinds), func(k string) bool {
		for _, row := range r.rows {
			if row.cells[k].outcome != absent {
				return false
			}
		}
		return true
	})
	pkgWide, testWide := len("package"), len("test")
	for _, row := range r.rows {
		pkgWide, testWide = max(pkgWide, len(row.pkg)), max(testWide, len(row.test))
	}
	out := bufio.NewWriter(w)
	line := func(pkg, test string, cells []string) {
		s := fmt.Sprintf("%-*s  %-*s", pkgWide, pkg, testWide, test)
		for i, c := range cells {
			s += fmt.Sprintf("  %*s", max(len(kinds[i]), 8), c)
		}
		fmt.Fprintln(out, strings.TrimRight(s, " "))
	}
	line("package", "test", kinds)

	rows := make([]*row, 0, len(r.rows))
	for _, id := range r.order {
		rows = append(rows, r.rows[id])
	}
	slices.SortStableFunc(rows, func(a, b *row) int { return cmp.Compare(a.pkg, b.pkg) })
	counts := map[string]*[running + 1]int{}
	seconds := map[string]float64{}
	for _, k := range kinds {
		counts[k] = &[running + 1]int{}
	}
	for i, row := range rows {
		var cells []string
		for _, k := range kinds {
			c := row.cells[k]
			counts[k][c.outcome]++
			seconds[k] += c.seconds
			text := marks[c.outcome]
			if c.outcome == passed || c.outcome == failed {
				text += fmt.Sprintf("%6.2f", c.seconds)
			}
			cells = append(cells, text)
		}
		pkg := row.pkg
		if i > 0 && rows[i-1].pkg == pkg {
			pkg = ""
		}
		line(pkg, row.test, cells)
	}

	fmt.Fprintln(out)
	all := [running + 1]int{}
	total := 0.0
	for o, name := range []string{absent: "not for it", passed: "passed", skipped: "skipped", failed: "failed", running: "lost"} {
		var cells []string
		for _, k := range kinds {
			cells = append(cells, fmt.Sprint(counts[k][o]))
			all[o] += counts[k][o]
		}
		if o != int(running) || all[running] > 0 {
			line("", name, cells)
		}
	}
	var cells []string
	for _, k := range kinds {
		cells = append(cells, fmt.Sprintf("%.1f s", seconds[k]))
		total += seconds[k]
	}
	line("", "time", cells)
	fmt.Fprintf(out, "\n%d tests on %d backends: %d passed, %d failed, %d skipped, %d not for the backend, in %.0f s\n",
		len(rows), len(kinds), all[passed], all[failed]+all[running], all[skipped], all[absent], total)
	other := r.others()
	fmt.Fprintf(out, "tests of one backend or none: %d passed, %d failed, %d skipped\n", other[passed],
		other[failed]+other[running], other[skipped])
	if len(r.odd) > 0 {
		fmt.Fprintf(out, "packages that failed: %s\n", strings.Join(r.odd, ", "))
	}
	return out.Flush()
}

// others counts the tests that are on no backend.
func (r *results) others() (counts [running + 1]int) {
	above := map[string]bool{}
	for _, row := range r.rows {
		test, _, _ := strings.Cut(row.test, "/")
		above[row.pkg+" "+test] = true
	}
	for id, o := range r.other {
		if !above[id] {
			counts[o]++
		}
	}
	return counts
}

// writeFailed prints the output of what failed.
func (r *results) writeFailed(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, line := range r.output[""] {
		fmt.Fprint(out, line)
	}
	for _, key := range r.failed {
		if len(r.output[key]) == 0 {
			continue
		}
		fmt.Fprintf(out, "== %s\n%s\n", key, strings.Join(r.output[key], ""))
	}
	return out.Flush()
}
