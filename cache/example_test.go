package cache_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/cache"
)

func Example() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	pages, err := cache.New(c, "page", cache.Options[string, string]{Fresh: time.Minute, TTL: 10 * time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pages.Close()
	render := func(_ context.Context, id string) (string, error) {
		fmt.Println("rendering", id)
		return "<h1>" + id + "</h1>", nil
	}
	for range 2 {
		page, err := pages.Get(ctx, "home", render)
		fmt.Println(page, err)
	}
	fmt.Println(pages.Stale(ctx, "home"))
	_, state, err := pages.Look(ctx, "home")
	fmt.Println(state, err)
	// Output:
	// rendering home
	// <h1>home</h1> <nil>
	// <h1>home</h1> <nil>
	// <nil>
	// stale <nil>
}
