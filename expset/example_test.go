package expset_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/expset"
)

func Example() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	online, err := expset.New[string](c, "online")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(online.Add(ctx, time.Minute, "ann", "bob")) // again every half minute
	fmt.Println(online.Contains(ctx, "ann"))
	fmt.Println(online.Len(ctx))
	// Output:
	// 2 <nil>
	// true <nil>
	// 2 <nil>
}

func ExampleFamily() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	orders, err := expset.NewFamily[string](c, "unpaid", expset.Options[string]{MaxLen: 2, Events: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(orders.Set("ann").Add(ctx, 30*time.Minute, "o-1", "o-2"))
	_, err = orders.Set("ann").Add(ctx, 30*time.Minute, "o-3")
	fmt.Println(errors.Is(err, expset.ErrFull))
	fmt.Println(orders.Set("bob").Add(ctx, 30*time.Minute, "o-4"))
	fmt.Println(orders.Set("ann").Remove(ctx, "o-1")) // paid
	// Output:
	// 2 <nil>
	// true
	// 1 <nil>
	// 1 <nil>
}
