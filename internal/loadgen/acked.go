package loadgen

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// AckedConfig describes a comparison of writes that are acknowledged: a group, whose replies are acknowledgements, beside servers whose
// clients send WAIT. It deletes the keys of all.
type AckedConfig struct {
	Common                // the master of a group
	Against []Side        // masters with replicas
	Alone   Target        // a server without replicas, whose clients do not send WAIT; without an address there is none
	Rounds  int           // default 7; medians are printed
	Length  time.Duration // of each measurement; default 2 s
}

// ackedTest is a SET on one of the servers, with a number of connections and requests in flight on each.
type ackedTest struct {
	side              Side
	what              string
	behind            []string
	once              bool
	clients, pipeline int
}

// Acked repeats SET with one connection, with 50, and with 50 that have 32 requests in flight, on all servers in turn. Where clients send
// WAIT they do so behind each SET, and, in another row, behind 32 of them.
func Acked(ctx context.Context, cfg AckedConfig) error {
	orDefault(&cfg.Rounds, 7)
	orDefault(&cfg.Length, 2*time.Second)
	k, err := cfg.empty(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(cfg.Out, "%-12s %5s  %-10s %-22s %11s %8s %8s %7s\n", "connections", "depth", "server", "", "op/s", "p50 ms", "p99 ms",
		"group")
	for _, load := range [][2]int{{1, 1}, {50, 1}, {50, 32}} {
		tests := cfg.tests(k, load[0], load[1])
		rps, p50, p99 := make([][]float64, len(tests)), make([][]float64, len(tests)), make([][]float64, len(tests))
		for range cfg.Rounds {
			for i, t := range tests {
				r, err := cfg.measure(ctx, t)
				if err != nil {
					return fmt.Errorf("%s: %w", t.side.Name, err)
				}
				rps[i] = append(rps[i], r.PerSecond())
				p50[i] = append(p50[i], float64(r.Latency.Quantile(0.5)))
				p99[i] = append(p99[i], float64(r.Latency.Quantile(0.99)))
			}
		}
		first := median(rps[0])
		for i, t := range tests {
			of := median(rps[i])
			fmt.Fprintf(cfg.Out, "%-12d %5d  %-10s %-22s %11s %8s %8s %6.2fx\n", t.clients, t.pipeline, t.side.Name, t.what, thousands(of),
				ms(time.Duration(median(p50[i]))), ms(time.Duration(median(p99[i]))), first/of)
		}
	}
	return nil
}

// empty deletes the keys of all servers, and returns the number of members that acknowledge a write to the group (min-sync-replicas).
func (cfg *AckedConfig) empty(ctx context.Context) (k int, err error) {
	for i, s := range append([]Side{{"group", cfg.Target, 0}, {"alone", cfg.Alone, 0}}, cfg.Against...) {
		if s.Target.Addr == "" {
			continue
		}
		c, end, err := s.Target.emptied(ctx, cfg.Flush)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", s.Name, err)
		}
		info, err := c.do("INFO", "replication")
		end()
		if err != nil {
			return 0, fmt.Errorf("%s: %w", s.Name, err)
		}
		if i == 0 {
			k = int(infoInt(info.String(), "group_min_sync_replicas"))
		}
	}
	if k < 1 {
		return 0, errors.New("the server's replies acknowledge nothing: want the master of a group with min-sync-replicas 1 or more")
	}
	return k, nil
}

// tests returns a test for each server; that of the group is the first one.
func (cfg *AckedConfig) tests(k, clients, pipeline int) []ackedTest {
	all := []ackedTest{{side: Side{Name: "group", Target: cfg.Target}, what: "SET"}}
	wait := []string{"WAIT", strconv.Itoa(k), "0"}
	for _, s := range cfg.Against {
		all = append(all, ackedTest{side: s, what: "SET, WAIT " + wait[1], behind: wait})
		if pipeline > 1 {
			all = append(all, ackedTest{side: s, what: fmt.Sprintf("%d SET, WAIT %d", pipeline, k), behind: wait, once: true})
		}
	}
	if cfg.Alone.Addr != "" {
		all = append(all, ackedTest{side: Side{Name: "alone", Target: cfg.Alone}, what: "SET"})
	}
	for i := range all {
		all[i].clients, all[i].pipeline = clients, pipeline
	}
	return all
}

// measure runs a test once.
func (cfg *AckedConfig) measure(ctx context.Context, t ackedTest) (Result, error) {
	run := Config{Target: t.side.Target, Clients: t.clients, Pipeline: t.pipeline, Duration: cfg.Length, Seed: 1, Progress: cfg.Progress}
	r, err := Run(ctx, run, Test{Name: t.side.Name + " " + t.what, Args: []string{"SET", "__key__", "__data__"}, Behind: t.behind,
		Once: t.once})
	if err == nil && r.Errors > 0 {
		err = errors.New(r.FirstError)
	}
	return r, err
}
