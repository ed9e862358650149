package voter

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ebbdb/ebb/internal/disk"
)

// fileName is the file of a voter, in the group's directory.
const fileName = "raft.log"

const (
	// slack is by how many bytes the file may exceed twice what it needs before it is written again. The directory's log has some
	// 100 KB, so the file stays below a megabyte, and is written again after some thousand entries.
	slack = 256 << 10
	// maxSnapshot bounds a snapshot. A directory has a few KB.
	maxSnapshot = 16 << 20
	// retryTerm is the time between two attempts to write a term.
	retryTerm = time.Second
)

// termKey is raft's key of the term that it is in. Raft ends the process if it cannot write it.
const termKey = "CurrentTerm"

var (
	errStoreClosed = errors.New("the group's file is closed")
	// errDamaged means that the file was not written as it is.
	errDamaged = errors.New("the file is damaged: if you remove it, the node comes back as another voter, which the leader admits")
)

// store keeps what a voter must not forget in one file, and all of it in memory as well: it implements raft.LogStore,
// raft.StableStore and raft.SnapshotStore. The file is a sequence of records, each of which is synced before the call that wrote it
// returns:
//
//	identity   the random number that names the file
//	value      of a key: the term, the vote
//	entries    of the log, which has no gaps
//	delete     entries at one end of the log
//	snapshot   the directory at an entry
//
// When it has grown too much, it is written again and renamed; so it is at each start, because what a process finds in a file need not
// be on the disk: the process before may have written it, and failed to sync it. After a failed write the file is written again
// as well, before anything else is: until then it is not known what is on the disk.
type store struct {
	fs   disk.FS
	name string
	log  *slog.Logger
	end  chan struct{} // closed by close

	mu     sync.Mutex // guards what follows; held during system calls
	file   disk.File  // nil: the file has to be written again
	size   int64      // of the file
	base   int64      // its size when it was last written again
	closed bool
	content
}

// openStore opens the file in a directory, and creates both if they are missing. random returns the number of a new file.
func openStore(fsys disk.FS, dir string, log *slog.Logger, random func() uint64) (*store, error) {
	s := &store{fs: fsys, name: filepath.Join(dir, fileName), log: log, end: make(chan struct{})}
	if err := fsys.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("the directory of the group's file: %w", err)
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
		return nil, fmt.Errorf("the group's file %s: %w", s.name, err)
	}
	return s, nil
}

// close ends the store. Calls that come later fail.
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

// rewrite writes the file again.
func (s *store) rewrite() error {
	if s.file != nil {
		if err := s.file.Close(); err != nil {
			s.log.Warn("closing the group's file", "file", s.name, "error", err)
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

// settle makes the file have the content, which it may not have after a failed write. A call that has nothing to write ends with it: the
// caller takes what it asked for as synced.
func (s *store) settle() error {
	if s.closed {
		return errStoreClosed
	}
	if s.file == nil {
		if err := s.rewrite(); err != nil {
			return fmt.Errorf("the group's file %s: %w", s.name, err)
		}
	}
	return nil
}

// write appends a record to the file, syncs it, and applies it.
func (s *store) write(body []byte) error {
	if err := s.settle(); err != nil {
		return err
	}
	b := appendRecord(nil, body)
	_, err := s.file.Write(b)
	if err == nil {
		err = s.file.Sync()
	}
	if err != nil {
		_ = s.file.Close() // what is on the disk is not known anyway
		s.file = nil
		return fmt.Errorf("the group's file %s: %w", s.name, err)
	}
	if err := s.apply(body); err != nil {
		return err
	}
	if s.size += int64(len(b)); s.size > 2*s.base+slack {
		if err := s.rewrite(); err != nil { // the record is synced; the next one is written when this has succeeded
			s.log.Warn("the group's file could not be written again", "file", s.name, "error", err)
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

// IsMonotonic says that the log has no gaps: raft removes what is before a snapshot that it gets from the leader.
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
			return fmt.Errorf("the group's log continues with entry %d, not with %d", next+uint64(i), e.Index)
		}
	}
	return s.write(entriesRecord(all))
}

// DeleteRange implements raft.LogStore: it removes entries at one end of the log.
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
		return fmt.Errorf("the group's log has no gaps: it goes from %d to %d, so %d to %d cannot be removed", first, last, from, to)
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

// Get implements raft.StableStore. It returns nothing for a key that was not set.
func (s *store) Get(key []byte) ([]byte, error) {
	defer s.locked()()
	return s.values[string(key)], nil
}

// SetUint64 implements raft.StableStore. Raft ends the process if its term cannot be written, for example because the disk is full.
// The voter waits instead, as if it were cut off from the others, until the term is written. If it is closed meanwhile, it says no
// more: a vote or an entry would have to be written as well, and is not.
func (s *store) SetUint64(key []byte, value uint64) error {
	for tries := 0; ; tries++ {
		err := s.Set(key, number(value))
		if err == nil || string(key) != termKey {
			return err
		}
		if tries == 0 {
			s.log.Warn("this node has no vote until the group's file can be written", "error", err)
		}
		if s.wait() {
			return nil
		}
	}
}

// wait waits before a write that has failed is tried again, and reports whether the store was closed meanwhile.
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
