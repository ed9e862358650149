// Package stream implements a log of values. Each reader has its own position, and the
// consumers of a group share the entries.
//
//	orders, err := stream.New[Order](c, "orders", stream.Options[Order]{Retention: 24 * time.Hour})
//	id, err := orders.Add(ctx, Order{ID: 17})
//
//	billing, err := orders.Group("billing", stream.GroupOptions{ClaimAfter: 30 * time.Second})
//	for d, err := range billing.Consume(ctx, "worker-1") {
//		if err != nil { // the loop may continue: Consume tries again
//			continue
//		}
//		if work(d.Value) != nil {
//			err = d.Nack(ctx, time.Minute) // again in a minute
//		} else {
//			err = d.Ack(ctx)
//		}
//	}
//
// The states of an entry in a group:
//
//	Add ─▶ new ─▶ delivered ─ Ack ─▶ done
//	                │  ▲
//	                │  └── Nack(delay), or no reply within ClaimAfter
//	                └───── MaxDeliveries reached: a dead letter
//
// An entry has one field, v, with the encoded value, so that other clients can add and read
// entries with XADD and XREAD. The stream is the key itself. For each group there are two more
// keys in the same slot: {name}:retry:<group>, a sorted set of the entries that a Nack delays,
// and {name}:dead:<group>, a stream of dead letters.
//
// Invariants: an entry of a group is new, or pending for one consumer, or done. The consumer
// and the number of deliveries identify a delivery; a consumer that lost it to another can
// neither Ack nor Nack it. The step that removes an entry from the group also makes it a dead
// letter.
//
// Start reading at Group.Consume.
package stream
