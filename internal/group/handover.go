package group

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/shard"
)

// handOver begins to make another member the master: sentinel.Options.Failover.
func (m *Member) handOver(to directory.NodeID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.role.epoch == 0 || m.part.control.Leader() == 0 { // without a leader it would refuse writes until there is one
		return false
	}
	m.step(shard.HandOver{To: to})
	m.turns.handing = m.handsOver()
	return m.turns.handing
}

// handsOver reports whether the master hands the group over. mu is held.
func (m *Member) handsOver() bool { return m.node.Status(m.opt.Now()).State == shard.HandingOver }

// Leave implements session.Member: a master that is about to stop hands the group over, and waits until another node is the master. It
// gives up after group-timeout, and where no other node could be.
func (m *Member) Leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, m.opt.Group.Timeout)
	defer cancel()
	look := time.NewTicker(m.opt.Group.Lease / ticksInLease)
	defer look.Stop()
	for {
		m.mu.Lock()
		s, leads := m.node.Status(m.opt.Now()), m.role.epoch != 0
		m.mu.Unlock()
		to := successor(s)
		if !leads || s.State != shard.HandingOver && (to == 0 || !m.handOver(to)) && s.Gates.Epoch != 0 {
			return
		}
		select {
		case <-m.steppedDown:
		case <-look.C:
		case <-ctx.Done():
			m.opt.Logger.Warn("this master ends without having handed its group over: another node replaces it after group-timeout")
			return
		}
	}
}

// successor returns the member in sync that has the most, 0 if none is linked.
func successor(s shard.Status) (to directory.NodeID) {
	least := uint64(0)
	for _, p := range s.Members {
		if p.InSync && p.Linked && (to == 0 || p.Behind < least) {
			to, least = p.Node, p.Behind
		}
	}
	return to
}
