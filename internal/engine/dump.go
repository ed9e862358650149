package engine

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ebbdb/ebb/internal/packed"
	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/stream"
)

// Dump and Restore convert values to and from the bytes of DUMP (internal/rdb).
//
// Dump walks over the living items and calls an Encoder. Restore runs a Decoder, which calls a
// restorer. The restorer builds the value outside of the keyspace. Only a complete and valid value
// replaces what the key held, so an invalid payload changes nothing.

// These are the errors of Restore.
var (
	// ErrPayload: the payload's version or checksum is wrong. If it is the version, the error that
	// wraps ErrPayload names it.
	ErrPayload = errors.New("DUMP payload version or checksum are wrong")
	// ErrBadFormat: the payload's value is malformed, or of a type that ebb does not have. If it is
	// the type, the error that wraps ErrBadFormat names it.
	ErrBadFormat = errors.New("Bad data format")
	// ErrBusyKey: the key exists, and RestoreOptions.Replace is false.
	ErrBusyKey = errors.New("the target key exists already")
)

// dumper holds the buffers of Dump and Restore, some 40 KiB.
type dumper struct {
	enc      rdb.Encoder
	dec      rdb.Decoder
	restorer restorer
	hit      hit // the value that Dump encodes: a local variable would move to the heap
}

var dumpers = sync.Pool{New: func() any { return &dumper{enc: rdb.Encoder{Compress: true}} }}

// Dump appends a key's value, in the form that RESTORE accepts, to dst; ok is false if there is no such key.
// redis-server 7.0 can read the payload, unless items have deadlines. Dump counts as an access. O(value).
func (tx *Tx) Dump(dst, key []byte) (payload []byte, ok bool) {
	h := tx.read(key)
	if h.r == nil {
		return dst, false
	}
	return tx.dump(dst, h), true
}

func (tx *Tx) dump(dst []byte, h hit) []byte {
	d := dumpers.Get().(*dumper)
	defer dumpers.Put(d)
	e := &d.enc
	e.Reset(dst)
	d.hit = h
	tx.encodeValue(e, &d.hit)
	b := rdb.SealFrom(e.Buf, len(dst), e.Version())
	e.Reset(nil)
	d.hit = hit{}
	return b
}

// DumpSize estimates how many bytes Dump walks over; it returns 0 if there is no such key. It does
// not count as an access. O(1).
func (tx *Tx) DumpSize(key []byte) int {
	h := tx.find(key)
	switch {
	case h.r == nil:
		return 0
	case h.r.Kind().plain() || h.box() == nil:
		return len(h.sp.value(h.r))
	}
	return h.box().Size()
}

// encodeValue writes the value of a key.
func (tx *Tx) encodeValue(e *rdb.Encoder, h *hit) {
	if !tx.encodeWhole(e, h) {
		tx.encodeItems(e, h)
	}
}

// encodeWhole writes a value in one piece if the Encoder can take it so, without a call for each item. It
// returns false if it has written nothing.
func (tx *Tx) encodeWhole(e *rdb.Encoder, h *hit) bool {
	switch kind := h.r.Kind(); {
	case kind == String:
		e.String(h.sp.value(h.r))
	case h.r.has(flagExt) && h.box() != nil:
		l, ok := h.box().(listBox)
		if !ok || l.Timed() > 0 {
			return false
		}
		e.BeginList()
		l.EachBlock(func(r packed.Run) { e.Elements(r.Cells()) }, e.Element)
		e.EndList()
	case kind == List && h.image().Timed() == 0:
		e.BeginList()
		e.Elements(h.image().Cells())
		e.EndList()
	case kind == Set && h.image().Kind() == packed.KindIntSet:
		e.IntSet(packed.IntSet(h.image()))
	case kind == Hash, kind == ZSet:
		return e.Packed(h.image())
	default:
		return false
	}
	return true
}

// encodeItems writes a value other than a string, item by item.
func (tx *Tx) encodeItems(e *rdb.Encoder, h *hit) {
	k := Key{tx: tx, sp: h.sp, r: h.r}
	if name := timedName(h.r.Kind()); name != "" && !e.Plain {
		if first := tx.earliestItem(h); first != 0 {
			e.BeginModule(name)
			e.EndModule(tx.dumpTimed(e, h, first))
			return
		}
	}
	switch h.r.Kind() {
	case List:
		e.BeginList()
		k.Items(func(it Item) { e.Element(it.Key) })
		e.EndList()
	case Set:
		e.BeginSet(tx.living(h))
		k.Items(func(it Item) { e.Member(it.Key) })
		e.EndSet()
	case ZSet:
		e.BeginZSet(tx.living(h))
		k.Items(func(it Item) { e.Scored(it.Key, it.Score) })
		e.EndZSet()
	case Hash:
		e.BeginHash(tx.living(h), tx.earliestItem(h))
		k.Items(func(it Item) { e.Field(it.Key, it.Value, it.Deadline) })
		e.EndHash()
	case Stream:
		tx.dumpStream(e, h.box().(streamBox).Stream)
	default:
		m := moduleOf(h.r.Kind())
		e.BeginModule(m.name)
		e.EndModule(m.dump(tx, e, h))
	}
}

