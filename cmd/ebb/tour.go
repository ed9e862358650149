package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/ebbdb/ebb/internal/cli"
	"github.com/ebbdb/ebb/internal/tour"
	"github.com/spf13/cobra"
)

func tourCommand() *cobra.Command {
	var o tour.Options
	cmd := &cobra.Command{
		Use:   "tour",
		Short: "See what it does, in two minutes",
		Long: `Play what ebb does in the terminal, on an engine in this process: one screen
each for what expires, limits, locks, queues, streams and counts.

On a terminal: space or n goes on, p goes back, q ends. Elsewhere the last
picture of each screen is printed as text.

Screens: ` + strings.Join(tour.Names(), ", "),
		Example: `  ebb tour
  ebb tour --once lock
  ebb tour --speed 2`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Speed == 0 { // which in Options means that nothing was said
				return errors.New("the speed is 0.1 to 50, not 0")
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			o.Out = cmd.OutOrStdout()
			if o.Out == os.Stdout && cli.IsTerminal(os.Stdout) && os.Getenv("TERM") != "dumb" {
				return onTerminal(ctx, o)
			}
			return tour.Run(ctx, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Once, "once", "", "play one screen")
	f.Float64Var(&o.Speed, "speed", 1, "how many times faster, 0.1 to 50")
	return cmd
}

// onTerminal plays on standard output, and leaves the terminal as it was.
func onTerminal(ctx context.Context, o tour.Options) (err error) {
	o.Term, err = tour.OpenTerminal(os.Stdin, os.Stdout)
	if errors.Is(err, tour.ErrSmall) {
		fmt.Fprintln(os.Stderr, err, "so here are its last pictures")
		return tour.Run(ctx, o)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Term.Close()) }()
	return tour.Run(ctx, o)
}
