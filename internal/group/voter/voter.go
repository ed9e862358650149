// Package voter is a node's voice in the group: its copy of the directory, which hashicorp/raft keeps the same on all voters.
//
//	Propose ─▶ raft's log ─▶ a majority has it on disk ─▶ machine.Apply ─▶ directory.Directory ─▶ Answer
//	              │                                          │
//	          raft.log, synced before it counts          a snapshot, after each 1,000 commands or so
//
// Raft is right as long as no voter forgets what it has said. One that has lost its file has forgotten it, and could vote a second
// time in a term, for another leader: that one may lack what the first one committed. So a voter is named by its node and by a
// random number in its file (Server), and connections name the voter that they want: one that comes back without its file is
// another one, to which nothing that was meant for the one before gets through. It has no vote until the leader admits it in the
// place of the one before (Admit).
//
// Invariants:
//
//   - A vote and an entry of the log are synced before the voter answers (store).
//   - A command that this version cannot read ends the voter (Err): the states of the others went on without it.
//
// Start reading at Open, then Voter.Propose.
package voter

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/group/directory"
)

// Errors of proposals. After another error of Propose it is not known whether the command is, or will be, applied.
var (
	// ErrNotLeader means that another voter leads: nothing was done.
	ErrNotLeader = errors.New("this node does not lead the group's directory")
	// ErrClosed means that the voter has ended.
	ErrClosed = errors.New("the group's directory is closed")
	// ErrTooLarge means that a command has more than maxCommand bytes.
	ErrTooLarge = errors.New("the command is too large for the group's directory")
	// ErrFounded means that the voter has been in a group before.
	ErrFounded = errors.New("this node is in a group already")
)

const (
	// maxCommand bounds an entry. The largest command is a Create, of some bytes a member.
	maxCommand = 64 << 10
	// snapshotAfter is the number of applied entries between two snapshots. An entry has some 50 bytes and a snapshot a few KB;
	// a voter that starts applies 1,000 entries in a few ms.
	snapshotAfter = 1024
	// trailing is the number of entries that a voter keeps behind a snapshot, for voters that were away for a short time.
	trailing = 256
	// minTimeout is the shortest Timeout: raft wants 5 ms of what it derives from it.
	minTimeout = 100 * time.Millisecond
)

// Config says how a voter works. All fields but FS, Logger and Random are required.
type Config struct {
	Node    directory.NodeID
	Address string        // host:port at which other nodes reach this one
	FS      disk.FS       // nil: that of the system
	Dir     string        // of its file, which Open creates
	Timeout time.Duration // for how long a leader may be silent before others elect the next one: from a quarter to a half of it
	Logger  *slog.Logger  // nil: none
	// Network connects the voters. self is what Open found in the file, or has put there.
	Network func(self Server) (Transport, error)
	// Random returns the number that names a new file; nil: from crypto/rand.
	Random func() uint64
}

// Transport carries raft's messages between voters: Over makes one, and raft has one in memory.
type Transport = raft.Transport

// Voter is a voter of the group. It is safe for concurrent use.
type Voter struct {
	self    Server
	timeout time.Duration
	store   *store
	machine *machine
	raft    *raft.Raft
}

// Open starts a voter. With the file of a voter of this group it goes on where that one ended, and otherwise it waits: for Found, or
// until a leader has admitted it. The caller ends it by Close.
func Open(c Config) (*Voter, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	s, err := openStore(c.FS, c.Dir, c.Logger, c.Random)
	if err != nil {
		return nil, err
	}
	v := &Voter{self: Server{Node: c.Node, Store: s.identity, Address: c.Address}, timeout: c.Timeout, store: s, machine: newMachine(c.Logger)}
	if err := v.start(c); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return v, nil
}

func (c *Config) check() error {
	switch {
	case c.Node == 0:
		return errors.New("a voter needs the number of its node, from 1 on")
	case c.Timeout < minTimeout:
		return fmt.Errorf("the voter's timeout is %v, want at least %v", c.Timeout, minTimeout)
	case c.Dir == "":
		return errors.New("a voter needs a directory for its file")
	case c.Network == nil:
		return errors.New("a voter needs a network")
	}
	if c.FS == nil {
		c.FS = disk.OS()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Random == nil {
		c.Random = random
	}
	return nil
}

// random returns a number from the system's source, which does not fail.
func random() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // ends the process instead of returning an error
	return binary.BigEndian.Uint64(b[:])
}

