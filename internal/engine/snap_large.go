package engine

import (
	"context"
	"encoding/binary"
	"math/bits"
	"sync"
	"unsafe"

	"github.com/ebbdb/ebb/internal/rdb"
)

// This file handles values that are too large to be encoded under a shard's lock.
//
//	container   the snapshot freezes it: it has a copy that shares the chunks until
//	            a transaction writes to them
//	string      the snapshot pins it: an edit in place first copies the pages that
//	            it is about to change, unless they are written already; a write
//	            that replaces the string leaves the old bytes alone
//	image       of a small container, or of a type that is plain bytes: the
//	            snapshot copies it, as every write to it may copy it
//
// The snapshot queues these values, and its goroutine encodes them.

const (
	// largeValue is the size, in bytes, from which a value is large: encoding that much
	// takes some 50 us.
	largeValue = 16 << 10
	// pinnedPage is the number of bytes that an edit of a pinned string copies, and that
	// the snapshot writes at a time.
	pinnedPage = 64 << 10
	// packedString is the greatest length, in bytes, of a pinned string that the snapshot
	// compresses. Compression needs the string in one piece.
	packedString = 1 << 20
)

// large is a value at the cut, with the data of its record.
type large struct {
	sh         *shard
	kind       Kind
	key        []byte
	before     []byte // the record
	size       int    // about the size of the value in bytes
	deadline   int64
	idle, freq int64
	box        box    // one of: a frozen container,
	image      []byte // a copy of an image, or
	pin        *pinned
	words      [2]uint64 // the bytes of a record that refers to the value
	space      space
}

// large returns the value of a record if it lies outside of the record and is large; else nil.
func (c *shardSnapshot) large(sp *space, r *rec) *large {
	x := &sp.exts[handleOf(r.inlineValue())]
	if x.size < largeValue {
		return nil
	}
	l := &large{sh: c.sh, kind: r.Kind(), size: x.size, idle: c.s.idle(r), freq: c.s.freq(r), deadline: r.deadline()}
	switch {
	case x.box != nil:
		b, err := x.box.Freeze(c.tx)
		if err != nil {
			return nil // no memory: the caller encodes it at once
		}
		l.box = b
	case l.kind == String:
		l.pin = &pinned{bytes: x.bytes}
		x.pin = l.pin
	default:
		l.image = append([]byte(nil), x.bytes...)
	}
	l.key = append([]byte(nil), sp.key(r)...)
	if r.has(flagSlide) && !c.s.o.Plain {
		l.before = r.appendSlide(nil)
	}
	if r.hasFresh() && !c.s.o.Plain {
		l.before = r.appendFresh(l.before)
	}
	return l
}

// free frees the copies. No shard is locked. The next snapshot may freeze the same
// container, so free does not leave a frozen copy to the reclaimer.
func (l *large) free() {
	if l.pin != nil {
		l.pin.end()
	}
	for done := l.box == nil; !done; {
		l.sh.lock.Lock()
		done = l.box.Free(freeChunks)
		l.sh.lock.Unlock()
	}
}

// hit returns a hit for the value. Its record is in no table.
func (l *large) hit() *hit {
	l.space.sh, l.space.exts = l.sh, []ext{{}, {bytes: l.image, box: l.box}}
	r := (*rec)(unsafe.Pointer(&l.words))
	r.init(uint8(l.kind)|flagExt, 0, extSize)
	putHandle(r.inlineValue(), 1)
	return &hit{sh: l.sh, sp: &l.space, r: r}
}

// begin encodes the record up to its value.
func (l *large) begin(e *rdb.Encoder) {
	e.Reset(append(e.Buf[:0], l.before...))
	e.Key = l.key
	e.Record(l.deadline, l.idle, l.freq)
}

