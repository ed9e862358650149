package crashtest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

var rounds = flag.Int("crash.rounds", 0, "how often to kill the server in each test; by default so that it takes seconds")

// roundsOr returns what -crash.rounds says, or a few, or with -short one of five of them.
func roundsOr(few int) int {
	switch {
	case *rounds > 0:
		return *rounds
	case tier.Short():
		return max(1, few/5)
	}
	return few
}

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{}) // clients of killed servers complain
	log.SetOutput(io.Discard)
	os.Exit(m.Run())
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// A writer writes to keys of its own, one command after the other, and knows what
// was acknowledged. The server may be killed between a write and its reply: then
// the write may be there or not, whole.
type writer struct {
	id    int
	c     *redis.Client
	acked int64 // steps 1 to acked are acknowledged; acked+1 may have happened
	far   time.Time
}

// step writes number n into keys of all kinds, in one transaction every other time.
func (w *writer) step(ctx context.Context, n int64) error {
	steps := []func(c redis.Cmdable){
		func(c redis.Cmdable) { c.Set(ctx, w.key("string"), n, 0) },
		func(c redis.Cmdable) { c.RPush(ctx, w.key("list"), n) },
		func(c redis.Cmdable) { c.HSet(ctx, w.key("hash"), "n", n, fmt.Sprint("f", n%50), n) },
		func(c redis.Cmdable) { c.ZAdd(ctx, w.key("zset"), redis.Z{Score: float64(n), Member: "n"}) },
		func(c redis.Cmdable) { c.PExpireAt(ctx, w.key("string"), w.far.Add(time.Duration(n)*time.Millisecond)) },
		func(c redis.Cmdable) {
			c.XAdd(ctx, &redis.XAddArgs{Stream: w.key("stream"), ID: fmt.Sprintf("%d-1", n), Values: []string{"n", fmt.Sprint(n)}, MaxLen: 100})
		},
		func(c redis.Cmdable) { c.Incr(ctx, w.key("counter")) },
	}
	_, err := w.c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for _, s := range steps {
			s(p)
		}
		return nil
	})
	return err
}

func (w *writer) key(kind string) string { return fmt.Sprintf("w%d:%s", w.id, kind) }

// write writes until the server is gone.
func (w *writer) write(ctx context.Context) {
	for {
		if err := w.step(ctx, w.acked+1); err != nil {
			return
		}
		w.acked++
	}
}

// check looks whether what is there is what was acknowledged, or one step more, and
// goes on from it.
func (w *writer) check(ctx context.Context, lossOf int64) (lost int64, err error) {
	n, err := w.c.Get(ctx, w.key("counter")).Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, err
	}
	if n > w.acked+1 || n < w.acked-lossOf {
		return 0, fmt.Errorf("writer %d: %d steps were acknowledged, %d are there", w.id, w.acked, n)
	}
	lost = max(0, w.acked-n)
	w.acked = n
	if n == 0 {
		return lost, nil
	}
	var bad []error
	expect := func(what string, got, want any) {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			bad = append(bad, fmt.Errorf("writer %d, %s after %d steps: %v, want %v", w.id, what, n, got, want))
		}
	}
	expect("string", w.c.Get(ctx, w.key("string")).Val(), n)
	expect("deadline", w.c.PExpireTime(ctx, w.key("string")).Val().Milliseconds(), w.far.Add(time.Duration(n)*time.Millisecond).UnixMilli())
	expect("length of the list", w.c.LLen(ctx, w.key("list")).Val(), n)
	expect("end of the list", w.c.LIndex(ctx, w.key("list"), -1).Val(), n)
	expect("hash", w.c.HGet(ctx, w.key("hash"), "n").Val(), n)
	expect("zset", w.c.ZScore(ctx, w.key("zset"), "n").Val(), n)
	expect("stream", w.c.XRevRangeN(ctx, w.key("stream"), "+", "-", 1).Val()[0].ID, strconv.FormatInt(n, 10)+"-1")
	return lost, errors.Join(bad...)
}

// TestAKilledServerHasWhatItAcknowledged kills the real program under load, while
// it also rewrites its files and saves, and starts it again. kill -9 keeps the page
// cache: this tests recovery; what syncs promise is tested on a file system that
// loses what was not synced (internal/durable).
func TestAKilledServerHasWhatItAcknowledged(t *testing.T) {
	for _, policy := range []string{"always", "everysec"} {
		t.Run(policy, func(t *testing.T) { killRounds(t, policy) })
	}
}

func killRounds(t *testing.T, policy string) {
	p := realserver.NewProcess(t, realserver.Ebb(t), "--appendonly", "yes", "--appendfsync", policy, "--auto-aof-rewrite-min-size", "1mb")
	rnd := draw.Rand(t)
	var writers []*writer
	far := time.Now().Add(24 * time.Hour)
	for i := range 8 {
		c := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: -1, DialTimeout: tier.Patience, ReadTimeout: tier.Patience})
		defer c.Close()
		writers = append(writers, &writer{id: i, c: c, far: far})
	}
	loss := map[string]int64{"always": 0, "everysec": 1 << 40}[policy]
	ctx := t.Context()
	var worst, total int64
	var slowest time.Duration
	n := roundsOr(4)
	for round := range n {
		began := time.Now()
		p.Start()
		slowest = max(slowest, time.Since(began))
		for _, w := range writers {
			lost, err := w.check(ctx, loss)
			if err != nil {
				t.Fatalf("round %d: %v\n%s", round, err, p.Said())
			}
			worst = max(worst, lost)
		}
		total += killUnderLoad(ctx, p, writers, rnd)
	}
	t.Logf("%s: %d rounds, %d transactions of 7 commands acknowledged; the most that one writer lost in a round: %d; slowest start %v", policy,
		n, total, worst, slowest.Round(time.Millisecond))
}

// killUnderLoad has the writers write for up to half a second, and returns how many
// steps were acknowledged.
func killUnderLoad(ctx context.Context, p *realserver.Process, writers []*writer, rnd *rand.Rand) (steps int64) {
	var done sync.WaitGroup
	for _, w := range writers {
		steps -= w.acked
		done.Go(func() { w.write(ctx) })
	}
	life := time.Duration(20+rnd.IntN(480)) * time.Millisecond
	admin := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: -1})
	defer admin.Close()
	end := time.After(life)
	switch rnd.IntN(3) {
	case 0:
		admin.BgRewriteAOF(ctx)
	case 1:
		admin.BgSave(ctx)
	}
	<-end
	p.Kill()
	done.Wait()
	for _, w := range writers {
		steps += w.acked
	}
	return steps
}
