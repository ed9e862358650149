package engine

// A snapshot writes a frozen copy of a large container while transactions change the container. The
// copy shares the container's chunks (internal/chunk: Loan): the live container copies a chunk of
// up to 64 KiB before its first write to it. So the two never touch the same bytes, and the
// snapshot reads the copy without the shard's lock. The copy is a box of the same kind as the live
// one, read-only, for one goroutine. Its Size is the size of the live box at the time of Freeze.
//
// The snapshot may free the copy without the shard's lock, and after the container is deleted; a
// separate lock guards the accounting of the two. A container has at most one frozen copy that
// shares its chunks. A further Freeze returns a copy with chunks of its own.

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
