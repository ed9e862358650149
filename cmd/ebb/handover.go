package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/doctor"
)

func handoverCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "handover [flags]",
		Short: "Make a replica the master, and wait for it: before a master stops",
		Long: `Make a replica of a master the new master with FAILOVER, wait until that is done, and end with
status 0: no write is lost, and clients that follow the master wait for milliseconds. On a server
that is a replica already it does nothing. The status is 1 if no replica has taken over; the
server is then still the master.

Without flags it reads the server's port and password from the environment, as ebb health does.
It is for a hook that runs before a server stops (preStop in Kubernetes), and works with Redis
and Valkey.`,
		Example: `  ebb handover
  ebb handover -u redis://host:6379 --timeout 20s`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	server := serverFlags(f)
	f.DurationVar(&timeout, "timeout", 30*time.Second, "time for the replica to catch up and take over")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		target, err := ownServer(f, server)
		if err != nil {
			return err
		}
		return interruptible(cmd, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, timeout+5*time.Second) // the server's own limit comes first
			defer cancel()
			c, err := target.Open(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }()
			outcome, err := handOver(ctx, c, timeout)
			if err == nil {
				_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", target.Addr, outcome)
			}
			return err
		})
	}
	return cmd
}

// handoverPause is the time between two checks of the failover's state.
const handoverPause = 50 * time.Millisecond

// handOver makes a replica the master, and returns the outcome in words.
func handOver(ctx context.Context, c *conn.Conn, timeout time.Duration) (string, error) {
	r, err := roleOf(ctx, c)
	if err != nil {
		return "", err
	}
	if r.name == "slave" {
		return "the server is already a replica of " + r.master, nil
	}
	v, err := c.Do(ctx, "FAILOVER", "TIMEOUT", strconv.FormatInt(timeout.Milliseconds(), 10))
	if err == nil {
		err = v.Err()
	}
	if err != nil {
		return "", fmt.Errorf("no replica can take over: %w", err)
	}
	ticks := time.NewTicker(handoverPause)
	defer ticks.Stop()
	for {
		v, err := c.Do(ctx, "INFO", "replication")
		if err == nil {
			err = v.Err()
		}
		if err != nil {
			return "", fmt.Errorf("the failover has begun, but its state is unknown: %w", err)
		}
		info := doctor.Info(v.String())
		if info["master_failover_state"] == "no-failover" {
			if info["role"] == "slave" {
				return "the master is " + info["master_host"] + ":" + info["master_port"], nil
			}
			return "", fmt.Errorf("no replica has taken over within %s: the server is still the master", timeout)
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("the failover has not ended: its state is %s: %w", info["master_failover_state"], ctx.Err())
		case <-ticks.C:
		}
	}
}
