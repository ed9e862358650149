package voter

import (
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/ebbdb/ebb/internal/group/directory"
)

// machine is raft's state machine: the directory. Raft calls Apply, Snapshot and Restore one at a time.
type machine struct {
	log     *slog.Logger
	changed chan struct{} // signals a change; capacity 1

	mu    sync.Mutex // guards the fields below
	state *directory.Directory
	err   error // the command that ended the machine; nil: none
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

// signal reports a change of the state on changed.
func (m *machine) signal() {
	select {
	case m.changed <- struct{}{}:
	default: // a signal is pending already
	}
}

// Apply applies an entry. It returns a directory.Answer or an error. A command that cannot be decoded ends the
// machine: if it were skipped, this state would differ from that of the other voters.
func (m *machine) Apply(entry *raft.Log) any {
	defer m.signal()
	defer m.locked()()
	if m.err != nil {
		return m.err
	}
	c, err := directory.DecodeCommand(entry.Data)
	if err != nil {
		m.err = fmt.Errorf("cannot decode entry %d of the group's directory: %w", entry.Index, err)
		m.log.Error("this node no longer follows the group's directory", "error", m.err)
		return m.err
	}
	return m.state.Apply(c)
}

// Snapshot returns a copy of the present state.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	defer m.locked()()
	if m.err != nil {
		return nil, m.err
	}
	return snapshot(m.state.Snapshot()), nil
}

// Restore replaces the state by a snapshot, and closes from.
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
		return fmt.Errorf("cannot read a snapshot of the group's directory: %w", err)
	}
	m.err = nil // the snapshot is newer than the entry that could not be decoded
	return nil
}

// snapshot is an encoded state.
type snapshot []byte

// Persist writes the snapshot to a sink. It cancels the sink after an error.
func (s snapshot) Persist(to raft.SnapshotSink) error {
	_, err := to.Write(s)
	if err != nil {
		_ = to.Cancel() // the error of Write is the one to return
		return err
	}
	return to.Close()
}

// Release implements raft.FSMSnapshot.
func (s snapshot) Release() {}
