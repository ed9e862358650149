package engine

import (
	"encoding/binary"
	"iter"
	"math"

	"github.com/ebbdb/ebb/internal/rdb"
)

// Holders is the value of a lock or a semaphore: its holders, in the order of their
// grants. It lies in the engine's memory and is valid until the next write.
//
//	version 1 │ mode 1 │ earliest lease 8 │ holder, holder, ...
//	holder:  token 8 │ lease 8 │ count 4 │ turn 2 │ length 4 │ owner
//
// Everything but the owner has a fixed size, so that RenewLock and RenewPermits write the
// lease in place. DUMP uses the same bytes. Invariants: there is at least one holder, no
// owner and no token occurs twice, the earliest lease is the least of all, and an
// exclusive lock has one holder.
type Holders []byte

const (
	holdersVersion = 1
	holdersHead    = 10
	holderHead     = 26
)

// modeShared is the mode of a lock that several owners hold as shared. The mode of a
// semaphore, and that of an exclusive lock, is 0.
const modeShared = 1

// Holder is a holder of a lock or a semaphore.
type Holder struct {
	Owner    []byte
	Token    int64 // the fencing token
	Deadline int64 // the lease lasts up to and including this ms since 1970
	Count    int64 // the number of permits of a semaphore; 1 for a lock
}

// Shared reports whether other owners may hold the lock too.
func (b Holders) Shared() bool { return len(b) > 0 && b[1] == modeShared }

// Len returns the number of holders. O(holders).
func (b Holders) Len() (n int) {
	for at := b.first(); at < len(b); at = b.next(at) {
		n++
	}
	return n
}

// Taken returns the number of permits in use. O(holders).
func (b Holders) Taken() (n int64) {
	for at := b.first(); at < len(b); at = b.next(at) {
		n += b.count(at)
	}
	return n
}

// All visits the holders in the order of their grants.
func (b Holders) All() iter.Seq[Holder] {
	return func(yield func(Holder) bool) {
		for at := b.first(); at < len(b); at = b.next(at) {
			if !yield(Holder{b.owner(at), b.token(at), b.lease(at), b.count(at)}) {
				return
			}
		}
	}
}

func (b Holders) first() int      { return min(holdersHead, len(b)) }
func (b Holders) size(at int) int { return holderHead + int(binary.LittleEndian.Uint32(b[at+22:])) }
func (b Holders) next(at int) int { return at + b.size(at) }

func (b Holders) token(at int) int64 { return int64(binary.LittleEndian.Uint64(b[at:])) }
func (b Holders) lease(at int) int64 { return int64(binary.LittleEndian.Uint64(b[at+8:])) }
func (b Holders) count(at int) int64 { return int64(binary.LittleEndian.Uint32(b[at+16:])) }

// turn counts the requests of the holder: it distinguishes a grant whose reply was lost
// from one that the owner has requested again.
func (b Holders) turn(at int) uint16   { return binary.LittleEndian.Uint16(b[at+20:]) }
func (b Holders) owner(at int) []byte  { return b[at+holderHead : at+b.size(at)] }
func (b Holders) earliest() int64      { return int64(binary.LittleEndian.Uint64(b[2:])) }
func (b Holders) setEarliest(ms int64) { binary.LittleEndian.PutUint64(b[2:], uint64(ms)) }

func (b Holders) setToken(at int, t int64) { binary.LittleEndian.PutUint64(b[at:], uint64(t)) }
func (b Holders) setCount(at int, n int64) { binary.LittleEndian.PutUint32(b[at+16:], uint32(n)) }

// took counts another request of the holder.
func (b Holders) took(at int) uint16 {
	n := b.turn(at) + 1
	binary.LittleEndian.PutUint16(b[at+20:], n)
	return n
}

// find returns the position of the holder with this owner, or -1 if there is none. O(holders).
func (b Holders) find(owner []byte) int {
	for at := b.first(); at < len(b); at = b.next(at) {
		if string(b.owner(at)) == string(owner) {
			return at
		}
	}
	return -1
}