// module dumps and restores the values of a kind that Redis does not have. The payload has a name
// of nine letters, and bytes of ebb's own format that begin with a version.
type module struct {
	name string
	// dump encodes the value. It returns all of the value's bytes, or the bytes that follow the
	// parts that e took (Encoder.Spill). They are valid until the next write.
	dump func(tx *Tx, e *rdb.Encoder, h *hit) []byte
	// restore builds a value, plain bytes or a box, from bytes that it does not trust. Errors:
	// rdb.ErrFormat, ErrFull.
	restore func(tx *Tx, data []byte) ([]byte, box, error)
}

// moduleOf returns the module of a kind, or the zero module if the kind has none.
func moduleOf(k Kind) module {
	switch k {
	case Limiter:
		return limiterModule()
	case Lock:
		return lockModule()
	case Semaphore:
		return semaphoreModule()
	case DelayQueue:
		return queueModule()
	case Bloom:
		return bloomModule()
	}
	return module{}
}

// Module implements rdb.Builder.
func (r *restorer) Module(name string, data []byte) (err error) {
	if k, ok := timedKind(name); ok {
		return r.timed(k, data)
	}
	for k := Limiter; k <= Bloom; k++ {
		if m := moduleOf(k); m.name == name {
			r.kind, r.items = k, 1
			r.image, r.box, err = m.restore(r.tx, data)
			return err
		}
	}
	return rdb.ErrFormat
}

// living returns the number of living items of a hash, set or sorted set.
func (tx *Tx) living(h *hit) int {
	if b := h.box(); b != nil {
		return b.(interface{ Len(now int64) int }).Len(tx.itemTime())
	}
	if h.image().Kind() == packed.KindIntSet {
		return packed.IntSet(h.image()).Len()
	}
	return h.image().Len(tx.itemTime())
}

// earliestItem returns the earliest deadline of a container's living items, 0 if
// none has one. O(1) where none has, else O(items).
func (tx *Tx) earliestItem(h *hit) (first int64) {
	if tx.nextIn(h) == 0 {
		return 0
	}
	Key{tx: tx, sp: h.sp, r: h.r}.Items(func(it Item) {
		if it.Deadline != 0 && (first == 0 || it.Deadline < first) {
			first = it.Deadline
		}
	})
	return first
}

// RestoreOptions configure Restore. The zero value stores a new key without a deadline.
type RestoreOptions struct {
	Deadline int64 // ms since 1970; 0: none
	Replace  bool  // replace the value that the key holds
	Idle     int64 // seconds since the last access, where recency decides what is evicted
	Freq     int64 // the access counter, 0 to 255, where frequency decides
	SetFreq  bool  // Freq counts
	Names    Namer // decides about the key that the value names (Tx.Named); may be nil
}

// Namer is asked before Restore stores a value that names a key; Restore returns its error. The key is valid
// during the call.
type Namer interface{ MayName(key []byte) error }

// Restore stores the value of a DUMP payload under a key. When it fails, it changes nothing. If the
// deadline has passed, Restore does not store the value, but still deletes the value that it would
// have replaced. Restore reads the payloads of Redis up to 8.0 and Valkey up to 9.2, and those of
// newer versions of Redis if ebb has the type. O(value).
//
// Errors: ErrBusyKey, ErrPayload, ErrBadFormat, ErrFull, ErrUnpacks, and the errors of o.Names.
func (tx *Tx) Restore(key, payload []byte, o RestoreOptions) error {
	h := tx.find(key)
	if h.r != nil && !o.Replace {
		return ErrBusyKey
	}
	value, version, err := rdb.Open(payload)
	if err != nil {
		return explained(ErrPayload, err)
	}
	d := dumpers.Get().(*dumper)
	defer d.put()
	r := &d.restorer
	if err := tx.decode(d, value, version); err != nil {
		return err
	}
	if named := r.named(); o.Names != nil && len(named) > 0 {
		if err := o.Names.MayName(named); err != nil {
			r.discard()
			return err
		}
	}
	o.Deadline = min(o.Deadline, MaxDeadline)
	if r.empty() || o.Deadline != 0 && o.Deadline <= tx.ms && !tx.replay {
		r.discard()
		tx.Del(key)
		return nil
	}
	there := h.r != nil
	if err := tx.install(&h, key, r, o.Deadline); err != nil {
		r.discard()
		return err
	}
	tx.date(&h)
	if there {
		tx.created(h.sp, h.r) // Redis deletes the old key and adds one
	}
	tx.setAccess(h.r, o)
	tx.emitRestore(&h, there, key, payload, version, o.Deadline, r.left)
	tx.changed(key, EventGeneric, "restore")
	return nil
}

