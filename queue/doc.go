// Package queue is a reliable queue: jobs for now or for later, each to one consumer
// at a time, under a lease, until a consumer acknowledges it.
//
//	Push -> delayed -> ready -> leased -> Ack: gone
//	                     ^        |
//	                     +--------+  Nack, Fail, or the lease ended
//	                              |
//	                              +-> after MaxDeliveries, or Bury: dead letters
//
//	q, err := queue.New[Mail](c, "mail")
//	id, err := q.Push(ctx, Mail{To: "ann"}, queue.PushOptions{Delay: time.Minute})
//	err = q.Run(ctx, 8, func(ctx context.Context, j *queue.Job[Mail]) error {
//		return send(ctx, j.Value)
//	})
//
// Jobs of one priority are delivered in the order in which they fall due, those of
// one millisecond in the order in which they were pushed: without delays it is first
// in, first out. A job is delivered at least once; nothing is lost by consumers that
// crash, contexts that end, or connections that break.
//
// Behind Sentinel and in a cluster that holds as far as replicas have heard of it: on a
// view of the Conn, c.Replicated(1, time.Second), each call waits until they have. A job
// that Pop, Consume and Run deliver is leased there too; other calls return
// ebb.ErrNotReplicated for what they did on the master alone.
//
// On ebb, embedded or a server, a queue is a key of the DQ.* commands, shared with
// every client of theirs. Elsewhere it is some keys under one hash tag and one Lua
// script for each operation, on the server's time; a message wakes a waiting consumer,
// which also knows when the next job is due.
//
// Redisson is another queue: the layout of Redisson's RDelayedQueue, shared with Java
// programs. It has no leases.
//
// Start reading at Queue.Push, Queue.Pop and the store interface; lua.go says how the
// scripts keep a queue.
package queue
