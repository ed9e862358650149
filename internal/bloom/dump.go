package bloom

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/ebbdb/ebb/internal/chunk"
)

// This file encodes a filter as bytes: a head, and the existing pieces in order.
//
//	head    version │ rate (8, IEEE 754) │ capacity, expansion, window, generations │
//	        number of generations │ each: number, latest, number of layers │
//	        each layer: capacity, count, bits of a piece, pieces, k
//	piece   1 + its number, counted through all layers │ its bits
//
// Numbers are varints. The head contains the shapes of the layers, so that a reader does not
// compute them: logarithms may differ in the last bit from machine to machine. A chunk of BF.SCANDUMP
// is a head, or the version and some pieces. RedisBloom has other formats.

// version is the first byte of every dump and chunk.
const version = 1

// chunkBytes is about the length of a chunk: much longer than the overhead of a request,
// and short enough that no client notices the wait.
const chunkBytes = 1 << 20

// AppendDump appends the filter as bytes. Equal filters give equal bytes. O(bytes).
func (f *Filter) AppendDump(dst []byte) []byte {
	dst, _ = f.appendPieces(f.appendHead(dst), 0, math.MaxInt)
	return dst
}

// DumpSize returns the length of AppendDump, or a little more. O(layers).
func (f *Filter) DumpSize() int { return 128 + f.held }

// partBytes is about the length of a part: a few pieces.
const partBytes = 256 << 10

// DumpPart appends the part of AppendDump's bytes that follows an iterator, 0 for the first, and
// returns the iterator that belongs to it. At the end it appends nothing and returns 0. O(layers +
// bytes).
func (f *Filter) DumpPart(dst []byte, iterator int64) (part []byte, next int64) {
	if iterator <= 0 {
		return f.appendHead(dst), 1
	}
	from := len(dst)
	dst, last := f.appendPieces(dst, uint64(iterator-1), partBytes)
	if len(dst) == from {
		return dst, 0
	}
	return dst, int64(last) + 2
}

// Chunk appends the chunk that follows an iterator, 0 for the first, and returns the iterator that
// belongs to it. At the end it appends nothing and returns 0.
func (f *Filter) Chunk(dst []byte, iterator int64) (chunk []byte, next int64) {
	if iterator <= 0 {
		return f.appendHead(dst), 1
	}
	from := len(dst)
	dst, last := f.appendPieces(append(dst, version), uint64(iterator-1), chunkBytes)
	if len(dst) == from+1 {
		return dst[:from], 0
	}
	return dst, int64(last) + 2
}

func (f *Filter) appendHead(b []byte) []byte {
	c := &f.cfg
	b = binary.LittleEndian.AppendUint64(append(b, version), math.Float64bits(c.Error))
	b = appendInts(b, c.Capacity, c.Expansion, c.Window, c.Generations, int64(len(f.gens)))
	for i := range f.gens {
		g := &f.gens[i]
		b = appendInts(b, g.number, g.latest, int64(len(g.layers)))
		for j := range g.layers {
			l := &g.layers[j]
			b = appendInts(b, l.capacity, l.count, int64(l.nbits), int64(l.npieces), int64(l.k))
		}
	}
	return b
}

func appendInts(b []byte, all ...int64) []byte {
	for _, n := range all {
		b = binary.AppendVarint(b, n)
	}
	return b
}

// appendPieces appends pieces from a number on until there are budget bytes or
// more, and returns the number of the last.
func (f *Filter) appendPieces(b []byte, from uint64, budget int) (out []byte, last uint64) {
	first, start := uint64(0), len(b) // number of the layer's first piece
	for i := range f.gens {
		for j := range f.gens[i].layers {
			l := &f.gens[i].layers[j]
			for p := max(from, first); p < first+uint64(l.npieces); p++ {
				x := &l.pieces[p-first]
				if x.bits == nil {
					continue
				}
				b = append(binary.AppendUvarint(b, p+1), x.bits...)
				if last = p; len(b)-start >= budget {
					return b, last
				}
			}
			first += uint64(l.npieces)
		}
	}
	return b, last
}

// Restore builds a filter from what AppendDump wrote, or from a chunk that is a
// head. The bytes need not be trusted: Restore verifies everything except that the bits
// belong to the counts. Errors: ErrFormat, ErrNoMemory. O(bytes).
func Restore(mem chunk.Memory, b []byte) (*Filter, error) {
	r := reader{b: b}
	f := &Filter{mem: mem}
	if err := r.head(f); err != nil {
		return nil, err
	}
	err := f.readPieces(r.b, f.setPiece)
	if err != nil {
		f.FreeAll(math.MaxInt)
		return nil, err
	}
	return f, nil
}

// Load adds the pieces of a chunk to a filter that Restore has made from its head. Errors:
// ErrFormat, ErrNoMemory; then some of the pieces may be loaded.
func (f *Filter) Load(b []byte) error {
	if len(b) == 0 || b[0] != version {
		return ErrFormat
	}
	if err := f.readPieces(b[1:], func(*layer, uint64, []byte) error { return nil }); err != nil {
		return err
	}
	return f.readPieces(b[1:], f.setPiece)
}

// setPiece overwrites a piece.
func (f *Filter) setPiece(l *layer, p uint64, bits []byte) error {
	took, ok := l.touch(p, f.mem)
	if !ok {
		return ErrNoMemory
	}
	f.held += took
	f.own(&l.pieces[p])
	copy(l.pieces[p].bits, bits)
	return nil
}

