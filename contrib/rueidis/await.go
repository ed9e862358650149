package rueidisebb

import (
	"context"
	"fmt"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/conn/driverutil"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
)

// await runs do in a goroutine of its own and returns its result, or an error: ctx has
// ended, or no reply came within the driver's limit. A call that await has given up
// continues in the background; Close waits for it after it has closed the client.
//
// rueidis itself waits
//
//	for a connection   that another call opens, until its handshake: for Dialer.Timeout,
//	                   even if the context ends before
//	for a reply        on a connection of its own until ConnWriteTimeout or
//	                   the context's deadline, but not for its cancellation; on one that
//	                   other calls share, until a PING got no reply either, which is later
//	                   than ConnWriteTimeout by up to twice Dialer.KeepAlive
//
// do must not write to memory that the caller reads.
func await[T any](ctx context.Context, d *driver, doing string, do func() T) (T, error) {
	done := make(chan T, 1)
	if d.auto != nil {
		d.auto.active.Add(1)
	}
	d.abandoned.Go(func() {
		done <- do()
		if d.auto != nil {
			d.auto.active.Add(-1)
		}
	})
	ended, late := d.deadlines.channels(ctx)
	var none T
	var err error
	select {
	case r := <-done:
		return r, nil
	case <-ended:
		err = unavailable(ctx, doing, ctx.Err())
	case <-late:
		err = d.silent(doing)
	}
	return none, driverutil.PendingReply(err, func(ctx context.Context) (v conn.Value, ok bool) {
		select {
		case r := <-done:
			done <- r // for the next caller
			if a, single := any(r).(remote.Answer); single && a.Err == nil {
				return a.V, true
			}
		case <-ctx.Done():
		}
		return v, false
	})
}

// lingering returns a context for the command of a call. It ends remote.GraceAfterEnd after the deadline of ctx, so that the answer
// comes of a command that its caller has given up: see driverutil.PendingReply.
func lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	late := context.WithoutCancel(ctx)
	if at, ok := ctx.Deadline(); ok {
		return context.WithDeadline(late, at.Add(remote.GraceAfterEnd))
	}
	return late, func() {}
}

// shared runs one command on the connections that all calls share, as await does.
func (d *driver) shared(ctx context.Context, doing string, do func() remote.Answer) remote.Answer {
	a, err := await(ctx, d, doing, do)
	if err != nil {
		return remote.Answer{Err: err, Ran: true}
	}
	return a
}

// silent returns the error of a call that the driver's read timeout has ended.
func (d *driver) silent(doing string) error {
	return fmt.Errorf("rueidisebb: %s: %w: %w: no reply within %v", doing, conn.ErrUnavailable, routing.ErrUnresponsive, d.timeouts.reply)
}
