package main

import (
	"github.com/ebbdb/ebb/internal/cli"
	"github.com/spf13/cobra"
)

// cliCommand leaves its flags to the package: they are redis-cli's, which mean
// other things before and behind the command.
func cliCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "cli [OPTIONS] [cmd [arg ...]]",
		Short:              "Talk to a server, as redis-cli does",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if status := cli.Main(cmd.Context(), args, cli.System(version())); status != 0 {
				return exitStatus(status)
			}
			return nil
		},
	}
}
