package engine

import (
	"strconv"

	"github.com/ebbdb/ebb/internal/holders"
)

// A semaphore has a number of permits. Each owner holds some of them, with one lease and one
// fencing token. Each request names the limit of all permits, and the engine compares it with the
// permits in use. It stores only the permits in use.

// MaxPermits is the greatest number of permits that an owner may hold.
const MaxPermits = holders.MaxCount

func semaphoreModule() module { return holdersModule("ebb-semph", Semaphore) }

// nextPermit returns the end of the lease that ends next. O(1).
func (tx *Tx) nextPermit(h *hit) int64 { return h.holders().Earliest() }

// lapseSemaphore removes all holders whose lease is over.
func (tx *Tx) lapseSemaphore(h *hit, key []byte) {
	tx.lapseHolders(h, key, "sem.expired", func(b holders.List, at int) {
		tx.emit("SEM.RELEASE", key, b.Owner(at), []byte("COUNT"), tx.itoa(0, b.Count(at)))
	})
}

// AcquirePermits requests n permits of a semaphore with limit permits for an owner; n is from 1 to
// MaxPermits. ok reports whether the owner holds n permits now.
//
// An owner that holds n permits or more keeps them and its token, and gets a new lease, even while
// other clients wait. An owner that holds fewer gets the difference if that is free, with the same
// token. O(holders); allocates nothing. Errors: ErrWrongType, ErrFull.
func (tx *Tx) AcquirePermits(key, owner []byte, n, limit int64, o AcquireOptions) (g Lease, ok bool, err error) {
	h, err := tx.leased(key, Semaphore)
	if err != nil {
		return g, false, err
	}
	b := h.holders()
	at, more := b.Find(owner), n
	if at >= 0 {
		more = max(0, n-b.Count(at))
	}
	switch {
	case more > 0 && (o.Behind || b.Taken() > limit-more):
	case at >= 0:
		g, ok = tx.takeMore(&h, key, at, more, &o), true
	default:
		who := holders.Holder{Owner: owner, Token: tx.newToken(&o), Deadline: tx.DeadlineAfter(o.Lease), Count: n}
		if err = tx.hold(&h, key, Semaphore, 0, &who); err == nil {
			g, ok = Lease{Token: who.Token, taken: n}, true
		}
	}
	if s := &h.sh.stats; ok {
		s.PermitsGranted++
		s.waited(tx.now, o.Since)
		tx.permitsGranted(key, owner, n, limit, g.Token, &o)
	} else if err == nil && !o.Waits {
		s.PermitsRefused++
	}
	return g, ok, err
}

// takeMore gives a holder more permits, which may be 0, and a new lease.
func (tx *Tx) takeMore(h *hit, key []byte, at int, more int64, o *AcquireOptions) Lease {
	b := h.holders()
	b.SetCount(at, b.Count(at)+more)
	g := Lease{Token: b.Token(at), taken: more, request: b.Requested(at)}
	b.Renew(at, tx.DeadlineAfter(o.Lease))
	tx.stamp(h.r)
	tx.date(h)
	return g
}

// permitsGranted logs the grant of permits and notifies the key's watchers.
func (tx *Tx) permitsGranted(key, owner []byte, n, limit, token int64, o *AcquireOptions) {
	if tx.db.logging.Load() {
		var now [24]byte
		tx.emit("SEM.ACQUIRE", key, owner, tx.itoa(0, limit), tx.itoa(1, o.Lease), []byte("COUNT"), tx.itoa(2, n),
			[]byte("TOKEN"), tx.itoa(3, token), []byte("NOW"), strconv.AppendInt(now[:0], tx.now, 10))
	}
	tx.changed(key, EventModule, "sem.acquire")
}

// RenewPermits sets the lease of a holder, in ms from now, and reports whether owner holds permits.
// O(holders). Errors: ErrWrongType.
func (tx *Tx) RenewPermits(key, owner []byte, lease int64) (bool, error) {
	h, err := tx.leased(key, Semaphore)
	if err != nil {
		return false, err
	}
	b := h.holders()
	at := b.Find(owner)
	if at < 0 {
		return false, nil
	}
	b.Requested(at)
	b.Renew(at, tx.DeadlineAfter(lease))
	tx.stamp(h.r)
	tx.date(&h)
	if tx.db.logging.Load() {
		tx.emit("SEM.RENEW", key, owner, tx.itoa(0, lease), []byte("NOW"), tx.itoa(1, tx.now))
	}
	tx.changed(key, EventModule, "sem.renew")
	return true, nil
}

// ReleasePermits releases up to n permits of an owner and reports whether it held any. O(holders).
// Errors: ErrWrongType.
func (tx *Tx) ReleasePermits(key, owner []byte, n int64) (bool, error) {
	h, err := tx.leased(key, Semaphore)
	if err != nil {
		return false, err
	}
	at := h.holders().Find(owner)
	if at < 0 {
		return false, nil
	}
	tx.giveBack(&h, key, owner, at, n)
	return true, nil
}

func (tx *Tx) giveBack(h *hit, key, owner []byte, at int, n int64) {
	b := h.holders()
	have := b.Count(at)
	n = min(n, have)
	tx.emit("SEM.RELEASE", key, owner, []byte("COUNT"), tx.itoa(0, n))
	if n == have {
		tx.letGo(h, key, at, "sem.release")
		return
	}
	b.SetCount(at, have-n)
	b.Requested(at)
	tx.stamp(h.r)
	tx.changed(key, EventModule, "sem.release")
}

// ReturnPermits undoes a grant of AcquirePermits whose reply did not reach its client, and reports
// whether it did. It returns false if the grant took nothing, or the owner has requested permits
// again since.
func (tx *Tx) ReturnPermits(key, owner []byte, g Lease) bool {
	h, err := tx.leased(key, Semaphore)
	if err != nil {
		return false
	}
	b := h.holders()
	at := b.Find(owner)
	if at < 0 || g.taken == 0 || b.Token(at) != g.Token || b.Requests(at) != g.request {
		return false
	}
	tx.giveBack(&h, key, owner, at, g.taken)
	return true
}
