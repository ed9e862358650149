package rueidisebb

import (
	"context"
	"fmt"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
)

// aside runs do in a goroutine of its own and returns its result, or an error: ctx has
// ended, or no reply came within the driver's limit. A call that aside gave up goes on;
// Close waits for it once the client is closed.
//
// rueidis by itself waits
//
//	for a connection   that another call makes, until it is greeted: for Dialer.Timeout,
//	                   whatever the context says
//	for a reply        on a connection of its own until ConnWriteTimeout or
//	                   the context's deadline, and not its cancellation; on one that
//	                   others use until a PING was not answered either, which is later
//	                   than ConnWriteTimeout by up to twice Dialer.KeepAlive
//
// do must write nothing that the caller reads.
func aside[T any](ctx context.Context, d *driver, doing string, do func() T) (T, error) {
	done := make(chan T, 1)
	if d.gather != nil {
		d.gather.in.Add(1)
	}
	d.left.Go(func() {
		done <- do()
		if d.gather != nil {
			d.gather.in.Add(-1)
		}
	})
	ended, late, silent := d.ends.of(ctx)
	var none T
	select {
	case r := <-done:
		return r, nil
	case <-ended:
	case <-late:
		if silent {
			return none, d.silent(doing)
		}
	}
	return none, unavailable(ctx, doing, ctx.Err())
}

// shared is aside for one command on the connections that all calls share.
func (d *driver) shared(ctx context.Context, doing string, do func() remote.Answer) remote.Answer {
	a, err := aside(ctx, d, doing, do)
	if err != nil {
		return remote.Answer{Err: err, Ran: true}
	}
	return a
}

// silent is the error of a call that the driver's limit has ended.
func (d *driver) silent(doing string) error {
	return fmt.Errorf("rueidisebb: %s: %w: %w: no reply within %v", doing, conn.ErrUnavailable, routing.ErrUnresponsive, d.timeouts.reply)
}
