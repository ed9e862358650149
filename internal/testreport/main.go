// Command testreport reads what `go test -json` writes. It prints one line for each
// package, and the output of tests that failed; at the end the packages that took longest.
//
//	go test -json ./... | testreport -skipped FILE
//
// It appends to FILE one line for each skipped test: the package, the test and the reason.
// It exits with status 1 if a test, a package or a build failed, or if no package was
// tested.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

func main() {
	skipped := flag.String("skipped", "", "the file to which skipped tests are appended")
	flag.Parse()
	r := newReport(os.Stdout)
	err := r.read(os.Stdin)
	if err == nil && *skipped != "" {
		err = r.append(*skipped)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	r.slowest(8)
	if !r.passed() {
		os.Exit(1)
	}
}

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// report holds the results that were read so far.
type report struct {
	out io.Writer
	// output holds the output of tests that have not ended yet, or have failed, by package
	// and test. The test "" is the package itself.
	output map[string]map[string][]string
	builds map[string][]string // the errors of the compiler, by package
	took   map[string]float64  // seconds, of the packages that have ended
	skips  []string
	failed int
}

func newReport(out io.Writer) *report {
	return &report{out: out, output: map[string]map[string][]string{}, builds: map[string][]string{}, took: map[string]float64{}}
}

// read reads all events. It prints lines that are not events.
func (r *report) read(from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				fmt.Fprintf(r.out, "%s", line)
			} else {
				r.add(e)
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

func (r *report) add(e event) {
	switch {
	case e.Action == "build-output":
		r.builds[e.ImportPath] = append(r.builds[e.ImportPath], e.Output)
	case e.Action == "build-fail":
		r.failed++
		fmt.Fprintf(r.out, "FAIL %s: it does not compile\n%s", e.ImportPath, strings.Join(r.builds[e.ImportPath], ""))
	case e.Action == "output":
		if r.output[e.Package] == nil {
			r.output[e.Package] = map[string][]string{}
		}
		said := r.output[e.Package]
		said[e.Test] = append(said[e.Test], e.Output)
	case e.Test != "":
		r.endTest(e)
	default:
		r.endPackage(e)
	}
}

func (r *report) endTest(e event) {
	switch e.Action {
	case "skip":
		r.skips = append(r.skips, fmt.Sprintf("%s %s: %s", path.Base(e.Package), e.Test, reason(r.output[e.Package][e.Test])))
		delete(r.output[e.Package], e.Test)
	case "pass":
		delete(r.output[e.Package], e.Test)
	}
}

// logged matches the output of t.Log and t.Skip.
var logged = regexp.MustCompile(`^ +[^ :]+\.go:\d+: (.*)`)

// reason returns the last text that a test logged.
func reason(output []string) string {
	for _, line := range slices.Backward(output) {
		if m := logged.FindStringSubmatch(line); m != nil {
			return strings.TrimSpace(m[1])
		}
	}
	return "no reason given"
}

func (r *report) endPackage(e event) {
	said := r.output[e.Package]
	switch e.Action {
	case "fail":
		r.failed++
		fmt.Fprintf(r.out, "FAIL %s (%.1f s)\n", e.Package, e.Elapsed)
		for _, test := range sortedKeys(said) {
			fmt.Fprint(r.out, strings.Join(said[test], ""))
		}
	case "pass":
		cached := ""
		if slices.ContainsFunc(said[""], func(line string) bool { return strings.HasSuffix(line, "\t(cached)\n") }) {
			cached = ", the result is from before"
		}
		fmt.Fprintf(r.out, "ok   %s (%.1f s%s)\n", e.Package, e.Elapsed, cached)
	case "skip": // it has no tests
	default:
		return
	}
	r.took[e.Package] = e.Elapsed
	delete(r.output, e.Package)
}

// passed reports whether there were packages, and none failed.
func (r *report) passed() bool { return r.failed == 0 && len(r.took) > 0 }

func (r *report) append(name string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	for _, line := range r.skips {
		if _, err := fmt.Fprintln(f, line); err != nil {
			_ = f.Close()
			return err
		}
	}
	return f.Close()
}

// slowest prints the n packages that took longest.
func (r *report) slowest(n int) {
	all := sortedKeys(r.took)
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(r.took[b], r.took[a]) })
	var parts []string
	for _, p := range all[:min(n, len(all))] {
		parts = append(parts, fmt.Sprintf("%s %.1f s", path.Base(p), r.took[p]))
	}
	fmt.Fprintf(r.out, "%d packages; the slowest: %s\n", len(all), strings.Join(parts, ", "))
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
