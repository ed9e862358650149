package server_test

import (
	"context"
	"fmt"
	"log"
	"net"
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

// redis-cli, or any client, looks into an engine that a program has embedded.
func ExampleServe() {
	ctx, stop := context.WithCancel(context.Background())
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- server.Serve(ctx, ln, ebb.EngineOf(c)) }()

	remote, err := ebb.Open(ctx, "redis://"+ln.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	_ = c.Set(ctx, "k", "from the program")
	fmt.Println(remote.Get(ctx, "k"))
	_ = remote.Close()
	stop()
	fmt.Println(<-ended, c.Close())
	// Output:
	// from the program <nil>
	// <nil> <nil>
}
