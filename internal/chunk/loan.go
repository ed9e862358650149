package chunk

import "sync"

// Loan keeps account of the chunks that a live container and its frozen copy share. Freezing marks
// all chunks of the live container as lent. Before its first write to a lent chunk, the live
// container makes a copy for itself and leaves the old chunk to the frozen copy. It also leaves a
// lent chunk that it no longer needs.
//
//	live     [a'] [b ] [ c ]        wrote to a, freed d
//	frozen   [a ] [b ] [ c ] [d]    left to it: a, d
//
// So neither of the two ever writes to memory that the other reads. Settle ends the loan: from then
// on the chunks that are still lent belong to the live container alone. A Loan is safe for
// concurrent use, and takes its lock only when a chunk is copied or left. The zero Loan is ready
// for use.
type Loan struct {
	mu   sync.Mutex
	over bool
	left []lent // the chunks left to the frozen copy
	sum  int    // the sum of the bytes that were ever left
}

type lent struct {
	ref  uint32
	size uint32
}

// Leave leaves a chunk to the frozen copy. It returns false if the loan is over; then the chunk
// belongs to the caller. A ref of 0 is memory on the Go heap. O(1).
func (l *Loan) Leave(ref uint32, size int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	l.left = append(l.left, lent{ref, uint32(size)})
	l.sum += size
	return true
}

// Over reports whether Settle has ended the loan.
func (l *Loan) Over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// open reports whether l is a loan that is not over.
func (l *Loan) open() bool { return l != nil && !l.Over() }

// Settle ends the loan, frees up to budget of the chunks that were left to the frozen copy, and
// returns their number. A result below budget means that none is left. The caller must have ended
// all reads of the frozen copy. O(budget).
func (l *Loan) Settle(m Giver, budget int) (freed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for len(l.left) > 0 && freed < budget {
		k := len(l.left) - 1
		if l.left[k].ref != 0 {
			m.FreeChunk(l.left[k].ref, int(l.left[k].size))
		}
		l.left = l.left[:k]
		freed++
	}
	return freed
}

// Giver is the part of a Memory that frees chunks.
type Giver interface{ FreeChunk(ref uint32, size int) }

// copyChunk returns memory for a lent chunk's copy. It always succeeds, so that a frozen copy never
// makes a write fail. If the Memory has no chunk left, the copy lies on the Go heap, and ref is 0.
func copyChunk(m Memory, from []byte) (to []byte, ref uint32) {
	if ref = m.AllocChunk(len(from)); ref != 0 {
		to = m.Bytes(ref, len(from))
	} else {
		m.Outside(len(from))
		to = make([]byte, len(from))
	}
	copy(to, from)
	return to, ref
}

// giveBack frees memory of AllocChunk or copyChunk.
func giveBack(m Memory, ref uint32, size int) {
	if ref == 0 {
		m.Outside(-size)
		return
	}
	m.FreeChunk(ref, size)
}

// letGo frees memory of a container, or leaves it to the frozen copy that shares it.
func letGo(m Memory, l *Loan, isLent bool, ref uint32, size int) {
	if l == nil || !isLent || !l.Leave(ref, size) {
		giveBack(m, ref, size)
	} else if ref == 0 {
		m.Outside(-size)
	}
}
