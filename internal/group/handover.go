package group

import (
	"context"
	"errors"
	"time"

	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/shard"
)

// Errors of handOver.
var (
	errHandsOver = errors.New("this master hands the group over already")
	errKeeps     = errors.New("this node cannot hand the group over")
)

// handOver begins a hand-over to another member. If it returns errKeeps, the caller may ask the directory to promote
// the member instead.
func (m *Member) handOver(to directory.NodeID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.role.epoch == 0 || m.part.control.Leader() == 0: // without a leader, writes would be refused until there is one
		return errKeeps
	case m.handsOver():
		return errHandsOver
	}
	m.step(shard.HandOver{To: to})
	if m.turns.handing = m.handsOver(); !m.turns.handing {
		return errKeeps
	}
	return nil
}

// handsOver reports whether the master hands the group over. mu is held.
func (m *Member) handsOver() bool { return m.node.Status(m.opt.Now()).State == shard.HandingOver }

// Leave implements session.Member. A master that is about to stop hands the group over, and waits until another node
// is the master, for group-timeout at most; it does not wait if no other node can be the master. A replica tells its
// master that it is about to stop. The master then takes it out of the in-sync set at once, and writes do not wait
// for sync-lag.
func (m *Member) Leave(ctx context.Context) (stay func()) {
	look := time.NewTicker(m.opt.Group.Lease / ticksInLease)
	defer look.Stop()
	m.handOverAndWait(ctx, look.C)
	m.leaves.Store(true)
	m.withdraw(ctx, look.C)
	return func() { m.leaves.Store(false) }
}

// status returns the node's Status, and whether the server is the master.
func (m *Member) status() (s shard.Status, leads bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.node.Status(m.opt.Now()), m.role.epoch != 0
}

// withdraw waits until this node is out of the in-sync set, for sync-lag at most. It returns at once if the set would
// become too small without it.
func (m *Member) withdraw(ctx context.Context, look <-chan time.Time) {
	ctx, cancel := context.WithTimeout(ctx, m.opt.Group.Lag)
	defer cancel()
	for {
		s, leads := m.status()
		if leads || s.Self.Node == 0 || !s.Shard.In(s.Self) || !s.Shard.Enough(len(s.Shard.InSync)-1) {
			return
		}
		m.repl.AcknowledgeSoon()
		select {
		case <-look:
		case <-ctx.Done():
			return
		}
	}
}

// handOverAndWait hands the group over if this node is the master, and waits until it no longer is.
func (m *Member) handOverAndWait(ctx context.Context, look <-chan time.Time) {
	ctx, cancel := context.WithTimeout(ctx, m.opt.Group.Timeout)
	defer cancel()
	for {
		s, leads := m.status()
		to := successor(s)
		if !leads || s.State != shard.HandingOver && (to == 0 || errors.Is(m.handOver(to), errKeeps)) && s.Gates.Epoch != 0 {
			return
		}
		select {
		case <-m.steppedDown:
		case <-look:
		case <-ctx.Done():
			m.opt.Logger.Warn("this master ends without having handed its group over: another node replaces it after group-timeout")
			return
		}
	}
}

// successor returns the linked member in sync that lacks the fewest bytes, or 0 if there is none.
func successor(s shard.Status) (to directory.NodeID) {
	least := uint64(0)
	for _, p := range s.Members {
		if p.InSync && p.Linked && (to == 0 || p.Behind < least) {
			to, least = p.Node, p.Behind
		}
	}
	return to
}
