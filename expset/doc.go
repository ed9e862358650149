// Package expset implements a set that programs share and whose members expire one by one, and
// families of such sets: the devices that are online, the unpaid orders of each user.
//
//	orders, err := expset.NewFamily[string](c, "orders", expset.Options[string]{MaxLen: 3, Events: true})
//	_, err = orders.Set("ann").Add(ctx, 30*time.Minute, "o-17") // expset.ErrFull with three living ones
//	n, err := orders.Set("ann").Remove(ctx, "o-17")             // 1: it was there, and is paid
//	err = orders.OnExpired(ctx, "billing", func(ctx context.Context, e expset.Expired[string]) error { ... })
//
// The layout depends on the backend:
//
//	ebb            a set whose members have deadlines; SADDEX, SREM ... one command each
//	other servers  a sorted set by deadline (ms since 1970, inf for none); a script for each
//	               operation, which removes some expired members first
//	Options.Layout the layout of Redisson's SetCache: the same, with 92233720368547758 for none
//
// Invariants of every layout: a member lives up to and including the millisecond of its
// deadline (in Redisson's layout up to the millisecond before), by the server's clock.
// Afterwards no operation returns, counts or lists it. MaxLen is checked in the step that adds.
// In a set with Events, the step that removes an expired member also records the event.
//
// Start reading at Set.
package expset
