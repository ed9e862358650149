package chunk

import "sync"

// Loan keeps account of the chunks that a live container and its frozen copy
// share. Freezing marks all chunks of the live one as lent; before its first
// write to such a chunk it makes a copy for itself, and the old one is left to
// the frozen copy, as is a lent chunk that the live one no longer needs.
//
//	live     [a'] [b ] [ c ]        wrote to a, let go of d
//	frozen   [a ] [b ] [ c ] [d]    left to it: a, d
//
// So neither of the two ever writes to memory that the other reads. The frozen
// copy is given back by Settle: from then on what is still lent is the live
// one's alone. It is safe for concurrent use, and locked only when a chunk is
// copied or let go. The zero Loan is ready.
type Loan struct {
	mu   sync.Mutex
	over bool
	left []lent // to the frozen copy
	sum  int    // bytes of what was ever left
}

type lent struct {
	ref  uint32
	size uint32
}

// Leave leaves a chunk to the frozen copy; false if there is no such copy any
// more, and then the chunk is the caller's. A ref of 0 is memory on the Go
// heap. O(1).
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

// Over reports whether the frozen copy has been given back.
func (l *Loan) Over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// open reports whether l is a loan that is not over.
func (l *Loan) open() bool { return l != nil && !l.Over() }

// Copied returns the bytes that were left to the frozen copy so far: what it
// costs beyond the live container.
func (l *Loan) Copied() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sum
}

// Settle ends the loan, gives back up to budget of the chunks that were left to
// the frozen copy, and returns how many; fewer than budget means that none is
// left. The caller must have ended all reads of the frozen copy. O(budget).
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

// Giver is the part of a Memory that takes chunks back.
type Giver interface{ FreeChunk(ref uint32, size int) }

// copyChunk returns memory for a lent chunk's copy. It always succeeds, so that
// no write fails, or half of one, because there is a frozen copy: when the
// Memory has no chunk left the copy lies on the Go heap, and ref is 0.
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

// giveBack returns what AllocChunk or copyChunk gave.
func giveBack(m Memory, ref uint32, size int) {
	if ref == 0 {
		m.Outside(-size)
		return
	}
	m.FreeChunk(ref, size)
}

// letGo gives back memory of a container: to the frozen copy, if it shares it.
func letGo(m Memory, l *Loan, isLent bool, ref uint32, size int) {
	if l == nil || !isLent || !l.Leave(ref, size) {
		giveBack(m, ref, size)
	} else if ref == 0 {
		m.Outside(-size)
	}
}
