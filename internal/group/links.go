package group

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/shard"
	"github.com/ebbdb/ebb/internal/replication"
)

// This file implements replication.LinkEvents: it translates events of links for the node. Members exchange these
// texts:
//
//	greeting           group-name/node/incarnation/epoch/level/lease/seal
//	stamp              epoch/sent/lease/released
//	acknowledgement    offset/sent, and /leaves of a member that is about to stop

// Errors of links.
var (
	errNoMember = errors.New("this node cannot follow a master: it is not registered in its group yet, or is the master itself")
	errRefused  = errors.New("the group refuses the link: this node is not the master, or the member has a newer incarnation")
	errRemoved  = errors.New("an operator has removed this member from the group")
	errOldEpoch = errors.New("the master was replaced in its group")
)

// Connected implements replication.LinkEvents.
func (m *Member) Connected(number uint64) (greeting string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.upstream.number, m.upstream.link, m.upstream.epoch = number, shard.Link(2*number+1), 0
	link := m.upstream.link
	m.step(shard.Connected{Link: link})
	s := m.node.Status(m.opt.Now())
	if m.upstream.link != link || s.Self.Node == 0 {
		return "", errNoMember
	}
	text := fmt.Sprintf("%s/%d/%d/%d/%d/%d", m.opt.Group.Name, s.Self.Node, s.Self.Incarnation, m.node.Epoch(), m.opt.Group.Level,
		int64(m.opt.Group.Lease))
	return text + "/" + m.seal("greeting", text), nil
}

// Answered implements replication.LinkEvents.
func (m *Member) Answered(number uint64, stream string, full bool) error {
	epoch, err := m.epochOf(stream)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if number != m.upstream.number || m.upstream.link == 0 {
		return errOldEpoch
	}
	m.upstream.epoch = epoch
	link := m.upstream.link
	m.step(shard.Answered{Link: link, Epoch: epoch, Full: full})
	if m.upstream.link != link || !m.node.Accepts(link) && !m.node.Loading(link) {
		return errOldEpoch
	}
	return nil
}

// Loaded implements replication.LinkEvents.
func (m *Member) Loaded(number uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if number == m.upstream.number {
		m.step(shard.Loaded{Link: m.upstream.link, End: uint64(m.log.End()), Synced: m.syncedTo()})
	}
}

// Stamped implements replication.LinkEvents.
func (m *Member) Stamped(number uint64, text string) {
	epoch, s, ok := parseStamp(text)
	m.mu.Lock()
	defer m.mu.Unlock()
	if ok && number == m.upstream.number && epoch == m.upstream.epoch {
		m.step(shard.Streamed{Link: m.upstream.link, Stamp: s, End: uint64(m.log.End()), Synced: m.syncedTo()})
	}
}

// Acknowledge implements replication.LinkEvents.
func (m *Member) Acknowledge(number uint64) (text string, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if number != m.upstream.number || m.upstream.link == 0 {
		return "", false
	}
	m.upstream.ack = shard.Ack{}
	m.mustPass = true // makes the node return its acknowledgement
	m.step(shard.Tick{})
	if m.upstream.ack.Epoch == 0 {
		return "", false
	}
	text = strconv.FormatUint(m.upstream.ack.Offset, 10) + "/" + strconv.FormatInt(int64(m.upstream.ack.Sent), 10)
	if m.leaves.Load() {
		text += leaves
	}
	return text, true
}

// Closed implements replication.LinkEvents.
func (m *Member) Closed(number uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.step(shard.Closed{Link: shard.Link(2*number + 1)})
	if number == m.upstream.number {
		m.upstream.link, m.upstream.number = 0, 0
	}
}

// Fits implements replication.LinkEvents.
func (m *Member) Fits(greeting string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.fitting(greeting)
	return err
}

// fitting parses a greeting, and returns an error if the member may not join because of its directives or because an
// operator removed it. mu is held.
func (m *Member) fitting(greeting string) (g shard.Greeted, err error) {
	g, has, err := m.parseGreeting(greeting)
	switch {
	case err != nil:
		return g, err
	case m.removed(g.From.Node):
		return g, errRemoved
	}
	return g, m.checkTerms(g.From.Node, has)
}

// Greeted implements replication.LinkEvents.
func (m *Member) Greeted(f *replication.Replica, greeting string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	g, err := m.fitting(greeting)
	if err != nil {
		return err
	}
	m.newest += 2
	g.Link = m.newest
	l := &peerLink{link: m.newest, from: g.From, epoch: m.role.epoch}
	m.replicas[f], m.byLink[l.link] = l, f
	refused := false
	now := m.opt.Now()
	out := m.node.Step(now, g)
	for i, id := range out.Close {
		if id == l.link {
			refused = true
			out.Close = append(out.Close[:i:i], out.Close[i+1:]...)
			break
		}
	}
	m.execute(out)
	m.settle(now)
	if refused || m.role.epoch == 0 || m.node.Gates(now).Epoch != m.role.epoch {
		m.forget(f)
		return errRefused
	}
	return nil
}

