package topic_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/topic"
)

func Example() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	type order struct{ ID int }
	orders, err := topic.New(c, "orders", topic.Options[order]{})
	if err != nil {
		log.Fatal(err)
	}
	sub, err := orders.Subscribe(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer sub.Close()
	for id := range 3 {
		if _, err := orders.Publish(ctx, order{id + 1}); err != nil {
			log.Fatal(err)
		}
	}
	for m, err := range sub.All(ctx) {
		fmt.Println(m.Channel, m.Value.ID, err)
		if m.Value.ID == 3 {
			break
		}
	}
	// Output:
	// orders 1 <nil>
	// orders 2 <nil>
	// orders 3 <nil>
}
