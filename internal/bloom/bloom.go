// Package bloom is a Bloom filter that grows, and that can forget.
//
//	Filter      one generation, or with a Window up to Generations+1 of them
//	generation  layers, each larger and stricter than the one before
//	layer       pieces of 64 KiB of bits, made when first written to
//
//	item ─▶ 128 bits ─┬─ high half: the piece of each layer
//	                  └─ low half:  k bits in it
//
// A layer for n items at rate p has k = ceil(log2(1/p)) bits set for each item
// and about m = -kn / ln(1 - p^(1/k)) bits, from p = (1 - e^(-kn/m))^k (Bloom,
// 1970); layer.shape has the exact formula.
// The layers of a filter that grows have the rates p/2, p/4, p/8 and so on,
// whose sum stays below p (Almeida, Baquero, Preguiça, Hutchison: Scalable Bloom
// Filters, 2007, with the tightening ratio 0.5). The living generations share p
// evenly.
//
// A generation is an interval of time that begins at floor(j·Window/Generations)
// ms since 1970, for some j. Items are written into the present one; those of the
// present one and of the Generations before it are found. So an item is found
// when its age is Window ms or less, and no longer when it is more than
// Window + ceil(Window/Generations).
//
// Invariants: a piece is there if and only if a bit of it is set; the numbers of
// generations ascend; the layers of a generation but for the last are full.
// Nothing depends on the process or on the machine: the same items at the same
// instants give the same bytes.
//
// Nothing here locks, and nothing reads a clock. Start reading at Filter.Add.
package bloom

import (
	"errors"
	"math/bits"

	"github.com/zeebo/xxh3"

	"github.com/ebbdb/ebb/internal/chunk"
)

// The errors. Nothing was changed where one is returned.
var (
	// ErrConfig: there is no such filter; see Config.
	ErrConfig = errors.New("bloom: configuration out of bounds")
	// ErrFull: a filter that does not grow has as many items as it was made for.
	ErrFull = errors.New("bloom: the filter is full")
	// ErrTooLarge: the next layer would make the filter larger than MaxBytes.
	ErrTooLarge = errors.New("bloom: the filter cannot become larger")
	// ErrNoMemory: the Memory has no chunk left.
	ErrNoMemory = errors.New("bloom: no memory left")
	// ErrFormat: the bytes are no filter.
	ErrFormat = errors.New("bloom: bytes that are no filter")
)

// Hash is what a filter knows of an item. Its value is the same in every process, so a
// client that chooses items can make them collide.
type Hash struct{ hi, lo uint64 }

// HashOf returns an item's hash: XXH3 of 128 bits without a seed.
func HashOf(item []byte) Hash {
	h := xxh3.Hash128(item)
	return Hash{h.Hi, h.Lo}
}

// Result says what Add found.
type Result uint8

// The results.
const (
	Added   Result = iota // the item is new
	Renewed               // it was there, in an earlier generation
	Present               // it was there: nothing has changed
)

// Filter is a Bloom filter. Its bits lie on chunks of a Memory, but for those of
// layers below one chunk, which are on the Go heap.
type Filter struct {
	cfg  Config
	mem  chunk.Memory
	gens []generation // the oldest first
	held int          // bytes of pieces and tables

	loan   *chunk.Loan // nil: no piece is lent to a frozen copy
	frozen *chunk.Loan // of a frozen copy: what it is given back through
}

// generation is what was added in one interval of time.
type generation struct {
	number int64
	latest int64 // items that were added last in it
	layers []layer
}

