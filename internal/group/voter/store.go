package voter

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ebbdb/ebb/internal/disk"
)

// FileName is the name of a voter's file, in the folder of its group.
const FileName = "raft.log"

const (
	// slack is the number of bytes by which the file may exceed twice its size after the last rewrite. The
	// directory's log has about 100 KB, so the file stays below a megabyte and is rewritten after some thousand
	// entries.
	slack = 256 << 10
	// maxSnapshot limits the bytes of a snapshot. A directory has a few KB.
	maxSnapshot = 16 << 20
	// retryTerm is the time between two attempts to write the term.
	retryTerm = time.Second
)

// termKey is raft's key for its term. Raft ends the process if it cannot write the term.
const termKey = "CurrentTerm"

var (
	errStoreClosed = errors.New("the group's file is closed")
	// errDamaged means that the file has content that this program did not write.
	errDamaged = errors.New("the file is damaged: remove it, and the node comes back as a new voter, which the leader admits")
)

// store is the durable state of a voter, in one file and in memory. It implements raft.LogStore, raft.StableStore and
// raft.SnapshotStore. The file is a sequence of records; each is synced before the call that wrote it returns:
//
//	identity   the random number that names the file
//	value      of a key: the term, the vote
//	entries    of the log, which has no gaps
//	delete     entries at one end of the log
//	snapshot   the directory at an entry
//
// The file is rewritten (written to a new file and renamed) when it has grown too much, and at each start: the bytes
// that a process reads need not be on the disk, because the previous process may have failed to sync them. After a
// failed write the file is rewritten before the next write, because the content on the disk is unknown.
type store struct {
	fs   disk.FS
	name string
	log  *slog.Logger
	end  chan struct{} // closed by close; ends wait

	patience time.Duration // the time after which a write counts as hanging; 0: none does
	writing  atomic.Uint64 // the number of the write that is under way; 0: none
	hung     atomic.Uint64 // the number of the last write that took longer than patience

	mu     sync.Mutex // guards the fields below; held during system calls
	file   disk.File  // nil: the file must be rewritten
	size   int64      // of the file, in bytes
	base   int64      // size after the last rewrite
	closed bool
	writes uint64 // the number of writes that have begun
	content
}

// openStore opens the file in a directory, and creates both if they are missing. random returns the identity of a new
// file.
func openStore(fsys disk.FS, dir string, log *slog.Logger, random func() uint64) (*store, error) {
	s := &store{fs: fsys, name: filepath.Join(dir, FileName), log: log, end: make(chan struct{})}
	if err := fsys.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("cannot create the directory of the group's file: %w", err)
	}
	b, err := fsys.ReadFile(s.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		for s.identity == 0 {
			s.identity = random()
		}
	case err == nil:
		err = s.load(b)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = s.rewrite()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the group's file %s: %w", s.name, err)
	}
	return s, nil
}

// close closes the store. Later calls fail with errStoreClosed.
func (s *store) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	close(s.end)
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// rewrite replaces the file by one with the present content.
func (s *store) rewrite() error {
	if s.file != nil {
		if err := s.file.Close(); err != nil {
			s.log.Warn("cannot close the group's file", "file", s.name, "error", err)
		}
		s.file = nil
	}
	b := s.content.append(nil)
	if err := disk.WriteFile(s.fs, s.name, b); err != nil {
		return err
	}
	file, err := s.fs.Append(s.name)
	if err != nil {
		return err
	}
	s.file, s.size, s.base = file, int64(len(b)), int64(len(b))
	return nil
}

// settle rewrites the file if a write has failed since the last rewrite. Calls without anything to write end with
// settle, because their caller takes the present content as synced.
func (s *store) settle() error {
	if s.closed {
		return errStoreClosed
	}
	if s.file == nil {
		if err := s.rewrite(); err != nil {
			return fmt.Errorf("cannot rewrite the group's file %s: %w", s.name, err)
		}
	}
	return nil
}

// write appends a record to the file, syncs it, and applies it.
func (s *store) write(body []byte) error {
	defer s.watch()()
	if err := s.settle(); err != nil {
		return err
	}
	b := appendRecord(nil, body)
	_, err := s.file.Write(b)
	if err == nil {
		err = s.file.Sync()
	}
	if err != nil {
		_ = s.file.Close() // the content on the disk is unknown anyway
		s.file = nil
		return fmt.Errorf("cannot write the group's file %s: %w", s.name, err)
	}
	if err := s.apply(body); err != nil {
		return err
	}
	if s.size += int64(len(b)); s.size > 2*s.base+slack {
		if err := s.rewrite(); err != nil { // the record itself is synced; the next write rewrites first
			s.log.Warn("cannot rewrite the group's file", "file", s.name, "error", err)
		}
	}
	return nil
}

