// Package holders is the value of a lock or a semaphore: its holders, each with a token and a lease.
//
//	version 1 │ mode 1 │ earliest lease 8 │ holder, holder, ...
//	holder:  token 8 │ lease 8 │ count 4 │ requests 2 │ length 4 │ owner
//
// Everything but the owner has a fixed size, so that a renewal writes the lease in place. DUMP uses the same bytes. Start reading at
// List.
package holders

import (
	"encoding/binary"
	"iter"
	"math"
)

// List is the holders, in the order of their grants. It may lie in the engine's memory, and is then valid until the next write.
// Invariants: no owner and no token occurs twice, the earliest lease is the least of all, and an exclusive lock has one holder. A
// position is the index of a holder's first byte.
type List []byte

const (
	version = 1
	// Head is the length of a List without holders.
	Head   = 10
	holder = 26 // bytes of a holder without its owner
)

// Shared is the mode of a lock that several owners hold as shared. The mode of a
// semaphore, and that of an exclusive lock, is 0.
const Shared = 1

// MaxCount is the greatest number of permits of a holder.
const MaxCount = 1<<31 - 1

// Holder is a holder of a lock or a semaphore.
type Holder struct {
	Owner    []byte
	Token    int64 // the fencing token
	Deadline int64 // the lease lasts up to and including this ms since 1970
	Count    int64 // the number of permits of a semaphore; 1 for a lock
}

// New returns a List without holders, in the memory of dst.
func New(dst []byte, mode byte) List {
	b := List(append(dst[:0], version, mode, 0, 0, 0, 0, 0, 0, 0, 0))
	b.setEarliest(math.MaxInt64)
	return b
}

// SizeOf returns the number of bytes that a holder adds to a List.
func SizeOf(owner []byte) int { return holder + len(owner) }

// IsShared reports whether other owners may hold the lock too.
func (b List) IsShared() bool { return len(b) > 0 && b[1] == Shared }

// Share makes an exclusive lock a shared one.
func (b List) Share() { b[1] = Shared }

// Single reports whether the holder at a position is the only one.
func (b List) Single(at int) bool { return b.Size(at) == len(b)-Head }

// Len returns the number of holders. O(holders).
func (b List) Len() (n int) {
	for at := b.First(); at < len(b); at = b.Next(at) {
		n++
	}
	return n
}

// Taken returns the number of permits in use. O(holders).
func (b List) Taken() (n int64) {
	for at := b.First(); at < len(b); at = b.Next(at) {
		n += b.Count(at)
	}
	return n
}

// All visits the holders in the order of their grants.
func (b List) All() iter.Seq[Holder] {
	return func(yield func(Holder) bool) {
		for at := b.First(); at < len(b); at = b.Next(at) {
			if !yield(Holder{b.Owner(at), b.Token(at), b.Lease(at), b.Count(at)}) {
				return
			}
		}
	}
}

// First returns the position of the first holder, Next that of the one after another; the length of b if there is none. Size returns
// the bytes of a holder.
func (b List) First() int      { return min(Head, len(b)) }
func (b List) Size(at int) int { return holder + int(binary.LittleEndian.Uint32(b[at+22:])) }
func (b List) Next(at int) int { return at + b.Size(at) }

// Token, Lease and Count return what the holder at a position has: see Holder.
func (b List) Token(at int) int64 { return int64(binary.LittleEndian.Uint64(b[at:])) }
func (b List) Lease(at int) int64 { return int64(binary.LittleEndian.Uint64(b[at+8:])) }
func (b List) Count(at int) int64 { return int64(binary.LittleEndian.Uint32(b[at+16:])) }

// Requests returns the number of requests of the holder: it distinguishes a grant whose reply was lost
// from one that the owner has requested again.
func (b List) Requests(at int) uint16 { return binary.LittleEndian.Uint16(b[at+20:]) }

// Owner returns the owner's name, in b's memory.
func (b List) Owner(at int) []byte { return b[at+holder : at+b.Size(at)] }

// Earliest returns the first instant at which a lease ends.
func (b List) Earliest() int64      { return int64(binary.LittleEndian.Uint64(b[2:])) }
func (b List) setEarliest(ms int64) { binary.LittleEndian.PutUint64(b[2:], uint64(ms)) }

