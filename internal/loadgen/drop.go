package loadgen

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// DropConfig describes what happens to large containers while other clients
// read: they are renamed, deleted, and left to expire.
type DropConfig struct {
	Common
	Elements int           // of each container; default 5,000,000
	Rate     int           // GETs a second meanwhile, open loop; default 5,000
	Around   time.Duration // measured before and after each step; default 1.5 s
}

func (cfg *DropConfig) setDefaults() {
	orDefault(&cfg.Elements, 5_000_000)
	orDefault(&cfg.Rate, 5000)
	orDefault(&cfg.Around, 1500*time.Millisecond)
}

// dropBatch is the number of elements that one command adds while loading.
const dropBatch = 50

// containers are the kinds, and how a batch of elements is added.
var containers = []struct {
	kind string
	add  func(c *client, key string, i int)
}{
	{"hash", func(c *client, key string, i int) {
		addBatch(c, i, []string{"HSET", key}, func(j int) []string { return []string{fmt.Sprintf("f:%09d", j), "0123456789abcdef"} })
	}},
	{"set", func(c *client, key string, i int) {
		addBatch(c, i, []string{"SADD", key}, func(j int) []string { return []string{fmt.Sprintf("m:%09d", j)} })
	}},
	{"zset", func(c *client, key string, i int) {
		addBatch(c, i, []string{"ZADD", key}, func(j int) []string { return []string{strconv.Itoa(j), fmt.Sprintf("m:%09d", j)} })
	}},
	{"list", func(c *client, key string, i int) {
		addBatch(c, i, []string{"RPUSH", key}, func(j int) []string { return []string{fmt.Sprintf("e:%09d", j)} })
	}},
	{"stream", nil}, // an entry is a request: see load
}

func addBatch(c *client, i int, args []string, item func(j int) []string) {
	for j := range dropBatch {
		args = append(args, item(i*dropBatch+j)...)
	}
	c.add(args...)
}

// Drop prints, for each kind of container and each of RENAME, DEL and death by
// EXPIRE, how long the command took, and the latency of the others' GETs before
// and from then on. It deletes everything in the server.
func Drop(ctx context.Context, cfg DropConfig) error {
	cfg.setDefaults()
	c, end, err := cfg.Target.emptied(ctx, cfg.Flush)
	if err != nil {
		return err
	}
	defer end()
	fmt.Fprintf(cfg.Out, "%-7s %-7s %12s %12s %12s %12s %12s %8s\n", "kind", "step", "command ms", "p99 before", "p99 after",
		"max before", "max after", "rss MiB")
	for k := range containers {
		for _, step := range []string{"RENAME", "DEL", "EXPIRE"} {
			if err := cfg.step(ctx, c, k, step); err != nil {
				return fmt.Errorf("%s of a %s: %w", step, containers[k].kind, err)
			}
		}
	}
	return nil
}

// step loads a container and does one thing to it.
func (cfg *DropConfig) step(ctx context.Context, c *client, kind int, step string) error {
	line := statusLine{cfg.Progress}
	command := map[string][]string{"RENAME": {"RENAME", "big", "other"}, "DEL": {"DEL", "other"}, "EXPIRE": {"PEXPIRE", "big", "100"}}[step]
	if step != "DEL" { // what was renamed is deleted
		if _, err := c.do("FLUSHALL"); err != nil {
			return err
		}
		if err := cfg.load(ctx, kind, line); err != nil {
			return err
		}
	}
	if _, err := c.do("SET", "live", "v"); err != nil {
		return err
	}
	p := probes{target: cfg.Target, rate: cfg.Rate}
	var at time.Time
	var took time.Duration
	began := time.Now().Add(min(warmUp, cfg.Around))
	err := p.during(ctx, func(ctx context.Context) error {
		if err := line.wait(ctx, began.Add(cfg.Around), "measuring before"); err != nil {
			return err
		}
		at = time.Now()
		if _, err := c.do(command...); err != nil {
			return err
		}
		took = time.Since(at)
		return line.wait(ctx, at.Add(took+cfg.Around), "measuring after")
	})
	if err != nil {
		return err
	}
	before, after := p.between(began, at), p.between(at, at.Add(took+cfg.Around))
	fmt.Fprintf(cfg.Out, "%-7s %-7s %12s %12s %12s %12s %12s %8d\n", containers[kind].kind, step, ms(took), ms(quantile(before, 0.99, 1)),
		ms(quantile(after, 0.99, 1)),
		ms(quantile(before, 1, 1)), ms(quantile(after, 1, 1)), residentMiB(cfg.PID))
	return nil
}

func (cfg *DropConfig) load(ctx context.Context, kind int, line statusLine) error {
	n := cfg.Elements / dropBatch
	if containers[kind].kind != "stream" {
		return loadOne(ctx, cfg.Target, n, line, containers[kind].kind, func(c *client, i int) { containers[kind].add(c, "big", i) })
	}
	// A stream's entries are a request each.
	one := func(c *client, i int) {
		c.add("XADD", "big", strconv.Itoa(i+1)+"-1", "order", fmt.Sprintf("%09d", i))
	}
	return loadOne(ctx, cfg.Target, cfg.Elements, line, "stream", one)
}
