// Program pictures draws the pictures of docs/benchmarks.md from the recorded results:
//
//	cd bench && go run ./cmd/pictures
//
// results.txt says how results are written. A picture has its colours for light and dark pages in itself.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	results := flag.String("results", "results.txt", "the file of results")
	dir := flag.String("dir", "../docs/images", "the folder of the pictures")
	flag.Parse()
	if err := run(*results, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(results, dir string) error {
	f, err := os.Open(results)
	if err != nil {
		return err
	}
	defer f.Close()
	all, err := read(f)
	if err != nil {
		return fmt.Errorf("%s: %w", results, err)
	}
	for i := range all {
		if err := os.WriteFile(filepath.Join(dir, all[i].file()), draw(&all[i]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// file returns the name of the picture's file.
func (p *picture) file() string { return "benchmark-" + p.name + ".svg" }
