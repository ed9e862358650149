// Package stream implements a log of values. Each reader has its own position, and the
// consumers of a group share the entries.
//
//	orders, err := stream.New[Order](c, "orders", stream.Options[Order]{Retention: 24 * time.Hour})
//	id, err := orders.Add(ctx, Order{ID: 17})
//
//	billing, err := orders.Group("billing", stream.GroupOptions{ClaimAfter: 30 * time.Second})
//	for d, err := range billing.Consume(ctx, "worker-1") {
//		if err != nil { // told, and tried again if the loop goes on
//			continue
//		}
//		if work(d.Value) != nil {
//			err = d.Nack(ctx, time.Minute) // again in a minute
//		} else {
//			err = d.Ack(ctx)
//		}
//	}
//
// What becomes of an entry in a group:
//
//	Add ─▶ new ─▶ delivered ─ Ack ─▶ done
//	                │  ▲
//	                │  └── Nack(delay), or ClaimAfter without a word
//	                └───── MaxDeliveries reached: a dead letter
//
// An entry is one field, v, as the codec writes it, so that others can add and
// read with XADD and XREAD. The stream is the key itself. Beside it, in the same
// slot, are for each group {name}:retry:<group>, a sorted set of the entries that
// wait out a Nack, and {name}:dead:<group>, a stream of dead letters.
//
// Invariants: an entry of a group is new, or pending for one consumer, or done; a
// delivery is known by its consumer and its number, and a consumer that lost it to another
// can neither Ack nor Nack it; an entry becomes a dead letter in the step that takes
// it out of the group.
//
// Start reading at Group.Consume.
package stream
