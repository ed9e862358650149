package bench

import (
	"context"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/expmap"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/queue"
)

// The direct calls of an embedded engine beside the same calls by way of their commands:
//
//	go test -run - -bench DirectCalls -benchtime 1000000x .

const directKeys = 1000 // few, so that the time is that of the way, and not of the memory

// directCalls has for each call a function that prepares an engine and returns the call.
var directCalls = []struct {
	name string
	open func(tb testing.TB, c *ebb.Conn) op
}{
	{"Conn.Get", func(tb testing.TB, c *ebb.Conn) op {
		return func(n int) {
			_, err := c.Get(context.Background(), sharedKey(n))
			check(tb, err)
		}
	}},
	{"Conn.AppendGet", func(tb testing.TB, c *ebb.Conn) op {
		buf := make([]byte, 0, 64)
		return func(n int) {
			_, err := c.AppendGet(context.Background(), buf, sharedKey(n))
			check(tb, err)
		}
	}},
	{"Conn.SetTTL", func(tb testing.TB, c *ebb.Conn) op {
		return func(n int) { check(tb, c.SetTTL(context.Background(), sharedKey(n), embeddedValue, embeddedLife)) }
	}},
	{"Conn.HGet", func(tb testing.TB, c *ebb.Conn) op {
		for n := range directKeys {
			check(tb, c.HSetTTL(context.Background(), "h", sharedKey(n), embeddedValue, embeddedLife))
		}
		return func(n int) {
			_, err := c.HGet(context.Background(), "h", sharedKey(n))
			check(tb, err)
		}
	}},
	{"Conn.HSetTTL", func(tb testing.TB, c *ebb.Conn) op {
		return func(n int) {
			check(tb, c.HSetTTL(context.Background(), "h", sharedKey(n), embeddedValue, embeddedLife))
		}
	}},
	{"expmap.Map.Get", func(tb testing.TB, c *ebb.Conn) op {
		m := directMap(tb, c)
		for n := range directKeys {
			check(tb, m.Set(context.Background(), sharedKey(n), embeddedValue, embeddedLife))
		}
		return func(n int) {
			_, _, err := m.Get(context.Background(), sharedKey(n))
			check(tb, err)
		}
	}},
	{"expmap.Map.Set", func(tb testing.TB, c *ebb.Conn) op {
		m := directMap(tb, c)
		return func(n int) { check(tb, m.Set(context.Background(), sharedKey(n), embeddedValue, embeddedLife)) }
	}},
	{"Limiter.Allow", func(tb testing.TB, c *ebb.Conn) op {
		l, err := limit.New(c, "api", limit.PerSecond(embeddedPeriod), limit.FailClosed)
		check(tb, err)
		return func(n int) {
			_, err := l.Allow(context.Background(), sharedKey(n))
			check(tb, err)
		}
	}},
	{"lock.Acquire and Release", func(tb testing.TB, c *ebb.Conn) op {
		return func(n int) {
			lease, err := lock.Acquire(context.Background(), c, "lock:"+sharedKey(n), time.Minute)
			check(tb, err)
			check(tb, lease.Release(context.Background()))
		}
	}},
	{"Queue.Push", func(tb testing.TB, c *ebb.Conn) op {
		q, err := queue.New[string](c, "jobs")
		check(tb, err)
		return func(int) {
			_, err := q.Push(context.Background(), embeddedValue)
			check(tb, err)
		}
	}},
}

func directMap(tb testing.TB, c *ebb.Conn) *expmap.Map[string, string] {
	m, err := expmap.New[string, string](c, "m")
	check(tb, err)
	return m
}

func BenchmarkDirectCalls(b *testing.B) {
	for _, call := range directCalls {
		for _, way := range []string{"direct", "command"} {
			b.Run(call.name+"/"+way, func(b *testing.B) {
				c, ctx := openMem(b), context.Background()
				if way == "command" { // docs/design/direct.md, Detours
					_, err := c.Do(ctx, "CONFIG", "SET", "slowlog-log-slower-than", "999")
					check(b, err)
				}
				for n := range directKeys {
					check(b, c.SetTTL(ctx, sharedKey(n), embeddedValue, embeddedLife))
				}
				do := call.open(b, c)
				work(do, directKeys, 1, 10*directKeys, 1)
				b.ReportAllocs()
				b.ResetTimer()
				before := cpuTime()
				work(do, directKeys, 1, b.N, 2)
				b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
				b.ReportMetric(0, "ns/op") // other programs on the machine change it
			})
		}
	}
}
