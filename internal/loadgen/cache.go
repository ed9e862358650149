package loadgen

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// CacheConfig describes a cache that is smaller than what is asked of it.
type CacheConfig struct {
	Common
	MaxMemory string        // as CONFIG SET takes it; default 256mb
	Policies  string        // comma-separated; default all eight
	Keys      int           // different keys; default 2,000,000
	Size      int           // bytes of a value; default 200
	Skew      float64       // of the Zipf distribution; default 1.01
	Duration  time.Duration // for each policy; default 15 s
}

func (cfg *CacheConfig) setDefaults() {
	cfg.MaxMemory = cmp.Or(cfg.MaxMemory, "256mb")
	cfg.Policies = cmp.Or(cfg.Policies,
		"allkeys-lru,allkeys-lfu,allkeys-random,volatile-lru,volatile-lfu,volatile-random,volatile-ttl,noeviction")
	orDefault(&cfg.Keys, 2_000_000)
	orDefault(&cfg.Size, 200)
	if cfg.Skew <= 1 {
		cfg.Skew = 1.01
	}
	orDefault(&cfg.Duration, 15*time.Second)
}

// Cache writes all keys once, then reads keys by a Zipf distribution and writes
// what it misses, with a TTL of about an hour, under each eviction policy, and prints the hit ratio of the
// second half, what the server counts as used and what it holds. It deletes
// everything in the server, and leaves it without a limit.
func Cache(ctx context.Context, cfg CacheConfig) error {
	cfg.setDefaults()
	c, end, err := cfg.Target.emptied(ctx, cfg.Flush)
	if err != nil {
		return err
	}
	defer end()
	fmt.Fprintf(cfg.Out, "%-16s %10s %9s %10s %10s %10s %8s %10s\n", "policy", "op/s", "hits", "evicted", "keys",
		"used MiB", "rss MiB", "refused")
	for policy := range strings.SplitSeq(cfg.Policies, ",") {
		if err := cfg.policy(ctx, c, policy); err != nil {
			return fmt.Errorf("%s: %w", policy, err)
		}
	}
	_, err = c.do("CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction")
	return err
}

// cacheBatch is the number of keys that are read at once, and written where they are missing.
const cacheBatch = 64

func (cfg *CacheConfig) policy(ctx context.Context, c *client, policy string) error {
	for _, args := range [][]string{{"FLUSHALL"}, {"CONFIG", "RESETSTAT"},
		{"CONFIG", "SET", "maxmemory", cfg.MaxMemory, "maxmemory-policy", policy}} {
		if _, err := c.do(args...); err != nil {
			return err
		}
	}
	value := strings.Repeat("v", cfg.Size)
	if err := cfg.fill(ctx, policy, value); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, cfg.Skew, 10, uint64(cfg.Keys-1))
	line := statusLine{cfg.Progress}
	defer line.clear()
	began := time.Now()
	var reads, hits, ops, refused int
	missing := make([]string, 0, cacheBatch)
	for ctx.Err() == nil && time.Since(began) < cfg.Duration {
		keys := make([]string, cacheBatch)
		for i := range keys {
			keys[i] = "key:" + strconv.FormatUint(zipf.Uint64(), 10)
			c.add("GET", keys[i])
		}
		found, err := cfg.readBatch(c, keys, &missing)
		if err != nil {
			return err
		}
		ops += cacheBatch + len(missing)
		if time.Since(began) > cfg.Duration/2 {
			reads, hits = reads+cacheBatch, hits+found
		}
		for _, k := range missing {
			c.add("SET", k, value, "EX", strconv.Itoa(3600+rng.IntN(600)))
		}
		if err := c.flush(); err != nil {
			return err
		}
		for range missing {
			msg, err := SkipReply(c.in)
			if err != nil {
				return err
			}
			if msg != "" {
				refused++
			}
		}
		line.set("%s: %s reads", policy, thousands(float64(reads)))
	}
	line.clear()
	return cfg.print(c, policy, float64(ops)/time.Since(began).Seconds(), float64(hits)/float64(max(reads, 1)), refused)
}

// fill writes every key once, so that the server is at its limit.
func (cfg *CacheConfig) fill(ctx context.Context, policy, value string) error {
	c, err := cfg.Target.client(ctx)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	defer c.closeWith(ctx)()
	line := statusLine{cfg.Progress}
	defer line.clear()
	for i := 0; i < cfg.Keys; {
		batch := min(loadBatch, cfg.Keys-i)
		for j := range batch {
			c.add("SET", "key:"+strconv.Itoa(i+j), value, "EX", strconv.Itoa(3600+(i+j)%600))
		}
		if err := c.flush(); err != nil {
			return err
		}
		for range batch {
			if _, err := SkipReply(c.in); err != nil { // some policies refuse writes
				return err
			}
		}
		if i += batch; i%(100*loadBatch) == 0 {
			line.set("%s: %s of %s keys written", policy, thousands(float64(i)), thousands(float64(cfg.Keys)))
		}
	}
	return nil
}

// readBatch sends the GETs and notes which keys are missing.
func (cfg *CacheConfig) readBatch(c *client, keys []string, missing *[]string) (found int, err error) {
	if err := c.flush(); err != nil {
		return 0, err
	}
	*missing = (*missing)[:0]
	for _, k := range keys {
		v, err := c.read()
		if err != nil {
			return 0, err
		}
		if v.IsNull() {
			*missing = append(*missing, k)
		} else {
			found++
		}
	}
	return found, nil
}

func (cfg *CacheConfig) print(c *client, policy string, rate, hits float64, refused int) error {
	v, err := c.do("INFO")
	if err != nil {
		return err
	}
	size, err := c.do("DBSIZE")
	if err != nil {
		return err
	}
	info := v.String()
	fmt.Fprintf(cfg.Out, "%-16s %10s %8.2f%% %10d %10d %10.1f %8d %10d\n", policy, thousands(rate), 100*hits,
		infoInt(info, "evicted_keys"), size.Int,
		float64(infoInt(info, "used_memory"))/(1<<20), residentMiB(cfg.PID), refused)
	return nil
}

// infoInt returns a number that INFO tells, 0 if it does not.
func infoInt(info, name string) int64 {
	for line := range strings.Lines(info) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), ":"); key == name {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}
