package stream_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/stream"
)

// The consumers of a group share the entries, and each group gets all of them.
func Example() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	type order struct{ ID int }
	orders, err := stream.New[order](c, "orders")
	if err != nil {
		log.Fatal(err)
	}
	billing, err := orders.Group("billing")
	if err != nil {
		log.Fatal(err)
	}
	for id := range 2 {
		if _, err := orders.Add(ctx, order{id + 1}); err != nil {
			log.Fatal(err)
		}
	}
	for d, err := range billing.Consume(ctx, "worker-1") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("billed", d.Value.ID, d.Ack(ctx))
		if d.Value.ID == 2 {
			break
		}
	}
	// Output:
	// billed 1 <nil>
	// billed 2 <nil>
}
