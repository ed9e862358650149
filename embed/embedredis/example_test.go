package embedredis_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ebbdb/ebb/embed"
	"github.com/ebbdb/ebb/embed/embedredis"
)

// A go-redis client of an engine in this process.
func ExampleClient() {
	ctx := context.Background()
	c, err := embed.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	client, err := embedredis.Client(c)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(client.Set(ctx, "k", "v", 0).Err())
	fmt.Println(c.Get(ctx, "k"))
	fmt.Println(client.Close(), c.Close())
	// Output:
	// <nil>
	// v <nil>
	// <nil> <nil>
}
