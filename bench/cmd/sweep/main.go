// Command sweep repeats workloads of all commands on ebb and on other servers in turn, and prints for each CPU an
// operation (as INFO reports it) and operations a second, sorted by the ratio of ebb's CPU to that of the first other
// server that knows the command: medians of the rounds. Blocking, administrative and connection commands have no row.
// It deletes all keys of the servers.
//
//	go install ./cmd/ebb && cd bench
//	go run ./cmd/sweep
//	go run ./cmd/sweep -only 'zcount*,dump*' -rounds 5
//	go run ./cmd/sweep -ebb 127.0.0.1:7001 -against 127.0.0.1:7000 -json
//
// A server is an address, or a program, which is started. The password is that of the environment variable
// REDISCLI_AUTH. Start reading at sweep.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"github.com/ebbdb/ebb/bench/servers"
	"github.com/ebbdb/ebb/internal/loadgen"
)

func main() {
	var cfg config
	var quiet bool
	ours := flag.String("ebb", "ebb", "the server to compare")
	peers := flag.String("against", "redis-server,valkey-server-9", "the others; those that are not installed are left out")
	flag.StringVar(&cfg.Only, "only", "", "rows to measure: names of commands, or patterns of row names, such as zcount*")
	flag.IntVar(&cfg.Clients, "c", 10, "connections")
	flag.IntVar(&cfg.Pipeline, "P", 32, "requests in flight per connection")
	flag.DurationVar(&cfg.Duration, "d", 0, "length of each measurement (100ms)")
	flag.IntVar(&cfg.Rounds, "rounds", 3, "measurements of each row on each server")
	flag.BoolVar(&cfg.Flush, "flush", false, "delete the keys of servers that have some")
	flag.BoolVar(&cfg.JSON, "json", false, "print JSON")
	flag.BoolVar(&quiet, "q", false, "no progress")
	flag.Parse()
	cfg.Out = os.Stdout
	if !quiet {
		cfg.Progress = os.Stderr
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, cfg, *ours, *peers); err != nil {
		fmt.Fprintln(os.Stderr, "sweep:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, cfg config, ours, peers string) (err error) {
	var stops []func()
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	for i, name := range append([]string{ours}, strings.Split(peers, ",")...) {
		side, stop, err := server(ctx, strings.TrimSpace(name))
		switch {
		case i > 0 && errors.Is(err, exec.ErrNotFound):
			fmt.Fprintf(os.Stderr, "%s is not installed; the table leaves it out\n", cmp.Or(name, "the server without a name"))
			continue
		case err != nil:
			return err
		}
		stops, cfg.Servers = append(stops, stop), append(cfg.Servers, side)
	}
	if len(cfg.Servers) < 2 {
		return fmt.Errorf("no server to compare with: -against %q names neither an address nor an installed program", peers)
	}
	return sweep(ctx, cfg)
}

// server returns the server at an address, or starts the one of a program, which stop ends.
func server(ctx context.Context, name string) (side loadgen.Side, stop func(), err error) {
	side.Target = loadgen.Target{Addr: name, Password: os.Getenv("REDISCLI_AUTH"), Optional: true}
	if _, _, err := net.SplitHostPort(name); err == nil {
		side.Name = name
		return side, func() {}, nil
	}
	s, err := servers.Start(ctx, name)
	if err != nil {
		return side, nil, err
	}
	return loadgen.Side{Name: servers.NameOf(name), Target: loadgen.Target{Addr: s.Addr}}, s.Stop, nil
}
