// Package topic publishes values of a type to the current subscribers.
//
//	orders, err := topic.New[Order](c, "orders")
//	sub, err := orders.Subscribe(ctx)
//	defer sub.Close()
//	for m, err := range sub.All(ctx) {
//		switch {
//		case errors.Is(err, ebb.ErrInterrupted): // messages may be lost: read the source again
//		case err != nil: // topic.ErrSlow ends the loop
//		default: use(m.Value)
//		}
//	}
//
// and in the publisher
//
//	n, err := orders.Publish(ctx, Order{ID: 17})
//
//	Publish ─ channel ─▶ the backend ─▶ pump, a goroutine ─▶ Backlog ─▶ Next, All
//
// The backend does not store messages: a client that is not subscribed does not get them. Use a
// stream or a queue for messages that must arrive.
//
// Invariants: messages arrive in the order in which the backend got them. Where messages may be
// missing, the subscriber gets ebb.ErrInterrupted, between the messages before and after. A
// subscriber that lags by more than its Backlog gets the messages of the backlog, then ErrSlow,
// and nothing more.
//
// Start reading at Topic.Subscribe, then subscription.go.
package topic
