package engine

// A snapshot writes a frozen copy of a large container while the container goes on. The
// copy shares the container's chunks (internal/chunk: Loan): the live container copies a
// chunk of up to 64 KiB before its first write to it. So the two never touch the same
// bytes, and the snapshot reads the copy without the shard's lock. The copy is a box of
// the same kind as the live one, read-only, for one goroutine; Size returns the size that
// the live one had.
//
// The snapshot may free it outside the shard, and after the container is gone: the
// accounting of the two has a lock of its own. A container has one frozen copy at a time;
// Freeze returns a copy on its own chunks while there is one.

// Freeze implements box.
func (t hashTable) Freeze(tx *Tx) (box, error) {
	if t.Frozen() {
		return t.Clone(tx)
	}
	return hashTable{t.Dict.Freeze()}, nil
}

// Freeze implements box.
func (t setTable) Freeze(tx *Tx) (box, error) {
	if t.Frozen() {
		return t.Clone(tx)
	}
	return setTable{t.Dict.Freeze()}, nil
}

// Freeze implements box.
func (t zsetTree) Freeze(tx *Tx) (box, error) {
	if t.Frozen() {
		return t.Clone(tx)
	}
	return zsetTree{t.Set.Freeze()}, nil
}

// Freeze implements box.
func (b listBox) Freeze(tx *Tx) (box, error) {
	if b.Frozen() {
		return b.Clone(tx)
	}
	return listBox{b.List.Freeze()}, nil
}

// Freeze implements box.
func (s streamBox) Freeze(tx *Tx) (box, error) {
	if s.Frozen() {
		return s.Clone(tx)
	}
	return streamBox{s.Stream.Freeze()}, nil
}

// Freeze implements box.
func (b queueBox) Freeze(tx *Tx) (box, error) {
	if b.Frozen() {
		return b.Clone(tx)
	}
	return queueBox{b.Queue.Freeze()}, nil
}

// Freeze implements box.
func (b bloomBox) Freeze(tx *Tx) (box, error) {
	if b.Frozen() {
		return b.Clone(tx)
	}
	return bloomBox{b.Filter.Freeze()}, nil
}
