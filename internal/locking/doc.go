// Package locking acquires and renews leases: what packages lock and redisson share. A layout is an Acquirer; an Object sends its
// requests, waits, and makes leases.
//
//	lock.Lock, redisson.Lock ...      what callers see
//	      |
//	    Object ── waiter ── Lease     when a request is sent, repeated or taken back; the certain time; errors
//	      |
//	   Acquirer                       one way to request: ebb's commands, scripts of package lock, scripts of Redisson's layouts
//
// lock.Lease is a Lease under another name: that type has the documentation for callers.
//
// Start reading at Object.Acquire, then waiter.run and Lease.renewLoop.
package locking
