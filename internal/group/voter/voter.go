// Package voter is a node's copy of the directory, which hashicorp/raft keeps the same on all voters, and the node's
// vote.
//
//	Propose ─▶ raft's log ─▶ a majority has it on disk ─▶ machine.Apply ─▶ directory.Directory ─▶ Answer
//	              │                                          │
//	          raft.log, synced before it counts          a snapshot, after each 1,000 commands or so
//
// Raft is correct only if no voter forgets its votes and its log. A voter that has lost its file could vote a second
// time in a term, for a different leader, which may lack commands that the first leader committed. So a voter is
// identified by its node and by a random number in its file (Server), and each connection names the voter that it
// wants. A node that comes back without its file is a new voter, and receives no messages for the old one. It has no
// vote until the leader admits it in the place of the old voter (Admit).
//
// Invariants:
//
//   - A vote or an entry of the log is synced before the voter answers (store).
//   - A command that this version cannot decode ends the voter (Err): the other voters have a state that this one cannot compute.
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

// Errors of proposals. After any other error of Propose, the command may be applied now or later.
var (
	// ErrNotLeader means that another voter leads. The command was not proposed.
	ErrNotLeader = errors.New("this node does not lead the group's directory")
	// ErrClosed means that the voter has ended.
	ErrClosed = errors.New("the group's directory is closed")
	// ErrTooLarge means that a command has more than maxCommand bytes.
	ErrTooLarge = errors.New("the command is too large for the group's directory")
	// ErrFounded means that the voter is, or was, in a group.
	ErrFounded = errors.New("this node is in a group already")
)

const (
	// maxCommand limits the bytes of an entry. The largest command is Create, with a few bytes for each member.
	maxCommand = 64 << 10
	// snapshotAfter is the number of applied entries between two snapshots. An entry has about 50 bytes and a
	// snapshot a few KB; a starting voter applies 1,000 entries in a few ms.
	snapshotAfter = 1024
	// trailing is the number of entries that a voter keeps behind a snapshot, for voters that were unreachable for a
	// short time.
	trailing = 256
	// minTimeout is the shortest Timeout: raft requires 5 ms for the intervals that it derives from it.
	minTimeout = 100 * time.Millisecond
)

// Config configures a voter. FS, Logger and Random are optional.
type Config struct {
	Node    directory.NodeID
	Address string        // host:port at which other nodes reach this one
	FS      disk.FS       // nil: the operating system's
	Dir     string        // the directory of the voter's file; Open creates it
	Timeout time.Duration // the others elect a new leader after a silence of a quarter to a half of it
	Logger  *slog.Logger  // nil: none
	// Network returns the transport to the other voters. self has the identity that Open has read from the file, or
	// written to a new one.
	Network func(self Server) (Transport, error)
	// Random returns the identity of a new file; nil: from crypto/rand.
	Random func() uint64
}

// Transport carries raft's messages between voters. Over returns one; raft has one in memory for tests.
type Transport interface {
	raft.Transport
	raft.WithPreVote
	raft.WithClose
}

// Voter is a voter of the group. It is safe for concurrent use.
type Voter struct {
	self    Server
	timeout time.Duration
	store   *store
	machine *machine
	raft    *raft.Raft
}

// Open starts a voter. If the voter's file has the state of a group, the voter continues from it; otherwise it waits
// for Found, or until a leader admits it. The caller closes it.
func Open(c Config) (*Voter, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	s, err := openStore(c.FS, c.Dir, c.Logger, c.Random)
	if err != nil {
		return nil, err
	}
	s.patience = c.Timeout / 2
	v := &Voter{self: Server{Node: c.Node, Store: s.identity, Address: c.Address}, timeout: c.Timeout, store: s, machine: newMachine(c.Logger)}
	if err := v.start(c); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return v, nil
}

