package expmap_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/expmap"
)

func Example() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	codes, err := expmap.New[string, int](c, "codes", expmap.Options[string, int]{MaxLen: 2})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(codes)
	fmt.Println(codes.Set(ctx, "ann", 1111, 5*time.Minute))
	fmt.Println(codes.Set(ctx, "bob", 2222, 5*time.Minute))
	fmt.Println(errors.Is(codes.Set(ctx, "eve", 3333, 5*time.Minute), expmap.ErrFull))

	code, ok, err := codes.Get(ctx, "ann")
	fmt.Println(code, ok, err)
	// Output:
	// map "codes" (HSETEX of ebb)
	// <nil>
	// <nil>
	// true
	// 1111 true <nil>
}

func ExampleMap_GetOrLoad() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	prices, err := expmap.New[string, float64](c, "prices", expmap.Options[string, float64]{Jitter: 10})
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		price, err := prices.GetOrLoad(ctx, "tea", time.Hour, func(ctx context.Context, item string) (float64, error) {
			fmt.Println("ask for the price of", item)
			return 3.5, nil
		})
		fmt.Println(price, err)
	}
	// Output:
	// ask for the price of tea
	// 3.5 <nil>
	// 3.5 <nil>
}

func ExampleMap_OnExpired() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	seats, err := expmap.New[string, string](c, "seats", expmap.Options[string, string]{Events: true})
	if err != nil {
		log.Fatal(err)
	}
	if err := seats.Set(ctx, "12A", "ann", 10*time.Millisecond); err != nil {
		log.Fatal(err)
	}
	err = seats.OnExpired(ctx, "release", func(ctx context.Context, e expmap.Expired[string, string]) error {
		fmt.Println(e.Value, "did not pay for", e.Key)
		cancel() // there is no further event to wait for
		return nil
	})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// ann did not pay for 12A
	// true
}
