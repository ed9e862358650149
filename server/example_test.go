package server_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/server"
)

// A program runs a server whose data outlives it.
func ExampleStart() {
	dir, err := os.MkdirTemp("", "ebb")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	s, err := server.Start(ctx, server.Config{
		Addr:       "127.0.0.1:0", // a free port
		Dir:        dir,
		Fsync:      "always",
		Directives: []string{"maxmemory 1gb", "maxmemory-policy allkeys-lru"},
	})
	if err != nil {
		log.Fatal(err)
	}
	c, err := ebb.Open(ctx, "redis://"+s.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.SetTTL(ctx, "session:1", "ann", 30*time.Minute))
	fmt.Println(c.Get(ctx, "session:1"))
	_ = c.Close()
	fmt.Println(s.Shutdown(ctx))
	// Output:
	// <nil>
	// ann <nil>
	// <nil>
}
