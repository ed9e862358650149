// Package lock holds things for a time: locks with one holder, shared locks,
// semaphores, and what is built of them: a leader, a latch, work that is done once.
//
//	       Acquire                 every third of TTL             Release
//	          |                        |         |                   |
//	holder ---+====renew=====renew=====+= ... ===+===================+
//	          |<---- TTL ---->|
//	          Lease: Token() for what is protected, Context() for the work
//
//	lease, err := lock.Acquire(ctx, c, "report", 30*time.Second)
//	if err != nil {
//		return err
//	}
//	defer lease.Release(ctx)
//	return writeReport(lease.Context(), lease.Token())
//
// Invariants, on every backend:
//
//   - The server's clock ends leases. The local one only decides, on the safe side,
//     when a holder must stop: Context ends before the lease does.
//   - A Lease is one owner, made for one call, and every request names it. So each may
//     be sent again after a lost connection: the owner is told what it has.
//   - Tokens grow from holder to holder.
//   - An owner waits in one place of the line, and a wait that ends leaves none.
//
// On ebb the objects are LOCK.* and SEM.*, which keep the line and wake waiters. On
// Redis and Valkey each operation is one script; a message wakes a waiter, which
// polls every second in addition.
//
// Start reading at Lock; acquire in object.go is the way in, Lease.keep what goes on
// while it is held, and claim.go what a backend must be able to do.
package lock
