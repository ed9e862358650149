package embed_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/ebbdb/ebb/embed"
)

// An engine in this process, with a limit of memory.
func ExampleOpen() {
	ctx := context.Background()
	c, err := embed.Open(ctx, "mem://?maxmemory=64mb&maxmemory-policy=allkeys-lru")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	fmt.Println(c.Set(ctx, "greeting", "hello"))
	fmt.Println(c.Get(ctx, "greeting"))
	// Output:
	// <nil>
	// hello <nil>
}

// Of finds the engine behind a Conn: for backups, and for its other databases.
func ExampleOf() {
	ctx := context.Background()
	c, err := embed.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if err := c.Set(ctx, "greeting", "hello"); err != nil {
		log.Fatal(err)
	}
	var snapshot bytes.Buffer
	fmt.Println(embed.Of(c).Backup(ctx, &snapshot))
	fmt.Printf("%.5s\n", snapshot.String())
	// Output:
	// <nil>
	// REDIS
}
