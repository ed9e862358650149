// Package bloom implements Bloom filters that grow, and that can forget items after a time.
//
//	Filter      one generation, or with a Window up to Generations+1 of them
//	generation  layers, each larger and stricter than the one before
//	layer       pieces of 64 KiB of bits, allocated at the first write
//
//	item ─▶ 128 bits ─┬─ high half: the piece of each layer
//	                  └─ low half:  k bits in it
//
// A layer for n items at rate p has k = ceil(log2(1/p)) bits set for each item and about m = -kn /
// ln(1 - p^(1/k)) bits, from p = (1 - e^(-kn/m))^k (Bloom, 1970); layer.shape has the exact
// formula. The layers of a filter that grows have the rates p/2, p/4, p/8 and so on, whose sum
// stays below p (Almeida, Baquero, Preguiça, Hutchison: Scalable Bloom Filters, 2007, with the
// tightening ratio 0.5). The living generations share p evenly.
//
// A generation is an interval of time that begins at floor(j·Window/Generations) ms since 1970, for
// some j. Add writes an item into the present generation. Has finds the items of the present
// generation and of the Generations before it. So Has finds an item whose age is Window ms or less,
// and does not find one older than Window + ceil(Window/Generations).
//
// Invariants: a piece exists if and only if one of its bits is set; the numbers of generations
// ascend; the layers of a generation but for the last are full. Nothing depends on the process or
// on the machine: the same items at the same instants give the same bytes.
//
// The package has no locks and reads no clock: the owner holds the shard's lock and passes the
// time. Start reading at Filter.Add.
package bloom

import (
	"errors"
	"math/bits"

	"github.com/zeebo/xxh3"

	"github.com/ebbdb/ebb/internal/chunk"
)

// These are the errors. A method that returns one of them has changed nothing, except for Load.
var (
	// ErrConfig: a value of the configuration is out of bounds; see Config.
	ErrConfig = errors.New("bloom: configuration out of bounds")
	// ErrFull: the filter does not grow, and is at its capacity.
	ErrFull = errors.New("bloom: the filter is full")
	// ErrTooLarge: the next layer would make the filter larger than MaxBytes.
	ErrTooLarge = errors.New("bloom: the filter cannot become larger")
	// ErrNoMemory: the Memory has no chunk left.
	ErrNoMemory = errors.New("bloom: no memory left")
	// ErrFormat: the bytes are not a valid filter or chunk.
	ErrFormat = errors.New("bloom: not a valid filter")
)

// Hash is the hash of an item, which is all that a filter uses of it. Its value is the same in
// every process, so a client that chooses items can make them collide.
type Hash struct{ hi, lo uint64 }

// HashOf returns an item's hash: XXH3 of 128 bits without a seed.
func HashOf(item []byte) Hash {
	h := xxh3.Hash128(item)
	return Hash{h.Hi, h.Lo}
}

// Result is the result of Add.
type Result uint8

// These are the results.
const (
	Added   Result = iota // the item is new
	Renewed               // the item was in an earlier generation
	Present               // the item was present, and nothing has changed
)

// Filter is a Bloom filter. Its bits lie in chunks of a Memory, except for layers smaller than one
// chunk, which lie on the Go heap. It is not safe for concurrent use.
type Filter struct {
	cfg  Config
	mem  chunk.Memory
	gens []generation // the oldest first
	held int          // bytes of pieces and tables

	loan   *chunk.Loan // nil: no piece is lent to a frozen copy
	frozen *chunk.Loan // in a frozen copy: the loan that FreeAll settles
}

// generation holds the items that were added in one interval of time.
type generation struct {
	number int64
	latest int64 // the number of items whose last Add was in it
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

// Config returns the filter's configuration.
func (f *Filter) Config() Config { return f.cfg }

// Has reports whether an item was added, as of now, in ms since 1970. For an item that was added
// and is not too old, it returns true. For another item it returns false, except with the filter's
// error rate. O(generations · layers), with one memory access for each and k for the last; it
// allocates nothing.
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

// Add adds an item at now, in ms since 1970. The caller has called Rotate with the same now. A now
// before the newest generation counts as that generation. Add costs what Has costs, and allocates
// only the first piece of a layer, or a layer. Errors: ErrFull, ErrTooLarge, ErrNoMemory.
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
	f.gens[in].latest = max(f.gens[in].latest-1, 0) // at least 0: the item may have been a false positive
	return Renewed, nil
}

// put writes an item into the newest generation, which has this number; it begins the generation if
// necessary.
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

// newLayer returns a layer without pieces.
func (f *Filter) newLayer(capacity int64, rate float64) (l layer, err error) {
	l.shape(capacity, rate)
	if l.bytes() > MaxBytes-f.reach() {
		return l, ErrTooLarge
	}
	l.pieces = make([]piece, l.npieces)
	f.held += l.tableBytes()
	return l, nil
}

// reach returns the bytes of bits that the filter's present layers can hold. O(layers).
func (f *Filter) reach() (n int64) {
	for i := range f.gens {
		for j := range f.gens[i].layers {
			n += f.gens[i].layers[j].bytes()
		}
	}
	return n
}

// Len returns the number of living items that were new when they were added. Because of false
// positives it is lower than the real number, by the filter's error rate. O(generations).
func (f *Filter) Len(now int64) (n int64) {
	oldest := f.oldest(now)
	for i := range f.gens {
		if f.gens[i].number >= oldest {
			n += f.gens[i].latest
		}
	}
	return n
}

// Capacity returns how many items fit the present layers; with a Window, the configured capacity.
// O(layers).
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

// filterBytes estimates the bytes of a filter without its pieces, and generationBytes those of a
// generation with one layer.
const (
	filterBytes     = 128
	generationBytes = 48
)

// Size returns the bytes that the filter holds. O(1).
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

// NextDue returns the last instant, in ms since 1970, at which Has finds the items of the oldest
// generation; 0 if no generation ends. O(1).
func (f *Filter) NextDue() int64 {
	if f.cfg.Window == 0 || len(f.gens) == 0 {
		return 0
	}
	return f.cfg.begins(f.gens[0].number+f.cfg.Generations+1) - 1
}

// Rotate removes the generations that are dead at now from the filter and returns them as a filter,
// which the caller frees; nil if there are none. O(pieces of these generations).
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

// Living returns the filter without the generations that are dead at now, for reading until the
// next write to the filter. O(1) if none is dead, else O(pieces).
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

// NextFrom does the work of NextDue for the generations that live at now, in ms since 1970; 0 if no generation
// ends.
func (f *Filter) NextFrom(now int64) int64 { return f.Living(now).NextDue() }

// weigh recounts the bytes of Size. O(pieces).
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

// FreeAll frees up to budget pieces and returns their number. A result below budget means that none
// is left. The filter is empty after the first call.
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
