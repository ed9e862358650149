package engine

import (
	"errors"
	"slices"
	"strconv"

	"github.com/ebbdb/ebb/internal/bloom"
	"github.com/ebbdb/ebb/internal/rdb"
)

// Bloom filters are boxes; package bloom describes their contents. A filter with a window forgets
// old items by itself, one generation at a time. When all items are forgotten, the key and the
// filter's configuration stay.

// BloomConfig is the configuration of a Bloom filter.
type BloomConfig = bloom.Config

// DefaultBloom is the configuration of the filter that BFAdd creates if there is none.
var DefaultBloom = BloomConfig{Error: 0.01, Capacity: 100, Expansion: 2}

// These are the errors of Bloom filters. A method that returns one of them has changed nothing, except that
// BFInsert continues with the items after one that was refused.
var (
	// ErrBloomExists: there is a filter of this name.
	ErrBloomExists = errors.New("item exists")
	// ErrNoBloom: there is no such filter.
	ErrNoBloom = errors.New("not found")
	// ErrBloomFull: the filter does not grow, and is at its capacity.
	ErrBloomFull = errors.New("non scaling filter is full")
	// ErrBloomTooLarge: the filter would become larger than bloom.MaxBytes.
	ErrBloomTooLarge = errors.New("the filter would be larger than 4 GiB, or have more than 64 sub-filters")
	// ErrBloomChunk: the bytes are not a chunk of this filter.
	ErrBloomChunk = errors.New("received bad data")
)

// bloomError converts an error of package bloom to the engine's error.
func bloomError(err error) error {
	switch err {
	case bloom.ErrFull:
		return ErrBloomFull
	case bloom.ErrTooLarge:
		return ErrBloomTooLarge
	case bloom.ErrNoMemory:
		return ErrFull
	case bloom.ErrFormat:
		return ErrBloomChunk
	}
	return err
}

// bloomBox is a Bloom filter as a container. It has no small form.
type bloomBox struct{ *bloom.Filter }

// Free implements box.
func (b bloomBox) Free(budget int) (done bool) { return b.FreeAll(budget) < budget }

// Wasteful implements box. A filter has nothing to compact.
func (b bloomBox) Wasteful() bool { return false }

// Compact implements box.
func (b bloomBox) Compact(int) int { return 0 }

// Clone implements box.
func (b bloomBox) Clone(*Tx) (box, error) {
	c, err := b.Filter.Clone()
	if err != nil {
		return nil, ErrFull
	}
	return bloomBox{c}, nil
}

// bloom looks a filter up for a write; f is nil if there is no such key. Errors: ErrWrongType.
func (tx *Tx) bloom(key []byte) (h hit, f *bloom.Filter, err error) {
	h, err = tx.container(key, Bloom)
	if err == nil && h.r != nil {
		f = h.box().(bloomBox).Filter
	}
	return h, f, err
}

// readBloom is bloom for a read.
func (tx *Tx) readBloom(key []byte) (f *bloom.Filter, err error) {
	h, err := tx.open(key, Bloom)
	if err == nil && h.r != nil {
		f = tx.seenBloom(&h)
	}
	return f, err
}

// BFReserve creates an empty filter. It does not allocate the bits yet. Errors: ErrWrongType,
// ErrBloomExists, bloom.ErrConfig, ErrBloomTooLarge, ErrFull.
func (tx *Tx) BFReserve(key []byte, c BloomConfig) error {
	h, f, err := tx.bloom(key)
	if err != nil {
		return err
	}
	if f != nil {
		return ErrBloomExists
	}
	_, err = tx.makeBloom(&h, key, c)
	return err
}

// makeBloom creates an empty filter under a missing key.
func (tx *Tx) makeBloom(h *hit, key []byte, c BloomConfig) (*bloom.Filter, error) {
	f, err := bloom.New(tx.db.chunks, c)
	if err != nil {
		return nil, bloomError(err)
	}
	if err := tx.enlarge(h, key, Bloom, bloomBox{f}); err != nil {
		return nil, err
	}
	if tx.db.logging.Load() {
		tx.emitItems("BF.RESERVE", key, bloomArgs(&c))
	}
	tx.changed(key, EventModule, "bf.reserve")
	return f, nil
}

