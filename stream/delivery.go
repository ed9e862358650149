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

// firstDelivery is the number of the first delivery of an entry.
var firstDelivery = conn.Value{Kind: resp.KindInt, Int: 1}

// retryTTL is the time for which the retry set outlives its last entry. Without the set its entries come again after ClaimAfter.
const retryTTL = time.Hour

// Delivery is an entry that a consumer has received. The first Ack or Nack that succeeds
// settles it. Further calls do nothing, so the caller may repeat a call whose reply was lost.
type Delivery[T any] struct {
	Entry[T]
	// Deliveries is the number of times that the entry was delivered, including this one. With the
	// consumer's name it identifies the delivery.
	Deliveries int

	g        *Group[T]
	consumer string
	settled  atomic.Bool
}

// delivery returns the Delivery of an element of takeScript: ID, fields, number.
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

// Ack acknowledges the entry. It also returns nil if no consumer has the entry, for instance
// after an Ack whose reply was lost. Errors: ErrLost.
func (d *Delivery[T]) Ack(ctx context.Context) error {
	return d.settle(ctx, "ack", true, ackScript)
}

// Nack returns the entry, which is delivered again after delay. If this was the last delivery
// that MaxDeliveries allows, the entry becomes a dead letter; then Nack also returns nil if no
// consumer has the entry. Errors: ErrLost.
func (d *Delivery[T]) Nack(ctx context.Context, delay time.Duration) error {
	ms := kit.Millis(max(delay, 0))
	last := d.g.o.MaxDeliveries > 0 && d.Deliveries >= d.g.o.MaxDeliveries
	return d.settle(ctx, "nack", last, nackScript, ms, ms+kit.Millis(d.g.o.ClaimAfter+retryTTL))
}

// Extend restarts the time ClaimAfter of the delivery. Errors: ErrLost.
func (d *Delivery[T]) Extend(ctx context.Context) error {
	n, err := d.run(ctx, "extend", extendScript)
	if err == nil && n != settledDone {
		return d.failed("extend", ErrLost)
	}
	return err
}

// settle runs a script that ends the delivery, once. gone: it is not an error if no consumer has the entry.
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
