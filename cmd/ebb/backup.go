package main

import (
	"github.com/ebbdb/ebb/internal/cli"
	"github.com/spf13/cobra"
)

// backupCommand offers `ebb cli --rdb` under the name that operators look for.
func backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup [OPTIONS] FILE",
		Short: "Write a snapshot of a running server into a file",
		Long: `Write a snapshot of a running server into a file: the data of one instant, as an
RDB file. The server continues to serve. The options are those of ebb cli: -h HOST,
-p PORT, -a PASSWORD, --tls ... A file "-" is standard output.

  ebb backup -p 7000 backup.rdb
  ebb check backup.rdb

To restore it, start a server in a new directory that holds it as dump.rdb:
ebb serve --dir DIRECTORY.`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if n := len(args); n == 0 || args[n-1] == "--help" || n == 1 && args[0] == "-h" {
				return cmd.Help()
			}
			name := args[len(args)-1]
			args = append(args[:len(args)-1:len(args)-1], "--rdb", name)
			if status := cli.Main(cmd.Context(), args, cli.System(version())); status != 0 {
				return exitStatus(status)
			}
			return nil
		},
	}
}
