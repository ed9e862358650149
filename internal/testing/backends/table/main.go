// Command table reads the output of go test -json and prints which test passed on
// which backend, for the tests that run through backends.Each:
//
//	EBB_BACKENDS=all go test -json ./... | go run ./internal/testing/backends/table
//
// It ends with status 1 if a test failed or none was run. With -out FILE it writes the
// output of failed tests to the file.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/ebbdb/ebb/internal/testing/backends"
)

func main() {
	out := flag.String("out", "", "file for the output of what failed; standard error if empty")
	module := flag.String("module", "github.com/ebbdb/ebb/", "prefix of packages, which is left out")
	flag.Parse()
	ok, err := run(*out, *module)
	if err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(out, module string) (ok bool, err error) {
	r := newResults(backends.Kinds(), module)
	if err := r.read(os.Stdin); err != nil {
		return false, err
	}
	if r.empty() {
		return false, fmt.Errorf("no tests in what go test -json said: %q", strings.Join(r.output[""], ""))
	}
	if err := r.write(os.Stdout); err != nil {
		return false, err
	}
	if len(r.failed) == 0 {
		return true, nil
	}
	log := os.Stderr
	if out != "" {
		if log, err = os.Create(out); err != nil {
			return false, err
		}
		fmt.Printf("what failed is in %s\n", out)
	}
	err = r.writeFailed(log)
	if out != "" {
		if closed := log.Close(); err == nil {
			err = closed
		}
	}
	return false, err
}
