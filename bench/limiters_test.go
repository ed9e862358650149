package bench

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislimiter"
)

// many is a limit per minute that no benchmark reaches: the granted path, which
// is the one that is in a hurry. One each us: as of most limits in use, the time that
// one costs is a whole number of us; of odd it is not, and our script has more to count.
const (
	many = 60_000_000
	odd  = many - 1
)

var errRefused = errors.New("refused")

// keyOf returns the key that a goroutine requests: one for all is the worst case, one for
// each the usual one; both are within a server that runs one command at a time the
// same, so the second is measured.
func keyOf(worker int) string { return "client-" + strconv.Itoa(worker) }

// Limiters through go-redis.
func BenchmarkLimiter(b *testing.B) {
	compare(b, []int{1, 64}, append(oursLimiters(), contender{"redis_rate", openRedisRate}))
}

func openRedisRate(b *testing.B, s *server) func(context.Context, int) error {
	l := redis_rate.NewLimiter(goRedis(b, s))
	limit := redis_rate.Limit{Rate: many, Burst: many, Period: time.Minute}
	return func(ctx context.Context, worker int) error {
		r, err := l.Allow(ctx, keyOf(worker), limit)
		if err == nil && r.Allowed == 0 {
			err = errRefused
		}
		return err
	}
}

// Limiters through rueidis.
func BenchmarkLimiterRueidis(b *testing.B) {
	compare(b, []int{1, 64}, append(oursLimitersRueidis(), contender{"rueidislimiter", openRueidisLimiter}))
}

func openRueidisLimiter(b *testing.B, s *server) func(context.Context, int) error {
	goRedis(b, s)
	l, err := rueidislimiter.NewRateLimiter(rueidislimiter.RateLimiterOption{
		ClientBuilder: func(rueidis.ClientOption) (rueidis.Client, error) { return newRueidis(b, s), nil },
		Limit:         many, Window: time.Minute,
	})
	if err != nil {
		b.Fatal(err)
	}
	return func(ctx context.Context, worker int) error {
		r, err := l.Allow(ctx, keyOf(worker))
		if err == nil && !r.Allowed {
			err = errRefused
		}
		return err
	}
}

// newRueidis is rueidis as it is out of the box: one multiplexed connection for each core.
func newRueidis(b *testing.B, s *server) rueidis.Client {
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.start(b)}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	return c
}