// start begins the voter on its store.
func (v *Voter) start(c Config) error {
	network, err := c.Network(v.self)
	if err != nil {
		return err
	}
	v.raft, err = raft.NewRaft(c.raft(v.self), v.machine, v.store, v.store, v.store, network)
	if err != nil {
		if closer, ok := network.(raft.WithClose); ok {
			err = errors.Join(err, closer.Close())
		}
		return fmt.Errorf("the group's directory in %s: %w", c.Dir, err)
	}
	return nil
}

// raft returns the library's settings. A leader that reaches no majority steps down after a quarter of Timeout; the others begin an
// election after a quarter to a half, so that a leader is there when Timeout has passed and a master may have to be replaced.
func (c *Config) raft(self Server) *raft.Config {
	r := raft.DefaultConfig()
	r.LocalID = self.id()
	r.HeartbeatTimeout, r.ElectionTimeout, r.LeaderLeaseTimeout = c.Timeout/4, c.Timeout/4, c.Timeout/4
	r.CommitTimeout = c.Timeout / 40
	r.SnapshotThreshold, r.TrailingLogs = snapshotAfter, trailing
	r.MaxAppendEntries = 64
	r.ShutdownOnRemove = false // it may be admitted again
	r.NoLegacyTelemetry = true
	r.Logger = logger{c.Logger}
	return r
}

// Self returns the name of this voter.
func (v *Voter) Self() Server { return v.self }

// Founded reports whether the voter has a state of a group, which it has begun or which its leader has sent. Then it is in that group,
// and Found is not for it.
func (v *Voter) Founded() bool {
	founded, err := raft.HasExistingState(v.store, v.store, v.store)
	return founded || err != nil
}

// Found begins the group with these voters, one of which is this one. One voter of a new group calls it, once all others have said
// that they are not founded and how they are named. It returns ErrFounded if this one is.
func (v *Voter) Found(all []Server) error {
	var c raft.Configuration
	for _, s := range all {
		c.Servers = append(c.Servers, raft.Server{ID: s.id(), Address: s.address()})
	}
	if err := v.raft.BootstrapCluster(c).Error(); err != nil {
		if errors.Is(err, raft.ErrCantBootstrap) {
			return ErrFounded
		}
		return fmt.Errorf("cannot begin the group: %w", err)
	}
	return nil
}

// Leading reports whether this voter leads, as far as it knows. A leader that was replaced learns it after a quarter of Timeout.
func (v *Voter) Leading() bool { return v.raft.State() == raft.Leader }

// Leader returns the voter that leads, as far as this one knows.
func (v *Voter) Leader() (s Server, ok bool) {
	address, id := v.raft.LeaderWithID()
	s, err := parseServer(id, address)
	return s, err == nil
}

// Voters returns the voters of the newest configuration that this one has.
func (v *Voter) Voters() ([]Server, error) {
	all, _, err := v.voters()
	return all, err
}

// voters returns them with the index of that configuration.
func (v *Voter) voters() ([]Server, uint64, error) {
	f := v.raft.GetConfiguration()
	if err := f.Error(); err != nil {
		return nil, 0, v.shown(err)
	}
	var all []Server
	for _, r := range f.Configuration().Servers {
		s, err := parseServer(r.ID, r.Address)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, s)
	}
	return all, f.Index(), nil
}

// Admit makes a server a voter, in the place of other servers of its node. It is the leader's; another voter returns ErrNotLeader.
// Admitting a voter changes nothing. A change of the voters by another caller meanwhile is an error.
func (v *Voter) Admit(s Server) error {
	all, index, err := v.voters()
	if err != nil {
		return err
	}
	for _, have := range all {
		switch {
		case have == s:
			return nil
		case have.Node == s.Node: // its node runs s now: it will not come back
			f := v.raft.RemoveServer(have.id(), index, v.timeout)
			if err := f.Error(); err != nil {
				return v.shown(err)
			}
			index = f.Index()
		}
	}
	return v.shown(v.raft.AddVoter(s.id(), s.address(), index, v.timeout).Error())
}

