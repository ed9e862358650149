package lock

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/internal/locking"
)

// Lease is a lease that one owner holds until Release, or until it is lost. One goroutine renews it in the
// background.
//
// Unless Options.UntilRelease is set, the context that acquired the lease bounds its life: when
// that context ends, Context and the renewals end, and the lease expires unless Release comes
// first. So a function that acquires with a context of its own, and defers the cancel function
// of that context, returns a lease that expires. Bound a wait by the argument wait, or set
// UntilRelease. The methods are safe for concurrent use.
type Lease locking.Lease

// lease returns l as the type of internal/locking, whose methods do the work.
func (l *Lease) lease() *locking.Lease { return (*locking.Lease)(l) }

// Token returns the fencing token, which is greater than the token of every earlier holder.
// Pass it to the resource that the lock protects, and let the resource refuse smaller tokens.
func (l *Lease) Token() int64 { return l.lease().Token() }

// Owner returns the name under which the backend knows the holder.
func (l *Lease) Owner() string { return l.lease().Owner() }

// Context returns the context for the work. It ends when the lease is released or lost, or when
// the context that acquired it ends. context.Cause returns the reason: ErrLost with an
// explanation if the backend said that the lease is over, or if it could not be renewed in
// time. The local monotonic clock measures that time from before the last granted request was
// sent; a margin of 1 % and 2 ms is subtracted. After a pause of the process Done may be closed
// some time later than that; Err looks at the clock.
func (l *Lease) Context() context.Context { return l.lease().Context() }

// Valid reports whether the lease is certain to be held at this moment, by the local monotonic clock, even
// just after a pause of the process. It sends nothing: Renew asks the backend.
func (l *Lease) Valid() bool { return l.lease().Valid() }

// Until returns the local time up to which the lease is certain to be held, if it is not renewed before; the zero Time if it is
// over. Each renewal moves it.
func (l *Lease) Until() time.Time { return l.lease().Until() }

// Renew renews the lease for its full time, now. nil proves that the caller holds the lease at
// this moment. ErrLost ends the lease and its Context. The package renews leases by itself;
// call Renew before a step that cannot be fenced.
func (l *Lease) Renew(ctx context.Context) error { return l.lease().Renew(ctx) }

// Release ends Context and the renewals, and gives the lease back. It returns nil if the lease
// was held until now, and for further calls; ErrLost if the lease was over before. Any other
// error means that the backend did not reply: call Release again, or let the lease expire.
//
// The end of ctx does not end Release at once, so that deferred calls do their work. It tries
// until the backend replies, for at most 3 seconds and at most 1 second beyond the end of ctx.
// For locks of package redisson it does not try again if the backend may have received the request.
func (l *Lease) Release(ctx context.Context) error { return l.lease().Release(ctx) }

// String describes the lease.
func (l *Lease) String() string { return l.lease().String() }
