package replication

import (
	"errors"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/wire"
)

// A server of a group does not choose its master: the group sets the role by Lead, Rest and Follow. The link between
// a master and a member of its group carries a few messages more than other links:
//
//	the member ── REPLCONF group <greeting> ───────────────────────▶ the master     Fits
//	           ── PSYNC ───────────────────────────────────────────▶                Greeted
//	           ◀─ +CONTINUE or +FULLRESYNC, whose stream names it ──                Answered
//	           ◀─ the stream, and between two transactions of it
//	              REPLCONF STAMP <stamp> ───────────────────────────                Stamped
//	           ── REPLCONF ACK ... GROUP <acknowledgement> ────────▶                Acked
//
// A member adds OBSERVED 1 to its acknowledgements if it has replicas that are not members. These need PING, which
// only the master can add to the stream.
//
// A stamp is not a part of the stream: it counts in no offset, and other replicas do not get it. Otherwise a master
// that was cut off would have stamps that no other node has, and would need all data when it comes back.

// LinkEvents receives the events of this server's replication links, for its group. The methods do not block. Links
// to masters are numbered from 1.
type LinkEvents interface {
	Acks
	// Fits returns an error if no stream can follow a greeting in the present state of the group. It is called before
	// any shard is locked.
	Fits(greeting string) error
	// Greeted handles the greeting of a client that requests the stream as a member. An error refuses the client. All
	// shards are locked.
	Greeted(f *Replica, greeting string) error
	// StreamName returns a new name for the stream of a master, or "" if this server is not the master of the group.
	// Names are unique, and members accept only streams with such names.
	StreamName() string
	// Connected is called for each new link, with its number. It returns the greeting of this server.
	Connected(link uint64) (greeting string, err error)
	// Answered handles the answer of a master that sends a stream, preceded by all data if full. An error refuses the
	// master.
	Answered(link uint64, stream string, full bool) error
	// Loaded is called when the data of a full synchronisation has replaced the server's.
	Loaded(link uint64)
	// Stamped handles a stamp. The whole stream before it is applied.
	Stamped(link uint64, stamp string)
	// Acknowledge returns the text that a member adds to the offsets of an acknowledgement. ok is false if it must
	// not acknowledge now.
	Acknowledge(link uint64) (text string, ok bool)
	// Closed is called when a link has ended.
	Closed(link uint64)
}

// JoinGroup makes the server a member of a group. Call it before Begin: the server begins as a replica that follows no master.
func (r *Node) JoinGroup(g LinkEvents) {
	r.group = g
	r.TellAcks(g)
}

// errNotOfGroup is the error of a link to a server that is not a member of a group.
var errNotOfGroup = errors.New("the master does not support groups: want a member of the same group")

// rest returns a link that connects to no master.
func rest(r *Node) *link { return newLink(r, "", 0) }

func (l *link) rests() bool { return l.host == "" }

// Lead makes a server without the master's role the master of its group. Its stream continues under a new name. tx
// holds all shards.
func (r *Node) Lead(tx *engine.Tx, name string) { r.promote(tx, name) }

// Rest makes the server a replica that follows no master. tx holds all shards.
func (r *Node) Rest(tx *engine.Tx) {
	old := r.follows.Load()
	if old == nil {
		r.demote(tx)
		r.dropReplicas("the group has replaced this master")
	}
	r.follows.Store(rest(r))
	r.SetGates()
	if old != nil {
		old.stop()
	}
}

// Disconnect ends the connection to the master, if there is one. The link then connects again.
func (r *Node) Disconnect(why string) {
	if l := r.follows.Load(); l != nil {
		if m := l.conn.Load(); m != nil {
			m.Kill(errors.New(why))
		}
	}
}

// AcknowledgeSoon makes this server send its master an acknowledgement soon, if it follows one. It does not wait for
// that.
func (r *Node) AcknowledgeSoon() {
	if l := r.follows.Load(); l != nil {
		if m := l.conn.Load(); m != nil {
			m.wakeAck.Wake()
		}
	}
}

// Stamp sends a stamp to the members that follow this server. It does not wait for them.
func (r *Node) Stamp(stamp string) { r.master.stamp(stamp) }

func (m *master) stamp(stamp string) {
	command := wire.AppendCommand(nil, "REPLCONF", "STAMP", stamp)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.followers {
		f.addStamp(command)
	}
}

// member reports whether a replica is a member of this server's group, whose greeting was accepted.
func (f *Replica) member() bool { return f.stamps != nil }

// observed reports whether this server has a replica that is not a member, and so needs PING and GETACK in the
// stream. Members get stamps, and acknowledge at once.
func (m *master) observed() bool {
	return m.anyFollower(func(f *Replica) bool { return !f.member() })
}

// observedBelow reports whether this server, or a member that follows it, has a replica that is not a member.
func (m *master) observedBelow() bool {
	return m.anyFollower(func(f *Replica) bool { return !f.member() || f.observed.Load() })
}

func (m *master) anyFollower(is func(*Replica) bool) bool {
	if m.n.Load() == 0 {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.followers, is)
}

// SetQuiet sets whether a master appends only the effects of transactions to the stream: no PING and no PUBLISH. tx
// holds all shards.
func (r *Node) SetQuiet(_ *engine.Tx, on bool) {
	r.quiet.Store(on)
	r.takeMessages()
}

// Drop closes the connection of a replica. why is for the log.
func (f *Replica) Drop(why string) { f.drop(why) }

// greet sends the master this server's greeting.
func (l *link) greet(m *masterConn) error {
	g := l.r.group
	if g == nil {
		return nil
	}
	m.number = l.r.numbers.Add(1)
	greeting, err := g.Connected(m.number)
	if err != nil {
		return err
	}
	reply, err := m.ask("REPLCONF", "group", greeting)
	switch {
	case err != nil:
		return err
	case strings.HasPrefix(reply, Refused):
		return &deniedError{cleantext.Line(reply[len(Refused):], maxPeerText)}
	case !strings.HasPrefix(reply, "+OK"):
		return errNotOfGroup
	}
	return nil
}

// Refused is the prefix of the reply to a greeting that is refused.
const Refused = "-REFUSED "

// deniedError is the error of a link whose greeting the master has refused.
type deniedError struct{ why string }

func (e *deniedError) Error() string { return "the master refuses this member: " + e.why }

// Fits calls LinkEvents.Fits. Without a group every greeting fits.
func (r *Node) Fits(greeting string) error {
	if r.group == nil {
		return nil
	}
	return r.group.Fits(greeting)
}

// RetryLink makes a link dial at once if it waits because its master has refused it.
func (r *Node) RetryLink() {
	if l := r.follows.Load(); l != nil {
		notify(l.hurry)
	}
}

// answered passes the answer to PSYNC to the group, which may refuse it.
func (l *link) answered(m *masterConn, stream string, full bool) error {
	if l.r.group == nil {
		return nil
	}
	return l.r.group.Answered(m.number, stream, full)
}

// stamped passes a stamp to the group.
func (l *link) stamped(m *masterConn, stamp []byte) error {
	if !l.current() {
		return errReplaced
	}
	l.r.group.Stamped(m.number, string(stamp))
	return nil
}
