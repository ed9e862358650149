// Command classic-ways runs the ways of doing things with Redis that widely read articles describe, on a
// redis-server and on ebb, counts what goes wrong in the trap of each, and runs the toolkit's way beside it.
//
// Start reading at classics; each classic has a file.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/example"
)

func main() {
	url := flag.String("url", "mem://", "the backend of the column ebb")
	redis := flag.String("redis", "", "the redis-server to measure, as redis://host:port; by default one that is started here, "+
		"if the PATH has redis-server")
	flag.Parse()
	example.Quiet() // the program connects to servers that are not started yet
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := measureAll(ctx, os.Stdout, *url, *redis)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// classic is a way of doing something, the trap in it, and better ways.
type classic struct {
	title string // the way, a colon, and its trap
	right string // the figure without the trap; "" if there is none
	rows  []row  // first the classic way, last the toolkit's
}

// row is one way of a classic. The function of count runs the way through the trap and returns its figure.
type row struct {
	name  string
	count func(ctx context.Context, b *bench) (int64, error)
}

// missing is the figure of a way that the backend does not have.
const missing = -1

// classics are all, in the order of the table. The first measures memory, and runs alone.
var classics = []classic{
	sweepMemory,
	sweep,
	setnx,
	unlock,
	failover,
	counter,
	border,
	burstInZset,
	steadyInZset,
	throttle,
	redissonExpire,
	redissonSetRate,
	poll,
	claim,
	brpop,
	notification,
	stampede,
}

// column is one backend of the table.
type column struct {
	head    string
	c       *ebb.Conn // nil: the column is empty
	pair    func(ctx context.Context) (*pair, error)
	figures [][]int64 // by classic and row
}

// measureAll opens both backends, and prints the table.
func measureAll(ctx context.Context, w io.Writer, url, redis string) (err error) {
	ours := &column{head: "ebb", pair: ebbPair}
	if ours.c, err = ebb.Open(ctx, url); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.c.Close()) }()
	theirs := &column{head: "redis-server"}
	program, lookErr := exec.LookPath("redis-server")
	if lookErr == nil {
		theirs.pair = func(ctx context.Context) (*pair, error) { return redisPair(ctx, program) }
	}
	switch {
	case redis != "":
		if theirs.c, err = ebb.Open(ctx, redis); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, theirs.c.Close()) }()
	case lookErr == nil:
		s, err := startRedis(ctx, program)
		if err != nil {
			return err
		}
		defer s.stop()
		theirs.c = s.c
	}
	if theirs.c != nil {
		theirs.head = strings.Replace(theirs.c.Capabilities().Server+" "+theirs.c.Capabilities().Version, "redis", "redis-server", 1)
	}
	if err := measure(ctx, ours, theirs); err != nil {
		return err
	}
	print(w, theirs, ours)
	if theirs.c == nil {
		fmt.Fprintln(w, "\nredis-server is not in the PATH: its column is empty. -redis names a running one.")
	}
	return nil
}

// measure fills the figures of columns, all at the same time.
func measure(ctx context.Context, columns ...*column) error {
	errs := make([]error, len(columns))
	var wg sync.WaitGroup
	for i, col := range columns {
		if col.c != nil {
			wg.Go(func() { errs[i] = col.measure(ctx) })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// measure runs the first classic alone, and then all others at the same time.
func (col *column) measure(ctx context.Context) error {
	col.figures = make([][]int64, len(classics))
	errs := make([]error, len(classics))
	run := func(i int) {
		if errs[i] == nil {
			col.figures[i], errs[i] = classics[i].measure(ctx, col.c, col.pair)
		}
	}
	run(0)
	var wg sync.WaitGroup
	for i := 1; i < len(classics); i++ {
		wg.Go(func() { run(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// measure runs the ways of one classic, one after the other, and removes what they leave.
func (k classic) measure(ctx context.Context, c *ebb.Conn, pair func(ctx context.Context) (*pair, error)) ([]int64, error) {
	figures := make([]int64, len(k.rows))
	for i, r := range k.rows {
		b := newBench(c, pair)
		var err error
		figures[i], err = r.count(ctx, b)
		if err = errors.Join(err, b.clear(context.WithoutCancel(ctx))); err != nil {
			return nil, fmt.Errorf("%s: %s on %s: %w", k.title, r.name, c, err)
		}
	}
	return figures, nil
}

// print writes the table.
func print(w io.Writer, columns ...*column) {
	fmt.Fprintf(w, "%-52s  %7s", "", "without")
	for _, col := range columns {
		fmt.Fprintf(w, "  %19s", col.head)
	}
	fmt.Fprintf(w, "\n%-52s  %7s\n", "the way, and its trap", "trap")
	for i, k := range classics {
		fmt.Fprintf(w, "\n%s\n", k.title)
		for j, r := range k.rows {
			right := ""
			if j == 0 {
				right = k.right
			}
			fmt.Fprintf(w, "  %-50s  %7s", r.name, right)
			for _, col := range columns {
				figure := "-"
				if col.figures != nil && col.figures[i][j] != missing {
					figure = fmt.Sprint(col.figures[i][j])
				}
				fmt.Fprintf(w, "  %19s", figure)
			}
			fmt.Fprintln(w)
		}
	}
}
