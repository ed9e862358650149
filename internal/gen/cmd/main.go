// Command cmd writes the command reference below the repository's root, or, with
// -check, says whether it is up to date:
//
//	go run ./internal/gen/cmd [-root .] [-check]
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/gen"
)

func main() {
	root := flag.String("root", ".", "the repository's root")
	check := flag.Bool("check", false, "write nothing; fail if a page is stale")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	table, err := command.DefaultTable()
	if err != nil {
		return err
	}
	var failed error
	for _, part := range []struct {
		dir   string
		pages map[string][]byte
	}{
		{gen.Dir, gen.Pages(root, table)},
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
