package rueidisebb_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	rueidisebb "github.com/ebbdb/ebb/contrib/rueidis"

	"github.com/ebbdb/ebb/limit"
)

// A limiter over rueidis, with reads of single keys cached for the program's own use.
func ExampleOpen() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := rueidisebb.Open(ctx,
		rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}},
		rueidisebb.Options{Cache: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.Close() }()
	l, err := limit.New(c, "api", limit.PerSecond(100), limit.FailOpen)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := l.Allow(ctx, "ann")
	fmt.Println(r.Allowed, err)
}
