// Command cmd writes the command reference, and the data that other packages
// have of the commands, below the repository's root, or, with
// -check, says whether it is up to date:
//
//	go run ./internal/gen/cmd [-root .] [-check]
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ebbdb/ebb/internal/gen"
	"github.com/ebbdb/ebb/internal/servercmd"
)

func main() {
	root := flag.String("root", ".", "the repository's root")
	check := flag.Bool("check", false, "write nothing; fail if a file is stale")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	table, err := servercmd.DefaultTable()
	if err != nil {
		return err
	}
	files, err := gen.Sources(table)
	if err != nil {
		return err
	}
	failed := writeSources(root, check, files)
	for _, part := range []struct {
		dir   string
		pages map[string][]byte
	}{
		{gen.Dir, gen.Pages(table)},
		{gen.CompatDir, gen.Compatibility()},
	} {
		dir := filepath.Join(root, part.dir)
		if check {
			failed = errors.Join(failed, gen.Check(dir, part.pages))
			continue
		}
		touched, err := gen.Write(dir, part.pages)
		for _, name := range touched {
			fmt.Println(filepath.Join(dir, name))
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// writeSources writes the generated Go files that changed, or says which of them are stale.
func writeSources(root string, check bool, files map[string][]byte) (failed error) {
	for name, text := range files {
		path := filepath.Join(root, name)
		old, err := os.ReadFile(path)
		switch {
		case err != nil:
		case bytes.Equal(old, text):
			continue
		case check:
			err = fmt.Errorf("%s is stale; run `make docs`", name)
		default:
			fmt.Println(path)
			err = os.WriteFile(path, text, 0o644)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}
