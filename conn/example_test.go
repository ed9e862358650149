package conn_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/embed"
)

// A Conn runs commands. The most used have typed methods, and Do runs any other.
func ExampleConn() {
	ctx := context.Background()
	c, err := embed.Open(ctx, "mem://")
	if err != nil {
		panic(err)
	}
	defer c.Close()

	fmt.Println(c.SetTTL(ctx, "session:1", "ann", time.Hour))
	fmt.Println(c.Get(ctx, "session:1"))
	v, err := c.Do(ctx, "LPUSH", "list", "a", "b")
	fmt.Println(v.Int, err)
	_, err = c.Get(ctx, "session:2")
	fmt.Println(errors.Is(err, conn.ErrNil))
	// Output:
	// <nil>
	// ann <nil>
	// 2 <nil>
	// true
}

// Tx runs commands as one transaction.
func ExampleConn_Tx() {
	ctx := context.Background()
	c, err := embed.Open(ctx, "mem://")
	if err != nil {
		panic(err)
	}
	defer c.Close()

	var b conn.Batch
	b.Do("INCRBY", "from", -30)
	b.Do("INCRBY", "to", 30)
	replies, err := c.Tx(ctx, &b)
	fmt.Println(replies[0].Int, replies[1].Int, err)
	// Output: -30 30 <nil>
}

// The objects of a view have names that begin with its prefix.
func ExampleConn_WithPrefix() {
	ctx := context.Background()
	c, err := embed.Open(ctx, "mem://", embed.Options{Prefix: "shop:"})
	if err != nil {
		panic(err)
	}
	defer c.Close()

	eu, err := c.WithPrefix("eu:")
	fmt.Println(c.Prefix(), eu.Prefix(), err)
	// Output: shop: shop:eu: <nil>
}
