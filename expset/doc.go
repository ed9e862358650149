// Package expset implements a set that programs share and whose members expire one by one, and a
// family of such sets: the devices online, the orders that each user has yet to pay.
//
//	orders, err := expset.NewFamily[string](c, "orders", expset.Options[string]{MaxLen: 3, Events: true})
//	_, err = orders.Set("ann").Add(ctx, 30*time.Minute, "o-17") // expset.ErrFull with three living ones
//	n, err := orders.Set("ann").Remove(ctx, "o-17")             // 1: it was there, and is paid
//	err = orders.OnExpired(ctx, "billing", func(ctx context.Context, e expset.Expired[string]) error { ... })
//
// How it runs depends on the backend:
//
//	ebb       a set whose members have deadlines; SADDEX, SREM ... one command each
//	others    a sorted set by deadline (ms since 1970, inf for none); a script for each
//	          operation, which removes some of the dead first
//	Redisson  the layout of its SetCache: the same, with 92233720368547758 for none
//
// Invariants: a member lives up to and including the millisecond of its deadline (in
// Redisson's layout up to the one before), by the server's clock, and is then never
// returned, counted or listed; MaxLen is checked in the step that adds; an expiry of a
// set with Events is in the stream of events from the step on in which the member is
// removed.
//
// Start reading at Set.
package expset
