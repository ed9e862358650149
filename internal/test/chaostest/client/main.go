// Command client is one of the programs that a chaos run sets on a cluster: it takes
// from a limiter, holds a lock, and pushes and does jobs, until its time is over or
// its standard input ends, and says on standard output what it was granted:
//
//	grant BEFORE AFTER         the limiter allowed a call that lasted from BEFORE to AFTER
//	hold TOKEN BEFORE AFTER    the lock was held at least from BEFORE to AFTER
//	push ID                    the queue took a job
//	done ID                    a job was delivered, and done
//	error KIND TEXT            something was not to be had
//
// Times are nanoseconds of the system's monotonic clock, which all processes of a
// machine share. Lines on standard input part the network and join it again:
//
//	cut ADDR ...               nothing goes to these nodes, or comes from them
//	join                       connections can be made to all
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/wires"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/queue"
)

func main() {
	url := flag.String("url", "", "the cluster")
	id := flag.String("id", "c", "the client's name")
	grants := flag.Int64("limit", 20, "grants a second")
	flag.Parse()
	ctx, cancel := context.WithCancel(context.Background())
	w := &wires.Wires{Dial: (&net.Dialer{}).DialContext, Within: dialTime}
	go func() { // the driver closes stdin at the end of the test
		obey(w, os.Stdin)
		cancel()
	}()
	if err := run(ctx, w, *url, *id, *grants); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// dialTime bounds an attempt to connect over a network that has parted.
const dialTime = time.Second

// obey partitions and joins the network as its input says, until the input ends.
func obey(w *wires.Wires, from io.Reader) {
	for s := bufio.NewScanner(from); s.Scan(); {
		switch words := strings.Fields(s.Text()); {
		case len(words) > 1 && words[0] == "cut":
			w.Cut(words[1:]...)
		case len(words) > 0 && words[0] == "join":
			w.Join()
			w.Close() // the servers learn what is gone, as from a system that they query
		}
	}
}

// client is one process.
type client struct {
	c  *ebb.Conn
	id string

	mu  sync.Mutex // guards out
	out *bufio.Writer
}

// replicated is the time that a call waits for the replica.
const replicated = 500 * time.Millisecond

func run(ctx context.Context, w *wires.Wires, url, id string, grants int64) error {
	c, err := ebb.Open(ctx, url, ebb.Options{Dial: w.Connect})
	if err != nil {
		return err
	}
	defer c.Close()
	p := &client{c: c.Replicated(1, replicated), id: id, out: bufio.NewWriter(os.Stdout)}
	fmt.Fprintf(os.Stderr, "%s: by its clock it is %s\n", id, time.Now().UTC().Format(time.DateTime))
	defer p.out.Flush()
	l, err := limit.New(p.c, "chaos", limit.PerSecond(grants), limit.FailClosed, limit.Options{Algorithm: limit.SlidingLog})
	if err != nil {
		return err
	}
	k, err := lock.New(p.c, "chaos:lock", lock.Options{TTL: 2 * time.Second})
	if err != nil {
		return err
	}
	q, err := queue.New[string](p.c, "chaos:jobs", queue.Options[string]{Lease: 3 * time.Second, MaxDeliveries: 100})
	if err != nil {
		return err
	}
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() { p.take(ctx, l) })
		wait.Go(func() { p.hold(ctx, k) })
		wait.Go(func() { p.work(ctx, q) })
	}
	wait.Go(func() { p.push(ctx, q) })
	wait.Wait()
	return nil
}

func (p *client) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, format+"\n", args...)
	_ = p.out.Flush()
}

// failed logs an error with its kind, and waits a little.
func (p *client) failed(ctx context.Context, kind string, err error) {
	if ctx.Err() != nil {
		return
	}
	p.say("error %s %q", kind, err.Error())
	pause(ctx, 20*time.Millisecond)
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// callTime bounds one call.
const callTime = 3 * time.Second

func (p *client) take(ctx context.Context, l *limit.Limiter) {
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(ctx, callTime)
		before := monotonic()
		r, err := l.Allow(call, "all")
		after := monotonic()
		cancel()
		switch {
		case err != nil:
			p.failed(ctx, "limit", err)
		case r.Allowed:
			p.say("grant %d %d", before, after)
		default:
			pause(ctx, max(r.RetryAfter, time.Millisecond))
		}
	}
}

// work is for how long a lock is held. A worker that wakes from it promptly would also
// have been woken by the end of its lease, before the server knows of it: a lease of 2 s
// ends 22 ms earlier here.
const (
	work     = 30 * time.Millisecond
	promptly = 10 * time.Millisecond
)

func (p *client) hold(ctx context.Context, k *lock.Lock) {
	for ctx.Err() == nil {
		lease, err := k.Acquire(ctx, callTime)
		if errors.Is(err, lock.ErrTaken) {
			continue
		}
		if err != nil {
			p.failed(ctx, "lock", err)
			continue
		}
		before := monotonic()
		pause(lease.Context(), work)
		after := monotonic()
		if lease.Context().Err() != nil || time.Duration(after-before) > work+promptly {
			after = before // when it was lost is not known to us, or we were not woken to be told
		}
		p.say("hold %d %d %d", lease.Token(), before, after)
		call, cancel := context.WithTimeout(ctx, callTime)
		if err := lease.Release(call); err != nil {
			p.failed(ctx, "release", err)
		}
		cancel()
	}
}

func (p *client) push(ctx context.Context, q *queue.Queue[string]) {
	for n := 0; ctx.Err() == nil; n++ {
		id := fmt.Sprintf("%s-%d", p.id, n)
		for ctx.Err() == nil {
			call, cancel := context.WithTimeout(ctx, callTime)
			// The same id again is the same job: pushing twice is safe.
			_, err := q.Push(call, id, queue.PushOptions{ID: id, Delay: time.Duration(n%3) * 200 * time.Millisecond})
			cancel()
			if err == nil || errors.Is(err, queue.ErrDuplicate) {
				p.say("push %s", id)
				break
			}
			p.failed(ctx, "push", err)
		}
		pause(ctx, 10*time.Millisecond)
	}
}

func (p *client) work(ctx context.Context, q *queue.Queue[string]) {
	for job, err := range q.Consume(ctx) {
		if err != nil {
			p.failed(ctx, "pop", err)
			continue
		}
		p.say("done %s", job.Value) // whatever becomes of the acknowledgement
		call, cancel := context.WithTimeout(ctx, callTime)
		err = job.Ack(call)
		cancel()
		if err != nil {
			p.failed(ctx, "ack", err)
		}
	}
}
