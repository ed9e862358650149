package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/lock"
)

func Example() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	lease, err := lock.Acquire(ctx, c, "report", 30*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release(ctx)

	other, err := lock.New(c, "report")
	if err != nil {
		log.Fatal(err)
	}
	_, err = other.TryAcquire(ctx)
	fmt.Println(errors.Is(err, lock.ErrTaken), lease.Context().Err(), lease.Token() > 0)
	// Output: true <nil> true
}

func ExampleMulti() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	from, _ := lock.New(c, "account:7")
	to, _ := lock.New(c, "account:3")
	both, err := lock.Multi(from, to)
	if err != nil {
		log.Fatal(err)
	}
	leases, err := both.Acquire(ctx, time.Second)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(both)
	fmt.Println(leases.Release(ctx))
	// Output:
	// lock "account:3" (lease 30s, renewed every 10s; LOCK.ACQUIRE of ebb) and lock "account:7" (lease 30s, renewed every 10s; LOCK.ACQUIRE of ebb)
	// <nil>
}

func ExampleOnce_Do() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	invoice, err := lock.NewOnce(c, "invoice:2026-05", 24*time.Hour)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		fmt.Println(invoice.Do(ctx, func(context.Context) error {
			fmt.Println("sent")
			return nil
		}))
	}
	// Output:
	// sent
	// did it <nil>
	// done before <nil>
}

func ExampleOnceValue_Do() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	type receipt struct{ ID string }
	payments, err := lock.NewOnceValue[receipt](c, "payment", 24*time.Hour)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 { // a caller that tries again sends the same key
		r, what, err := payments.Do(ctx, "order-1", func(context.Context) (receipt, error) {
			fmt.Println("charging the card")
			return receipt{"r-1"}, nil
		})
		fmt.Println(r.ID, what, err)
	}
	// Output:
	// charging the card
	// r-1 did it <nil>
	// r-1 done before <nil>
}

func ExampleLeader_Lead() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	candidate, err := lock.NewLeader(c, "scheduler", "host-1")
	if err != nil {
		log.Fatal(err)
	}
	err = candidate.Lead(ctx, func(ctx context.Context, token int64) error {
		r, err := candidate.Current(ctx)
		fmt.Println(r.ID, r.Token == token)
		return err
	})
	fmt.Println(err)
	// Output:
	// host-1 true
	// <nil>
}