// New returns an empty filter. It allocates no bits. Errors: ErrConfig,
// ErrTooLarge.
func New(mem chunk.Memory, cfg Config) (*Filter, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	f := &Filter{cfg: cfg, mem: mem}
	if cfg.Window == 0 {
		if err := f.begin(0); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Config returns what the filter was made with.
func (f *Filter) Config() Config { return f.cfg }

// Has reports whether an item was added, at now, in ms since 1970. If it was and
// is not too old the answer is true; if it was not, false but for the filter's
// rate. O(generations · layers), one access to memory for each and k for the
// last; it allocates nothing.
func (f *Filter) Has(h Hash, now int64) bool {
	return f.find(h, f.oldest(now)) >= 0
}

// find returns the newest generation from number oldest on that has an item, -1
// if none has.
func (f *Filter) find(h Hash, oldest int64) int {
	for i := len(f.gens) - 1; i >= 0; i-- {
		g := &f.gens[i]
		if g.number < oldest {
			return -1
		}
		for j := len(g.layers) - 1; j >= 0; j-- {
			if g.layers[j].has(h) {
				return i
			}
		}
	}
	return -1
}

// Add adds an item at now, in ms since 1970, to which the caller has rotated the
// filter. Time that goes backwards does not count. It costs what Has costs, and allocates nothing but the first piece of a
// layer, or a layer. Errors: ErrFull, ErrTooLarge, ErrNoMemory.
func (f *Filter) Add(h Hash, now int64) (Result, error) {
	in := f.find(h, f.oldest(now))
	if in >= 0 && f.cfg.Window == 0 {
		return Present, nil
	}
	current := f.current(now)
	if in >= 0 && f.gens[in].number >= current {
		return Present, nil
	}
	if in < 0 && f.cfg.Expansion == 0 && f.Len(now) >= f.cfg.Capacity {
		return 0, ErrFull
	}
	if err := f.put(h, current); err != nil {
		return 0, err
	}
	if in < 0 {
		return Added, nil
	}
	f.gens[in].latest = max(f.gens[in].latest-1, 0) // 0: it was there by mistake
	return Renewed, nil
}

// put writes an item into the newest generation, which has this number, or is
// begun.
func (f *Filter) put(h Hash, number int64) error {
	if n := len(f.gens); n == 0 || f.gens[n-1].number < number {
		if err := f.begin(number); err != nil {
			return err
		}
	}
	g := &f.gens[len(f.gens)-1]
	l := &g.layers[len(g.layers)-1]
	if l.count >= l.capacity {
		if err := f.grow(g); err != nil {
			return err
		}
		l = &g.layers[len(g.layers)-1]
	}
	took, ok := l.set(h, f)
	if !ok {
		return ErrNoMemory
	}
	f.held += took
	l.count++
	g.latest++
	return nil
}

// begin adds a generation.
func (f *Filter) begin(number int64) error {
	capacity, rate := f.cfg.layer(0, 0)
	l, err := f.newLayer(capacity, rate)
	if err != nil {
		return err
	}
	f.gens = append(f.gens, generation{number: number, layers: []layer{l}})
	f.held += generationBytes
	return nil
}

// grow adds a layer to a generation.
func (f *Filter) grow(g *generation) error {
	n := len(g.layers)
	if n >= maxLayers {
		return ErrTooLarge
	}
	l, err := f.newLayer(f.cfg.layer(n, g.layers[n-1].capacity))
	if err != nil {
		return err
	}
	g.layers = append(g.layers, l)
	return nil
}

// newLayer makes a layer, without pieces.
func (f *Filter) newLayer(capacity int64, rate float64) (l layer, err error) {
	l.shape(capacity, rate)
	if l.bytes() > MaxBytes-f.reach() {
		return l, ErrTooLarge
	}
	l.pieces = make([]piece, l.npieces)
	f.held += l.tableBytes()
	return l, nil
}

// reach returns the bytes of bits that the filter can come to hold with the
// layers that it has. O(layers).
func (f *Filter) reach() (n int64) {
	for i := range f.gens {
		for j := range f.gens[i].layers {
			n += f.gens[i].layers[j].bytes()
		}
	}
	return n
}

// Len returns the number of items that live at now: how many were added and
// found to be new, so with the filter's rate fewer than there are. O(generations).
func (f *Filter) Len(now int64) (n int64) {
	oldest := f.oldest(now)
	for i := range f.gens {
		if f.gens[i].number >= oldest {
			n += f.gens[i].latest
		}
	}
	return n
}

// Capacity returns how many items fit the layers that there are; with a Window,
// how many the filter was made for. O(layers).
func (f *Filter) Capacity() (n int64) {
	if f.cfg.Window != 0 {
		return f.cfg.Capacity
	}
	for i := range f.gens[0].layers {
		n += f.gens[0].layers[i].capacity
	}
	return n
}

// Layers returns the number of layers that live at now.
func (f *Filter) Layers(now int64) (n int) {
	oldest := f.oldest(now)
	for i := range f.gens {
		if f.gens[i].number >= oldest {
			n += len(f.gens[i].layers)
		}
	}
	return n
}

// filterBytes is about what a filter takes up without its pieces, and
// generationBytes a generation with one layer.
const (
	filterBytes     = 128
	generationBytes = 48
)

// Size returns the bytes held. O(1).
func (f *Filter) Size() int { return filterBytes + f.held }

// current returns the number of the generation that items are added to at now:
// that of the instant, or of the newest one if that is later.
func (f *Filter) current(now int64) int64 {
	if f.cfg.Window == 0 {
		return 0
	}
	n := f.cfg.number(now)
	if k := len(f.gens); k > 0 {
		n = max(n, f.gens[k-1].number)
	}
	return n
}

// oldest returns the number of the oldest generation that lives at now.
func (f *Filter) oldest(now int64) int64 {
	if f.cfg.Window == 0 {
		return 0
	}
	return f.cfg.number(now) - f.cfg.Generations
}

// NextDue returns when the oldest generation is found for the last time, in ms
// since 1970; 0 if there is none that ends. O(1).
func (f *Filter) NextDue() int64 {
	if f.cfg.Window == 0 || len(f.gens) == 0 {
		return 0
	}
	return f.cfg.begins(f.gens[0].number+f.cfg.Generations+1) - 1
}

// Rotate takes the generations that are dead at now out of the filter and returns
// them as one that is to be freed; nil if there are none. O(their pieces).
func (f *Filter) Rotate(now int64) *Filter {
	oldest, n := f.oldest(now), 0
	for n < len(f.gens) && f.gens[n].number < oldest {
		n++
	}
	if n == 0 {
		return nil
	}
	dead := &Filter{cfg: f.cfg, mem: f.mem, gens: f.gens[:n:n], loan: f.loan}
	dead.held = dead.weigh()
	f.held -= dead.held
	f.gens = append([]generation(nil), f.gens[n:]...)
	return dead
}

// Living returns the filter without the generations that are dead at now, to be read
// until the filter is written to. O(1) where none is dead, else O(pieces).
func (f *Filter) Living(now int64) *Filter {
	oldest, n := f.oldest(now), 0
	for n < len(f.gens) && f.gens[n].number < oldest {
		n++
	}
	if n == 0 {
		return f
	}
	v := &Filter{cfg: f.cfg, mem: f.mem, gens: f.gens[n:]}
	v.held = v.weigh()
	return v
}

// NextFrom returns when the first generation that is found at now is found for the
// last time, in ms since 1970; 0 if there is none that ends.
func (f *Filter) NextFrom(now int64) int64 { return f.Living(now).NextDue() }

// weigh counts what Size counts. O(pieces).
func (f *Filter) weigh() (n int) {
	for i := range f.gens {
		n += generationBytes
		for j := range f.gens[i].layers {
			l := &f.gens[i].layers[j]
			n += l.tableBytes()
			for p := range l.pieces {
				n += len(l.pieces[p].bits)
			}
		}
	}
	return n
}

// FreeAll gives back up to budget pieces and returns how many; fewer than budget
// means that none is left. The filter finds nothing once it has been called.
func (f *Filter) FreeAll(budget int) (freed int) {
	if f.frozen != nil {
		return f.frozen.Settle(f.mem, budget)
	}
	for len(f.gens) > 0 {
		g := &f.gens[len(f.gens)-1]
		for len(g.layers) > 0 {
			l := &g.layers[len(g.layers)-1]
			if freed += l.free(f, budget-freed); freed >= budget {
				return freed
			}
			g.layers = g.layers[:len(g.layers)-1]
		}
		f.gens = f.gens[:len(f.gens)-1]
	}
	f.held = 0
	return freed
}

// Clone returns a copy. Errors: ErrNoMemory. O(bytes).
func (f *Filter) Clone() (*Filter, error) {
	c := &Filter{cfg: f.cfg, mem: f.mem, gens: append([]generation(nil), f.gens...), held: f.held}
	for i := range c.gens {
		g := &c.gens[i]
		g.layers = append([]layer(nil), g.layers...)
		for j := range g.layers {
			g.layers[j].pieces = make([]piece, len(g.layers[j].pieces))
		}
	}
	for i := range f.gens {
		for j := range f.gens[i].layers {
			if !c.gens[i].layers[j].copyFrom(&f.gens[i].layers[j], f.mem) {
				c.FreeAll(1 << 62)
				return nil, ErrNoMemory
			}
		}
	}
	return c, nil
}

// mulHi maps the whole range of x evenly on 0 to n-1.
func mulHi(x, n uint64) uint64 {
	hi, _ := bits.Mul64(x, n)
	return hi
}