// BFAdd adds an item to a filter and reports whether the item is new. If there is no filter, BFAdd
// creates one as DefaultBloom. In a filter with a window, adding an existing item renews it.
// O(generations · layers); it allocates nothing unless the filter grows. Errors: ErrWrongType,
// ErrBloomFull, ErrBloomTooLarge, ErrFull.
func (tx *Tx) BFAdd(key, item []byte) (added bool, err error) {
	h, f, err := tx.bloom(key)
	if err == nil && f == nil {
		f, err = tx.makeBloom(&h, key, DefaultBloom)
	}
	if err != nil {
		return false, err
	}
	what, err := tx.addBloom(&h, f, item)
	if err != nil {
		return false, err
	}
	if what != bloom.Present {
		if tx.db.logging.Load() {
			tx.one[0] = item
			tx.emitBloom(f, key, tx.one[:])
		}
		tx.addedBloom(&h, f, key)
	}
	return what == bloom.Added, nil
}

// addBloom adds one item.
func (tx *Tx) addBloom(h *hit, f *bloom.Filter, item []byte) (bloom.Result, error) {
	tx.forgetBloom(h, f)
	what, err := f.Add(bloom.HashOf(item), tx.ms)
	return what, bloomError(err)
}

// addedBloom logs, counts and reports a change of a filter.
func (tx *Tx) addedBloom(h *hit, f *bloom.Filter, key []byte) {
	tx.wrote(h)
	if f.NextDue() != 0 {
		tx.date(h)
	}
	tx.changed(key, EventModule, "bf.add")
}

// emitBloom emits the items that have changed a filter.
func (tx *Tx) emitBloom(f *bloom.Filter, key []byte, items [][]byte) {
	switch {
	case f.Config().Window != 0:
		args := append([][]byte{[]byte("NOCREATE"), []byte("ITEMS")}, items...)
		tx.emitItems("BF.INSERT", key, append(args, []byte("NOW"), tx.itoa(0, tx.now)))
	case len(items) == 1:
		tx.emit("BF.ADD", key, items[0])
	default:
		tx.emitItems("BF.MADD", key, items)
	}
}

// BFInsert does the work of BFAdd for several items. If there is no filter, it creates one with configuration c;
// if c is nil, it returns ErrNoBloom. It calls visit with the result of each item, and continues
// after an item that was refused. Without items, it only removes the generations that are too old.
// Errors: those of BFAdd, ErrNoBloom, bloom.ErrConfig.
func (tx *Tx) BFInsert(key []byte, c *BloomConfig, items [][]byte, visit func(added bool, err error)) error {
	h, f, err := tx.bloom(key)
	switch {
	case err != nil:
		return err
	case f == nil && c == nil:
		return ErrNoBloom
	case f == nil:
		if f, err = tx.makeBloom(&h, key, *c); err != nil {
			return err
		}
	}
	tx.forgetBloom(&h, f)
	var log [][]byte
	n := 0
	for _, item := range items {
		what, err := tx.addBloom(&h, f, item)
		if err == nil && what != bloom.Present {
			if n++; tx.db.logging.Load() {
				log = append(log, item)
			}
		}
		visit(err == nil && what == bloom.Added, err)
	}
	if n > 0 {
		for part := range slices.Chunk(log, effectItems) {
			tx.emitBloom(f, key, part)
		}
		tx.addedBloom(&h, f, key)
		tx.dirty += n - 1
	}
	return nil
}

// BFExists calls visit for each item and reports whether it was added. It may report true for an item that
// was not added, but never false for one that was added and is not too old. A missing filter has no items.
// O(generations · layers) for each item; it allocates nothing. Errors: ErrWrongType.
func (tx *Tx) BFExists(key []byte, items [][]byte, visit func(found bool)) error {
	f, err := tx.readBloom(key)
	if err != nil {
		return err
	}
	for _, item := range items {
		visit(f != nil && f.Has(bloom.HashOf(item), tx.ms))
	}
	return nil
}

// BFHas does the work of BFExists for one item.
func (tx *Tx) BFHas(key, item []byte) (bool, error) {
	f, err := tx.readBloom(key)
	return f != nil && f.Has(bloom.HashOf(item), tx.ms), err
}

// BloomInfo describes a filter.
type BloomInfo struct {
	Config   BloomConfig
	Capacity int64 // the number of items that fit before the filter grows, or is full
	Size     int64 // bytes held
	Filters  int64 // layers
	Items    int64 // the living items
}

// BFInfo describes a filter. Errors: ErrWrongType, ErrNoBloom. O(layers).
func (tx *Tx) BFInfo(key []byte) (i BloomInfo, err error) {
	f, err := tx.readBloom(key)
	switch {
	case err != nil:
		return i, err
	case f == nil:
		return i, ErrNoBloom
	}
	return BloomInfo{Config: f.Config(), Capacity: f.Capacity(), Size: int64(f.Size()),
		Filters: int64(f.Layers(tx.ms)), Items: f.Len(tx.ms)}, nil
}

