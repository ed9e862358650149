package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// tourCommand prints where the tour is. The tour was a command of this program once. It
// needs the toolkit and a client library, which a server does not need, so it is now a
// program of its own.
func tourCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "tour",
		Short:              "Print where the guided tour is",
		Hidden:             true,
		DisableFlagParsing: true,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), "The tour is a program of its own. In a clone of github.com/ebbdb/ebb run: go run ./examples/tour")
		},
	}
}
