package engine

import (
	"github.com/ebbdb/ebb/internal/holders"
	"github.com/ebbdb/ebb/internal/rdb"
)

// This file has the common code of locks and semaphores. internal/holders has their value.

const maxToken = holders.MaxToken

// maxAhead is the time, in us, by which a restored token may be ahead of engine time: 30 days, because no
// clock is further off. New tokens continue from the restored one, so after a greater token they could exceed
// 2^53.
const maxAhead = 30 * 24 * 3600 * 1e6

// holdersModule is the module that dumps and restores a lock or a semaphore. A restored value may
// have holders whose leases are over; the engine removes them at once.
func holdersModule(name string, k Kind) module {
	return module{
		name: name,
		dump: func(tx *Tx, _ *rdb.Encoder, h *hit) []byte { return tx.seenHolders(h) },
		restore: func(tx *Tx, data []byte) ([]byte, box, error) {
			last, ok := holders.List(data).Valid(k == Lock, MaxDeadline)
			if !ok || !tx.foreignToken(last) {
				return nil, nil, rdb.ErrFormat
			}
			tx.SawToken(last)
			return append([]byte(nil), data...), nil, nil
		},
	}
}

// holders returns the value of a lock or a semaphore.
func (h *hit) holders() holders.List {
	if h.r == nil {
		return nil
	}
	return holders.List(h.image())
}

// Holders returns the holders of a lock or a semaphore, selected by k; none if there is no such key. It
// counts as an access. Errors: ErrWrongType.
func (tx *Tx) Holders(key []byte, k Kind) (holders.List, error) {
	h, err := tx.open(key, k)
	if err != nil {
		return nil, err
	}
	return tx.seenHolders(&h), nil
}

// AcquireOptions are the options of a request for a lock or permits. Lease is required.
type AcquireOptions struct {
	Lease  int64 // ms, above 0; a lease ends at MaxDeadline at the latest
	Shared bool  // for a lock: other owners that set Shared may hold it too
	Behind bool  // other clients wait already, and the request must not overtake them
	Since  int64 // the start of the caller's wait, us since 1970; 0: it has not waited
	Waits  bool  // the caller waits if the request fails, so that this does not count as refused
	Token  int64 // in a replay, the token; 0: a new one
}

// Lease is a grant to an owner. If the client has disconnected, the caller returns it with
// ReturnLock or ReturnPermits.
type Lease struct {
	Token int64 // the fencing token
	// Held reports, after a refusal, that waiting cannot help: the owner itself holds the lock or the permits
	// that it requests.
	Held bool

	taken   int64  // permits that this grant added to the owner's
	request uint16 // the number of the holder's request that was granted
}

func (tx *Tx) newToken(o *AcquireOptions) int64 {
	if o.Token == 0 {
		return tx.NextToken()
	}
	tx.SawToken(o.Token)
	return o.Token
}

// hold adds a holder to a key, or creates the key. Errors: ErrFull.
func (tx *Tx) hold(h *hit, key []byte, k Kind, mode byte, who *holders.Holder) error {
	n := holders.SizeOf(who.Owner)
	if h.r == nil {
		tx.vbuf = holders.New(tx.vbuf, mode).Append(who)
		if err := tx.put(h, key, tx.vbuf, spec{flags: uint8(k) | flagItems}); err != nil {
			return err
		}
	} else {
		old := h.image()
		dst, err := tx.room(h, key, k, len(old)+n)
		if err != nil {
			return err
		}
		copy(dst, old)
		holders.List(dst[:len(old)]).Append(who)
	}
	tx.date(h)
	return nil
}

// letGo removes a holder, and the key with the last one.
func (tx *Tx) letGo(h *hit, key []byte, at int, event string) {
	b := h.holders()
	if b.Single(at) {
		tx.drop(h)
		tx.changed(key, EventModule, event)
		tx.gone(key)
		return
	}
	tx.shrunk(h, b.Remove(at))
	tx.date(h)
	tx.changed(key, EventModule, event)
}

// lapseHolders removes all holders whose lease is over; effect logs each.
func (tx *Tx) lapseHolders(h *hit, key []byte, event string, effect func(b holders.List, at int)) {
	b := h.holders()
	kept, n := b.First(), 0
	for at := b.First(); at < len(b); {
		next := b.Next(at)
		if lease := b.Lease(at); tx.ms > lease {
			tx.lapsed(h.sp.sh, LevelLease, key, b.Owner(at), nil, lease)
			effect(b, at)
			n++
		} else {
			kept += copy(b[kept:], b[at:next])
		}
		at = next
	}
	left := kept - holders.Head
	if n > 0 && left > 0 {
		b[:kept].Settle()
		tx.shrunk(h, b[:kept])
	}
	if !tx.hiding() {
		h.sp.sh.stats.LeasesExpired += int64(n)
	}
	tx.lapsedItems(h, key, n, left, EventModule, event)
}

// latestLease returns the end of the last lease of a lock or a semaphore, or the deadline of its key if that
// is earlier, in ms since 1970.
func (h *hit) latestLease() int64 {
	d := h.holders().Latest()
	if h.r.has(flagDeadline) {
		d = min(d, h.r.deadline())
	}
	return d
}

// NextToken returns a new fencing token, which is greater than all earlier ones in this engine and at least
// the transaction's instant in us. Tokens stay below 2^53 until the year 2255. O(1).
func (tx *Tx) NextToken() int64 {
	for {
		last := tx.db.fence.Load()
		next := max(last+1, tx.now)
		if tx.db.fence.CompareAndSwap(last, next) {
			return next
		}
	}
}

// SawToken records a token from a replay or a snapshot: later tokens are greater.
func (tx *Tx) SawToken(token int64) {
	for {
		last := tx.db.fence.Load()
		if token <= last || tx.db.fence.CompareAndSwap(last, token) {
			return
		}
	}
}
