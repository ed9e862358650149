package voter

import (
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/ebbdb/ebb/internal/group/directory"
)

// machine is the directory as raft's state machine. Raft calls Apply, Snapshot and Restore one at a time.
type machine struct {
	log     *slog.Logger
	changed chan struct{} // holds one signal

	mu    sync.Mutex // guards what follows
	state *directory.Directory
	err   error // why it has ended
}

func newMachine(log *slog.Logger) *machine {
	return &machine{log: log, changed: make(chan struct{}, 1), state: directory.New()}
}

// locked locks the state and returns the function that unlocks it.
func (m *machine) locked() func() {
	m.mu.Lock()
	return m.mu.Unlock
}

func (m *machine) broken() error {
	defer m.locked()()
	return m.err
}

// signal tells that the state has changed.
func (m *machine) signal() {
	select {
	case m.changed <- struct{}{}:
	default: // the signal before has not been taken
	}
}

// Apply applies an entry, and returns a directory.Answer, or an error. A command that cannot be read is an error for ever: with it
// left out, this state would not be that of the other voters.
func (m *machine) Apply(entry *raft.Log) any {
	defer m.signal()
	defer m.locked()()
	if m.err != nil {
		return m.err
	}
	c, err := directory.DecodeCommand(entry.Data)
	if err != nil {
		m.err = fmt.Errorf("entry %d of the group's directory cannot be read: %w", entry.Index, err)
		m.log.Error("this node no longer follows the group's directory", "error", m.err)
		return m.err
	}
	return m.state.Apply(c)
}

// Snapshot returns the state as it is now.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	defer m.locked()()
	if m.err != nil {
		return nil, m.err
	}
	return snapshot(m.state.Snapshot()), nil
}

// Restore replaces the state by that of a snapshot, which it closes.
func (m *machine) Restore(from io.ReadCloser) error {
	b, err := io.ReadAll(io.LimitReader(from, maxSnapshot+1))
	from.Close()
	if err == nil && len(b) > maxSnapshot {
		err = fmt.Errorf("the snapshot has more than %d bytes", maxSnapshot)
	}
	defer m.signal()
	defer m.locked()()
	if err == nil {
		err = m.state.Restore(b)
	}
	if err != nil {
		return fmt.Errorf("a snapshot of the group's directory cannot be read: %w", err)
	}
	m.err = nil // the snapshot is behind the entry that could not be read
	return nil
}

// snapshot is a state in bytes.
type snapshot []byte

// Persist writes the state to a file, or cancels that.
func (s snapshot) Persist(to raft.SnapshotSink) error {
	_, err := to.Write(s)
	if err != nil {
		_ = to.Cancel() // the error of Write says more
		return err
	}
	return to.Close()
}

// Release implements raft.FSMSnapshot.
func (s snapshot) Release() {}
