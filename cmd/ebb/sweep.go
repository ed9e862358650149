package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"

	"github.com/ebbdb/ebb/internal/loadgen"
	"github.com/spf13/cobra"
)

// defaultPeers are the servers that ebb bench sweep compares with if the programs are installed.
const defaultPeers = "redis-server,valkey-server-9"

func sweepCommand() *cobra.Command {
	cfg := loadgen.SweepConfig{}
	var peers string
	var quiet bool
	cmd := &cobra.Command{
		Use: "sweep", Short: "Compare CPU an operation of all commands with other servers", Args: cobra.NoArgs,
		Long: `Repeat workloads of all commands on ebb and on other servers in turn, and print for each CPU
an operation (as INFO reports it) and operations a second, sorted by the ratio of ebb's CPU to
that of the first other server that knows the command: medians of the rounds. Blocking,
administrative and connection commands have no row. Deletes all keys of the servers.

Without -h, -p, -s and -u, the command starts this program as the server to compare. --against
names the others: an address (host:port), or a program, which is started, and which is left
out if it is not installed.`,
		Example: `  ebb bench sweep
  ebb bench sweep --only 'zcount*,dump*' --rounds 5
  ebb bench sweep -p 7001 --against 127.0.0.1:7000 --json`,
	}
	f := cmd.Flags()
	server := serverFlags(f)
	f.StringVar(&peers, "against", defaultPeers, "the other servers, by address or program")
	f.StringVar(&cfg.Only, "only", "", "rows to measure: names of commands, or patterns of row names, such as zcount* (default: all)")
	f.IntVarP(&cfg.Clients, "clients", "c", 10, "connections")
	f.IntVarP(&cfg.Pipeline, "pipeline", "P", 32, "requests in flight per connection")
	f.DurationVarP(&cfg.Duration, "duration", "d", 0, "of each measurement (default 100ms)")
	f.IntVar(&cfg.Rounds, "rounds", 3, "measurements of each row on each server")
	f.BoolVar(&cfg.JSON, "json", false, "print JSON")
	f.BoolVarP(&quiet, "quiet", "q", false, "no progress")
	flushFlag(f, &cfg.Flush)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		target, err := server()
		if err != nil {
			return err
		}
		started := !f.Changed("host") && !f.Changed("port") && !f.Changed("socket") && !f.Changed("url")
		cfg.Out, cfg.Progress = cmd.OutOrStdout(), progress(quiet)
		return interruptible(cmd, func(ctx context.Context) error {
			servers, stop, err := sweepServers(ctx, target, started, peers, cmd.ErrOrStderr())
			defer stop()
			if err != nil {
				return err
			}
			cfg.Servers = servers
			return loadgen.Sweep(ctx, cfg)
		})
	}
	return cmd
}

// sweepServers returns ebb, which it starts if started is true, and the peers. stop ends those that it started. It tells w which
// programs are not installed.
func sweepServers(ctx context.Context, ours loadgen.Target, started bool, peers string, w io.Writer) (servers []loadgen.Side,
	stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, s := range stops {
			s()
		}
	}
	start := func(program string, args ...string) (loadgen.Target, error) {
		t, stop, err := loadgen.StartServer(ctx, program, args...)
		if err == nil {
			stops = append(stops, stop)
		}
		return t, err
	}
	if started {
		program, err := os.Executable()
		if err != nil {
			return nil, stop, err
		}
		if ours, err = start(program, "serve"); err != nil {
			return nil, stop, err
		}
	}
	servers = append(servers, loadgen.Side{Name: "ebb", Target: ours})
	for peer := range strings.SplitSeq(peers, ",") {
		peer = strings.TrimSpace(peer)
		if _, _, err := net.SplitHostPort(peer); err == nil {
			servers = append(servers, loadgen.Side{Name: peer, Target: loadgen.Target{Addr: peer}})
			continue
		}
		path, err := exec.LookPath(peer)
		if err != nil {
			fmt.Fprintf(w, "%s is not installed; the table leaves it out\n", cmp.Or(peer, "the server without a name"))
			continue
		}
		t, err := start(path)
		if err != nil {
			return nil, stop, err
		}
		servers = append(servers, loadgen.Side{Name: strings.ReplaceAll(peer, "-server", ""), Target: t})
	}
	if len(servers) < 2 {
		return nil, stop, fmt.Errorf("no server to compare with: --against %q names neither an address nor an installed program", peers)
	}
	return servers, stop, nil
}
