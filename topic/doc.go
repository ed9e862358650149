// Package topic publishes values of a type to the current subscribers.
//
//	orders, err := topic.New[Order](c, "orders")
//	sub, err := orders.Subscribe(ctx)
//	defer sub.Close()
//	for m, err := range sub.All(ctx) {
//		switch {
//		case errors.Is(err, ebb.ErrInterrupted): // some may be lost: look at the source
//		case err != nil: // topic.ErrSlow ends the loop
//		default: use(m.Value)
//		}
//	}
//
// and elsewhere
//
//	n, err := orders.Publish(ctx, Order{ID: 17})
//
//	Publish ─ channel ─▶ the backend ─▶ pump, a goroutine ─▶ Backlog ─▶ Next, All
//
// Messages are not kept: a client that is not subscribed does not get them. What must arrive goes
// into a stream or a queue.
//
// Invariants: messages come in the order in which the backend got them; a gap is
// told, as ebb.ErrInterrupted, in its place between them; a subscriber that
// lags by more than its Backlog gets what it has, then ErrSlow, and nothing more.
//
// Start reading at Topic.Subscribe, then subscription.go.
package topic