// latest returns the last of the leases. O(holders).
func (b Holders) latest() (ms int64) {
	for at := b.first(); at < len(b); at = b.next(at) {
		ms = max(ms, b.lease(at))
	}
	return ms
}

// settle recomputes the earliest lease. O(holders).
func (b Holders) settle() {
	first := int64(math.MaxInt64)
	for at := b.first(); at < len(b); at = b.next(at) {
		first = min(first, b.lease(at))
	}
	b.setEarliest(first)
}

// renew sets the lease of a holder.
func (b Holders) renew(at int, deadline int64) {
	old := b.lease(at)
	binary.LittleEndian.PutUint64(b[at+8:], uint64(deadline))
	switch first := b.earliest(); {
	case deadline <= first:
		b.setEarliest(deadline)
	case old == first:
		b.settle()
	}
}

// append adds a holder at the end: in b's array if it has room, else b grows.
func (b Holders) append(h *Holder) Holders {
	at := len(b)
	b = append(b, make([]byte, holderHead)...)
	b.setToken(at, h.Token)
	binary.LittleEndian.PutUint64(b[at+8:], uint64(h.Deadline))
	b.setCount(at, h.Count)
	binary.LittleEndian.PutUint32(b[at+22:], uint32(len(h.Owner)))
	b.setEarliest(min(b.earliest(), h.Deadline))
	return append(b, h.Owner...)
}

// remove removes a holder, in place, and returns the rest.
func (b Holders) remove(at int) Holders {
	n := copy(b[at:], b[b.next(at):])
	b = b[:at+n]
	b.settle()
	return b
}

// newHolders returns a value without holders, in the memory of dst.
func newHolders(dst []byte, mode byte) Holders {
	b := Holders(append(dst[:0], holdersVersion, mode, 0, 0, 0, 0, 0, 0, 0, 0))
	b.setEarliest(math.MaxInt64)
	return b
}

// maxToken bounds the tokens in restored bytes. Engine time reaches it in 2255.
const maxToken = 1<<53 - 1

// maxAhead is how far, in us, a restored token may be ahead of engine time: 30 days. No clock is
// that wrong. New tokens continue from the restored one, so after a greater token they could exceed
// 2^53.
const maxAhead = 30 * 24 * 3600 * 1e6

// holdersModule is the module that dumps and restores a lock or a semaphore. A restored value may
// have holders whose leases are over; the engine removes them at once.
func holdersModule(name string, k Kind) module {
	return module{
		name: name,
		dump: func(tx *Tx, _ *rdb.Encoder, h *hit) []byte { return tx.seenHolders(h) },
		restore: func(tx *Tx, data []byte) ([]byte, box, error) {
			last, ok := Holders(data).valid(k)
			if !ok || !tx.foreignToken(last) {
				return nil, nil, rdb.ErrFormat
			}
			tx.SawToken(last)
			return append([]byte(nil), data...), nil, nil
		},
	}
}

// valid verifies the invariants of bytes that the engine does not trust, and returns the greatest
// token.
func (b Holders) valid(k Kind) (last int64, ok bool) {
	if len(b) <= holdersHead || b[0] != holdersVersion || b[1] > modeShared || k == Semaphore && b[1] != 0 {
		return 0, false
	}
	owners, tokens := map[string]bool{}, map[int64]bool{}
	first := int64(math.MaxInt64)
	for at := holdersHead; at < len(b); at = b.next(at) {
		if len(b)-at < holderHead || b.size(at) > len(b)-at {
			return 0, false
		}
		owner, token, lease, n := b.owner(at), b.token(at), b.lease(at), b.count(at)
		switch {
		case owners[string(owner)] || tokens[token],
			token < 1 || token > maxToken,
			lease < 1 || lease > MaxDeadline,
			n < 1 || n > MaxPermits || k == Lock && n != 1:
			return 0, false
		}
		owners[string(owner)], tokens[token] = true, true
		last, first = max(last, token), min(first, lease)
	}
	return last, b.earliest() == first && (k == Semaphore || b[1] == modeShared || len(owners) == 1)
}

