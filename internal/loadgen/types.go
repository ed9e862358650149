package loadgen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Side is one of the two servers of a comparison.
type Side struct {
	Name   string
	Target Target
	PID    int // to measure its CPU
}

// TypesConfig describes a comparison of two servers over the commands of all
// data types. It deletes the keys of both.
type TypesConfig struct {
	Ours, Theirs Side
	Clients      int           // connections; default 50
	Pipeline     int           // requests in flight on each; default 32
	Duration     time.Duration // of each measurement; default 2 s
	Rounds       int           // default 3; medians are printed
	Scripts      bool          // compare scripts instead
	Timed        bool          // compare ebb's own commands with scripts on the other
	Only         string        // comma-separated names; all if empty
	Flush        bool          // delete all keys first even if there are some
	Out          io.Writer
	Progress     io.Writer
}

func (cfg *TypesConfig) setDefaults() {
	orDefault(&cfg.Clients, 50)
	orDefault(&cfg.Pipeline, 32)
	orDefault(&cfg.Rounds, 3)
	orDefault(&cfg.Duration, 2*time.Second)
}

// orDefault sets *p to v unless it is above zero.
func orDefault[N int | time.Duration](p *N, v N) {
	if *p <= 0 {
		*p = v
	}
}

// typeTest is a command, with the data that the server holds before the test repeats it.
type typeTest struct {
	name     string
	load     int // items that add adds before
	add      func(c *client, i int)
	args     []string
	keyspace int // of __rand_int__
	requests int // the most requests, after which the loaded items are used up; 0: until the time is over

	follow []string
	theirs *typeTest // the test on the other server; nil: the same test
}

// bigZSet is the number of members of the large sorted set.
const bigZSet = 1_000_000

var typeTests = []typeTest{
	{name: "HSET", args: []string{"HSET", "hash", "field:__rand_int__", "__data__"}, keyspace: 100_000},
	{name: "HGET", load: 100_000, add: func(c *client, i int) { c.add("HSET", "hash", fmt.Sprintf("field:%012d", i), "value of a field") },
		args: []string{"HGET", "hash", "field:__rand_int__"}, keyspace: 100_000},
	{name: "LPUSH", args: []string{"LPUSH", "list", "__data__"}},
	{name: "LRANGE_100", load: 1000, add: func(c *client, i int) { c.add("RPUSH", "list", fmt.Sprintf("element:%06d", i)) },
		args: []string{"LRANGE", "list", "0", "99"}},
	{name: "SADD", args: []string{"SADD", "set", "member:__rand_int__"}, keyspace: 1_000_000},
	{name: "SPOP", load: 2_000_000, add: func(c *client, i int) { c.add("SADD", "set", fmt.Sprintf("member:%012d", i)) },
		args: []string{"SPOP", "set"}, requests: 1_500_000},
	{name: "ZADD", args: []string{"ZADD", "zset", "__rand_int__", "member:__rand_int__"}, keyspace: 1_000_000},
	{name: "ZRANGE", load: bigZSet, add: addToZSet, args: []string{"ZRANGE", "zset", "500000", "500009"}},
	{name: "ZRANK", load: bigZSet, add: addToZSet, args: []string{"ZRANK", "zset", "member:__rand_int__"}, keyspace: bigZSet},
	{name: "XADD", args: []string{"XADD", "stream", "*", "field", "__data__"}},
	{name: "XREADGROUP", load: 2_000_000, add: func(c *client, i int) {
		c.add("XADD", "stream", strconv.Itoa(i+1)+"-1", "field", "value of a field")
	}, args: []string{"XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", "stream", ">"}, requests: 1_500_000},
	{name: "INCR", args: []string{"INCR", "counter:__rand_int__"}, keyspace: 100_000},
	{name: "PFADD", args: []string{"PFADD", "sketch", "__rand_int__"}, keyspace: 1_000_000},
	{name: "GEOSEARCH", load: 100_000, add: func(c *client, i int) {
		c.add("GEOADD", "geo", strconv.FormatFloat(5+float64(i%1000)/50, 'f', 4, 64), strconv.FormatFloat(40+float64(i/1000)/10, 'f', 4, 64),
			fmt.Sprintf("place:%06d", i))
	}, args: []string{"GEOSEARCH", "geo", "FROMLONLAT", "15", "45", "BYRADIUS", "30", "km", "ASC", "COUNT", "10"}},
	{name: "BITCOUNT_1MiB", load: 1, add: func(c *client, _ int) { c.add("SET", "bits", strings.Repeat("\x5a", 1<<20)) },
		args: []string{"BITCOUNT", "bits"}},
}

