package loadgen

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// ChurnConfig describes a test of fragmentation: keys are overwritten at random
// with values of random sizes and random TTLs, so that the living bytes stay
// about the same while every one of them is replaced many times. The zero
// value, with a Target and Out, runs for ten minutes.
type ChurnConfig struct {
	Common
	Keys     int           // default 300,000: some 300 MB
	MinSize  int           // bytes of the smallest value; default 10
	MaxSize  int           // of the largest; default 2,000
	MinTTL   time.Duration // default 5 s
	MaxTTL   time.Duration // default 300 s
	Duration time.Duration // default 10 min
	Every    time.Duration // between two lines of the finding; default 30 s
}

func (c *ChurnConfig) setDefaults() {
	orDefault(&c.Keys, 300_000)
	orDefault(&c.MinSize, 10)
	if c.MaxSize < c.MinSize {
		c.MaxSize = max(2000, c.MinSize)
	}
	orDefault(&c.MinTTL, 5*time.Second)
	orDefault(&c.MaxTTL, 300*time.Second)
	orDefault(&c.Duration, 10*time.Minute)
	orDefault(&c.Every, 30*time.Second)
}

// churnBatch is the number of SETs that are sent at once.
const churnBatch = 100

// Churn prints, again and again, how much the server says it uses and how much
// is resident, and at the end the highest ratio of the two since everything was
// overwritten once. It deletes everything in the server.
func Churn(ctx context.Context, cfg ChurnConfig) error {
	cfg.setDefaults()
	c, end, err := cfg.Target.emptied(ctx, cfg.Flush)
	if err != nil {
		return err
	}
	defer end()
	line := statusLine{cfg.Progress}
	value := strings.Repeat("x", cfg.MaxSize)
	rng := rand.New(rand.NewPCG(1, 2))
	start := time.Now()
	next, worst, sets := start.Add(cfg.Every), 0.0, 0
	for time.Since(start) < cfg.Duration {
		for range churnBatch {
			size := cfg.MinSize + rng.IntN(cfg.MaxSize-cfg.MinSize+1)
			ttl := cfg.MinTTL + time.Duration(rng.Int64N(int64(cfg.MaxTTL-cfg.MinTTL)+1))
			c.add("SET", "key:"+strconv.Itoa(rng.IntN(cfg.Keys)), value[:size], "PX", strconv.FormatInt(ttl.Milliseconds(), 10))
		}
		if err := c.flush(); err != nil {
			return err
		}
		if err := c.skip(churnBatch); err != nil {
			return err
		}
		sets += churnBatch
		if sets%(100*churnBatch) == 0 {
			line.set("%d sets, %s left", sets, (cfg.Duration - time.Since(start)).Round(time.Second))
		}
		if time.Now().Before(next) {
			continue
		}
		next = next.Add(cfg.Every)
		used, err := c.usedMiB()
		if err != nil {
			return err
		}
		resident := float64(residentMiB(cfg.PID))
		line.clear()
		fmt.Fprintf(cfg.Out, "%4.0fs  %8d sets  used %6.1f MiB  resident %6.0f MiB  ratio %.3f\n", time.Since(start).Seconds(), sets,
			used, resident, resident/used)
		if sets > 3*cfg.Keys {
			worst = max(worst, resident/used)
		}
	}
	fmt.Fprintf(cfg.Out, "highest ratio once every key was overwritten three times: %.3f\n", worst)
	return nil
}

// usedMiB reads used_memory.
func (c *client) usedMiB() (float64, error) {
	v, err := c.do("INFO", "memory")
	if err != nil {
		return 0, err
	}
	for _, l := range strings.Split(v.Str, "\r\n") {
		if s, ok := strings.CutPrefix(l, "used_memory:"); ok {
			n, err := strconv.ParseFloat(s, 64)
			return n / (1 << 20), err
		}
	}
	return 0, fmt.Errorf("INFO memory shows no used_memory")
}
