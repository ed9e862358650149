package ebbtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/cache"
	"github.com/ebbdb/ebb/ebbtest"
)

// In a test, t is its *testing.T.
func ExampleRun() {
	t := exampleT()
	defer t.end()

	ctx := context.Background()
	b := ebbtest.Run(t)
	_ = b.SetTTL(ctx, "session:1", "ann", 30*time.Minute)

	b.Clock.Advance(29 * time.Minute)
	fmt.Println(b.TTL(ctx, "session:1"))
	b.Clock.Advance(time.Minute + time.Millisecond)
	fmt.Println(b.TTL(ctx, "session:1"))
	// Output:
	// 1m0s <nil>
	// 0s ebb: nil
}

// A program meets a server that is still loading, and tries again when it is there.
func ExampleBackend_SetError() {
	t := exampleT()
	defer t.end()

	ctx := context.Background()
	b := ebbtest.Run(t)
	b.SetError("LOADING come back later")
	fmt.Println(b.Set(ctx, "greeting", "hello"))
	fmt.Println(b.Data.Exists("greeting")) // Data sees no faults

	b.SetError("")
	fmt.Println(b.Set(ctx, "greeting", "hello"))
	fmt.Println(b.Data.Get("greeting"))
	// Output:
	// LOADING come back later
	// false
	// <nil>
	// hello
}

// A caller whose patience is shorter than the backend is slow.
func ExampleBackend_SetLatency() {
	t := exampleT()
	defer t.end()

	b := ebbtest.Run(t)
	b.SetLatency(time.Minute)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err := b.Get(ctx, "greeting")
	fmt.Println(errors.Is(err, context.DeadlineExceeded))

	b.SetLatency(0)
	_, err = b.Get(context.Background(), "greeting")
	fmt.Println(errors.Is(err, ebb.ErrNil))
	// Output:
	// true
	// true
}

// The test restarts a server: its data is there afterwards, its cached scripts are not,
// and a call meanwhile fails with ErrUnavailable.
func ExampleBackend_Restart() {
	t := exampleT()
	defer t.end()

	ctx := context.Background()
	b := ebbtest.Run(t)
	_ = b.Set(ctx, "greeting", "hello")
	sha, _ := b.Do(ctx, "SCRIPT", "LOAD", "return redis.call('GET', KEYS[1])")

	b.Stop()
	_, err := b.Get(ctx, "greeting")
	fmt.Println(errors.Is(err, ebb.ErrUnavailable))
	b.Start()
	b.Restart() // both at once

	fmt.Println(b.Get(ctx, "greeting"))
	_, err = b.Do(ctx, "EVALSHA", sha.Str, 1, "greeting")
	fmt.Println(err)
	// Output:
	// true
	// hello <nil>
	// NOSCRIPT No matching script. Please use EVAL.
}

// Values and their remaining lives, without contexts and errors.
func ExampleData() {
	t := exampleT()
	defer t.end()

	b := ebbtest.Run(t)
	b.Data.Do("HSET", "cart:ann", "tea", 2, "cake", 1)
	b.Data.Do("HPEXPIRE", "cart:ann", 60_000, "FIELDS", 1, "tea")
	b.Data.Do("RPUSH", "jobs", "a", "b")

	b.Clock.Advance(20 * time.Second)
	fmt.Println(b.Data.Keys(), b.Data.Type("cart:ann"), b.Data.List("jobs"))
	fmt.Println(b.Data.Hash("cart:ann"), b.Data.FieldTTL("cart:ann", "tea"))
	fmt.Println(b.Data.TTL("cart:ann") == ebb.Forever, b.Data.TTL("cart:bob"))
	fmt.Print(b.Data.Dump())
	// Output:
	// [cart:ann jobs] hash [a b]
	// map[cake:1 tea:2] 40s
	// true 0s
	// cart:ann (hash)
	//   "tea": "2"
	//   "cake": "1"
	// jobs (list)
	//   "a"
	//   "b"
}

// A page in a cache becomes stale after a minute, and is gone after ten. No time passes while the test runs.
func ExampleRun_cache() {
	t := exampleT()
	defer t.end()

	ctx := context.Background()
	b := ebbtest.Run(t)
	pages, err := cache.New(b.Conn, "page", cache.Options[string, string]{Fresh: time.Minute, TTL: 10 * time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pages.Close()
	get := func() {
		fmt.Println(pages.Get(ctx, "home", func(_ context.Context, id string) (string, error) {
			fmt.Println("rendering", id)
			return "<h1>" + id + "</h1>", nil
		}))
	}
	look := func() {
		_, state, err := pages.Look(ctx, "home")
		fmt.Println(state, err)
	}

	get()
	b.Clock.Advance(time.Minute)
	look()
	b.Clock.Advance(time.Millisecond)
	look() // the next Get would return the page, and render another one in the background
	b.Clock.Advance(9 * time.Minute)
	look()
	get()
	// Output:
	// rendering home
	// <h1>home</h1> <nil>
	// fresh <nil>
	// stale <nil>
	// absent <nil>
	// rendering home
	// <h1>home</h1> <nil>
}

// tb stands in for a *testing.T, which examples do not have.
type tb struct {
	testing.TB
	cleanups []func()
}

func exampleT() *tb            { return &tb{} }
func (t *tb) Helper()          {}
func (t *tb) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
func (t *tb) end() {
	for _, f := range t.cleanups {
		f()
	}
}
