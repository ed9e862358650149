package engine

// A frozen copy of a large container is what a snapshot writes out while the
// container goes on. It shares the container's chunks (internal/chunk: Loan): the
// live one copies a chunk of up to 64 KiB before its first write to it, so that
// the two never touch the same bytes, and the copy is read without the shard's
// lock. It is a box of the same kind as the live one, to be read only, by one
// goroutine; Size tells what the live one held.
//
// It need not be given back in the same shard, or while the container still
// exists: what the two account for has a lock of its own. There is one frozen copy
// of a container at a time; who asks for another gets a copy on its own chunks.

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
