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

// The commands that change a group send GROUP to its master, or to the server that is named if that one has no link to the master.

// groupChange adds the flags of a server to a command, which sends the GROUP request that change returns for its arguments, and prints what
// it returns beside it.
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
				err = nil // the old master has closed the connection before its reply was read
			}
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), done)
			}
			return err
		})
	}
	return cmd
}

// handOverTime is for how long a hand-over may take.
const handOverTime = 5 * time.Second

// leadsSoon waits until a server says that a node is the master of its group, and reports whether it does.
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
		Short: "Make a node of a group its master, without a loss",
		Long: `Make a node of a group its master: one that is in sync, by its number, which ebb group
status shows. The master hands the group over, and its clients look for the new one.`,
		Example: "  ebb group promote 2",
		Args:    cobra.ExactArgs(1),
	}, func(args []string) ([]any, string, error) {
		return []any{"GROUP", "PROMOTE", args[0]}, "node " + args[0] + " is about to be the master: ebb group status shows when it is", nil
	})
}

func groupSetKCommand() *cobra.Command {
	return groupChange(&cobra.Command{
		Use:   "set-k K [flags]",
		Short: "Set how many replicas must be in sync for a group to acknowledge anything",
		Long: `Set min-sync-replicas of a group: how many replicas must be in sync for the master to
acknowledge anything. The group keeps the number; the directive counts at its first start.`,
		Example: "  ebb group set-k 1",
		Args:    cobra.ExactArgs(1),
	}, func(args []string) ([]any, string, error) {
		return []any{"GROUP", "SETK", args[0]}, "min-sync-replicas is " + args[0], nil
	})
}

func groupRemoveCommand() *cobra.Command {
	return groupChange(&cobra.Command{
		Use:   "remove NODE [flags]",
		Short: "Remove a node that has ended from a group, for ever",
		Long: `Remove a node that has ended from a group, for ever: its vote no longer counts. A new
machine that takes over the address of one that was lost is the same node, and needs no removal.`,
		Example: "  ebb group remove 3",
		Args:    cobra.ExactArgs(1),
	}, func(args []string) ([]any, string, error) {
		return []any{"GROUP", "REMOVE", args[0]}, "node " + args[0] + " is removed", nil
	})
}

func groupRecoverCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "recover NODE --accept-loss [flags]",
		Short: "Make a node the master though it may lack what was acknowledged",
		Long: `Make a node the master though it may lack what was acknowledged, where no node is in sync any
longer: all of them were down at once. What it lacks is lost. Stop a node in sync that the others
do not reach first: it would go on answering.`,
		Example: "  ebb group recover 2 --accept-loss",
		Args:    cobra.ExactArgs(1),
	}
	accept := cmd.Flags().Bool("accept-loss", false, "lose acknowledged writes that the node lacks")
	return groupChange(cmd, func(args []string) ([]any, string, error) {
		if !*accept {
			return nil, "", errors.New("acknowledged writes may be lost: --accept-loss does it")
		}
		return []any{"GROUP", "RECOVER", args[0], "ACCEPT-LOSS"}, "node " + args[0] + " is about to be the master; INFO counts the loss", nil
	})
}
