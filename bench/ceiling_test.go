package bench

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// What the clients can do: the GET of a key that is not there, from 64 goroutines. No
// object over the same client can be faster, and one that runs a script at the server,
// or asks twice, is slower by that.
func BenchmarkCeiling(b *testing.B) {
	compare(b, []int{1, 64}, []contender{
		{"go-redis", openGoRedisGet},
		{"rueidis", openRueidisGet(false)},
		{"rueidis-together", openRueidisGet(true)},
	})
}

func openGoRedisGet(b *testing.B, s *server) func(context.Context, int) error {
	c := goRedis(b, s)
	return func(ctx context.Context, worker int) error {
		err := c.Get(ctx, keyOf(worker)).Err()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	}
}

// openRueidisGet is GET as its builder makes it, which spreads over the connections of
// a client; together it goes over one, as contrib/rueidis sends, so that more go in each
// write.
func openRueidisGet(together bool) func(*testing.B, *server) func(context.Context, int) error {
	return func(b *testing.B, s *server) func(context.Context, int) error {
		goRedis(b, s)
		c := newRueidis(b, s)
		return func(ctx context.Context, worker int) error {
			cmd := c.B().Get().Key(keyOf(worker)).Build()
			if together {
				cmd = c.B().Arbitrary("GET", keyOf(worker)).Build()
			}
			if err := c.Do(ctx, cmd).Error(); !rueidis.IsRedisNil(err) {
				return err
			}
			return nil
		}
	}
}
