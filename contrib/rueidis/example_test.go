package rueidisebb_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/rueidis"

	rueidisebb "github.com/ebbdb/ebb/contrib/rueidis"

	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/server"
)

// A limiter over rueidis, with reads of single keys cached for the program's own use.
func ExampleOpen() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := server.Start(ctx, server.Config{Addr: "127.0.0.1:0"}) // or any Redis, Valkey or ebb
	if err != nil {
		log.Fatal(err)
	}
	c, err := rueidisebb.Open(ctx,
		rueidis.ClientOption{InitAddress: []string{s.Addr().String()}},
		rueidisebb.Options{Cache: time.Minute, Prefix: "shop:"})
	if err != nil {
		log.Fatal(err)
	}
	l, err := limit.New(c, "api", limit.PerSecond(100), limit.FailOpen)
	if err != nil {
		log.Fatal(err)
	}
	r, err := l.Allow(ctx, "ann")
	fmt.Println(r.Allowed, c.Prefix(), err)
	_ = c.Close()
	fmt.Println(s.Shutdown(ctx))
	// Output:
	// true shop: <nil>
	// <nil>
}