// named does the work of Tx.Named for the value that the restorer has built.
func (r *restorer) named() []byte { return namedBy(r.box) }

// Named returns the key of the dead letters of a delay queue: the key that the value names and that
// the engine writes to on its behalf. It returns nil if there is none. The bytes are valid until
// the next write. Named does not count as an access. O(1).
func (tx *Tx) Named(key []byte) []byte {
	h := tx.find(key)
	if h.r == nil || h.r.Kind().plain() {
		return nil
	}
	return namedBy(h.box())
}

func namedBy(b box) []byte {
	if q, ok := b.(queueBox); ok {
		return q.Queue.DeadLetter
	}
	return nil
}

// install stores a restored value under a key, and replaces the key's old value.
func (tx *Tx) install(h *hit, key []byte, r *restorer, deadline int64) error {
	s := spec{flags: uint8(r.kind), deadline: deadline}
	if r.box != nil {
		return tx.putBox(h, key, r.box, s)
	}
	return tx.put(h, key, r.image, s)
}

// putBox is put for a large container.
func (tx *Tx) putBox(h *hit, key []byte, b box, s spec) error {
	sp := tx.makeSpace(h)
	handle := sp.addBox(nil, b)
	ref, r := sp.build(s.layout(), key, nil, handle)
	if r == nil {
		sp.yield(handle)
		return ErrFull
	}
	tx.place(h, ref, r, s)
	return nil
}

// setAccess sets the access clock of a restored key, as LRU seconds or as an LFU counter.
func (tx *Tx) setAccess(r *rec, o RestoreOptions) {
	switch {
	case !tx.db.lfu.Load():
		r.setAccess(uint32(tx.ms/1000-o.Idle) & lruMask)
	case o.SetFreq:
		r.setAccess(uint32(tx.ms/60000)&0xffff<<8 | uint32(o.Freq))
	default:
		r.setAccess(uint32(tx.ms/60000)&0xffff<<8 | lfuInit)
	}
}

// restorer implements rdb.Builder. It builds a value outside of the keyspace: a string, a packed
// image, or a box.
type restorer struct {
	portion
	tx    *Tx
	kind  Kind
	image []byte
	box   box
	items int
	left  bool  // the restorer left out dead items
	now   int64 // the time, in ms, that decides which items are dead

	room  []byte // for image; may be nil
	seen  seen   // the items of image
	bytes int    // the size of the listpack in which Redis would keep the list's elements

	group    *stream.Group // the last one of a stream
	consumer *stream.Consumer
}

// decode makes the dumper's restorer build the value that a payload's bytes encode. The caller puts the dumper back. Errors:
// ErrBadFormat, ErrFull, ErrUnpacks; there is no value then.
func (tx *Tx) decode(d *dumper, value []byte, version int) error {
	r := &d.restorer
	r.tx, r.now = tx, tx.itemTime()
	r.portion = portion{from: &tx.db.unpacking, limit: tx.db.maxUnpacked(tx.replay || tx.db.spared()), had: int64(len(value))}
	d.dec.MaxString, d.dec.Meter = tx.db.MaxString(), r
	err := d.dec.Restore(value, version, r)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rdb.ErrFormat):
		err = explained(ErrBadFormat, err)
	}
	r.discard()
	return err
}

// put ends the use of a dumper by Restore, and keeps the memory of its image.
func (d *dumper) put() {
	r := &d.restorer
	r.settle()
	room := r.room
	if r.kind <= Hash && cap(r.image) > cap(room) && cap(r.image) <= keepDump {
		room = r.image
	}
	*r = restorer{room: room}
	d.dec.Meter = nil
	d.dec.Reset(nil, 0)
	dumpers.Put(d)
}

// keepDump is the size of the largest buffer, in bytes, that snapshots, Restore and Load keep for their next value.
const keepDump = 1 << 20

// explained returns err. If why means that ebb does not know a type or a version, the result names the type
// or version.
func explained(err, why error) error {
	var known interface{ Name() string }
	if errors.As(why, &known) {
		return fmt.Errorf("%w: %s", err, known.Name())
	}
	return err
}

// errTwice is the error for an item that the container already has.
var errTwice = rdb.ErrFormat

// empty reports whether a container has no living items.
func (r *restorer) empty() bool { return r.kind != String && r.kind != Stream && r.items == 0 }

// discard frees the value that the restorer has built.
func (r *restorer) discard() {
	if r.box != nil {
		discard(r.box)
		r.box = nil
	}
}

// dead reports whether an item's deadline has passed.
func (r *restorer) dead(deadline int64) bool { return deadline != 0 && r.now > deadline }

// String implements rdb.Builder.
func (r *restorer) String(val []byte) error {
	if len(val) > r.tx.db.MaxString() {
		return ErrBadFormat
	}
	r.kind = String
	r.image = append(r.room[:0], val...)
	return nil
}
