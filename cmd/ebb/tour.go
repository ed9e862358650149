package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// tourCommand says where the tour is. It was a command of this program once; it runs the
// toolkit, and with it a client library, which a server has no use for.
func tourCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "tour",
		Short:              "Print where the tour is",
		Hidden:             true,
		DisableFlagParsing: true,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), "The tour is a program of its own. In a clone of github.com/ebbdb/ebb run: go run ./examples/tour")
		},
	}
}
