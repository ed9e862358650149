package clock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/embed"
)

// A test moves the time of its engine.
func ExampleManual() {
	now := clock.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	ctx := context.Background()
	c, err := embed.Open(ctx, "mem://", embed.Options{Clock: now})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	if err := c.SetTTL(ctx, "session", "ann", time.Hour); err != nil {
		fmt.Println(err)
	}
	now.Advance(59 * time.Minute)
	fmt.Println(c.Exists(ctx, "session"))
	now.Advance(2 * time.Minute)
	fmt.Println(c.Exists(ctx, "session"))
	// Output:
	// 1 <nil>
	// 0 <nil>
}
