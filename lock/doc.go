// Package lock implements leased locks: locks with one holder, read-write locks and semaphores,
// and on top of them leader election, a latch, and work that one program does once. OnceValue
// keeps the result of such work for later calls.
//
//	       Acquire                 every third of TTL             Release
//	          |                        |         |                   |
//	holder ---+====renew=====renew=====+= ... ===+===================+
//	          |<---- TTL ---->|
//	          Lease: Token() for the protected resource, Context() for the work
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
//   - The server's clock ends leases. The local clock only decides when a holder must stop,
//     on the safe side: Context ends before the lease does.
//   - Each call has an owner name of its own, and every request carries it. So the package
//     can send a request again after a lost connection: the reply says what the owner holds.
//   - Tokens grow from holder to holder.
//   - An owner has one place in the queue, and a wait that ends leaves no place behind.
//
// OnceValue is a key with two states, built on internal/fresh as package cache is:
//
//	Do ─▶ a result      it is returned (Done)
//	   ─▶ no result     one call is elected, under a lease, and does the work (Did);
//	                    other calls of Do wait, TryDo fails with ErrTaken (Doing)
//
// On ebb the objects use LOCK.* and SEM.*, which keep the queue and wake waiting callers. On
// Redis and Valkey each operation is one script; a message wakes a waiting caller, which also
// polls every second.
//
// Start reading at Lock. acquirer.go has ebb's commands, scripts.go and linescripts.go the scripts;
// internal/locking sends their requests, waits and renews leases.
package lock
