package dict

import "encoding/binary"

// AddRoom stores an item without a deadline, with a value of n bytes that are
// unspecified, under a key that Find does not find; the caller fills them through
// Edit. For dicts with values of any length. Expected O(1). Errors: ErrNoMemory.
func (d *Dict) AddRoom(key []byte, n int) (ref uint32, err error) {
	h := d.hash(key)
	if !d.reserveSlot(h) {
		return 0, ErrNoMemory
	}
	ref, ok := d.heap.Alloc(uvarintSize(len(key)) + len(key) + n)
	if !ok {
		return 0, ErrNoMemory
	}
	b := d.heap.Edit(ref)
	copy(b[binary.PutUvarint(b, uint64(len(key))):], key)
	d.insertSlot(h, ref)
	d.grow()
	return ref, nil
}

// Edit returns an item's value, to be written to, under the rules of Item. Its
// length stays what it is. O(1).
func (d *Dict) Edit(ref uint32) []byte {
	d.heap.Edit(ref)
	return d.Value(ref)
}