// locked locks the store and returns the function that unlocks it.
func (s *store) locked() func() {
	s.mu.Lock()
	return s.mu.Unlock
}

// The log: raft.LogStore.

// FirstIndex implements raft.LogStore.
func (s *store) FirstIndex() (uint64, error) {
	defer s.locked()()
	if len(s.entries) == 0 {
		return 0, nil
	}
	return s.entries[0].Index, nil
}

// LastIndex implements raft.LogStore.
func (s *store) LastIndex() (uint64, error) {
	defer s.locked()()
	if len(s.entries) == 0 {
		return 0, nil
	}
	return s.entries[len(s.entries)-1].Index, nil
}

// GetLog implements raft.LogStore.
func (s *store) GetLog(index uint64, to *raft.Log) error {
	defer s.locked()()
	if len(s.entries) == 0 || index < s.entries[0].Index || index > s.entries[len(s.entries)-1].Index {
		return raft.ErrLogNotFound
	}
	*to = s.entries[index-s.entries[0].Index]
	return nil
}

// IsMonotonic reports that the log has no gaps: raft then removes all entries before a snapshot that it receives from
// the leader.
func (s *store) IsMonotonic() bool { return true }

// StoreLog implements raft.LogStore.
func (s *store) StoreLog(entry *raft.Log) error { return s.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements raft.LogStore.
func (s *store) StoreLogs(all []*raft.Log) error {
	defer s.locked()()
	if len(all) == 0 {
		return s.settle()
	}
	next := all[0].Index
	if n := len(s.entries); n > 0 {
		next = s.entries[n-1].Index + 1
	}
	for i, e := range all {
		if e.Index != next+uint64(i) {
			return fmt.Errorf("the group's log continues with entry %d, got entry %d", next+uint64(i), e.Index)
		}
	}
	return s.write(entriesRecord(all))
}

// DeleteRange implements raft.LogStore. It removes entries at one end of the log.
func (s *store) DeleteRange(from, to uint64) error {
	defer s.locked()()
	if len(s.entries) == 0 {
		return s.settle()
	}
	first, last := s.entries[0].Index, s.entries[len(s.entries)-1].Index
	if to < first || from > last || from > to {
		return s.settle()
	}
	if from > first && to < last {
		return fmt.Errorf("the group's log has the entries %d to %d: cannot remove %d to %d, which would leave a gap", first, last, from, to)
	}
	return s.write(deleteRecord(from, to))
}

// The term and the vote: raft.StableStore.

// Set implements raft.StableStore.
func (s *store) Set(key, value []byte) error {
	defer s.locked()()
	if old, ok := s.values[string(key)]; ok && string(old) == string(value) {
		return s.settle()
	}
	return s.write(valueRecord(key, value))
}

// Get implements raft.StableStore. It returns nil for a key that was not set.
func (s *store) Get(key []byte) ([]byte, error) {
	defer s.locked()()
	return s.values[string(key)], nil
}

// SetUint64 implements raft.StableStore. Raft ends the process if it cannot write its term, for example because the
// disk is full. So SetUint64 tries again until the term is written; meanwhile the voter acts as if it were cut off.
// If the store is closed meanwhile, SetUint64 returns nil: that is safe, because a vote or an entry in the new term
// would need a write too, which fails.
func (s *store) SetUint64(key []byte, value uint64) error {
	for tries := 0; ; tries++ {
		err := s.Set(key, number(value))
		if err == nil || string(key) != termKey {
			return err
		}
		if tries == 0 {
			s.log.Warn("cannot write the group's file: this node does not vote until it can", "error", err)
		}
		if s.wait() {
			return nil
		}
	}
}

// wait waits for retryTerm. It reports true if the store is closed meanwhile.
func (s *store) wait() (closed bool) {
	t := time.NewTimer(retryTerm)
	defer t.Stop()
	select {
	case <-t.C:
		return false
	case <-s.end:
		return true
	}
}

// GetUint64 implements raft.StableStore. It returns 0 for a key that was not set.
func (s *store) GetUint64(key []byte) (uint64, error) {
	b, err := s.Get(key)
	if err != nil || len(b) == 0 {
		return 0, err
	}
	return parseNumber(b)
}
