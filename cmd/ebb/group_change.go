package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/loadgen"
)

// The commands that change a group send GROUP to the master. If the named server has no link to the master, they send
// it to that server.

// groupChange makes cmd send a GROUP request, with the flags that name a server. change returns the request for the
// command's arguments, and the text to print after a success.
func groupChange(cmd *cobra.Command, change func(args []string) (request []any, done string, err error)) *cobra.Command {
	server := serverFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		request, done, err := change(args)
		if err != nil {
			return err
		}
		target, err := server()
		if err != nil {
			return err
		}
		return interruptible(cmd, func(ctx context.Context) error {
			master := target
			if _, err := groupMaster(ctx, &master); err != nil {
				return err
			}
			_, err := askOnce(ctx, master, request...)
			var refused conn.ReplyError
			if err != nil && !errors.As(err, &refused) && request[1] == "PROMOTE" && leadsSoon(ctx, target, args[0]) {
				err = nil // the old master closed the connection before its reply was read
			}
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), done)
			}
			return err
		})
	}
	return cmd
}

// handOverTime is the time limit of a hand-over.
const handOverTime = 5 * time.Second

// leadsSoon waits until a server reports that a node is the master of its group. It returns false after handOverTime.
func leadsSoon(ctx context.Context, target loadgen.Target, node string) bool {
	ctx, cancel := context.WithTimeout(ctx, handOverTime)
	defer cancel()
	again := time.NewTicker(handOverTime / 50)
	defer again.Stop()
	for {
		if info, err := replicationOf(ctx, target); err == nil && info["group_master"] == node {
			return true
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return false
		}
	}
}

func groupPromoteCommand() *cobra.Command {
	return groupChange(&cobra.Command{
		Use:   "promote NODE [flags]",
		Short: "Make a node of a group the master, without losing a write",
		Long: `Make a node of a group the master. The node must be in sync; NODE is its number, which ebb group
status shows. The master hands the group over, and its clients connect to the new one.`,
		Example: "  ebb group promote 2",
		Args:    cobra.ExactArgs(1),
	}, func(args []string) ([]any, string, error) {
		return []any{"GROUP", "PROMOTE", args[0]}, "node " + args[0] + " is about to become the master: check with ebb group status", nil
	})
}

func groupSetKCommand() *cobra.Command {
	return groupChange(&cobra.Command{
		Use:   "set-k K [flags]",
		Short: "Set the number of replicas that must be in sync before a group acknowledges writes",
		Long: `Set min-sync-replicas of a group: the number of replicas that must be in sync before the
master acknowledges writes. The group stores the number; the directive counts only at the first start.`,
		Example: "  ebb group set-k 1",
		Args:    cobra.ExactArgs(1),
	}, func(args []string) ([]any, string, error) {
		return []any{"GROUP", "SETK", args[0]}, "min-sync-replicas is " + args[0], nil
	})
}

func groupRemoveCommand() *cobra.Command {
	return groupChange(&cobra.Command{
		Use:   "remove NODE [flags]",
		Short: "Remove a stopped node from a group for ever",
		Long: `Remove a stopped node from a group for ever: its vote no longer counts. A new
machine at the address of a lost one is the same node, which need not be removed.`,
		Example: "  ebb group remove 3",
		Args:    cobra.ExactArgs(1),
	}, func(args []string) ([]any, string, error) {
		return []any{"GROUP", "REMOVE", args[0]}, "node " + args[0] + " is removed", nil
	})
}

func groupRecoverCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "recover NODE --accept-loss [flags]",
		Short: "Make a node the master although it may lack acknowledged writes",
		Long: `Make a node the master although it may lack acknowledged writes, when no node is in sync any
longer because all of them were down at once. The writes that it lacks are lost. If a node in sync runs
but the others do not reach it, stop that node first: it would continue to answer clients.`,
		Example: "  ebb group recover 2 --accept-loss",
		Args:    cobra.ExactArgs(1),
	}
	accept := cmd.Flags().Bool("accept-loss", false, "lose acknowledged writes that the node lacks")
	return groupChange(cmd, func(args []string) ([]any, string, error) {
		if !*accept {
			return nil, "", errors.New("acknowledged writes may be lost: --accept-loss accepts that")
		}
		return []any{"GROUP", "RECOVER", args[0], "ACCEPT-LOSS"}, "node " + args[0] + " is about to be the master; INFO counts the loss", nil
	})
}
