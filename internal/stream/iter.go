package stream

import "github.com/ebbdb/ebb/internal/packed"

// cursor is a position between the entries of a piece. The zero cursor is before the first one.
type cursor struct {
	pos  int // the position of the next entry in the piece's data; 0: not known yet
	n    int // entries before it
	prev ID  // the id of the one before it
}

// start moves a zero cursor to the first entry of a piece.
func (c *cursor) start(p *piece, data []byte) {
	if c.pos == 0 {
		n, q := uvarint(data, 0)
		for range n {
			l, r := uvarint(data, q)
			q = r + int(l)
		}
		c.pos, c.prev = q, p.first
	}
}

// next reads the entry at the cursor and moves past it. The entry's own bytes are data[body:c.pos].
func (c *cursor) next(data []byte) (flags uint64, body int) {
	v, q := uvarint(data, c.pos)
	c.pos = q + int(v>>flagBits)
	c.prev, body = getID(data, q, c.prev)
	c.n++
	return v, body
}

// Entry is a stored entry. It is valid until the stream changes.
type Entry struct {
	id    ID
	data  []byte // the data of the piece
	body  []byte // the data after the id
	other bool

	left    int // the number of fields not read yet
	nameAt  int // the position in data, or in body if other
	valueAt int // the position in body
}

// ID returns the entry's id.
func (e *Entry) ID() ID { return e.id }

// Fields begins to read the fields and returns how many there are.
func (e *Entry) Fields() int {
	src := e.data
	if e.other {
		src = e.body
	}
	n, p := uvarint(src, 0)
	e.left, e.nameAt, e.valueAt = int(n), p, 0
	if e.other {
		for range n {
			var l uint64
			if l, p = uvarint(src, p); l&1 == 0 {
				p += int(l >> 1)
			}
		}
		e.valueAt = p
	}
	return int(n)
}

// Field returns the next field. The caller calls it as often as Fields has returned. The bytes lie
// in the stream's memory.
func (e *Entry) Field() (name []byte, value packed.Str) {
	if !e.other {
		l, p := uvarint(e.data, e.nameAt)
		e.nameAt = p + int(l)
		name = e.data[p:e.nameAt:e.nameAt]
	} else if l, p := uvarint(e.body, e.nameAt); l&1 != 0 {
		e.nameAt = p
		name = names(e.data).at(int(l >> 1))
	} else {
		e.nameAt = p + int(l>>1)
		name = e.body[p:e.nameAt:e.nameAt]
	}
	value, e.valueAt = getValue(e.body, e.valueAt)
	return name, value
}

// Iter walks the entries upwards. It is valid until the stream changes.
type Iter struct {
	Entry
	s    *Stream
	from ID
	at   place
	p    *piece // nil before the first piece and after the last one
	c    cursor
}

// Iter returns an iterator before the first entry whose id is at least from.
// O(log n).
func (s *Stream) Iter(from ID) (it Iter) {
	it.s, it.from = s, from
	if s.pieces > 0 {
		it.at.g, it.at.e = s.find(from)
		it.enter()
	}
	return it
}

// enter begins the piece at it.at.
func (it *Iter) enter() {
	it.p = it.s.at(it.at)
	it.data = it.s.bytes(it.p)
	it.c = cursor{}
	if it.at == (place{}) {
		it.c = it.s.head
	}
	it.c.start(it.p, it.data)
}

// Next moves to the next entry; false if there is none. Amortised O(1).
func (it *Iter) Next() bool {
	for it.p != nil {
		if it.c.n == int(it.p.stored) {
			at, ok := it.s.after(it.at)
			if !ok {
				it.p = nil
				return false
			}
			it.at = at
			it.enter()
		}
		flags, body := it.c.next(it.data)
		if flags&flagDeleted != 0 || it.c.prev.Less(it.from) {
			continue
		}
		it.id, it.body, it.other = it.c.prev, it.data[body:it.c.pos], flags&flagOther != 0
		return true
	}
	return false
}

// Back walks the entries downwards. It is valid until the stream changes. Its
// size is 3 KiB: use a variable, not a copy.
type Back struct {
	Entry
	s      *Stream
	at     place
	from   ID
	more   bool // at is a piece that enter has not read yet
	n      int  // living entries of the current piece to come
	ids    [pieceEntries]ID
	bodies [pieceEntries]struct {
		start, end uint32
		other      bool
	}
}

// Back moves b after the last entry whose id is at most from. O(log n).
func (s *Stream) Back(b *Back, from ID) {
	b.s, b.from, b.n = s, from, 0
	if b.more = s.pieces > 0; b.more {
		b.at.g, b.at.e = s.find(from)
	}
}

// Close removes b's references to its stream.
func (b *Back) Close() {
	b.Entry, b.s = Entry{}, nil
	b.n, b.more = 0, false
}

// Next moves to the previous entry; false if there is none. Amortised O(1).
func (b *Back) Next() bool {
	for b.n == 0 {
		if !b.more {
			return false
		}
		b.enter()
		b.at, b.more = b.s.before(b.at)
	}
	b.n--
	e := &b.bodies[b.n]
	b.id, b.body, b.other = b.ids[b.n], b.data[e.start:e.end], e.other
	return true
}

// enter finds the entries of the piece at b.at, which can only be read upwards.
func (b *Back) enter() {
	p := b.s.at(b.at)
	b.data = b.s.bytes(p)
	var c cursor
	if b.at == (place{}) {
		c = b.s.head
	}
	for c.start(p, b.data); c.n < int(p.stored); {
		flags, body := c.next(b.data)
		if b.from.Less(c.prev) {
			return
		}
		if flags&flagDeleted == 0 {
			b.ids[b.n] = c.prev
			e := &b.bodies[b.n]
			e.start, e.end, e.other = uint32(body), uint32(c.pos), flags&flagOther != 0
			b.n++
		}
	}
}