func (c *Config) check() error {
	switch {
	case c.Node == 0:
		return errors.New("the voter's node is 0, want its number, from 1 on")
	case c.Timeout < minTimeout:
		return fmt.Errorf("the voter's timeout is %v, want at least %v", c.Timeout, minTimeout)
	case c.Dir == "":
		return errors.New("the voter has no Dir: want a directory for its file")
	case c.Network == nil:
		return errors.New("the voter has no Network: want a network to the other voters")
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

// random returns a random number that is fit for an identity.
func random() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // rand.Read never returns an error: it ends the process instead
	return binary.BigEndian.Uint64(b[:])
}

// start starts raft on the voter's store.
func (v *Voter) start(c Config) error {
	network, err := c.Network(v.self)
	if err != nil {
		return err
	}
	v.raft, err = raft.NewRaft(c.raft(v.self), v.machine, v.store, v.store, v.store, guarded{network, v.store})
	if err != nil {
		return fmt.Errorf("cannot start the group's directory in %s: %w", c.Dir, errors.Join(err, network.Close()))
	}
	return nil
}

// raft returns raft's configuration. A leader that reaches no majority steps down after a quarter of Timeout, and the
// others start an election after a quarter to a half. So there is a leader by the time that a master may have to be
// replaced.
func (c *Config) raft(self Server) *raft.Config {
	r := raft.DefaultConfig()
	r.LocalID = self.id()
	r.HeartbeatTimeout, r.ElectionTimeout, r.LeaderLeaseTimeout = c.Timeout/4, c.Timeout/4, c.Timeout/4
	r.CommitTimeout = c.Timeout / 40
	r.SnapshotThreshold, r.TrailingLogs = snapshotAfter, trailing
	r.MaxAppendEntries = 64
	r.ShutdownOnRemove = false // the leader may admit it again
	r.NoLegacyTelemetry = true
	r.Logger = logger{c.Logger}
	return r
}

// Self returns the name of this voter.
func (v *Voter) Self() Server { return v.self }

// Founded reports whether the voter has the state of a group, founded by itself or received from a leader. Found then
// fails.
func (v *Voter) Founded() bool {
	founded, err := raft.HasExistingState(v.store, v.store, v.store)
	return founded || err != nil
}

// Found founds the group with these voters, one of which is this one. Only one voter of a new group may call it, once
// all others have reported their names and that they are not founded. It returns ErrFounded if this voter is.
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

// Leading reports whether this voter leads, as far as it knows. A leader that was replaced learns of that within a
// quarter of Timeout.
func (v *Voter) Leading() bool { return v.raft.State() == raft.Leader }

// Leader returns the voter that leads, as far as this voter knows.
func (v *Voter) Leader() (s Server, ok bool) {
	address, id := v.raft.LeaderWithID()
	s, err := parseServer(id, address)
	return s, err == nil
}

// Voters returns the voters of the newest configuration that this voter has.
func (v *Voter) Voters() ([]Server, error) {
	all, _, err := v.voters()
	return all, err
}

// voters returns the voters and the index of their configuration.
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

// Admit gives a server a vote, in the place of other servers of its node. Only the leader may call it; other voters
// return ErrNotLeader. It changes nothing if the server has a vote. It returns an error if another caller changes the
// voters meanwhile.
func (v *Voter) Admit(s Server) error {
	all, index, err := v.voters()
	if err != nil {
		return err
	}
	for _, have := range all {
		switch {
		case have == s:
			return nil
		case have.Node == s.Node: // its node runs s now, so it will not come back
			f := v.raft.RemoveServer(have.id(), index, v.timeout)
			if err := f.Error(); err != nil {
				return v.shown(err)
			}
			index = f.Index()
		}
	}
	return v.shown(v.raft.AddVoter(s.id(), s.address(), index, v.timeout).Error())
}

// Dismiss takes the vote of a node. Only the leader may call it.
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

// Propose adds a command to the log. It returns the answer when a majority has the command on disk and this voter has
// applied it. Only the leader may call it. It returns within about half of Timeout, because a leader that reaches no
// majority steps down by then. After ErrNotLeader and ErrTooLarge the command was not proposed; after any other error
// it may be applied later.
func (v *Voter) Propose(c directory.Command) (directory.Answer, error) {
	data := directory.AppendCommand(nil, c)
	if len(data) > maxCommand {
		return directory.Answer{}, fmt.Errorf("%w: the command has %d bytes, want at most %d", ErrTooLarge, len(data), maxCommand)
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
		return directory.Answer{}, fmt.Errorf("the directory answered a command with %T, want an Answer or an error", r)
	}
}

// shown converts an error of raft to one of this package.
func (v *Voter) shown(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrEnqueueTimeout):
		return ErrNotLeader
	case errors.Is(err, raft.ErrRaftShutdown):
		return ErrClosed
	}
	return fmt.Errorf("the group's directory failed: %w", err)
}

// Barrier waits until this voter, as the leader, has applied all earlier commands. A new leader calls it before it
// makes decisions from the directory. Its errors are those of Propose.
func (v *Voter) Barrier() error { return v.shown(v.raft.Barrier(v.timeout).Error()) }

// StepDown transfers leadership to another voter, if this voter leads: its node is about to stop.
func (v *Voter) StepDown() error { return v.shown(v.raft.LeadershipTransfer().Error()) }

// Err returns the error that ended the voter, or nil: a command or a snapshot that it cannot decode.
func (v *Voter) Err() error { return v.machine.broken() }

// Yield reports whether the voter has ended with Err. It then transfers leadership if the voter leads, because
// another voter may run a newer program that can decode the command. The caller calls it again as long as the voter
// runs.
func (v *Voter) Yield() bool {
	if v.Err() == nil {
		return false
	}
	if v.Leading() {
		_ = v.StepDown() // the next call tries again
	}
	return true
}

// Changed returns a channel that receives after changes of the directory on this voter. One goroutine should receive
// from it, and read the whole state.
func (v *Voter) Changed() <-chan struct{} { return v.machine.changed }

// Nodes returns the nodes that this voter knows, by ID. It may lag behind other voters.
func (v *Voter) Nodes() []directory.Node {
	defer v.machine.locked()()
	return v.machine.state.Nodes()
}

// Removed reports whether a node was removed, as far as this voter knows.
func (v *Voter) Removed(id directory.NodeID) bool {
	defer v.machine.locked()()
	return v.machine.state.Removed(id)
}

// Shards returns the shards that this voter knows, by ID. It may lag behind other voters; compare the versions of a
// shard.
func (v *Voter) Shards() []directory.Shard {
	defer v.machine.locked()()
	return v.machine.state.Shards()
}

// Close stops the voter and waits for it. A second call returns ErrClosed.
func (v *Voter) Close() error {
	if v.raft.State() == raft.Shutdown {
		return ErrClosed
	}
	ended := v.raft.Shutdown()
	return errors.Join(v.store.close(), ended.Error()) // raft may wait for the store
}
