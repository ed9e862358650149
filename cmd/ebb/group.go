package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/doctor"
	"github.com/ebbdb/ebb/internal/loadgen"
)

func groupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "group",
		Short: "Show the state of a group, and change it",
	}
	cmd.AddCommand(groupStatusCommand(), groupPromoteCommand(), groupSetKCommand(), groupRemoveCommand(), groupRecoverCommand())
	return cmd
}

func groupStatusCommand() *cobra.Command {
	status := &cobra.Command{
		Use:   "status [flags]",
		Short: "Show which nodes of a group are in sync, and how far they are",
		Long: `Ask a server of a group for the state of the group: the epoch, its master, which nodes are
in sync, and how far each is behind. Only the master knows the latter: if the server is a
replica that is linked to the master, the command asks the master.`,
		Example: `  ebb group status
  ebb group status -u redis://host:6379`,
		Args: cobra.NoArgs,
	}
	server := serverFlags(status.Flags())
	status.RunE = func(cmd *cobra.Command, _ []string) error {
		target, err := server()
		if err != nil {
			return err
		}
		return interruptible(cmd, func(ctx context.Context) error {
			info, err := groupMaster(ctx, &target)
			if err != nil {
				return err
			}
			return groupTable(cmd.OutOrStdout(), target.Addr, info)
		})
	}
	return status
}

// groupMaster returns the fields of INFO replication of the group's master, and sets target to it. If the server has
// no link to the master, it returns the server's own fields.
func groupMaster(ctx context.Context, target *loadgen.Target) (map[string]string, error) {
	info, err := replicationOf(ctx, *target)
	if err != nil {
		return nil, err
	}
	if info["group_state"] == "" {
		return nil, errors.New("the server belongs to no group: want a server that runs with --group")
	}
	if info["role"] == "slave" && info["master_link_status"] == "up" {
		master := *target
		master.Network, master.Addr = "", net.JoinHostPort(info["master_host"], info["master_port"])
		if of, err := replicationOf(ctx, master); err == nil && of["group_state"] != "" {
			*target, info = master, of
		}
	}
	return info, nil
}

// replicationOf returns the fields of INFO replication of a server.
func replicationOf(ctx context.Context, server loadgen.Target) (map[string]string, error) {
	v, err := askOnce(ctx, server, "INFO", "replication")
	if err != nil {
		return nil, err
	}
	return doctor.Info(v.String()), nil
}

// askOnce sends a request on a new connection. An error reply is a conn.ReplyError.
func askOnce(ctx context.Context, server loadgen.Target, request ...any) (v conn.Value, err error) {
	c, err := server.Open(ctx)
	if err != nil {
		return v, err
	}
	defer func() { _ = c.Close() }()
	if v, err = c.Do(ctx, request...); err == nil {
		err = v.Err()
	}
	return v, err
}

// groupTable prints the state of a group from the fields of one node.
func groupTable(out io.Writer, addr string, info map[string]string) error {
	fmt.Fprintf(out, "node %s at %s: %s\n", info["group_node"], addr, info["group_state"])
	fmt.Fprintf(out, "epoch %s, master node %s; in sync: %s, min-sync-replicas %s\n", info["group_epoch"], info["group_master"],
		info["group_in_sync"], info["group_min_sync_replicas"])
	if n := info["group_accepted_losses"]; n != "0" {
		fmt.Fprintf(out, "an operator has accepted a loss of acknowledged writes: %s\n", times(n))
	}
	leads := info["group_writable"] != ""
	if leads {
		fmt.Fprintf(out, "writes: %s, reads: %s\n", answered(info["group_writable"]), answered(info["group_lease"]))
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "NODE\tINCARNATION\tIN SYNC")
	if leads {
		fmt.Fprint(t, "\tLINK\tOFFSET\tBEHIND")
	}
	self := map[string]string{"node": info["group_node"], "incarnation": info["group_incarnation"], "in_sync": info["group_self_in_sync"],
		"offset": info["master_repl_offset"]}
	fmt.Fprintf(t, "\n%s\n", groupLine(self, leads, true))
	for i := 0; info["group_member"+strconv.Itoa(i)] != ""; i++ {
		member := map[string]string{}
		for pair := range strings.SplitSeq(info["group_member"+strconv.Itoa(i)], ",") {
			name, value, _ := strings.Cut(pair, "=")
			member[name] = value
		}
		fmt.Fprintf(t, "%s\n", groupLine(member, leads, false))
	}
	return t.Flush()
}

// groupLine returns the line of a node. leads reports that the fields come from the master, own that the line is
// about the node that gave the fields.
func groupLine(m map[string]string, leads, own bool) string {
	line := fmt.Sprintf("%s\t%s\t%s", m["node"], m["incarnation"], yes(m["in_sync"]))
	switch {
	case leads && own:
		line += fmt.Sprintf("\tmaster\t%s\t", m["offset"])
	case leads:
		line += fmt.Sprintf("\t%s\t%s\t%s bytes, %s ms", yes(m["linked"]), m["offset"], m["behind_bytes"], m["behind_ms"])
	}
	return line
}

func yes(flag string) string {
	if flag == "1" {
		return "yes"
	}
	return "no"
}

func answered(flag string) string {
	if flag == "1" {
		return "answered"
	}
	return "not answered"
}

func times(n string) string {
	if n == "1" {
		return "once"
	}
	return n + " times"
}
