package ebbtest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

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
