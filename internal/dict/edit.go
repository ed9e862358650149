package dict

import "encoding/binary"

// AddRoom stores an item without a deadline under a key that the dict does not have. The value has
// n unspecified bytes, which the caller fills through Edit. It is for dicts with values of any
// length. Expected O(1). Errors: ErrNoMemory.
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

// Edit returns an item's value for writing, under the rules of Item. The caller cannot change its
// length. O(1).
func (d *Dict) Edit(ref uint32) []byte {
	d.heap.Edit(ref)
	return d.Value(ref)
}