// removed reports whether an operator has removed a node from the group. The directory refuses each Expand of such a
// node. mu is held.
func (m *Member) removed(id directory.NodeID) bool {
	return m.part != nil && m.part.control.Removed(id)
}

func (m *Member) forget(f *replication.Replica) {
	if l := m.replicas[f]; l != nil {
		delete(m.replicas, f)
		delete(m.byLink, l.link)
		m.step(shard.Closed{Link: l.link})
	}
}

// terms are the directives of a member on which the master's promise to clients depends.
type terms struct {
	level directory.SyncLevel
	lease time.Duration
}

func (t terms) String() string {
	return fmt.Sprintf("sync-level %s and sync-lease %v", [...]string{"memory", "disk"}[t.level], t.lease)
}

// checkTerms returns an error if a member's directives promise less than this master counts on. They may promise
// more, so that an operator can raise a directive on one node after another. A shorter lease is refused only if one
// of the two nodes is at level disk. While it runs, a member promises for the longer of the two leases; but a node at
// level disk keeps its place through a restart, and then counts a promise of its own lease. mu is held.
func (m *Member) checkTerms(node directory.NodeID, has terms) error {
	own := terms{m.opt.Group.Level, m.opt.Group.Lease}
	var err error
	if has.level < own.level || has.lease < own.lease && (own.level == directory.Disk || has.level == directory.Disk) {
		err = fmt.Errorf("node %d has %v, which is less than its master's %v: want the same on all nodes", node, has, own)
	}
	if m.warnedTerms[node] != has && has != own {
		m.opt.Logger.Warn("a member's directives differ from this master's", "node", node, "member", has.String(), "master", own.String(),
			"refused", err != nil)
	}
	m.warnedTerms[node] = has
	return err
}

func (m *Member) parseGreeting(text string) (g shard.Greeted, has terms, err error) {
	f := strings.Split(text, "/")
	seal := f[len(f)-1]
	text = strings.Join(f[:min(len(f)-1, 6)], "/") // without the seal, which would let a reader of the error greet as a member
	if len(f) != 7 || f[0] != m.opt.Group.Name {
		return g, has, fmt.Errorf("a member of another group greets with %q; want a member of %s", text, m.opt.Group.Name)
	}
	if !m.sealed("greeting", text, seal) {
		return g, has, fmt.Errorf("the greeting %q has a wrong seal: masterauth must be the same on all nodes of the group", text)
	}
	var n [5]uint64
	for i := range n {
		if n[i], err = strconv.ParseUint(f[i+1], 10, 63); err != nil {
			return g, has, fmt.Errorf("a member greets with %q: %w", text, err)
		}
	}
	if n[3] > uint64(directory.Disk) {
		return g, has, fmt.Errorf("a member greets with %q, whose sync-level this version does not know; want 0 (memory) or 1 (disk)", text)
	}
	g = shard.Greeted{From: directory.Member{Node: directory.NodeID(n[0]), Incarnation: n[1]}, Epoch: n[2]}
	return g, terms{directory.SyncLevel(n[3]), time.Duration(n[4])}, nil
}

// leaves is the suffix of the acknowledgements of a member that is about to stop.
const leaves = "/leaves"

// Acked implements replication.Acks.
func (m *Member) Acked(a replication.Ack) {
	text, going := strings.CutSuffix(a.Group, leaves)
	offset, sent, ok := strings.Cut(text, "/")
	to, err := strconv.ParseUint(offset, 10, 63)
	at, err2 := strconv.ParseInt(sent, 10, 64)
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.replicas[a.Replica]; l != nil && ok && err == nil && err2 == nil {
		if going {
			m.step(shard.Leaving{Member: l.from}) // before the acknowledgement, which may let the member join
		}
		ack := shard.Ack{From: l.from, Epoch: l.epoch, Offset: to, Sent: shard.Time(at)}
		m.step(shard.Acked{Link: l.link, Ack: ack})
	}
}

// Left implements replication.Acks.
func (m *Member) Left(f *replication.Replica) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(f)
}

func stampText(epoch uint64, s shard.Stamp) string {
	return fmt.Sprintf("%d/%d/%d/%d", epoch, int64(s.Sent), int64(s.Lease), bit(s.Released))
}

func parseStamp(text string) (epoch uint64, s shard.Stamp, ok bool) {
	f := strings.Split(text, "/")
	if len(f) != 4 {
		return 0, s, false
	}
	epoch, err := strconv.ParseUint(f[0], 10, 63)
	sent, err2 := strconv.ParseInt(f[1], 10, 64)
	lease, err3 := strconv.ParseInt(f[2], 10, 64)
	return epoch, shard.Stamp{Sent: shard.Time(sent), Lease: time.Duration(lease), Released: f[3] == "1"}, errors.Join(err, err2, err3) == nil
}
