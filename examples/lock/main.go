// Command lock shows how exactly one of many workers writes the nightly report. It does so
// by hand, with SET NX EX and a tag, and then with package lock: renewed leases, a lock
// that is taken, and fencing.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/example"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/queue"
)

func main() { example.Main(run) }

// ttl is short, so that the program ends soon. A real report would use 30 s.
const ttl = 1500 * time.Millisecond

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	for _, part := range []func(context.Context, *ebb.Conn, io.Writer) error{byHand, renewed, taken, fenced} {
		if err := part(ctx, c, w); err != nil {
			return err
		}
	}
	return nil
}

// unlock deletes a lock if it is still the caller's. Between a GET and a DEL of two
// requests the lease could end, and the DEL would remove the lock of another holder.
var unlock = ebb.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
`)

// byHand uses commands that every Redis has.
func byHand(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	fmt.Fprintln(w, "By hand: SET NX EX with a random tag")
	mine, theirs := rand.Text(), rand.Text()
	for _, try := range []struct{ who, tag string }{{"ann", mine}, {"bob", theirs}} {
		v, err := c.Do(ctx, "SET", "report:lock", try.tag, "NX", "EX", 30)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "  %s: SET report:lock <tag> NX EX 30 -> %s\n", try.who, reply(v))
	}
	for _, try := range []struct{ who, tag string }{{"bob", theirs}, {"ann", mine}, {"ann", mine}} {
		v, err := c.Script(ctx, unlock, []string{"report:lock"}, try.tag)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "  %s: delete it if the tag is mine -> %s\n", try.who, reply(v))
	}
	return nil
}

func reply(v ebb.Value) string {
	if v.IsNull() {
		return "nil, taken"
	}
	return v.String()
}

// renewed holds a lock for longer than its lease.
func renewed(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	report, err := lock.New(c, "report", lock.Options{TTL: ttl, Owner: "ann"})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nWith leases: %s\n", report)
	lease, err := report.TryAcquire(ctx)
	if err != nil {
		return err
	}
	for page := 1; page <= 3; page++ { // 1.5 leases
		select {
		case <-time.After(ttl / 2):
		case <-lease.Context().Done(): // a real program passes this context to its calls
			return context.Cause(lease.Context())
		}
	}
	_, other := report.TryAcquire(ctx)
	fmt.Fprintf(w, "  ann has written for a lease and a half, and still holds it; for bob: %v\n", other)
	return lease.Release(ctx)
}

// taken shows three ways to deal with a lock that another holder has.
func taken(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	fmt.Fprintln(w, "\nWhen it is taken")
	report, err := lock.New(c, "report", lock.Options{TTL: 10 * ttl, Later: ttl / 5})
	if err != nil {
		return err
	}
	jobs, err := queue.New[string](c, "report:later")
	if err != nil {
		return err
	}
	defer func() { _ = jobs.Delete(context.WithoutCancel(ctx)) }()
	held, err := report.Acquire(ctx, 0)
	if err != nil {
		return err
	}

	_, err = report.TryAcquire(ctx)
	fmt.Fprintf(w, "  fail:      taken: %t\n", errors.Is(err, lock.ErrTaken))
	_, err = report.Acquire(ctx, ttl/15)
	fmt.Fprintf(w, "  wait:      taken after %v: %t\n", ttl/15, errors.Is(err, lock.ErrTaken))
	_, err = lock.RunLater(ctx, report, jobs, "page 4")
	fmt.Fprintf(w, "  hand over: in the queue: %t\n", errors.Is(err, lock.ErrLater))

	if err := held.Release(ctx); err != nil {
		return err
	}
	job, err := jobs.Pop(ctx) // the queue's worker, a fifth of a second later
	if err != nil {
		return err
	}
	lease, err := lock.RunLater(ctx, report, jobs, job.Value) // free now
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "  the worker of the queue writes %s\n", job.Value)
	return errors.Join(lease.Release(ctx), job.Ack(ctx))
}

// archive is the resource that the lock protects. It stores the greatest token that it has
// seen, and refuses smaller ones: in SQL, UPDATE ... WHERE fence <= $token.
type archive struct{ fence int64 }

func (a *archive) write(token int64) string {
	if token < a.fence {
		return "refused"
	}
	a.fence = token
	return "accepted"
}

// fenced shows a write that no lease can prevent, and how a fencing token prevents it.
func fenced(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	fmt.Fprintln(w, "\nFencing")
	report, err := lock.New(c, "report", lock.Options{TTL: ttl})
	if err != nil {
		return err
	}
	defer func() { _ = report.Delete(context.WithoutCancel(ctx)) }()
	var a archive
	standing, stop := context.WithCancel(ctx)
	ann, err := report.TryAcquire(standing)
	if err != nil {
		stop()
		return err
	}
	fmt.Fprintf(w, "  ann writes: %s\n", a.write(ann.Token()))
	stop() // ann's process is suspended and does not renew its lease
	bob, err := report.Acquire(ctx, 0)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "  ann stands still, and her lease ends; bob has a greater token: %t\n", bob.Token() > ann.Token())
	fmt.Fprintf(w, "  bob writes: %s\n", a.write(bob.Token()))
	fmt.Fprintf(w, "  ann wakes up and writes: %s\n", a.write(ann.Token()))
	fmt.Fprintf(w, "  ann releases: the lease was lost: %t\n", errors.Is(ann.Release(ctx), lock.ErrLost))
	return bob.Release(ctx)
}