// writeLarge writes the record of a large value.
func (s *snapshot) writeLarge(ctx context.Context, w *rdb.Writer, p piece) error {
	l, e := p.large, &s.enc
	if l.pin == nil && l.size > wholeRecord {
		return s.writeInParts(ctx, w, p)
	}
	l.begin(e)
	switch {
	case l.pin != nil && len(l.pin.bytes) > packedString:
		return s.writePinned(ctx, w, p.db, l.pin, appendString(append(e.Buf, byte(rdb.TypeString)), l.key))
	case l.pin != nil:
		e.String(l.pin.all())
	default:
		s.tx.encodeValue(e, l.hit())
	}
	if e.Version() > rdb.PlainVersion {
		_ = w.Raise(e.Version())
	}
	err := w.Records(p.db, e.Buf)
	if cap(e.Buf) > keepDump {
		e.Buf = nil
	}
	return err
}

// writePinned writes a string after the bytes of head, page by page.
func (s *snapshot) writePinned(ctx context.Context, w *rdb.Writer, dbi int, p *pinned, head []byte) error {
	b := appendLength(head, uint64(len(p.bytes)))
	for n := 0; n < len(p.bytes); {
		before := len(b)
		b = p.take(b)
		n += len(b) - before
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.Records(dbi, b); err != nil {
			return err
		}
		b = b[:0]
		s.rest()
	}
	return nil
}

// pinned is a long string as of the cut. It may share its bytes with the living value, which
// transactions edit in place.
type pinned struct {
	bytes []byte

	mu    sync.Mutex
	pages map[int][]byte // the original contents of pages that a transaction has edited since
	next  int            // the snapshot has written the pages before this one
	over  bool
}

// edit saves the pages that contain the bytes from lo to hi. Transactions call it before they
// change these bytes in place. It copies each page that is changed for the first time.
func (p *pinned) edit(lo, hi int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if hi = min(hi, len(p.bytes)); p.over || lo >= hi {
		return
	}
	for i := max(lo/pinnedPage, p.next); i*pinnedPage < hi; i++ {
		if _, ok := p.pages[i]; ok {
			continue
		}
		if p.pages == nil {
			p.pages = map[int][]byte{}
		}
		p.pages[i] = append([]byte(nil), p.page(i)...)
	}
}

func (p *pinned) page(i int) []byte {
	return p.bytes[i*pinnedPage : min((i+1)*pinnedPage, len(p.bytes))]
}

// take appends the next page to dst; it appends nothing after the last.
func (p *pinned) take(dst []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.next
	if i*pinnedPage >= len(p.bytes) {
		return dst
	}
	p.next++
	if b, ok := p.pages[i]; ok {
		delete(p.pages, i)
		return append(dst, b...)
	}
	return append(dst, p.page(i)...)
}

// all returns the whole string.
func (p *pinned) all() []byte {
	b := make([]byte, 0, len(p.bytes))
	for n := -1; n < len(b); {
		n = len(b)
		b = p.take(b)
	}
	return b
}

// end records that the snapshot no longer needs the string.
func (p *pinned) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over, p.bytes, p.pages = true, nil, nil // the value may keep its reference to p
}

// edits must be called before a transaction changes the bytes from lo to hi of a string in place.
func (h *hit) edits(lo, hi int) {
	if h.r == nil || !h.r.has(flagExt) {
		return
	}
	if x := &h.sp.exts[handleOf(h.r.inlineValue())]; x.pin != nil {
		x.pin.edit(lo, hi)
	}
}

// appendLength appends a length in the format of files.
func appendLength(b []byte, n uint64) []byte {
	switch {
	case n < 1<<6:
		return append(b, byte(n))
	case n < 1<<14:
		return append(b, 0x40|byte(n>>8), byte(n))
	case bits.Len64(n) <= 32:
		return binary.BigEndian.AppendUint32(append(b, 0x80), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0x81), n)
}

// appendString appends a string in the format of files.
func appendString(b, s []byte) []byte { return append(appendLength(b, uint64(len(s))), s...) }
