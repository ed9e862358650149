//go:build !race

package embedded_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/expmap"
	"github.com/ebbdb/ebb/internal/embedded"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/queue"
)

// Under the race detector pools lose what they hold, so this is not tested there.
func TestDirectCallsAllocateNoMoreThanTheirResults(t *testing.T) {
	c, err := embedded.Open(ctx, "mem://", "", embedded.Options{Clock: clock.NewManual(transcript.Start)})
	must(t, err)
	defer func() { must(t, c.Close()) }()
	must(t, c.Set(ctx, "short", "value"))
	must(t, c.HSetTTL(ctx, "hash", "field", "value", time.Minute))
	must(t, c.Set(ctx, "long", string(make([]byte, 5000))))
	m, err := expmap.New[string, string](c, "map")
	must(t, err)
	l, err := limit.New(c, "api", limit.PerSecond(1<<20), limit.FailClosed)
	must(t, err)
	object, err := lock.New(c, "object")
	must(t, err)
	q, err := queue.New[string](c, "jobs")
	must(t, err)
	buf, bytes, texts := make([]byte, 0, 8000), []byte("bytes"), []string{fmt.Sprint("text ", len(t.Name()))}
	for name, x := range map[string]struct {
		limit float64
		run   func() error
	}{
		"Get":       {1, func() error { _, err := c.Get(ctx, "short"); return err }},
		"Get long":  {1, func() error { _, err := c.Get(ctx, "long"); return err }},
		"AppendGet": {0, func() error { _, err := c.AppendGet(ctx, buf, "long"); return err }},
		"SetText":   {0, func() error { return c.SetText(ctx, "short", texts[0], conn.SetOptions{TTL: time.Minute}) }},
		"SetTTL":    {0, func() error { return c.SetTTL(ctx, "short", "value", time.Minute) }},
		"Set bytes": {1, func() error { return c.Set(ctx, "short", bytes) }}, // the box
		"HGet":      {1, func() error { _, err := c.HGet(ctx, "hash", "field"); return err }},
		"Map.Get":   {1, func() error { _, _, err := m.Get(ctx, texts[0]); return err }},
		"Map.Set":   {0, func() error { return m.Set(ctx, texts[0], texts[0], time.Minute) }},
		"HSetTTL":   {0, func() error { return c.HSetTTL(ctx, "hash", "field", "value", time.Minute) }},
		"Allow":     {0, func() error { _, err := l.Allow(ctx, "user"); return err }},
		"Acquire, Release": {1, func() error {
			lease, err := lock.Acquire(ctx, c, "report", time.Minute)
			must(t, err)
			return lease.Release(ctx)
		}},
		"TryAcquire, Release": {1, func() error {
			lease, err := object.TryAcquire(ctx)
			must(t, err)
			return lease.Release(ctx)
		}},
		"Push": {1, func() error { _, err := q.Push(ctx, "payload"); return err }}, // the id
	} {
		must(t, x.run())
		if n := testing.AllocsPerRun(200, func() { must(t, x.run()) }); n > x.limit {
			t.Errorf("%s allocates %v times, want %v", name, n, x.limit)
		}
	}
}
