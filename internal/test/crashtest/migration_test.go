package crashtest

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

var keys = flag.Int("crash.keys", 20_000, "how many keys to migrate")

// fill writes keys of all types, some with deadlines, most of them small.
func fill(t *testing.T, c *redis.Client, n int) {
	t.Helper()
	ctx := t.Context()
	for i := 0; i < n; {
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for end := min(n, i+1000); i < end; i++ {
				fillKey(ctx, p, i)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	big := func(add func(p redis.Pipeliner, i int)) {
		if _, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range 5000 {
				add(p, i)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	big(func(p redis.Pipeliner, i int) { p.HSet(ctx, "big:hash", fmt.Sprint("f", i), fmt.Sprint("v", i)) })
	big(func(p redis.Pipeliner, i int) { p.SAdd(ctx, "big:set", fmt.Sprint("m", i)) })
	big(func(p redis.Pipeliner, i int) {
		p.ZAdd(ctx, "big:zset", redis.Z{Score: float64(i) / 3, Member: fmt.Sprint("m", i)})
	})
	big(func(p redis.Pipeliner, i int) { p.RPush(ctx, "big:list", strings.Repeat("x", i%200)) })
	big(func(p redis.Pipeliner, i int) {
		p.XAdd(ctx, &redis.XAddArgs{Stream: "big:stream", ID: fmt.Sprintf("%d-1", i+1), Values: []string{"k", fmt.Sprint(i)}})
	})
	c.XGroupCreate(ctx, "big:stream", "g", "0")
	c.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "g", Consumer: "c", Streams: []string{"big:stream", ">"}, Count: 100})
	c.Set(ctx, "big:string", strings.Repeat("long ", 100_000), 0)
}

func fillKey(ctx context.Context, p redis.Pipeliner, i int) {
	k := fmt.Sprintf("k:%09d", i)
	switch i % 10 {
	case 0:
		p.HSet(ctx, k, "name", "n", "id", i)
	case 1:
		p.RPush(ctx, k, i, "b", "c")
	case 2:
		p.SAdd(ctx, k, i, i+1, i+2)
	case 3:
		p.ZAdd(ctx, k, redis.Z{Score: float64(i), Member: "a"}, redis.Z{Score: 1.5, Member: "b"})
	case 4:
		p.XAdd(ctx, &redis.XAddArgs{Stream: k, ID: "1-1", Values: []string{"n", fmt.Sprint(i)}})
	case 5:
		p.PFAdd(ctx, k, i, i+1)
	case 6:
		p.Set(ctx, k, i, 10*time.Hour)
	default:
		p.Set(ctx, k, strings.Repeat("v", i%60), 0)
	}
}

// steady writes to a server without a break until it is told to stop, and then to
// the next one.
type steady struct {
	n    int
	last time.Time // the last acknowledged write
}

// write writes until stop is closed.
func (s *steady) write(ctx context.Context, c *redis.Client, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		s.n++
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.Incr(ctx, "steady:counter")
			p.RPush(ctx, "steady:list", s.n)
			p.HSet(ctx, "steady:hash", fmt.Sprint("f", s.n%100), s.n)
			p.Set(ctx, fmt.Sprintf("k:%09d", s.n*10+7), s.n, time.Hour)
			p.Del(ctx, fmt.Sprintf("k:%09d", s.n*10+1))
			return nil
		})
		if err != nil {
			return fmt.Errorf("write %d: %w", s.n, err)
		}
		s.last = time.Now()
	}
}

// infoField is a field of INFO.
func infoField(ctx context.Context, c *redis.Client, section, name string) string {
	for _, line := range strings.Split(c.Info(ctx, section).Val(), "\r\n") {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return v
		}
	}
	return ""
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func digest(t *testing.T, c *redis.Client) string {
	t.Helper()
	d, err := c.Do(t.Context(), "DEBUG", "DIGEST").Text()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// moveTo has the writer go from one server to its replica: the replica catches up,
// is promoted, and a write is made there. It returns how long no write was possible,
// without the comparison that a careful operator makes meanwhile.
func moveTo(t *testing.T, w *steady, from, to *redis.Client) time.Duration {
	t.Helper()
	ctx := t.Context()
	stop, done := make(chan struct{}), make(chan error)
	go func() { done <- w.write(ctx, from, stop) }()
	began := time.Now()
	host, port, _ := strings.Cut(from.Options().Addr, ":")
	if err := to.Do(ctx, "REPLICAOF", host, port).Err(); err != nil {
		t.Fatal(err)
	}
	tier.Eventually(t, "the replica has caught up", func() bool {
		return infoField(ctx, to, "replication", "master_link_status") == "up"
	})
	took := time.Since(began)
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Logf("attached and caught up with %d keys in %.1f s, while transactions of five writes went on: %d so far",
		to.DBSize(ctx).Val(), took.Seconds(), w.n)
	want := number(t, infoField(ctx, from, "replication", "master_repl_offset"))
	tier.Eventually(t, "the replica has every write", func() bool {
		return number(t, infoField(ctx, to, "replication", "slave_repl_offset")) >= want
	})
	pause := time.Since(w.last)
	if a, b := digest(t, from), digest(t, to); a != b {
		t.Errorf("digests differ: %s, %s", a, b)
	}
	compared := time.Now()
	if err := to.Do(ctx, "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	if err := to.Incr(ctx, "steady:counter").Err(); err != nil {
		t.Fatal(err)
	}
	return pause + time.Since(compared)
}

// TestMigrationAndBack moves a redis-server's data, while it is written to, to ebb
// by replication, and back.
func TestMigrationAndBack(t *testing.T) {
	old := realserver.NewProcess(t, "redis-server", "--save", "", "--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0")
	ebb := realserver.NewProcess(t, realserver.Ebb(t), "--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0")
	old.Start()
	ebb.Start()
	from := redis.NewClient(&redis.Options{Addr: old.Addr(), MaxRetries: -1, ReadTimeout: tier.Patience})
	to := redis.NewClient(&redis.Options{Addr: ebb.Addr(), MaxRetries: -1, ReadTimeout: tier.Patience})
	defer from.Close()
	defer to.Close()
	fill(t, from, *keys)

	w := &steady{}
	t.Logf("redis-server to ebb: no writes for %.3f s", moveTo(t, w, from, to).Seconds())
	if n := to.DBSize(t.Context()).Val(); n < int64(*keys)/2 {
		t.Errorf("%d keys arrived", n)
	}
	t.Logf("and back, by a partial resynchronisation: no writes for %.3f s", moveTo(t, w, to, from).Seconds())

	fresh := realserver.NewProcess(t, "redis-server", "--save", "", "--enable-debug-command", "yes")
	fresh.Start()
	empty := redis.NewClient(&redis.Options{Addr: fresh.Addr(), MaxRetries: -1, ReadTimeout: tier.Patience})
	defer empty.Close()
	if err := to.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("ebb to an empty redis-server: no writes for %.3f s", moveTo(t, w, to, empty).Seconds())
}
