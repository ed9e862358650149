package chunktest

import (
	"bytes"
	"fmt"
)

// Frozen watches a frozen copy of a container while the live one goes on: a
// goroutine reads the copy meanwhile, so that the race detector sees it, and
// nothing may write to the chunks that were there, nor free one.
type Frozen struct {
	mem    *Memory
	sealed map[uint32][]byte
	read   func() error
	done   chan error
}

// Watch begins to watch a copy that has just been frozen; the Memory is the
// container's alone. read reads the copy and says what is wrong with it.
func Watch(m *Memory, read func() error) *Frozen {
	f := &Frozen{mem: m, sealed: make(map[uint32][]byte), read: read, done: make(chan error, 1)}
	for ref, b := range m.chunks {
		f.sealed[ref] = bytes.Clone(b)
	}
	go func() { f.done <- read() }()
	return f
}

// Check returns an error if the live container has written to a chunk that it
// shares with the copy, or freed one.
func (f *Frozen) Check() error {
	for ref, was := range f.sealed {
		is, ok := f.mem.chunks[ref]
		if !ok {
			return fmt.Errorf("chunktest: chunk %d was freed, which a frozen copy reads", ref)
		}
		if !bytes.Equal(is, was) {
			at := 0
			for is[at] == was[at] {
				at++
			}
			return fmt.Errorf("chunktest: chunk %d was written to at %d of %d, which a frozen copy reads", ref, at, len(is))
		}
	}
	return nil
}

// End waits for the reader, reads once more, and says what was wrong. The copy
// can be freed then.
func (f *Frozen) End() error {
	if err := <-f.done; err != nil {
		return fmt.Errorf("read meanwhile: %w", err)
	}
	if err := f.Check(); err != nil {
		return err
	}
	return f.read()
}
