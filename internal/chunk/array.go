package chunk

import (
	"math/bits"
	"unsafe"
)

// Array is a dense array of equal cells on chunks. It grows and shrinks at its
// end, one cell at a time; cells never move. The octave from 4·2^e to 8·2^e
// KiB consists of four chunks of 2^e KiB, so at most a fifth of the array is
// slack, and the chunk of a cell follows from its number.
type Array struct {
	mem    Memory
	shift  uint8 // a cell has 1<<shift bytes
	maxExp uint8 // the largest chunk has 1024<<maxExp bytes
	n      uint32
	pages  []page
	loan   *Loan // nil: no page is lent
	lent   int   // the number of lent pages
}

type page struct {
	base unsafe.Pointer
	mem  uint32 // 0: on the Go heap
	exp  uint8  // log2 of the bytes
	lent bool   // a frozen copy shares the page, if the array has a loan
}

func (p *page) bytes() int { return 1 << p.exp }

// Init makes a an empty array of cells of 1<<shift bytes, 8 to 1,024, on m. It
// allocates no chunk.
func (a *Array) Init(m Memory, shift uint8) {
	*a = Array{mem: m, shift: shift, maxExp: uint8(bits.Len(uint(largest(m)/MinSize)) - 1)}
}

// Len returns the number of cells.
func (a *Array) Len() int { return int(a.n) }

// At returns the address of cell i, which must be below Len, to read: the
// memory itself, valid until the cell is popped or a cell is edited. O(1).
func (a *Array) At(i uint32) unsafe.Pointer {
	if i >= a.n {
		panic("chunk: cell beyond the end of its array")
	}
	p, off := a.locate(i)
	return unsafe.Add(a.pages[p].base, off)
}

// Push adds a zeroed cell at the end and returns its number; false when the
// Memory has no chunk left, which cannot happen after Reserve.
func (a *Array) Push() (i uint32, ok bool) {
	if !a.Reserve(1) {
		return 0, false
	}
	i = a.n
	a.n++
	clear(unsafe.Slice((*byte)(a.Edit(i)), 1<<a.shift))
	return i, true
}

// Pop removes the last cell. It frees no memory; Trim does.
func (a *Array) Pop() { a.n-- }

// Reserve allocates the pages for k more cells, so that the next k Pushes succeed. It reports false if there is no memory for them.
// O(pages that it adds).
func (a *Array) Reserve(k int) bool {
	if k == 0 {
		return true
	}
	last, _ := a.locate(a.n + uint32(k) - 1)
	for last >= len(a.pages) {
		size := a.pageSize(len(a.pages))
		mem := a.mem.AllocChunk(size)
		if mem == 0 {
			return false
		}
		base := unsafe.Pointer(unsafe.SliceData(a.mem.Bytes(mem, size)))
		a.pages = append(a.pages, page{base: base, mem: mem, exp: uint8(bits.TrailingZeros(uint(size)))})
	}
	return true
}

// Trim frees the chunks that the array would not need with keep more cells. Unless the array is
// empty, it keeps one of them, so that an array that grows and shrinks around a chunk's edge does
// not allocate.
func (a *Array) Trim(keep int) {
	need := 0
	if reach := a.n + uint32(keep); reach > 0 {
		last, _ := a.locate(reach - 1)
		need = last + 1
	}
	if a.n > 0 {
		need++
	}
	for len(a.pages) > need {
		a.dropPage()
	}
}

// Size returns the bytes that the array holds: chunks and bookkeeping.
func (a *Array) Size() int {
	n := cap(a.pages) * 16
	if k := len(a.pages); k > 0 {
		n += a.bytesBefore(k)
	}
	return n
}

// Used returns the bytes of the cells.
func (a *Array) Used() int { return int(a.n) << a.shift }

// FreeAll frees up to budget chunks and returns their number. A result below budget means that none
// is left, and that the array is empty and usable again. All cells are invalid after the first
// call. O(budget).
func (a *Array) FreeAll(budget int) (freed int) {
	a.n = 0
	for len(a.pages) > 0 && freed < budget {
		a.dropPage()
		freed++
	}
	if freed < budget {
		a.pages = nil
	}
	return freed
}

func (a *Array) dropPage() {
	k := len(a.pages) - 1
	p := &a.pages[k]
	letGo(a.mem, a.loan, p.lent, p.mem, p.bytes())
	if a.loan != nil && p.lent {
		a.returned(p)
	}
	*p = page{}
	a.pages = a.pages[:k]
}

// locate returns the page of cell i and the cell's offset in it.
func (a *Array) locate(i uint32) (pageNo, off int) {
	at := uint64(i) << a.shift
	kib := at >> 10
	e := min(uint(max(bits.Len64(kib)-3, 0)), uint(a.maxExp)) & 63
	return int(4*e) + int(kib>>e), int(at & (1<<(10+e) - 1))
}

// pageSize returns the bytes of page p.
func (a *Array) pageSize(p int) int {
	return MinSize << min(max(p/4-1, 0), int(a.maxExp))
}

// bytesBefore returns the bytes of the first p pages.
func (a *Array) bytesBefore(p int) int {
	full := min(p, 4*int(a.maxExp)+4) // the pages of octaves below the largest
	n := 0
	for i := 0; i < full; i += 4 {
		n += min(4, full-i) * a.pageSize(i)
	}
	return n + (p-full)*a.pageSize(p)
}
