package crashtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// moveKeys are the keys between which jobs move, in the order of their way: two sets, then two lists.
var moveKeys = []string{"{m}schedule", "{m}working", "{m}queue", "{m}done"}

// movers are the commands that wait for jobs and move them on.
var movers = [][]any{
	{"ZMOVEDUE", "{m}schedule", "{m}working", "SCORE", 3, "COUNT", 3, "BLOCK", 1000},
	{"ZMOVEDUE", "{m}schedule", "{m}queue", "LEFT", "COUNT", 2, "BLOCK", 1000},
	{"ZMOVEDUE", "{m}working", "{m}working", "SCORE", 2, "BLOCK", 1000},
	{"ZMOVEDUE", "{m}working", "{m}queue", "RIGHT", "COUNT", 5, "BLOCK", 1000},
	{"BLMOVEM", "{m}queue", "{m}done", "RIGHT", "LEFT", 1, "EXACTLY", 4, "BULK"},
	{"BLMOVEM", "{m}queue", "{m}done", "LEFT", "LEFT", 1, "COUNT", 7, "OBO"},
	{"LMOVEM", "{m}queue", "{m}queue", "LEFT", "LEFT", "COUNT", 3, "OBO"},
}

// A job that moves is in one key at any moment, even when the server is killed between the commands of a
// move: no job is lost, and none is there twice.
func TestAJobThatMovesIsInOneKeyAfterAKill(t *testing.T) {
	p := realserver.NewProcess(t, realserver.Ebb(t), "--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-min-size", "256kb")
	rnd := draw.Rand(t)
	ctx := t.Context()
	dial := func() *redis.Client {
		c := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: -1, ReadTimeout: tier.Patience})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	acked, moved := map[string]bool{}, 0
	unsure := "" // the job whose ZADD had no reply when the server was killed
	for round := range roundsOr(5) {
		p.Start()
		admin := dial()
		there, err := jobsIn(ctx, admin)
		if err != nil {
			t.Fatal(err)
		}
		if where := there[unsure]; len(where) > 0 {
			acked[unsure] = true
		}
		for job, where := range there {
			if len(where) != 1 || !acked[job] {
				t.Errorf("round %d: job %s is in %q", round, job, where)
			}
		}
		for job := range acked {
			if len(there[job]) == 0 {
				t.Errorf("round %d: job %s is lost", round, job)
			}
		}
		if t.Failed() {
			t.Fatalf("%s", p.Said())
		}

		var done sync.WaitGroup
		var mu sync.Mutex
		for i := range 2 * len(movers) {
			c, args := dial(), movers[i%len(movers)]
			done.Go(func() {
				for {
					switch v, err := c.Do(ctx, args...).Slice(); {
					case err == nil:
						mu.Lock()
						moved += len(v)
						mu.Unlock()
					case err != redis.Nil:
						return
					}
				}
			})
		}
		adder := dial()
		done.Go(func() {
			for n := 0; ; n++ {
				job := fmt.Sprintf("%d-%d", round, n)
				due := float64(time.Now().UnixMicro()+rnd.Int64N(20_000)) / 1e6
				if unsure = job; adder.ZAdd(ctx, moveKeys[0], redis.Z{Score: due, Member: job}).Err() != nil {
					return
				}
				acked[job], unsure = true, ""
			}
		})
		if rnd.IntN(2) == 0 {
			admin.BgRewriteAOF(ctx)
		}
		<-time.After(time.Duration(100+rnd.IntN(300)) * time.Millisecond)
		p.Kill()
		done.Wait()
	}
	if moved == 0 {
		t.Error("nothing moved")
	}
	t.Logf("%d jobs, %d moves", len(acked), moved)
}

// jobsIn returns the keys that each job is in.
func jobsIn(ctx context.Context, c *redis.Client) (map[string][]string, error) {
	there := map[string][]string{}
	for i, key := range moveKeys {
		var jobs []string
		var err error
		if i < 2 {
			jobs, err = c.ZRange(ctx, key, 0, -1).Result()
		} else {
			jobs, err = c.LRange(ctx, key, 0, -1).Result()
		}
		if err != nil {
			return nil, err
		}
		for _, job := range jobs {
			there[job] = append(there[job], key)
		}
	}
	return there, nil
}
