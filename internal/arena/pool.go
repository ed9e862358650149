package arena

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// hunkSlabs is the number of slabs that the pool maps at once: 4 MiB, two huge pages.
const hunkSlabs = 64

// keepIdle is the number of bytes of idle slabs that keep their physical pages, in addition to an
// eighth of the bytes in use. So a store whose size goes up and down does not fault its pages in
// again each time.
const keepIdle = 16 << 20

// Pool maps memory and hands it out in slabs of SlabSize bytes. It is safe for concurrent use.
// NewPool returns one. The caller closes it after all arenas and tables that use it are released.
type Pool struct {
	mu    sync.Mutex
	warm  []unsafe.Pointer // idle slabs that keep their physical pages
	cold  []unsafe.Pointer // idle slabs whose physical pages were returned to the system
	hunks [][]byte
	used  int // slabs in use

	collapsing sync.WaitGroup // the goroutine of collapse
	closed     atomic.Bool
}

// NewPool returns an empty pool.
func NewPool() *Pool { return &Pool{} }

// Get returns a slab. Its contents are undefined.
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
		size := len(p.hunks) * hunkSlabs * SlabSize
		if size == hugeFrom && size > 0 {
			p.collapse(slices.Clone(p.hunks))
		}
		hunk := mapHunk(hunkSlabs*SlabSize, size >= hugeFrom)
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

// collapse makes huge pages of hunks. All of their slabs are in use, so that this touches little memory. The system copies 4 MB in 1.5
// ms, and may take 50 ms when other programs run: too long for Get, whose caller holds a shard, and for a loop of the reclaimer.
func (p *Pool) collapse(hunks [][]byte) {
	p.collapsing.Go(func() {
		for _, h := range hunks {
			if p.closed.Load() {
				return
			}
			collapseHuge(h)
		}
	})
}

// Put returns a slab to the pool.
func (p *Pool) Put(b unsafe.Pointer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used--
	p.warm = append(p.warm, b)
}

// Used returns the bytes of the slabs in use.
func (p *Pool) Used() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used * SlabSize
}

// Idle returns the bytes of idle slabs that keep their physical pages.
func (p *Pool) Idle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.warm) * SlabSize
}

// Trim returns the physical pages of at most n idle slabs to the system and reports whether there
// are more to return. It costs one system call of some 20 us per slab, made without the pool's
// lock.
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

// surplus reports whether more idle slabs than necessary keep their physical pages.
func (p *Pool) surplus() bool {
	return len(p.warm)*SlabSize > keepIdle+p.used*SlabSize/8
}

// Close unmaps all memory. No slab may be used afterwards.
func (p *Pool) Close() {
	p.closed.Store(true)
	p.collapsing.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.hunks {
		unmapHunk(h)
	}
	p.warm, p.cold, p.hunks, p.used = nil, nil, nil, 0
}
