package bloom_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/bloom"
)

func Example() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	seen, err := bloom.New(c, "seen", bloom.Options[string]{Capacity: 1000, Error: 0.001})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(seen.AddMany(ctx, "ann", "bob", "ann"))
	fmt.Println(seen.Contains(ctx, "ann"))
	fmt.Println(seen.Contains(ctx, "cat"))
	// Output:
	// [true true false] <nil>
	// true <nil>
	// false <nil>
}
