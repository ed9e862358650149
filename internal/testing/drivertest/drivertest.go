// Package drivertest holds the checks that the tests of both drivers of servers share:
// goredis and contrib/rueidis.
//
// Start reading at Tally.
package drivertest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// patience is the limit of a wait for an event that comes in milliseconds, and for a
// failover, which takes seconds, or far more on a busy machine, where sentinels and nodes
// repeat elections.
var patience = tier.Patience * 3 / 2

// Until calls ok every few milliseconds until it returns true, and fails the test with
// what if that takes too long.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx := Within(t)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// Within returns a context that ends when patience does, or the test.
func Within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// Must ends the test if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// batches returns the ways to run a batch.
func batches(c *ebb.Conn) map[string]func(context.Context, *ebb.Batch) ([]ebb.Value, error) {
	return map[string]func(context.Context, *ebb.Batch) ([]ebb.Value, error){"pipeline": c.Pipeline, "tx": c.Tx}
}

// View calls every method of a Replicated view, and closes it.
func View(t testing.TB, view *ebb.Conn) {
	ctx := Within(t)
	Must(t, view.Set(ctx, "{v}k", "v"))
	if s, err := view.Get(ctx, "{v}k"); s != "v" || err != nil {
		t.Errorf("get: %q, %v", s, err)
	}
	var b ebb.Batch
	b.Do("SET", "{v}a", 1)
	b.Do("GET", "{v}a")
	for name, run := range batches(view) {
		if r, err := run(ctx, &b); err != nil || len(r) != 2 || r[1].Str != "1" {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	Must(t, view.Watch(ctx, func(w *ebb.Watched) error {
		if v, err := w.Do(ctx, "GET", "{v}k"); err != nil || v.Str != "v" {
			t.Errorf("a watched key: %v, %v", v, err)
		}
		_, err := w.Tx(ctx, &b)
		return err
	}, "{v}k"))
	v, err := view.Script(ctx, ebb.NewScript("return redis.call('APPEND', KEYS[1], 'x')"), []string{"{v}k"})
	if err != nil || v.Int != 2 {
		t.Errorf("script: %v, %v", v, err)
	}
	_, err = view.Do(ctx, "RPUSH", "{v}jobs", "job")
	Must(t, err)
	if v, err := view.Block(ctx, "BLPOP", "{v}jobs", 0); err != nil || len(v.Elems) != 2 {
		t.Errorf("BLPOP: %v, %v", v, err)
	}
	s, err := view.Subscribe(ctx, "{v}news")
	Must(t, err)
	Must(t, s.Close())
	Must(t, view.Close())
	Must(t, view.Ping(ctx))
}

// NotReplicated writes to a server without replicas, through a view that waits for one.
func NotReplicated(t testing.TB, c *ebb.Conn) {
	ctx := Within(t)
	view := c.Replicated(1, 10*time.Millisecond)
	v, err := view.Do(ctx, "INCR", "n")
	if !errors.Is(err, ebb.ErrNotReplicated) || !errors.Is(err, ebb.ErrUnavailable) || v.Int != 1 {
		t.Errorf("%v, %v", v, err)
	}
	if s, err := view.Get(ctx, "n"); s != "1" || err != nil {
		t.Errorf("the command has run, and a read does not wait: %q, %v", s, err)
	}
	var b ebb.Batch
	b.Do("INCR", "n")
	for name, run := range batches(view) {
		if _, err := run(ctx, &b); !errors.Is(err, ebb.ErrNotReplicated) {
			t.Errorf("%s: %v", name, err)
		}
	}
	err = view.Watch(ctx, func(w *ebb.Watched) error {
		if _, err := w.Do(ctx, "GET", "n"); err != nil {
			t.Errorf("a read: %v", err)
		}
		_, err := w.Tx(ctx, &b)
		return err
	}, "n")
	if !errors.Is(err, ebb.ErrNotReplicated) {
		t.Errorf("watch: %v", err)
	}
	_, err = view.Do(ctx, "INCR") // refused: there is no write to wait for, or to lose
	var refused ebb.ReplyError
	if !errors.As(err, &refused) || errors.Is(err, ebb.ErrNotReplicated) {
		t.Errorf("%v", err)
	}
	if s, err := c.Get(ctx, "n"); s != "4" || err != nil {
		t.Errorf("all have run, once: %q, %v", s, err)
	}
}

// Wide runs commands that concern all masters of a cluster, which it empties.
func Wide(t testing.TB, c *ebb.Conn) {
	ctx := Within(t)
	_, err := c.Do(ctx, "FLUSHALL")
	Must(t, err)
	want := map[string]bool{}
	for i := range 60 {
		key := fmt.Sprint("wide", i)
		want[key] = true
		Must(t, c.Set(ctx, key, i))
	}
	if v, err := c.Do(ctx, "DBSIZE"); err != nil || v.Int != 60 {
		t.Errorf("DBSIZE: %v, %v", v, err)
	}
	if v, err := c.Do(ctx, "KEYS", "wide*"); err != nil || len(v.Elems) != 60 {
		t.Errorf("KEYS: %v, %v", v, err)
	}
	if v, err := c.Do(ctx, "RANDOMKEY"); err != nil || !want[v.Str] {
		t.Errorf("RANDOMKEY: %v, %v", v, err)
	}
	for cursor := "0"; ; {
		v, err := c.Do(ctx, "SCAN", cursor, "COUNT", 7)
		Must(t, err)
		for _, k := range v.Elems[1].Elems {
			delete(want, k.Str)
		}
		if cursor = v.Elems[0].String(); cursor == "0" {
			break
		}
	}
	if len(want) != 0 {
		t.Errorf("SCAN has not found %v", want)
	}
	if v, err := c.Do(ctx, "SCAN", "nowhere"); err == nil {
		t.Errorf("a wrong cursor: %v", v)
	}
	var b ebb.Batch
	b.Do("SET", "wide60", 1)
	b.Do("DBSIZE")
	b.Do("DEL", "wide60")
	if vs, err := c.Pipeline(ctx, &b); err != nil || vs[1].Int != 61 || vs[2].Int != 1 {
		t.Errorf("%v, %v", vs, err)
	}
	_, err = c.Do(ctx, "FLUSHALL")
	Must(t, err)
	if v, err := c.Do(ctx, "DBSIZE"); err != nil || v.Int != 0 {
		t.Errorf("DBSIZE: %v, %v", v, err)
	}
}

// Events checks that a subscription receives the key events of all masters of a cluster,
// and that PUBLISH goes to the node of the subscribers.
func Events(t testing.TB, c *ebb.Conn) {
	ctx := Within(t)
	_, err := c.Do(ctx, "CONFIG", "SET", "notify-keyspace-events", "K$")
	Must(t, err)
	s, err := c.PSubscribe(ctx, "__keyspace@0__:event*")
	Must(t, err)
	const n = 30
	for i := range n {
		Must(t, c.Set(ctx, fmt.Sprint("event", i), i))
	}
	seen := map[string]bool{}
	for range n {
		m, err := s.Next(ctx)
		Must(t, err)
		seen[m.Channel] = true
	}
	if len(seen) != n {
		t.Errorf("%d events, want %d", len(seen), n)
	}
	Must(t, s.Close())
	// PUBLISH goes to the node at which Subscribe listens, and counts that subscriber.
	for i := range 5 {
		name := fmt.Sprint("channel", i)
		s, err := c.Subscribe(ctx, name)
		Must(t, err)
		if n, err := c.Publish(ctx, name, "x"); n != 1 || err != nil {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		Must(t, s.Close())
	}
}