func addToZSet(c *client, i int) {
	c.add("ZADD", "zset", strconv.Itoa(i*7919%bigZSet), fmt.Sprintf("member:%012d", i))
}

// Types repeats each command on both servers in turn, and prints throughput and
// CPU per operation with their ratios: medians over the rounds.
func Types(ctx context.Context, cfg TypesConfig) error {
	cfg.setDefaults()
	for _, s := range []Side{cfg.Theirs, cfg.Ours} {
		c, err := s.Target.client(ctx)
		if err == nil {
			err = c.flushable(cfg.Flush)
			c.conn.Close()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	fmt.Fprintf(cfg.Out, "%-14s %12s %12s %7s   %10s %10s %7s\n", "command", cfg.Theirs.Name+" op/s", cfg.Ours.Name+" op/s",
		"ratio", "us/op", "us/op", "ratio")
	found := false
	tests := typeTests
	if cfg.Scripts {
		tests = scriptTests
	}
	if cfg.Timed {
		tests = timedTests
	}
	for _, t := range tests {
		if cfg.Only != "" && !slices.Contains(strings.Split(strings.ToLower(cfg.Only), ","), strings.ToLower(t.name)) {
			continue
		}
		found = true
		if err := cfg.compare(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	if !found {
		return errors.New("no such command in the comparison")
	}
	return nil
}

// compare measures one command on both servers, and prints a line.
func (cfg *TypesConfig) compare(ctx context.Context, t typeTest) error {
	var rps, cpu [2][]float64
	for range cfg.Rounds {
		for i, side := range []Side{cfg.Theirs, cfg.Ours} {
			r, err := cfg.measure(ctx, side, t)
			if err != nil {
				return fmt.Errorf("%s: %w", side.Name, err)
			}
			rps[i] = append(rps[i], r.PerSecond())
			cpu[i] = append(cpu[i], float64(r.CPUPerRequest().Nanoseconds())/1000)
		}
	}
	a, b, x, y := median(rps[0]), median(rps[1]), median(cpu[0]), median(cpu[1])
	fmt.Fprintf(cfg.Out, "%-14s %12s %12s %6.2fx   %10.2f %10.2f %6.2fx\n", t.name, thousands(a), thousands(b), b/a, x, y, y/x)
	return nil
}

// measure loads a side, and repeats the command.
func (cfg *TypesConfig) measure(ctx context.Context, side Side, t typeTest) (Result, error) {
	if t.theirs != nil && side == cfg.Theirs {
		name := t.name
		t = *t.theirs
		t.name = name
	}
	line := statusLine{cfg.Progress}
	c, err := side.Target.client(ctx)
	if err != nil {
		return Result{}, err
	}
	defer c.conn.Close()
	if _, err := c.do("FLUSHALL"); err != nil {
		return Result{}, err
	}
	if t.load > 0 {
		err := loadOne(ctx, side.Target, t.load, line, t.name, t.add)
		if err != nil {
			return Result{}, err
		}
	}
	if t.name == "XREADGROUP" {
		if _, err := c.do("XGROUP", "CREATE", "stream", "g", "0"); err != nil {
			return Result{}, err
		}
	}
	run := Config{Target: side.Target, Clients: cfg.Clients, Pipeline: cfg.Pipeline, Duration: cfg.Duration, Requests: t.requests,
		Size: 16, Keyspace: max(t.keyspace, 1), Seed: 1, PID: side.PID, Progress: cfg.Progress}
	r, err := Run(ctx, run, Test{Name: side.Name + " " + t.name, Args: t.args, Follow: t.follow})
	if err == nil && r.Errors > 0 {
		err = errors.New(r.FirstError)
	}
	if err == nil {
		_, err = c.do("FLUSHALL")
	}
	return r, err
}

// loadOne is load over one connection, so that both servers get the items in the
// same order.
func loadOne(ctx context.Context, t Target, n int, line statusLine, what string, add func(c *client, i int)) error {
	c, err := t.client(ctx)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	defer c.closeWith(ctx)()
	defer line.clear()
	for i := 0; i < n; {
		batch := min(loadBatch, n-i)
		for j := range batch {
			add(c, i+j)
		}
		if err := c.flush(); err != nil {
			return err
		}
		if err := c.skip(batch); err != nil {
			return err
		}
		if i += batch; i%(100*loadBatch) == 0 {
			line.set("%s: %s of %s loaded", what, thousands(float64(i)), thousands(float64(n)))
		}
	}
	return nil
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
