package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/demo"
	"github.com/ebbdb/ebb/internal/instance"
)

// demoOptions are the options of ebb demo.
type demoOptions struct {
	port  int
	http  int
	speed float64
	seed  uint64
}

func demoCommand() *cobra.Command {
	var o demoOptions
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run a server with sample data that moves, and the web console",
		Long: `Run a server in memory with the web console, and a small shop in the same process
that uses the toolkit: sessions that slide, carts whose fields expire, unpaid orders
with an expiry rule and a consumer group that lags, a rate limiter with one client
above its limit, locks with workers of which one dies each minute, a semaphore, a
mail queue with dead letters, and 50,000 coupons that expire at each full minute.

Open the printed address in a browser. Nothing is written to disk.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	c.Flags().IntVar(&o.port, "port", 6379, "the TCP `port` for clients")
	c.Flags().IntVar(&o.http, "http", 9121, "the TCP `port` of the web console")
	c.Flags().Float64Var(&o.speed, "speed", 1, "how many times as often the shop acts")
	c.Flags().Uint64Var(&o.seed, "seed", 1, "the seed of the random choices")
	return c
}

// runDemo runs the server and the shop until a signal, SHUTDOWN or the end of ctx.
func runDemo(ctx context.Context, o demoOptions, out io.Writer) error {
	cfg, err := config.Load([]string{"--port", strconv.Itoa(o.port), "--save", "", "--http", "127.0.0.1:" + strconv.Itoa(o.http),
		"--http-console-label", "demo #2a6f97", "--notify-keyspace-events", "Ex"}, nil)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	in, err := instance.Start(ctx, instance.Options{Config: cfg, Log: log})
	if err != nil {
		return err
	}
	c := in.Conn()
	shop := demo.Options{Seed: o.seed, Speed: o.speed, Logger: log}
	if err = demo.Fill(ctx, c, shop); err == nil {
		for _, a := range in.Addrs() {
			fmt.Fprintf(out, "ebb demo: a server in memory at %s\n", a)
		}
		fmt.Fprintf(out, "console: http://%s/\nCtrl-C ends it.\n", in.AdminAddr())
		err = runShop(ctx, in, c, shop, out)
	}
	err = errors.Join(ignoreCancel(err), c.Close())
	over, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return errors.Join(err, in.Shutdown(over))
}

// runShop runs the shop until ctx ends or a client sends SHUTDOWN.
func runShop(ctx context.Context, in *instance.Instance, c *conn.Conn, o demo.Options, out io.Writer) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	result := make(chan error, 1)
	go func() { result <- demo.Run(ctx, c, o) }()
	select {
	case err := <-result:
		return err
	case <-in.Asked():
		fmt.Fprintln(out, "stopping: a client sent SHUTDOWN")
		end()
		return <-result
	}
}

// ignoreCancel drops the error of a context that has ended.
func ignoreCancel(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
