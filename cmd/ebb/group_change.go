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

// groupChange adds the flags of a server to a command, which sends GROUP with the words that change returns for its arguments, and prints
// what it returns beside them.
func groupChange(cmd *cobra.Command, change func(args []string) (words []string, done string, err error)) *cobra.Command {
	server := serverFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		words, done, err := change(args)
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
			err := changeGroup(ctx, master, words)
			var refused conn.ReplyError
			if err != nil && !errors.As(err, &refused) && words[0] == "PROMOTE" && leadsSoon(ctx, target, words[1]) {
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
		if info, err := replicationOf(ctx, target.Open); err == nil && info["group_master"] == node {
			return true
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return false
		}
	}
}

// changeGroup sends GROUP. An error of the server is a conn.ReplyError.
func changeGroup(ctx context.Context, target loadgen.Target, words []string) error {
	c, err := target.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	request := []any{"GROUP"}
	for _, w := range words {
		request = append(request, w)
	}
	v, err := c.Do(ctx, request...)
	if err == nil {
		err = v.Err()
	}
	return err
}

func groupPromoteCommand() *cobra.Command {
	return groupChange(&cobra.Command{
		Use:   "promote NODE [flags]",
		Short: "Make a node of a group its master, without a loss",
		Long: `Make a node of a group its master: one that is in sync, by its number, which ebb group
status shows. The master hands the group over, and its clients look for the new one.`,
		Example: "  ebb group promote 2",
		Args:    cobra.ExactArgs(1),
	}, func(args []string) ([]string, string, error) {
		return []string{"PROMOTE", args[0]}, "node " + args[0] + " is about to be the master: ebb group status shows when it is", nil
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
	}, func(args []string) ([]string, string, error) {
		return []string{"SETK", args[0]}, "min-sync-replicas is " + args[0], nil
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
	}, func(args []string) ([]string, string, error) {
		return []string{"REMOVE", args[0]}, "node " + args[0] + " is removed", nil
	})
}

func groupRecoverCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "recover NODE --accept-loss [flags]",
		Short: "Make a node the master though it may lack what was acknowledged",
		Long: `Make a node the master though it may lack what was acknowledged, where no node is in sync any
longer: all of them were down at once. What it lacks is lost.`,
		Example: "  ebb group recover 2 --accept-loss",
		Args:    cobra.ExactArgs(1),
	}
	accept := cmd.Flags().Bool("accept-loss", false, "lose acknowledged writes that the node lacks")
	return groupChange(cmd, func(args []string) ([]string, string, error) {
		if !*accept {
			return nil, "", errors.New("acknowledged writes may be lost: --accept-loss does it")
		}
		return []string{"RECOVER", args[0], "ACCEPT-LOSS"}, "node " + args[0] + " is about to be the master; INFO counts the loss", nil
	})
}
