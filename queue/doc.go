// Package queue implements a reliable delay queue. A job is due now or later, one consumer at a
// time has it under a lease, and it is removed when the consumer acknowledges it.
//
//	Push -> delayed -> ready -> leased -> Ack: removed
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
// Jobs of one priority are delivered in the order in which they fall due; jobs of the same
// millisecond, in the order in which they were pushed. Without delays that is first in, first
// out. A job is delivered at least once, even if consumers crash, contexts end, or connections
// break.
//
// With Sentinel and in a cluster, a failover can lose writes that no replica has received. On a view of the
// Conn, c.Replicated(1, time.Second), each call waits until a replica has its write. Pop, Consume and Run
// deliver a job only when its lease is on the replica; other calls return ebb.ErrNotReplicated for a change
// that only the master has.
//
// Schedule adds a job again and again, as a cron expression or a span says, each time exactly once:
//
//	_, err = q.Schedule(ctx, "report", Mail{To: "all"}, queue.Cron("0 9 * * 1-5", "Europe/Berlin"))
//
// Pause, Resume, Peek, Get, Requeue and Reschedule are for operators.
//
// On ebb, embedded or a server, a queue is a key of the DQ.* commands, and all clients of these
// commands can use it. On other servers it is several keys under one hash tag, with one Lua
// script for each operation, by the server's clock. A message wakes a waiting consumer, which
// also knows when the next job is due.
//
// redisson.DelayedQueue, in the module redisson, is another queue, in the layout of Redisson's
// RDelayedQueue, which Go and Java programs can share. It has no leases.
//
// Start reading at Queue.Push, Queue.Pop and the store interface; lua.go describes the scripts, and
// schedule_scripts.go how they run schedules.
package queue
