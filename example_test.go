package ebb_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"time"

	"github.com/ebbdb/ebb"
)

func Example() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	if err := c.SetTTL(ctx, "session:1", "ann", 30*time.Minute); err != nil {
		log.Fatal(err)
	}
	user, err := c.Get(ctx, "session:1")
	fmt.Println(user, err)
	_, err = c.Get(ctx, "session:2")
	fmt.Println(errors.Is(err, ebb.ErrNil))
	// Output:
	// ann <nil>
	// true
}

func ExampleOpen() {
	ctx := context.Background()
	// The URL often comes from the environment: "redis://cache:6379/0" there,
	// and an engine in the process on a developer's machine.
	c, err := ebb.Open(ctx, "mem://sessions")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	fmt.Println(c)
	// Output: mem://sessions (an engine in this process, shared by name, in memory)
}

func ExampleConn_Set() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	fmt.Println(c.Set(ctx, "lease", "worker-1", ebb.SetOptions{NX: true, TTL: time.Minute}))
	fmt.Println(c.Set(ctx, "lease", "worker-2", ebb.SetOptions{NX: true, TTL: time.Minute}))
	// Output:
	// <nil>
	// ebb: not set: the condition does not hold
}

func ExampleConn_Do() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	v, err := c.Do(ctx, "SET", "greeting", "hello")
	fmt.Println(v, err)
	v, err = c.Do(ctx, "GET", "nothing")
	fmt.Println(v.IsNull(), err)
	_, err = c.Do(ctx, "GET", "too", "many")
	fmt.Println(err)
	// Output:
	// OK <nil>
	// true <nil>
	// ERR wrong number of arguments for 'get' command
}

func ExampleConn_Tx() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	var b ebb.Batch
	b.Do("INCR", "visits")
	b.Do("EXPIRE", "visits", 3600)
	b.Do("TTL", "visits")
	replies, err := c.Tx(ctx, &b)
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range replies {
		fmt.Println(v)
	}
	// Output:
	// 1
	// 1
	// 3600
}

func ExampleConn_Watch() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	_ = c.Set(ctx, "name", "ann")

	err = c.Watch(ctx, func(w *ebb.Watched) error {
		v, err := w.Do(ctx, "GET", "name")
		if err != nil {
			return err
		}
		var b ebb.Batch
		b.Do("SET", "name", v.Str+" smith")
		_, err = w.Tx(ctx, &b) // ErrConflict: another client was faster, try again
		return err
	}, "name")
	name, _ := c.Get(ctx, "name")
	fmt.Println(name, err)
	// Output: ann smith <nil>
}

func ExampleConn_Subscribe() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	sub, err := c.Subscribe(ctx, "news")
	if err != nil {
		log.Fatal(err)
	}
	defer sub.Close()
	n, _ := c.Publish(ctx, "news", "the tide turns")
	m, err := sub.Next(ctx)
	fmt.Println(n, m.Channel, m.Payload, err)
	// Output: 1 news the tide turns <nil>
}

// An expiration is announced at once.
func ExampleConn_PSubscribe() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	if _, err := c.Do(ctx, "CONFIG", "SET", "notify-keyspace-events", "Ex"); err != nil {
		log.Fatal(err)
	}
	sub, err := c.PSubscribe(ctx, "__keyevent@*__:expired")
	if err != nil {
		log.Fatal(err)
	}
	defer sub.Close()
	_ = c.SetTTL(ctx, "session:1", "ann", 5*time.Millisecond)
	m, err := sub.Next(ctx)
	fmt.Println(m.Channel, m.Payload, err)
	// Output: __keyevent@0__:expired session:1 <nil>
}

// Redis-cli, or any client, looks into the engine of a running program.
func ExampleEngineOf() {
	ctx, cancel := context.WithCancel(context.Background())
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	_ = c.Set(ctx, "greeting", "hello")

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- ebb.EngineOf(c).Serve(ctx, ln) }()

	visitor, err := ebb.Open(ctx, "redis://"+ln.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(visitor.Get(ctx, "greeting"))
	_ = visitor.Close()
	cancel()
	fmt.Println(<-done)
	// Output:
	// hello <nil>
	// <nil>
}
