// Command operators measures what the commands that operators ask cost on a server with many keys, beside what the
// same questions cost without these commands: a walk over all keys.
//
//	ebb serve --port 17400 --save ''
//	go run ./cmd/operators -addr 127.0.0.1:17400 -keys 1000000
//
// It deletes all keys of the server and loads its own: strings with deadlines within a day, hashes whose fields
// expire, limiters of which some deny, locks, semaphores, and queues. Each question is asked again and again for a
// while. A line of the result has the median time of an answer, and the p99 of the GETs that another client sends
// meanwhile at a fixed rate, counted from the instants at which they were due.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/loadgen"
)

var (
	addr   = flag.String("addr", "127.0.0.1:17400", "the server, whose keys are deleted")
	keys   = flag.Int("keys", 1_000_000, "keys")
	rate   = flag.Float64("rate", 2000, "GETs a second of another client")
	during = flag.Duration("for", 4*time.Second, "the time for which a question is asked again and again")
	pause  = flag.Duration("pause", 5*time.Millisecond, "the time between two questions")
)

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "operators:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	c, err := ebb.Open(ctx, "redis://"+*addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := load(ctx, c); err != nil {
		return err
	}
	n, err := c.DBSize(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d keys; GETs of another client: %.0f a second, each question for %v\n\n", n, *rate, *during)
	fmt.Printf("| question | how | answer, ms | longest, ms | p99 of GETs, us |\n|---|---|---|---|---|\n")
	nothing := func(context.Context, *ebb.Conn) error { return nil }
	if err := measure(ctx, c, "none", "", nothing); err != nil {
		return err
	}
	for _, q := range questions {
		for _, w := range q.ways {
			if err := measure(ctx, c, q.name, w.name, w.ask); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	return nil
}

// measure asks a question for a while, beside another client.
func measure(ctx context.Context, c *ebb.Conn, question, way string, ask func(context.Context, *ebb.Conn) error) error {
	if err := ask(ctx, c); err != nil { // the first answer may open a connection
		return err
	}
	type found struct {
		loadgen.Result
		err error
	}
	others := make(chan found, 1)
	go func() {
		cfg := loadgen.Config{Target: loadgen.Target{Addr: *addr}, Clients: 4, Rate: *rate, Duration: *during, Keyspace: 100_000}
		r, err := loadgen.Run(ctx, cfg, loadgen.Custom([]string{"GET", "key:__rand_int__"}))
		others <- found{r, err}
	}()
	var times []time.Duration
	var failed error
	for began := time.Now(); failed == nil && time.Since(began) < *during; {
		at := time.Now()
		failed = ask(ctx, c)
		times = append(times, time.Since(at))
		time.Sleep(*pause)
	}
	other := <-others
	if err := errors.Join(failed, other.err); err != nil {
		return err
	}
	slices.Sort(times)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	fmt.Printf("| %s | %s | %.2f | %.2f | %d |\n", question, way, ms(times[len(times)/2]), ms(times[len(times)-1]),
		other.Latency.Quantile(0.99).Microseconds())
	return nil
}
