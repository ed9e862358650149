// Command queue resizes pictures with a queue. It shows three queues on lists and then
// package queue; each one removes a fault of the one before.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/example"
	"github.com/ebbdb/ebb/queue"
)

func main() { example.Main(run) }

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	if _, err := c.Del(ctx, todo, pending); err != nil {
		return err
	}
	for _, act := range []func(context.Context, *ebb.Conn, io.Writer) error{list, blocking, acknowledged, object} {
		if err := act(ctx, c, w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	return nil
}

// The names share a hash tag, so that a step can involve both in a cluster too.
const todo = "{pictures}:todo"

// put adds pictures to the queue, as a web server does after an upload.
func put(ctx context.Context, c *ebb.Conn, pictures ...string) error {
	for _, p := range pictures {
		if _, err := c.Do(ctx, "LPUSH", todo, p); err != nil {
			return err
		}
	}
	return nil
}

// errCrash stands for a worker that dies in the middle of a picture.
var errCrash = errors.New("the worker crashed")

// list is a queue of two commands. Its fault: RPOP removes a job before it is done.
func list(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	fmt.Fprintln(w, "1. LPUSH and RPOP")
	if err := put(ctx, c, "ann.png", "bob.png", "cy.png"); err != nil {
		return err
	}
	for {
		v, err := c.Do(ctx, "RPOP", todo)
		if err != nil {
			return err
		}
		if v.IsNull() {
			break
		}
		if v.String() == "bob.png" {
			fmt.Fprintf(w, "   %s: %v\n", v, errCrash)
			continue // the next worker
		}
		fmt.Fprintf(w, "   %s resized\n", v)
	}
	n, err := number(c.Do(ctx, "LLEN", todo))
	fmt.Fprintf(w, "   %d jobs are left: bob.png is lost, and a worker that finds nothing must ask again and again\n", n)
	return err
}

// blocking waits at the server with BRPOP. A NAT or a proxy on the way may drop a
// connection that is idle for long. So blocking waits for a limited time, and makes a new
// connection when the old one is dead.
func blocking(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	fmt.Fprintln(w, "2. BRPOP, and a connection that dies while it is idle")
	began, others := make(chan struct{}), waiting(ctx, c)
	var rest sync.WaitGroup
	var failed error
	rest.Go(func() {
		<-began
		if failed = example.Sleep(ctx, 100*time.Millisecond); failed != nil {
			return
		}
		if c.Capabilities().Embedded {
			fmt.Fprintln(w, "   (in this process there is no connection that could die)")
		} else if failed = kill(ctx, c, others); failed != nil {
			return
		}
		if failed = example.Sleep(ctx, 100*time.Millisecond); failed == nil {
			failed = put(ctx, c, "dee.png")
		}
	})
	close(began)
	for {
		v, err := c.Block(ctx, "BRPOP", todo, 20) // less than what networks allow
		if errors.Is(err, ebb.ErrUnavailable) && ctx.Err() == nil {
			fmt.Fprintln(w, "   the connection is gone; waiting on a new one")
			if err := example.Sleep(ctx, 10*time.Millisecond); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if v.IsNull() {
			continue // 20 s without a job
		}
		fmt.Fprintf(w, "   %s resized\n", v.Elems[1])
		rest.Wait()
		return failed
	}
}

// waiting returns the connections that wait in BRPOP.
func waiting(ctx context.Context, c *ebb.Conn) map[string]bool {
	ids := map[string]bool{}
	v, err := c.Do(ctx, "CLIENT", "LIST", "TYPE", "NORMAL")
	if err != nil {
		return ids
	}
	for line := range lines(v.String()) {
		if line["cmd"] == "brpop" && line["addr"] != "" {
			ids[line["id"]] = true
		}
	}
	return ids
}

// kill ends the program's own connection: one that waits now and did not wait before. It
// tries for a while to find it.
func kill(ctx context.Context, c *ebb.Conn, others map[string]bool) error {
	for range 100 {
		for id := range waiting(ctx, c) {
			if others[id] {
				continue
			}
			if n, err := number(c.Do(ctx, "CLIENT", "KILL", "ID", id)); err == nil && n > 0 {
				return nil
			}
		}
		if err := example.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

const pending = "{pictures}:pending:worker-1"

// acknowledged moves a job to the worker's own list, in one step, and removes it there
// when it is done. A worker that starts again first does the jobs that are left in its
// list.
func acknowledged(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	fmt.Fprintln(w, "3. LMOVE to a pending list, and LREM as the acknowledgement")
	if err := put(ctx, c, "eve.png", "fay.png"); err != nil {
		return err
	}
	err := worker(ctx, c, w, "fay.png")
	if !errors.Is(err, errCrash) {
		return err
	}
	fmt.Fprintln(w, "   fay.png:", err)
	left, err := c.Do(ctx, "LRANGE", pending, 0, -1)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "   the pending list has %s; the worker starts again\n", left.Elems[0])
	return worker(ctx, c, w, "")
}

// worker works until there is nothing to do, or until it crashes.
func worker(ctx context.Context, c *ebb.Conn, w io.Writer, crashAt string) error {
	for { // jobs that were begun and not acknowledged come first
		v, err := c.Do(ctx, "LMOVE", pending, todo, "LEFT", "RIGHT")
		if err != nil {
			return err
		}
		if v.IsNull() {
			break
		}
	}
	for {
		v, err := c.Do(ctx, "LMOVE", todo, pending, "RIGHT", "LEFT")
		if err != nil || v.IsNull() {
			return err
		}
		if v.String() == crashAt {
			return errCrash
		}
		fmt.Fprintf(w, "   %s resized\n", v)
		if _, err := c.Do(ctx, "LREM", pending, 1, v.String()); err != nil {
			return err
		}
	}
}

// picture is the content of a job of package queue.
type picture struct {
	Name  string `json:"name"`
	Width int    `json:"width"`
}

// object does the same with package queue, which has leases instead of pending lists. If a
// worker crashes, another worker gets its job when the lease is over.
func object(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	q, err := queue.New(c, "pictures:queue", queue.Options[picture]{Lease: time.Second})
	if err != nil {
		return err
	}
	defer func() { _ = q.Delete(context.WithoutCancel(ctx)) }()
	fmt.Fprintf(w, "4. %v\n", q)
	if _, err := q.Cancel(ctx, "gil", "hal"); err != nil { // of a run that was interrupted
		return err
	}
	ids, err := q.PushMany(ctx, []queue.Item[picture]{
		{Value: picture{"gil.png", 320}, PushOptions: queue.PushOptions{ID: "gil"}},
		{Value: picture{"hal.png", 640}, PushOptions: queue.PushOptions{ID: "hal"}},
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "   pushed %v\n", ids)
	job, err := q.Pop(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "   worker 1 has %s, delivery %d: %v\n", job.ID, job.Deliveries, errCrash)

	ctx, done := context.WithCancel(ctx)
	defer done()
	left := len(ids)
	for job, err := range q.Consume(ctx) {
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "   worker 2 has %s, delivery %d: resized to %d\n", job.ID, job.Deliveries, job.Value.Width)
		if err := job.Ack(ctx); errors.Is(err, queue.ErrLost) {
			continue // the queue delivers it again
		} else if err != nil {
			return err
		}
		if left--; left == 0 {
			break
		}
	}
	err = job.Ack(ctx)
	fmt.Fprintf(w, "   worker 1 comes back and acknowledges: %t that the lease is lost\n", errors.Is(err, queue.ErrLost))
	n, err := q.Len(ctx)
	fmt.Fprintf(w, "   %d jobs are left\n", n)
	return err
}