// SetToken and SetCount change a holder.
func (b List) SetToken(at int, t int64) { binary.LittleEndian.PutUint64(b[at:], uint64(t)) }
func (b List) SetCount(at int, n int64) { binary.LittleEndian.PutUint32(b[at+16:], uint32(n)) }

// Requested counts another request of the holder.
func (b List) Requested(at int) uint16 {
	n := b.Requests(at) + 1
	binary.LittleEndian.PutUint16(b[at+20:], n)
	return n
}

// Find returns the position of the holder with this owner, or -1 if there is none. O(holders).
func (b List) Find(owner []byte) int {
	for at := b.First(); at < len(b); at = b.Next(at) {
		if string(b.Owner(at)) == string(owner) {
			return at
		}
	}
	return -1
}

// Latest returns the last of the leases. O(holders).
func (b List) Latest() (ms int64) {
	for at := b.First(); at < len(b); at = b.Next(at) {
		ms = max(ms, b.Lease(at))
	}
	return ms
}

// Settle recomputes the earliest lease. O(holders).
func (b List) Settle() {
	first := int64(math.MaxInt64)
	for at := b.First(); at < len(b); at = b.Next(at) {
		first = min(first, b.Lease(at))
	}
	b.setEarliest(first)
}

// Renew sets the lease of a holder.
func (b List) Renew(at int, deadline int64) {
	old := b.Lease(at)
	binary.LittleEndian.PutUint64(b[at+8:], uint64(deadline))
	switch first := b.Earliest(); {
	case deadline <= first:
		b.setEarliest(deadline)
	case old == first:
		b.Settle()
	}
}

// Append adds a holder at the end: in b's array if it has room, else b grows.
func (b List) Append(h *Holder) List {
	at := len(b)
	b = append(b, make([]byte, holder)...)
	b.SetToken(at, h.Token)
	binary.LittleEndian.PutUint64(b[at+8:], uint64(h.Deadline))
	b.SetCount(at, h.Count)
	binary.LittleEndian.PutUint32(b[at+22:], uint32(len(h.Owner)))
	b.setEarliest(min(b.Earliest(), h.Deadline))
	return append(b, h.Owner...)
}

// Remove removes a holder, in place, and returns the rest.
func (b List) Remove(at int) List {
	n := copy(b[at:], b[b.Next(at):])
	b = b[:at+n]
	b.Settle()
	return b
}

// Living returns the holders whose leases are not over at now: b, or memory of its own. O(holders).
func (b List) Living(now int64) List {
	if len(b) == 0 || b.Earliest() >= now {
		return b
	}
	left := append(List(nil), b[:Head]...)
	for at := b.First(); at < len(b); at = b.Next(at) {
		if b.Lease(at) >= now {
			left = append(left, b[at:b.Next(at)]...)
		}
	}
	if len(left) == Head {
		return nil
	}
	left.Settle()
	return left
}

// MaxToken bounds tokens. Engine time reaches it in 2255.
const MaxToken = 1<<53 - 1

// Valid verifies the invariants of bytes that the engine does not trust, as those of a lock or of a semaphore, and returns the greatest
// token.
func (b List) Valid(lock bool, maxDeadline int64) (last int64, ok bool) {
	if len(b) <= Head || b[0] != version || b[1] > Shared || !lock && b[1] != 0 {
		return 0, false
	}
	owners, tokens := map[string]bool{}, map[int64]bool{}
	first := int64(math.MaxInt64)
	for at := Head; at < len(b); at = b.Next(at) {
		if len(b)-at < holder || b.Size(at) > len(b)-at {
			return 0, false
		}
		owner, token, lease, n := b.Owner(at), b.Token(at), b.Lease(at), b.Count(at)
		switch {
		case owners[string(owner)] || tokens[token],
			token < 1 || token > MaxToken,
			lease < 1 || lease > maxDeadline,
			n < 1 || n > MaxCount || lock && n != 1:
			return 0, false
		}
		owners[string(owner)], tokens[token] = true, true
		last, first = max(last, token), min(first, lease)
	}
	return last, b.Earliest() == first && (!lock || b[1] == Shared || len(owners) == 1)
}
