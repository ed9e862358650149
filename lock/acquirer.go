package lock

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/direct"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/locking"
)

// nativeLock uses the commands LOCK.* of ebb, for an exclusive lease.
type nativeLock struct {
	c    *conn.Conn
	name string
	ttl  time.Duration
}

// sharedLock is a nativeLock that acquires shared leases.
type sharedLock struct{ *nativeLock }

// lease returns the length of a lease in ms.
func (n *nativeLock) lease() int64 { return kit.Millis(n.ttl) }

func (n *nativeLock) acquire(ctx context.Context, owner string, lease int64, shared ...any) (locking.Reply, error) {
	words := append(append(make([]any, 0, 5), "LOCK.ACQUIRE", n.name, owner, lease), shared...)
	return grantedReply(locking.Integer(n.c.Do(ctx, words...)))
}

func (n *nativeLock) Try(ctx context.Context, owner string, _ bool) (locking.Reply, error) {
	return n.acquire(ctx, owner, n.lease())
}

func (s sharedLock) Try(ctx context.Context, owner string, _ bool) (locking.Reply, error) {
	return s.acquire(ctx, owner, s.lease(), "SHARED")
}

func (n *nativeLock) Wait(ctx context.Context, owner string, wait time.Duration) (locking.Reply, error) {
	return grantedReply(locking.Integer(n.c.Block(ctx, "LOCK.ACQUIRE", n.name, owner, n.lease(), "WAIT", kit.Millis(wait))))
}

func (s sharedLock) Wait(ctx context.Context, owner string, wait time.Duration) (locking.Reply, error) {
	return grantedReply(locking.Integer(s.c.Block(ctx, "LOCK.ACQUIRE", s.name, owner, s.lease(), "WAIT", kit.Millis(wait), "SHARED")))
}

// AcquireDirect acquires the lock by a direct call of the embedded engine; see locking.Direct.
func (n *nativeLock) AcquireDirect(owner string, waits bool) (token int64, granted, ok bool) {
	return n.acquireDirect(owner, false, waits)
}

// AcquireDirect acquires a shared lease by a direct call of the embedded engine; see locking.Direct.
func (s sharedLock) AcquireDirect(owner string, waits bool) (token int64, granted, ok bool) {
	return s.acquireDirect(owner, true, waits)
}

func (n *nativeLock) acquireDirect(owner string, shared, waits bool) (token int64, granted, ok bool) {
	d := direct.Of(n.c)
	if d == nil {
		return 0, false, false
	}
	token, state := d.Acquire(n.name, owner, n.lease(), shared, waits)
	return token, state == direct.Done, state != direct.Elsewhere
}

// ReleaseDirect releases the lock by a direct call of the embedded engine; see locking.Direct.
func (n *nativeLock) ReleaseDirect(owner string, token int64) (was, ok bool) {
	d := direct.Of(n.c)
	if d == nil {
		return false, false
	}
	state := d.Release(n.name, owner, token)
	return state == direct.Done, state != direct.Elsewhere
}

func (n *nativeLock) Renew(ctx context.Context, owner string, token int64) error {
	if d := direct.Of(n.c); d != nil && ctx.Err() == nil && d.Renew(n.name, owner, token, n.lease()) == direct.Done {
		return nil
	}
	return locking.Renewed(locking.Integer(n.c.Do(ctx, "LOCK.RENEW", n.name, owner, token, n.lease())))
}

func (n *nativeLock) Release(ctx context.Context, owner string, token int64) (bool, error) {
	return locking.Boolean(locking.Integer(n.c.Do(ctx, "LOCK.RELEASE", n.name, owner, token)))
}

// Abandon requests the shortest lease, which replaces the owner's lease if there is one, and releases it. A
// second attempt sends LOCK.INFO first and releases only a lease that it finds: usually none is left, and the
// lock may be free or held by another owner.
func (n *nativeLock) Abandon(ctx context.Context, owner string) error { return n.abandon(ctx, owner) }

// Abandon works as nativeLock.Abandon does.
func (s sharedLock) Abandon(ctx context.Context, owner string) error {
	return s.abandon(ctx, owner, "SHARED")
}

func (n *nativeLock) abandon(ctx context.Context, owner string, shared ...any) error {
	if kit.Repeated(ctx) {
		return n.discard(ctx, owner)
	}
	r, err := n.acquire(ctx, owner, 1, shared...)
	if err == nil && r.Granted {
		_, err = n.Release(ctx, owner, r.Token)
	}
	return err
}

// discard releases the owner's lease, by the token that LOCK.INFO returns.
func (n *nativeLock) discard(ctx context.Context, owner string) error {
	v, err := n.c.Do(ctx, "LOCK.INFO", n.name)
	if err != nil {
		return err
	}
	holders, _ := v.Get("holders")
	for _, h := range holders.Elems {
		if len(h.Elems) == 3 && h.Elems[0].String() == owner {
			_, err = n.Release(ctx, owner, h.Elems[1].Int)
		}
	}
	return err
}

func (*nativeLock) Repeatable() bool { return true }

// brief is a lock that Acquire acquires by a direct call: the lease, and the values that its release needs.
// It implements locking.Maker.
type brief struct {
	held locking.Lease
	nativeLock
}

// Make makes the full lock, for rare cases: messages, and releases that the engine does not take directly.
func (b *brief) Make() *locking.Object {
	l := &Lock{}
	_ = l.setup(b.c, "lock", b.name, Options{TTL: b.ttl}) // Acquire has checked them
	return &l.core
}

// nativeSem uses the commands SEM.* of ebb.
type nativeSem struct {
	c        *conn.Conn
	name     string
	ttl      int64 // ms
	limit, n int64
}

func (n nativeSem) Try(ctx context.Context, owner string, _ bool) (locking.Reply, error) {
	return grantedReply(locking.Integer(n.c.Do(ctx, "SEM.ACQUIRE", n.name, owner, n.limit, n.ttl, "COUNT", n.n)))
}

func (n nativeSem) Wait(ctx context.Context, owner string, wait time.Duration) (locking.Reply, error) {
	return grantedReply(locking.Integer(n.c.Block(ctx, "SEM.ACQUIRE", n.name, owner, n.limit, n.ttl, "COUNT", n.n, "WAIT", kit.Millis(wait))))
}

func (n nativeSem) Renew(ctx context.Context, owner string, _ int64) error {
	return locking.Renewed(locking.Integer(n.c.Do(ctx, "SEM.RENEW", n.name, owner, n.ttl)))
}

func (n nativeSem) Release(ctx context.Context, owner string, _ int64) (bool, error) {
	return locking.Boolean(locking.Integer(n.c.Do(ctx, "SEM.RELEASE", n.name, owner)))
}

func (n nativeSem) Abandon(ctx context.Context, owner string) error {
	_, err := n.Release(ctx, owner, 0)
	return err
}

func (nativeSem) Repeatable() bool { return true }

// grantedReply returns the reply of a command: a token, or null if it was not granted.
func grantedReply(token int64, ok bool, err error) (locking.Reply, error) {
	return locking.Reply{Granted: ok && err == nil, Token: token}, err
}
