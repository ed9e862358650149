package arena

import (
	"sync"
	"unsafe"
)

// hunkSlabs is how many slabs the pool maps at once: 4 MiB, two huge pages.
const hunkSlabs = 64

// keepIdle is how many bytes of idle slabs keep their physical pages, beside
// an eighth of what is in use: a store that breathes does not fault its pages
// in again with every breath.
const keepIdle = 16 << 20

// Pool maps memory and lends it in slabs of SlabSize bytes. It is safe for
// concurrent use. Make one with NewPool, Close it when all arenas and tables
// that use it are gone.
type Pool struct {
	mu    sync.Mutex
	warm  []unsafe.Pointer // idle, physical pages still there
	cold  []unsafe.Pointer // idle, physical pages given back
	hunks [][]byte
	used  int // slabs lent
}

// NewPool returns an empty pool.
func NewPool() *Pool { return &Pool{} }

// Get lends a slab. Its contents are undefined.
func (p *Pool) Get() unsafe.Pointer {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used++
	if n := len(p.warm); n > 0 {
		b := p.warm[n-1]
		p.warm = p.warm[:n-1]
		return b
	}
	if len(p.cold) == 0 {
		hunk := mapHunk(hunkSlabs*SlabSize, len(p.hunks)*hunkSlabs*SlabSize >= hugeFrom)
		p.hunks = append(p.hunks, hunk)
		for i := hunkSlabs - 1; i >= 0; i-- {
			p.cold = append(p.cold, unsafe.Pointer(&hunk[i*SlabSize]))
		}
	}
	n := len(p.cold)
	b := p.cold[n-1]
	p.cold = p.cold[:n-1]
	return b
}

// Put takes a slab back.
func (p *Pool) Put(b unsafe.Pointer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used--
	p.warm = append(p.warm, b)
}

// Used returns the bytes that are lent.
func (p *Pool) Used() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used * SlabSize
}

// Idle returns the bytes of idle slabs whose physical pages are still there.
func (p *Pool) Idle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.warm) * SlabSize
}

// Trim gives the physical pages of at most n idle slabs back to the system and
// reports whether more could be given back. It costs one system call of some
// 20 us per slab, made without the pool's lock.
func (p *Pool) Trim(n int) (more bool) {
	for ; n > 0; n-- {
		p.mu.Lock()
		if !p.surplus() {
			p.mu.Unlock()
			return false
		}
		b := p.warm[0]
		p.warm = p.warm[1:]
		p.mu.Unlock()

		unmapPages(unsafe.Slice((*byte)(b), SlabSize))

		p.mu.Lock()
		p.cold = append(p.cold, b)
		p.mu.Unlock()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.surplus()
}

// surplus reports whether more idle slabs are warm than should be kept.
func (p *Pool) surplus() bool {
	return len(p.warm)*SlabSize > keepIdle+p.used*SlabSize/8
}

// Close unmaps everything. No slab may be used afterwards.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.hunks {
		unmapHunk(h)
	}
	p.warm, p.cold, p.hunks, p.used = nil, nil, nil, 0
}
