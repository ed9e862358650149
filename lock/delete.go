package lock

import (
	"context"
	"errors"

	"github.com/ebbdb/ebb/internal/locking"
)

// Delete of an object removes its keys, even while a lease is held: the holder gets ErrLost at its next
// renewal, and waiting calls poll again. Afterwards the object is in the state that it had before its first
// use.

// deleteLock removes a lock or a semaphore in the layout of this package.
func (o *object) deleteLock(ctx context.Context) error {
	if o.c.Capabilities().Native {
		if _, err := o.c.Del(ctx, o.name); err != nil {
			return o.wrap("delete", err)
		}
		return nil
	}
	return o.core.DeleteKeys(ctx, locking.DeleteScript, "", o.name, o.keys.fence, o.keys.wait, o.keys.held, o.keys.line, o.keys.alive)
}

// Delete removes the lock, even while it is held. Its holder gets ErrLost from Renew, from
// Release, or within a third of the lease as the cause of its Context. On servers other than
// ebb Delete also removes the last token; tokens still grow unless the server's clock is set
// back. Delete is one request.
func (l *Lock) Delete(ctx context.Context) error { return l.deleteLock(ctx) }

// Delete removes the lock, as Lock.Delete does.
func (l *RW) Delete(ctx context.Context) error { return l.deleteLock(ctx) }

// Delete removes the semaphore and all leases of its permits, as Lock.Delete does.
func (s *Semaphore) Delete(ctx context.Context) error { return s.deleteLock(ctx) }

// Delete removes all the locks one after the other, as Lock.Delete does.
func (m *Many) Delete(ctx context.Context) error {
	var errs []error
	for _, l := range m.locks {
		errs = append(errs, l.Delete(ctx))
	}
	return errors.Join(errs...)
}

// Delete removes the election's key, even while a candidate leads, as Lock.Delete does.
func (e *Leader) Delete(ctx context.Context) error {
	if err := e.lock.Delete(ctx); err != nil {
		return err
	}
	e.announce(ctx, "")
	return nil
}

// Delete removes the latch. The latch is then open, and waiting calls return.
func (l *Latch) Delete(ctx context.Context) error {
	return l.core.DeleteKeys(ctx, locking.DeleteScript, "0", l.latchKeys()...)
}

// Delete removes the record that the work was begun or done: the next Do calls its function, even while the
// function of another call still runs.
func (o *Once) Delete(ctx context.Context) error {
	if _, err := o.c.Del(ctx, o.name); err != nil {
		return o.wrap("delete", err)
	}
	return nil
}
