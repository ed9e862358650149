package dict

import "encoding/binary"

// deadlineSize is the bytes of a deadline in an item: 48 bits. Seven or eight would push
// one item in four or eight into the next granule, for years beyond any use.
const deadlineSize = 6

// expired is the rule of the whole program: an item is dead when its deadline has passed.
func expired(deadline, now int64) bool { return deadline != 0 && now > deadline }

// clampDeadline clamps a deadline to the range that an item can store; Keep becomes 0.
func clampDeadline(deadline int64) int64 { return min(max(deadline, 0), MaxDeadline) }

// Alive reports whether an item lives at now. All reads use this test. It does not look at the item while none is due.
func (d *Dict) Alive(ref uint32, now int64) bool {
	return d.earliest == 0 || now <= d.earliest || !expired(d.deadlineOf(ref), now)
}

// payload returns the number of bytes of an item after the heap's header.
func (d *Dict) payload(key, value []byte, deadline int64) int {
	n := len(key) + len(value)
	if deadline != 0 {
		n += deadlineSize
	}
	if d.fixed == Variable {
		n += uvarintSize(len(key))
	}
	return n
}

// write writes an item into a record of payload bytes.
func (d *Dict) write(ref uint32, key, value []byte, deadline int64) {
	b := d.heap.Edit(ref)
	d.heap.SetMark(ref, deadline != 0)
	if deadline != 0 {
		putDeadline(b, deadline)
		b = b[deadlineSize:]
	}
	if d.fixed == Variable {
		b = b[binary.PutUvarint(b, uint64(len(key))):]
		copy(b[copy(b, key):], value)
		return
	}
	copy(b[copy(b, value):], key)
}

// parts decodes an item.
func (d *Dict) parts(ref uint32) (deadline int64, key, value []byte) {
	b, marked := d.heap.Look(ref)
	if marked {
		deadline = getDeadline(b)
		b = b[deadlineSize:]
	}
	if d.fixed != Variable {
		return deadline, b[d.fixed:], b[:d.fixed:d.fixed]
	}
	n := int(b[0])
	if n < 0x80 {
		b = b[1:]
	} else {
		u, k := binary.Uvarint(b)
		n, b = int(u), b[k:]
	}
	return deadline, b[:n:n], b[n:]
}

// deadlineOf returns an item's deadline, 0 if it has none.
func (d *Dict) deadlineOf(ref uint32) int64 {
	b, marked := d.heap.Look(ref)
	if !marked {
		return 0
	}
	return getDeadline(b)
}

func putDeadline(b []byte, deadline int64) {
	binary.LittleEndian.PutUint32(b, uint32(deadline))
	binary.LittleEndian.PutUint16(b[4:], uint16(deadline>>32))
}

func getDeadline(b []byte) int64 {
	return int64(binary.LittleEndian.Uint32(b)) | int64(binary.LittleEndian.Uint16(b[4:]))<<32
}

// uvarintSize returns the bytes that binary.PutUvarint writes.
func uvarintSize(n int) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}
