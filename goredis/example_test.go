package goredis_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/goredis"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/server"
)

// A Conn over a server. It links go-redis, and no engine.
func ExampleOpen() {
	ctx := context.Background()
	s, err := server.Start(ctx, server.Config{Addr: "127.0.0.1:0"}) // or any Redis, Valkey or ebb
	if err != nil {
		log.Fatal(err)
	}
	c, err := goredis.Open(ctx, "redis://"+s.Addr().String(), goredis.Options{Prefix: "shop:"})
	if err != nil {
		log.Fatal(err)
	}
	l, err := lock.New(c, "report")
	if err != nil {
		log.Fatal(err)
	}
	lease, err := l.TryAcquire(ctx)
	fmt.Println(lease.Token() > 0, err)
	fmt.Println(c.Exists(ctx, "shop:report"))
	fmt.Println(lease.Release(ctx), c.Close(), s.Shutdown(ctx))
	// Output:
	// true <nil>
	// 1 <nil>
	// <nil> <nil> <nil>
}

// A Conn over a client that the program has already.
func ExampleWrap() {
	ctx := context.Background()
	s, err := server.Start(ctx, server.Config{Addr: "127.0.0.1:0"})
	if err != nil {
		log.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: s.Addr().String(), MaxRetries: -1})
	c := goredis.Wrap(client)
	fmt.Println(c.SetTTL(ctx, "session:1", "ann", time.Hour))
	fmt.Println(client.Get(ctx, "session:1").Result())
	fmt.Println(c.Close(), client.Close(), s.Shutdown(ctx))
	// Output:
	// <nil>
	// ann <nil>
	// <nil> <nil> <nil>
}
