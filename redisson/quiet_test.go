package redisson

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/backends"
)

func TestAUserWithoutChannelsNeedsNone(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		c := b.Quiet()
		if c == nil {
			return
		}
		ctx := b.Context()
		q := must(NewDelayedQueue[string](c, fresh(b, "q")))(t)
		ok(t, q.Push(ctx, "later", time.Hour))
	})
}
