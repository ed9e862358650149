package voter

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// A disk that hangs returns no error. Raft's leader waits for it, and its heartbeats go on: nothing is decided, and no other leader is
// elected. So the voter says nothing as the leader while a write takes too long, as one whose disk is full.

var errHangs = errors.New("the group's file has not been written for too long: this node lets others lead")

// watch notes that a write begins, and returns the function that notes its end. mu is held.
func (s *store) watch() (done func()) {
	if s.patience == 0 {
		return func() {}
	}
	s.writes++
	n := s.writes
	s.writing.Store(n)
	t := time.AfterFunc(s.patience, func() {
		s.hung.Store(n)
		s.log.Warn("the group's file is not written: its disk hangs, and another node is to lead the group", "file", s.name)
	})
	return func() {
		t.Stop()
		s.writing.Store(0)
	}
}

// hangs reports whether a write is under way that takes too long.
func (s *store) hangs() bool {
	n := s.writing.Load()
	return n != 0 && n == s.hung.Load()
}

// guarded is the transport of a voter that does not lead while its disk hangs.
type guarded struct {
	Transport
	store *store
}

// AppendEntries implements raft.Transport: it carries the heartbeats of a leader.
func (g guarded) AppendEntries(id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest,
	resp *raft.AppendEntriesResponse) error {
	if g.store.hangs() {
		return errHangs
	}
	return g.Transport.AppendEntries(id, to, args, resp)
}
