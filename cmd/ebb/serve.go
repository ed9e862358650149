package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/server"
)

// grace is how long a server that is told to stop waits for replies to be
// written: well below the ten seconds after which supervisors kill.
const grace = 5 * time.Second

func serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve [/path/to/redis.conf | -] [--directive value ...]",
		Short: "Run a server that speaks the Redis protocol",
		Long: `Run a server that speaks the Redis protocol, by default on 127.0.0.1:6379 and
in memory.

A configuration file has the syntax of redis.conf; "-" reads it from standard
input. Every directive can also be given as an option, and wins over the file:

  ebb serve --port 7000 --requirepass secret
  ebb serve /etc/redis/redis.conf --maxmemory 2gb`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && (args[0] == "-h" || args[0] == "--help") {
				return cmd.Help()
			}
			return serve(cmd.Context(), args, os.Stdin, cmd.OutOrStdout())
		},
	}
}

// serve runs a server until it is told to stop.
func serve(ctx context.Context, args []string, stdin io.Reader, out io.Writer) error {
	cfg, err := config.Load(args, stdin)
	if err != nil {
		return err
	}
	var level slog.LevelVar // the server keeps it as loglevel says
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: &level}))
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	paceCollector()
	admin, err := listenAdmin(cfg, log)
	if err != nil {
		return err
	}
	defer admin.close()
	in, err := server.Start(cfg, log, &level)
	if err != nil {
		return err
	}
	greet(out, cfg, in)
	admin.show(out, cfg, in)
	select {
	case <-ctx.Done():
		fmt.Fprintln(out, "stopping: writing out the last replies")
	case <-in.Asked():
		fmt.Fprintln(out, "stopping: a client sent SHUTDOWN")
	}
	stop()
	admin.leave()
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return in.Shutdown(ctx)
}

// admin is the admin pages of a server; without any Admin is nil.
type admin struct{ *server.Admin }

// listenAdmin listens where the directive http says, before anything is served.
func listenAdmin(cfg *config.Set, log *slog.Logger) (a admin, err error) {
	if addr := server.AdminAddr(cfg.String("http")); addr != "" {
		a.Admin, err = server.ListenAdmin(addr, log)
	}
	return a, err
}

// show shows the pages of a server that has started, and says where.
func (a admin) show(out io.Writer, cfg *config.Set, in *server.Instance) {
	if a.Admin == nil {
		return
	}
	a.Ready(adminPages(in.Service(), cfg.Bool("http-pprof"))...)
	fmt.Fprintf(out, "metrics: http://%s/metrics\n", a.Addr())
}

func (a admin) leave() {
	if a.Admin != nil {
		a.Leave()
	}
}

func (a admin) close() {
	if a.Admin != nil {
		_ = a.Close()
	}
}

// greet says what is served, and how to talk to it.
func greet(out io.Writer, cfg *config.Set, in *server.Instance) {
	var addrs []string
	for _, a := range in.Addrs() {
		addrs = append(addrs, a.String())
	}
	fmt.Fprintf(out, "ebb %s serves %s (pid %d)\n", version(), strings.Join(addrs, ", "), os.Getpid())
	fmt.Fprintf(out, "data is kept in memory: %d shards, %d network loops; it is gone when the server stops\n", in.DB().Shards(), in.Loops())
	if len(addrs) > 0 {
		fmt.Fprintf(out, "try it:  ebb cli%s SET greeting hello PX 1500\n", portFlag(cfg))
	}
	if cfg.RequirePass() == "" && cfg.ProtectedMode() {
		fmt.Fprintln(out, "without a password only this machine is served (protected-mode yes)")
	}
	first := true
	for _, g := range cfg.Ignored() {
		if g.AtDefault {
			continue
		}
		if first {
			fmt.Fprintln(out, "accepted, and without effect so far:")
			first = false
		}
		fmt.Fprintf(out, "  %-24s %s (%s)\n", g.Name, g.Why, g.Where)
	}
	if p := cfg.String("maxmemory-policy"); p != "noeviction" {
		fmt.Fprintf(out, "maxmemory-policy %s: nothing is evicted yet; at maxmemory writes are refused\n", p)
	}
}

// portFlag is what a client needs to reach a server that is not on 6379.
func portFlag(cfg *config.Set) string {
	if p := cfg.Int("port"); p != 6379 {
		return fmt.Sprintf(" -p %d", p)
	}
	return ""
}