// readPieces calls visit for every piece, until it returns an error.
func (f *Filter) readPieces(b []byte, visit func(l *layer, p uint64, bits []byte) error) error {
	next := uint64(0)
	for len(b) > 0 {
		n, k := binary.Uvarint(b)
		if k <= 0 || n <= next {
			return ErrFormat
		}
		next, b = n, b[k:]
		l, p := f.pieceAt(n - 1)
		if l == nil || len(b) < int(l.nbits/8) || empty(b[:l.nbits/8]) {
			return ErrFormat
		}
		if err := visit(l, p, b[:l.nbits/8]); err != nil {
			return err
		}
		b = b[l.nbits/8:]
	}
	return nil
}

// pieceAt returns the layer of the piece with a number, and its number in the layer; l is nil if
// there is none.
func (f *Filter) pieceAt(n uint64) (l *layer, p uint64) {
	for i := range f.gens {
		for j := range f.gens[i].layers {
			l := &f.gens[i].layers[j]
			if n < uint64(l.npieces) {
				return l, n
			}
			n -= uint64(l.npieces)
		}
	}
	return nil, 0
}

func empty(b []byte) bool {
	for ; len(b) > 0; b = b[8:] { // pieces are whole words
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
	}
	return true
}

// reader reads numbers; the first invalid one sets bad.
type reader struct {
	b   []byte
	bad bool
}

// int reads a number between bounds.
func (r *reader) int(low, high int64) int64 {
	n, k := binary.Varint(r.b)
	if r.bad || k <= 0 || n < low || n > high {
		r.bad = true
		return low
	}
	r.b = r.b[k:]
	return n
}

// head reads a head into an empty filter.
func (r *reader) head(f *Filter) error {
	if len(r.b) < 9 || r.b[0] != version {
		return ErrFormat
	}
	c := &f.cfg
	c.Error = math.Float64frombits(binary.LittleEndian.Uint64(r.b[1:]))
	r.b = r.b[9:]
	c.Capacity = r.int(1, MaxCapacity)
	c.Expansion = r.int(0, MaxExpansion)
	c.Window = r.int(0, MaxWindow)
	c.Generations = r.int(0, MaxGenerations)
	if r.bad || c.Check() != nil {
		return ErrFormat
	}
	least, limit := int64(0), c.Generations+1
	if c.Window == 0 {
		least = 1
	}
	n := r.int(least, limit)
	for range n {
		if err := r.generation(f); err != nil {
			return err
		}
	}
	if r.bad || n > 0 && f.gens[n-1].number-f.gens[0].number > c.Generations {
		return ErrFormat
	}
	return nil
}

// maxNumber bounds the numbers of generations: those of the year 4199, one each
// millisecond.
const maxNumber = 1 << 46 * MaxGenerations

func (r *reader) generation(f *Filter) error {
	low, high := int64(0), int64(0)
	if f.cfg.Window != 0 {
		low, high = -maxNumber, maxNumber
	}
	if n := len(f.gens); n > 0 {
		low = f.gens[n-1].number + 1
	}
	g := generation{number: r.int(low, high), latest: r.int(0, math.MaxInt64)}
	n := r.int(1, maxLayers)
	sum := int64(0)
	for i := range n {
		l := layer{capacity: r.int(1, 1<<52)}
		l.count = r.int(0, l.capacity)
		l.nbits = uint32(r.int(64, pieceBits))
		l.npieces = uint32(r.int(1, MaxBytes/pieceBytes))
		l.k = uint8(r.int(1, 62))
		if r.bad || l.nbits%64 != 0 || l.npieces > 1 && l.nbits != pieceBits || l.count < l.capacity && i < n-1 ||
			l.bytes() > MaxBytes-f.reach() {
			return ErrFormat
		}
		l.pieces = make([]piece, l.npieces)
		f.held += l.tableBytes()
		if i == 0 {
			f.gens = append(f.gens, g)
			f.held += generationBytes
		}
		f.gens[len(f.gens)-1].layers = append(f.gens[len(f.gens)-1].layers, l)
		sum += l.count
	}
	if r.bad || g.latest > sum {
		return ErrFormat
	}
	return nil
}

// Check verifies the filter's invariants and returns the first one broken. It is
// for tests. O(bytes).
func (f *Filter) Check() error {
	if n := f.weigh(); n != f.held {
		return fmt.Errorf("bloom: %d bytes are held, %d are counted", n, f.held)
	}
	if f.cfg.Window == 0 && len(f.gens) != 1 {
		return fmt.Errorf("bloom: %d generations without a window", len(f.gens))
	}
	for i := range f.gens {
		g := &f.gens[i]
		if i > 0 && f.gens[i-1].number >= g.number {
			return fmt.Errorf("bloom: generation %d comes after %d", g.number, f.gens[i-1].number)
		}
		sum := int64(0)
		for j := range g.layers {
			if err := g.layers[j].check(j == len(g.layers)-1); err != nil {
				return fmt.Errorf("bloom: generation %d, layer %d: %w", g.number, j, err)
			}
			sum += g.layers[j].count
		}
		if g.latest > sum {
			return fmt.Errorf("bloom: generation %d has %d items, its layers %d", g.number, g.latest, sum)
		}
	}
	return nil
}

func (l *layer) check(last bool) error {
	if len(l.pieces) != int(l.npieces) {
		return fmt.Errorf("%d pieces, not %d", len(l.pieces), l.npieces)
	}
	for p := range l.pieces {
		if b := l.pieces[p].bits; b != nil && (len(b) != int(l.nbits/8) || empty(b)) {
			return fmt.Errorf("piece %d has %d bytes, or no bit", p, len(b))
		}
	}
	if l.count > l.capacity || l.count < l.capacity && !last {
		return fmt.Errorf("a layer holds %d items of %d, but only the last layer has room", l.count, l.capacity)
	}
	return nil
}