// Dismiss takes the vote of a node. It is the leader's, as Admit.
func (v *Voter) Dismiss(id directory.NodeID) error {
	all, index, err := v.voters()
	if err != nil {
		return err
	}
	for _, have := range all {
		if have.Node != id {
			continue
		}
		f := v.raft.RemoveServer(have.id(), index, v.timeout)
		if err := f.Error(); err != nil {
			return v.shown(err)
		}
		index = f.Index()
	}
	return nil
}

// Propose adds a command to the log, and returns its answer when a majority has the command on disk and this voter has applied it. It
// is the leader's. It returns within about half of Timeout: a leader that reaches no majority steps down then. Errors: ErrNotLeader
// and ErrTooLarge if nothing was done; after another one the command may be applied, even later.
func (v *Voter) Propose(c directory.Command) (directory.Answer, error) {
	data := directory.AppendCommand(nil, c)
	if len(data) > maxCommand {
		return directory.Answer{}, fmt.Errorf("%w: it has %d bytes, want at most %d", ErrTooLarge, len(data), maxCommand)
	}
	f := v.raft.Apply(data, v.timeout/4)
	if err := f.Error(); err != nil {
		return directory.Answer{}, v.shown(err)
	}
	switch r := f.Response().(type) {
	case directory.Answer:
		return r, nil
	case error:
		return directory.Answer{}, r
	default:
		return directory.Answer{}, fmt.Errorf("the directory has answered a command with %T", r)
	}
}

// shown returns an error of raft as one of this package.
func (v *Voter) shown(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrEnqueueTimeout):
		return ErrNotLeader
	case errors.Is(err, raft.ErrRaftShutdown):
		return ErrClosed
	}
	return fmt.Errorf("the group's directory: %w", err)
}

// Barrier waits until this voter, as the leader, has applied all that was committed before. A new leader calls it before it decides
// by what the directory says. Its errors are those of Propose.
func (v *Voter) Barrier() error { return v.shown(v.raft.Barrier(v.timeout).Error()) }

// StepDown has another voter elected, if this one leads: for a node that is about to stop.
func (v *Voter) StepDown() error { return v.shown(v.raft.LeadershipTransfer().Error()) }

// Err returns why the voter has ended by itself, or nil: it has met a command or a snapshot that it cannot read.
func (v *Voter) Err() error { return v.machine.broken() }

// Yield has another voter elected if this one leads and has met what it cannot read, and reports whether it has: its copy of the directory
// stays as it was, while another voter may run a newer program. The caller tries again as long as the voter runs.
func (v *Voter) Yield() bool {
	if v.Err() == nil {
		return false
	}
	if v.Leading() {
		_ = v.StepDown() // the next call tries again
	}
	return true
}

// Changed receives after changes of the directory on this voter. One goroutine waits for it, and looks at all of the state.
func (v *Voter) Changed() <-chan struct{} { return v.machine.changed }

// Nodes returns the nodes as this voter knows them, by ID. Another voter may know more.
func (v *Voter) Nodes() []directory.Node {
	defer v.machine.locked()()
	return v.machine.state.Nodes()
}

// Removed reports whether a node was removed, as far as this voter knows.
func (v *Voter) Removed(id directory.NodeID) bool {
	defer v.machine.locked()()
	return v.machine.state.Removed(id)
}

// Shards returns the shards as this voter knows them, by ID. Another voter may know more; the version of a shard tells.
func (v *Voter) Shards() []directory.Shard {
	defer v.machine.locked()()
	return v.machine.state.Shards()
}

// Close ends the voter and waits for it. A second call returns ErrClosed.
func (v *Voter) Close() error {
	if v.raft.State() == raft.Shutdown {
		return ErrClosed
	}
	ended := v.raft.Shutdown()
	return errors.Join(v.store.close(), ended.Error()) // raft may wait for the store
}
