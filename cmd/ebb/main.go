// Command ebb is the server and the tools for its operators.
//
//	ebb serve     a server that speaks the Redis protocol
//	ebb witness   a node of a group that has a vote and no data
//	ebb group     show the state of a group, and change it
//	ebb demo      a server with sample data that changes, and the web console
//	ebb cli       a client for the command line
//	ebb health    report by the exit status whether a server can be used
//	ebb doctor    examine a server: faults, their reasons and corrections
//	ebb handover  make a replica the master before a server stops
//	ebb migrate   move the data of running servers, a cluster or files to ebb, and back
//	ebb queue     inspect queues, pause them, run jobs again
//	ebb backup    save a server's data into a file
//	ebb check     examine files of data
//	ebb bench     measure a server
//	ebb completion  print a shell's completions
//	ebb version
//
// Under the names redis-server, redis-cli, redis-check-rdb, redis-check-aof and redis-benchmark, or Valkey's, the
// program acts as the corresponding command.
//
// Each file of this package holds one command: its flags, and the call of the package that does the work.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	root := &cobra.Command{
		Use:           "ebb",
		Short:         "A Redis-compatible in-memory data store with exact, per-item expiration",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(commands()...)
	root.SetArgs(namedAs(os.Args))
	err := root.Execute()
	var status exitStatus
	switch {
	case errors.As(err, &status):
		os.Exit(int(status))
	case err != nil:
		fmt.Fprintln(os.Stderr, "ebb:", err)
		os.Exit(1)
	}
}

// commands returns the subcommands, in the order of the help.
func commands() []*cobra.Command {
	return append(buildCommands(), serveCommand(), witnessCommand(), groupCommand(), demoCommand(), cliCommand(), healthCommand(),
		doctorCommand(), migrateCommand(), handoverCommand(), queueCommand(), backupCommand(), checkCommand(), benchCommand(),
		versionCommand(), sentinelCommand())
}

// exitStatus is an error whose message is printed already. The program ends with that status.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