// holders returns the value of a lock or a semaphore.
func (h *hit) holders() Holders {
	if h.r == nil {
		return nil
	}
	return Holders(h.image())
}

// Holders returns the holders of a lock or a semaphore, as k selects; none if there is no such key.
// It counts as an access. Errors: ErrWrongType.
func (tx *Tx) Holders(key []byte, k Kind) (Holders, error) {
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
	// Held reports, after a refusal, that waiting does not help: the owner itself holds
	// what it requests.
	Held bool

	taken int64  // permits that this grant added to the owner's
	turn  uint16 // the holder's turn at the grant
}

// leaseEnd returns the deadline of a lease of the given length in ms that is granted now.
func (tx *Tx) leaseEnd(lease int64) int64 { return min(tx.ms+min(lease, MaxDeadline), MaxDeadline) }

func (tx *Tx) newToken(o *AcquireOptions) int64 {
	if o.Token == 0 {
		return tx.NextToken()
	}
	tx.SawToken(o.Token)
	return o.Token
}

// hold adds a holder to a key, or creates the key. Errors: ErrFull.
func (tx *Tx) hold(h *hit, key []byte, k Kind, mode byte, who *Holder) error {
	n := holderHead + len(who.Owner)
	if h.r == nil {
		tx.vbuf = newHolders(tx.vbuf, mode).append(who)
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
		Holders(dst[:len(old)]).append(who)
	}
	tx.date(h)
	return nil
}

// letGo removes a holder, and the key with the last one.
func (tx *Tx) letGo(h *hit, key []byte, at int, event string) {
	b := h.holders()
	if b.size(at) == len(b)-holdersHead {
		tx.drop(h)
		tx.changed(key, EventModule, event)
		tx.gone(key)
		return
	}
	tx.shrunk(h, b.remove(at))
	tx.date(h)
	tx.changed(key, EventModule, event)
}

// lapseHolders removes all holders whose lease is over; effect logs each.
func (tx *Tx) lapseHolders(h *hit, key []byte, event string, effect func(b Holders, at int)) {
	b := h.holders()
	kept, n := b.first(), 0
	for at := b.first(); at < len(b); {
		next := b.next(at)
		if lease := b.lease(at); tx.ms > lease {
			tx.lapsed(h.sp.sh, LevelLease, key, b.owner(at), nil, lease)
			effect(b, at)
			n++
		} else {
			kept += copy(b[kept:], b[at:next])
		}
		at = next
	}
	left := kept - holdersHead
	if n > 0 && left > 0 {
		b[:kept].settle()
		tx.shrunk(h, b[:kept])
	}
	if !tx.hiding() {
		h.sp.sh.stats.LeasesExpired += int64(n)
	}
	tx.lapsedItems(h, key, n, left, EventModule, event)
}

// latestLease returns when the last lease of a lock or a semaphore ends, or the deadline of its
// key, if that is earlier. It is in ms since 1970.
func (h *hit) latestLease() int64 {
	d := h.holders().latest()
	if h.r.has(flagDeadline) {
		d = min(d, h.r.deadline())
	}
	return d
}

// NextToken returns a new fencing token: greater than all before it in this engine, and
// at least the transaction's instant in us. Tokens stay below 2^53 until the year 2255.
// O(1).
func (tx *Tx) NextToken() int64 {
	for {
		last := tx.db.fence.Load()
		next := max(last+1, tx.now)
		if tx.db.fence.CompareAndSwap(last, next) {
			return next
		}
	}
}

// SawToken notes a token of a replay, or of a snapshot: later ones are greater.
func (tx *Tx) SawToken(token int64) {
	for {
		last := tx.db.fence.Load()
		if token <= last || tx.db.fence.CompareAndSwap(last, token) {
			return
		}
	}
}