// BFCard returns the number of living items that were new when they were added; 0 if there is no
// filter. Errors: ErrWrongType. O(generations).
func (tx *Tx) BFCard(key []byte) (int64, error) {
	f, err := tx.readBloom(key)
	if f == nil {
		return 0, err
	}
	return f.Len(tx.ms), nil
}

// BFScanDump returns the chunk of a filter that follows an iterator, and the iterator to pass to
// BFLoadChunk with it. Iterator 0 asks for the first chunk; at the end, BFScanDump returns 0 and no
// chunk. A chunk has some MiB at most. Errors: ErrWrongType, ErrNoBloom.
func (tx *Tx) BFScanDump(key []byte, iterator int64) (next int64, chunk []byte, err error) {
	f, err := tx.readBloom(key)
	switch {
	case err != nil:
		return 0, nil, err
	case f == nil:
		return 0, nil, ErrNoBloom
	}
	chunk, next = f.Chunk(nil, iterator)
	return next, chunk, nil
}

// BFLoadChunk loads a chunk of BFScanDump. The first chunk, with iterator 1, creates the filter,
// and replaces one that exists. The other chunks fill it. Errors: ErrWrongType, ErrNoBloom,
// ErrBloomChunk, ErrFull.
func (tx *Tx) BFLoadChunk(key []byte, iterator int64, chunk []byte) error {
	h, f, err := tx.bloom(key)
	switch {
	case err != nil:
		return err
	case iterator == 1:
		err = tx.beginBloom(&h, key, chunk)
	case f == nil:
		return ErrNoBloom
	default:
		err = bloomError(f.Load(chunk))
		tx.wrote(&h)
	}
	if err != nil {
		return err
	}
	tx.emit("BF.LOADCHUNK", key, tx.itoa(0, iterator), chunk)
	tx.changed(key, EventModule, "bf.loadchunk")
	return nil
}

// beginBloom creates the filter that a first chunk describes.
func (tx *Tx) beginBloom(h *hit, key, chunk []byte) error {
	f, err := bloom.Restore(tx.db.chunks, chunk)
	if err != nil {
		return bloomError(err)
	}
	if err := tx.enlarge(h, key, Bloom, bloomBox{f}); err != nil {
		discard(bloomBox{f})
		return err
	}
	tx.date(h)
	return nil
}

// forgetBloom removes the dead generations, and reports whether there were any. The reclaimer frees
// their memory.
func (tx *Tx) forgetBloom(h *hit, f *bloom.Filter) (some bool) {
	if due := f.NextDue(); due == 0 || tx.ms <= due {
		return false
	}
	dead := f.Rotate(tx.ms)
	if dead == nil {
		return false
	}
	h.sh.freeLazily(bloomBox{dead})
	tx.wrote(h)
	return true
}

// lapseBloom is lapse for Bloom filters. It removes a whole generation at a time, because a
// generation does not contain the names of its items.
func (tx *Tx) lapseBloom(h *hit, key []byte) {
	f := h.box().(bloomBox).Filter
	if !tx.forgetBloom(h, f) {
		return // a new filter has the old one's entry
	}
	if tx.db.logging.Load() {
		tx.emitBloom(f, key, nil)
	}
	tx.dirty--
	tx.changed(key, EventModule, "bf.expired")
}

// bloomModule returns the module that dumps and restores filters.
func bloomModule() module {
	return module{name: "ebb-bloom", dump: dumpBloom, restore: restoreBloom}
}

func dumpBloom(tx *Tx, e *rdb.Encoder, h *hit) []byte {
	f := tx.seenBloom(h)
	if e.Drain == nil {
		return f.AppendDump(make([]byte, 0, f.DumpSize()))
	}
	b, at := f.DumpPart(nil, 0)
	for at != 0 {
		b, at = f.DumpPart(e.Spill(b), at)
	}
	return b
}

func restoreBloom(tx *Tx, data []byte) ([]byte, box, error) {
	f, err := bloom.Restore(tx.db.chunks, data)
	switch err {
	case nil:
		return nil, bloomBox{f}, nil
	case bloom.ErrNoMemory:
		return nil, nil, ErrFull
	}
	return nil, nil, rdb.ErrFormat
}

// bloomArgs returns a configuration as arguments of BF.RESERVE.
func bloomArgs(c *BloomConfig) [][]byte {
	number := func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
	args := [][]byte{strconv.AppendFloat(nil, c.Error, 'g', -1, 64), number(c.Capacity)}
	if c.Expansion == 0 {
		args = append(args, []byte("NONSCALING"))
	} else {
		args = append(args, []byte("EXPANSION"), number(c.Expansion))
	}
	if c.Window != 0 {
		args = append(args, []byte("WINDOW"), number(c.Window), []byte("GENERATIONS"), number(c.Generations))
	}
	return args
}
