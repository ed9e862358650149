package main

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// printProgram builds ebb for the tests that start it as a process, and prints its path, which names its content: go test keeps a
// result only while the environment stays the same, and does not look at files outside of the module.
func printProgram(out io.Writer) error {
	caches, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	tree, err := os.Getwd()
	if err != nil {
		return err
	}
	// go build does not link where the program of its last run is up to date.
	kept := filepath.Join(caches, "ebb", "bin")
	built := filepath.Join(kept, fmt.Sprintf("tree-%d", crc32.ChecksumIEEE([]byte(tree))), "ebb")
	if err := os.MkdirAll(filepath.Dir(built), 0o755); err != nil {
		return err
	}
	build := exec.Command(cmp.Or(os.Getenv("GO"), "go"), "build", "-buildvcs=false", "-o", built, "./cmd/ebb")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	path, err := realserver.Keep(kept, func(path string) error { return copyProgram(path, built) })
	if err == nil {
		_, err = fmt.Fprintln(out, path)
	}
	return err
}

func copyProgram(to, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o755)
}
