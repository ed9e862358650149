package voter

import (
	"bytes"
	"fmt"
	"io"

	"github.com/hashicorp/raft"
)

// Snapshots are records of the store's file, of which the newest one counts. This file implements raft.SnapshotStore.

// saved is a snapshot: the directory after an entry, and the voters at that entry.
type saved struct {
	index, term   uint64
	configuration []byte // encoded by raft.EncodeConfiguration
	configured    uint64 // the index of the entry with the configuration
	state         []byte
}

func (s *saved) id() string { return fmt.Sprintf("%d-%d", s.term, s.index) }

func (s *saved) meta() *raft.SnapshotMeta {
	return &raft.SnapshotMeta{Version: raft.SnapshotVersionMax, ID: s.id(), Index: s.index, Term: s.term,
		Configuration: raft.DecodeConfiguration(s.configuration), ConfigurationIndex: s.configured, Size: int64(len(s.state))}
}

// List implements raft.SnapshotStore.
func (s *store) List() ([]*raft.SnapshotMeta, error) {
	defer s.locked()()
	if s.snapshot == nil {
		return nil, nil
	}
	return []*raft.SnapshotMeta{s.snapshot.meta()}, nil
}

// Open implements raft.SnapshotStore.
func (s *store) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	defer s.locked()()
	if s.snapshot == nil || s.snapshot.id() != id {
		return nil, nil, fmt.Errorf("the group's file has no snapshot %s", id)
	}
	return s.snapshot.meta(), io.NopCloser(bytes.NewReader(s.snapshot.state)), nil
}

// Create implements raft.SnapshotStore.
func (s *store) Create(version raft.SnapshotVersion, index, term uint64, c raft.Configuration, configured uint64,
	_ raft.Transport) (raft.SnapshotSink, error) {
	if version != raft.SnapshotVersionMax {
		return nil, fmt.Errorf("cannot write a snapshot of version %d, want %d", version, raft.SnapshotVersionMax)
	}
	return &sink{store: s, saved: saved{index: index, term: term, configuration: raft.EncodeConfiguration(c), configured: configured}}, nil
}

// sink collects a snapshot in memory. Close writes it to the file.
type sink struct {
	store *store
	saved
	done bool
}

// Write adds bytes to the snapshot.
func (k *sink) Write(b []byte) (int, error) {
	if len(k.state)+len(b) > maxSnapshot {
		return 0, fmt.Errorf("a snapshot of the group's directory has more than %d bytes", maxSnapshot)
	}
	k.state = append(k.state, b...)
	return len(b), nil
}

// Close writes the snapshot to the file, unless it was cancelled.
func (k *sink) Close() error {
	if k.done {
		return nil
	}
	k.done = true
	defer k.store.locked()()
	return k.store.write(k.record())
}

// ID implements raft.SnapshotSink.
func (k *sink) ID() string { return k.id() }

// Cancel discards the snapshot.
func (k *sink) Cancel() error {
	k.done = true
	return nil
}
