package stream

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/resp"
)

// one is the number of a first delivery.
var one = conn.Value{Kind: resp.KindInt, Int: 1}

// retryKept is how long the retry set outlives its last entry. Were it lost, the
// entries would come again after ClaimAfter.
const retryKept = time.Hour

// Delivery is an entry that was given to a consumer. It is settled by the first Ack
// or Nack that succeeds: either of them called again does nothing, and where the
// reply to one was lost it may be called again as well.
type Delivery[T any] struct {
	Entry[T]
	// Deliveries is how often the entry was delivered, this time included. With
	// the consumer's name it is the token by which the delivery is known.
	Deliveries int

	g        *Group[T]
	consumer string
	settled  atomic.Bool
}

// delivery reads what takeScript returns: ID, fields, number.
func (g *Group[T]) delivery(consumer string, v conn.Value) (*Delivery[T], error) {
	d := &Delivery[T]{g: g, consumer: consumer}
	var err error
	if d.Entry, err = g.s.entry(v); err != nil {
		err = g.failed("consume", err)
	}
	if len(v.Elems) > 2 {
		d.Deliveries = int(v.Elems[2].Int)
	}
	return d, err
}

// Ack says that the entry is done. It is nil too if no consumer holds the entry any
// more, as after an Ack whose reply was lost. Errors: ErrLost.
func (d *Delivery[T]) Ack(ctx context.Context) error {
	return d.settle(ctx, "ack", true, ackScript)
}

// Nack hands the entry back, to be delivered again after a delay, or to become a
// dead letter if this was its last delivery: then it is nil too if no consumer holds
// the entry any more. Errors: ErrLost.
func (d *Delivery[T]) Nack(ctx context.Context, delay time.Duration) error {
	ms := kit.Millis(max(delay, 0))
	last := d.g.o.MaxDeliveries > 0 && d.Deliveries >= d.g.o.MaxDeliveries
	return d.settle(ctx, "nack", last, nackScript, ms, ms+kit.Millis(d.g.o.ClaimAfter+retryKept))
}

// Extend gives the delivery another ClaimAfter from now on. Errors: ErrLost.
func (d *Delivery[T]) Extend(ctx context.Context) error {
	n, err := d.run(ctx, "extend", extendScript)
	if err == nil && n != settledDone {
		return d.failed("extend", ErrLost)
	}
	return err
}

// settle runs a script that ends the delivery, once. gone says that it is no error if
// no consumer holds the entry.
func (d *Delivery[T]) settle(ctx context.Context, doing string, gone bool, s *conn.Script, more ...any) error {
	if d.settled.Load() {
		return nil
	}
	n, err := d.run(ctx, doing, s, more...)
	switch {
	case err != nil:
		return err
	case n == settledDone || n == settledGone && gone:
		d.settled.Store(true)
		return nil
	}
	return d.failed(doing, ErrLost)
}

func (d *Delivery[T]) run(ctx context.Context, doing string, s *conn.Script, more ...any) (int64, error) {
	r, err := d.g.s.c.Script(ctx, s, d.g.keys, d.g.args(d.consumer, append([]any{d.ID, d.Deliveries}, more...)...)...)
	if err != nil {
		return 0, d.failed(doing, err)
	}
	return r.AsInt()
}

func (d *Delivery[T]) failed(doing string, err error) error {
	return d.g.failed(fmt.Sprintf("%s entry %s, delivery %d", doing, d.ID, d.Deliveries), err)
}
