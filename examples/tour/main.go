package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/ebbdb/ebb/internal/cli"
)

// usage is the text of -h above the options.
const usage = `Show ebb's functions in the terminal, on an engine in this process: one screen
each for expiration, limits, locks, queues, streams and counters.

On a terminal: space or n shows the next screen, p the one before, q ends the tour.
Elsewhere the tour prints the last picture of each screen as text.

  go run ./examples/tour
  go run ./examples/tour -once lock
  go run ./examples/tour -speed 2
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := mainWith(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "tour:", err)
		os.Exit(1)
	}
}

// mainWith reads the options and plays: on a terminal if out is one, else as text.
func mainWith(ctx context.Context, args []string, out, stderr io.Writer) error {
	var o Options
	f := flag.NewFlagSet("tour", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.Once, "once", "", "play one screen: "+strings.Join(Names(), ", "))
	f.Float64Var(&o.Speed, "speed", 1, "how many times faster, 0.1 to 50")
	f.Usage = func() {
		fmt.Fprint(stderr, usage, "\n")
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("the tour takes options only, not %q", f.Arg(0))
	}
	if o.Speed == 0 { // In Options 0 stands for the default.
		return errors.New("-speed is 0, and must be 0.1 to 50")
	}
	o.Out = out
	if out == os.Stdout && cli.IsTerminal(os.Stdout) && os.Getenv("TERM") != "dumb" {
		return onTerminal(ctx, o)
	}
	return Run(ctx, o)
}

// onTerminal plays on standard output, and leaves the terminal as it was.
func onTerminal(ctx context.Context, o Options) (err error) {
	o.Term, err = OpenTerminal(os.Stdin, os.Stdout)
	if errors.Is(err, ErrSmall) {
		fmt.Fprintf(os.Stderr, "%v; the tour prints the last picture of each screen instead\n", err)
		return Run(ctx, o)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Term.Close()) }()
	return Run(ctx, o)
}
