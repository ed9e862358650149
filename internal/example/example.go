// Package example holds the functions that the programs of examples and redisson/examples share.
package example

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/ebbdb/ebb"
)

// Quiet keeps go-redis from printing to standard error the errors that it also returns,
// such as every connection that failed. The setting holds for the whole process, so only a
// main function calls Quiet, before it opens a backend.
func Quiet() { logging.Disable() }

// Main runs an example on the backend that the flag -url names, the embedded engine
// if there is none, until it ends or is interrupted.
func Main(run func(ctx context.Context, c *ebb.Conn, w io.Writer) error) {
	url := flag.String("url", "mem://", "the backend: mem://, redis://127.0.0.1:6379, ...")
	flag.Parse()
	Quiet()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := on(ctx, *url, run)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func on(ctx context.Context, url string, run func(ctx context.Context, c *ebb.Conn, w io.Writer) error) error {
	c, err := ebb.Open(ctx, url)
	if err != nil {
		return err
	}
	fmt.Printf("on %s\n\n", c)
	err = run(ctx, c, os.Stdout)
	if closed := c.Close(); err == nil {
		err = closed
	}
	return err
}

// Sleep waits, but not longer than ctx, whose error it returns then.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
