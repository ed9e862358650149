package engine

import "github.com/ebbdb/ebb/internal/holders"

// A lock has one owner, or several owners who share it, each with a lease.
//
//	AcquireLock ─▶ a fencing token, greater than all earlier ones in this engine;
//	               the protected resource refuses smaller ones
//	RenewLock   ─▶ a new lease for the same token
//	ReleaseLock, or the end of the lease ─▶ the last holder's removal deletes the key
//
// The engine stores nothing for a lock without holders. The commands keep the clients that wait for
// a lock in the key's line (wait.go).

func lockModule() module { return holdersModule("ebb-lock-", Lock) }

// nextLease returns the end of the lease that ends next. O(1).
func (tx *Tx) nextLease(h *hit) int64 { return h.holders().Earliest() }

// lapseLock removes all holders whose lease is over.
func (tx *Tx) lapseLock(h *hit, key []byte) {
	tx.lapseHolders(h, key, "lock.expired", func(b holders.List, at int) {
		tx.emit("LOCK.RELEASE", key, b.Owner(at), tx.itoa(0, b.Token(at)))
	})
}

// AcquireLock requests a lock for an owner; ok reports whether the owner holds it now.
//
// An owner that holds the lock gets the same token and a new lease, even while other clients wait.
// If it is the only holder and requests the other mode, the lock changes its mode. From shared to
// exclusive it gets a new token, because other holders may have had later ones. From exclusive to
// shared it keeps the token. One of several shared holders does not get the exclusive lock, and
// must not wait for it (Lease.Held). O(holders); allocates nothing. Errors: ErrWrongType, ErrFull.
func (tx *Tx) AcquireLock(key, owner []byte, o AcquireOptions) (g Lease, ok bool, err error) {
	h, err := tx.leased(key, Lock)
	if err != nil {
		return g, false, err
	}
	b := h.holders()
	switch at := b.Find(owner); {
	case at >= 0:
		g, ok = tx.lockAgain(&h, key, at, &o)
	case o.Behind || b != nil && !(o.Shared && b.IsShared()):
	default:
		g, err = tx.lockFirst(&h, key, owner, &o)
		ok = err == nil
	}
	if s := &h.sh.stats; ok {
		s.LocksGranted++
		s.waited(tx.now, o.Since)
	} else if err == nil && !o.Waits {
		s.LocksRefused++
	}
	return g, ok, err
}

// lockFirst gives a lock to an owner that did not hold it.
func (tx *Tx) lockFirst(h *hit, key, owner []byte, o *AcquireOptions) (Lease, error) {
	who := holders.Holder{Owner: owner, Token: tx.newToken(o), Deadline: tx.DeadlineAfter(o.Lease), Count: 1}
	mode := byte(0)
	if o.Shared {
		mode = holders.Shared
	}
	if err := tx.hold(h, key, Lock, mode, &who); err != nil {
		return Lease{}, err
	}
	tx.lockGranted(key, owner, who.Token, o)
	return Lease{Token: who.Token, taken: 1}, nil
}

// lockAgain gives a lock to an owner that holds it.
func (tx *Tx) lockAgain(h *hit, key []byte, at int, o *AcquireOptions) (g Lease, ok bool) {
	b := h.holders()
	if b.IsShared() && !o.Shared {
		if !b.Single(at) {
			return Lease{Held: true}, false
		}
		b[1] = 0
		b.SetToken(at, tx.newToken(o))
	} else if o.Shared {
		b.Share()
	}
	g = Lease{Token: b.Token(at), request: b.Requested(at)}
	b.Renew(at, tx.DeadlineAfter(o.Lease))
	tx.stamp(h.r)
	owner := b.Owner(at)
	tx.lockGranted(key, owner, g.Token, o)
	tx.date(h)
	return g, true
}

// lockGranted logs the grant of a lock and notifies its watchers.
func (tx *Tx) lockGranted(key, owner []byte, token int64, o *AcquireOptions) {
	if tx.db.logging.Load() {
		lease, t, now := tx.itoa(0, o.Lease), tx.itoa(1, token), tx.itoa(2, tx.now)
		if o.Shared {
			tx.emit("LOCK.ACQUIRE", key, owner, lease, []byte("SHARED"), []byte("TOKEN"), t, []byte("NOW"), now)
		} else {
			tx.emit("LOCK.ACQUIRE", key, owner, lease, []byte("TOKEN"), t, []byte("NOW"), now)
		}
	}
	tx.changed(key, EventModule, "lock.acquire")
}

// RenewLock sets the lease of a holder, in ms from now, and reports whether owner holds the lock
// with this token. O(holders). Errors: ErrWrongType.
func (tx *Tx) RenewLock(key, owner []byte, token, lease int64) (bool, error) {
	h, at, err := tx.lockOf(key, owner, token)
	if at < 0 {
		return false, err
	}
	b := h.holders()
	b.Requested(at)
	b.Renew(at, tx.DeadlineAfter(lease))
	tx.stamp(h.r)
	tx.date(&h)
	if tx.db.logging.Load() {
		tx.emit("LOCK.RENEW", key, owner, tx.itoa(0, token), tx.itoa(1, lease), []byte("NOW"), tx.itoa(2, tx.now))
	}
	tx.changed(key, EventModule, "lock.renew")
	return true, nil
}

// ReleaseLock releases a lock and reports whether owner held it with this token. O(holders).
// Errors: ErrWrongType.
func (tx *Tx) ReleaseLock(key, owner []byte, token int64) (bool, error) {
	h, at, err := tx.lockOf(key, owner, token)
	if at < 0 {
		return false, err
	}
	tx.unlockedBy(&h, key, at)
	return true, nil
}

func (tx *Tx) unlockedBy(h *hit, key []byte, at int) {
	if tx.db.logging.Load() {
		b := h.holders()
		tx.emit("LOCK.RELEASE", key, b.Owner(at), tx.itoa(0, b.Token(at)))
	}
	tx.letGo(h, key, at, "lock.release")
}

// ReturnLock undoes a grant of AcquireLock whose reply did not reach its client, and reports
// whether it did. It returns false if the owner held the lock before, or has requested it again
// since.
func (tx *Tx) ReturnLock(key, owner []byte, g Lease) bool {
	h, at, _ := tx.lockOf(key, owner, g.Token)
	if at < 0 || g.taken == 0 || h.holders().Requests(at) != g.request {
		return false
	}
	tx.unlockedBy(&h, key, at)
	return true
}

// lockOf finds the holder of a lock with a token; at is -1 if there is none.
func (tx *Tx) lockOf(key, owner []byte, token int64) (h hit, at int, err error) {
	if h, err = tx.leased(key, Lock); err != nil {
		return h, -1, err
	}
	b := h.holders()
	if at = b.Find(owner); at >= 0 && b.Token(at) != token {
		at = -1
	}
	return h, at, nil
}
