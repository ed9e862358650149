package main

import (
	"github.com/ebbdb/ebb/internal/cli"
	"github.com/spf13/cobra"
)

// cliCommand leaves the parsing of flags to package cli. The flags are redis-cli's, and their meaning depends on
// whether they precede or follow the command.
func cliCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "cli [OPTIONS] [cmd [arg ...]]",
		Short:              "Talk to a server, as redis-cli does",
		Long:               cli.Description(),
		DisableFlagParsing: true,
		ValidArgsFunction:  completeCLI,
		RunE: func(cmd *cobra.Command, args []string) error {
			if status := cli.Main(cmd.Context(), args, cli.System(version())); status != 0 {
				return exitStatus(status)
			}
			return nil
		},
	}
}
