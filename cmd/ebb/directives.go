package main

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/ebbdb/ebb/internal/config"
)

// printDirectives prints a table of the directives that have an effect.
func printDirectives(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, d := range config.Directives() {
		if d.Unused == "" {
			fmt.Fprintf(table, "%s %s\t%s\t%s\n", d.Name, d.Usage(), cmp.Or(d.Default, "-"), d.Doc)
		}
	}
	return table.Flush()
}
