package group

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/internal/group/shard"
	"github.com/ebbdb/ebb/internal/oplog"
)

// The goroutines of a member beside the director. Begin starts them, and Close waits for them.

// propose sends proposals to the directory, and applies the states in its answers.
func (m *Member) propose() {
	for {
		select {
		case <-m.ctx.Done():
			return
		case c := <-m.proposals:
			ctx, cancel := context.WithTimeout(m.ctx, m.opt.Group.Timeout)
			a, err := m.part.control.Propose(ctx, c)
			cancel()
			if err != nil {
				m.opt.Logger.Info("a proposal to the group's directory got no answer", "error", err)
				continue
			}
			m.applied(a.Shards)
		}
	}
}

// tick passes the time to the node, and stamps a master's stream, ticksInLease times per lease.
func (m *Member) tick() {
	t := time.NewTicker(m.opt.Group.Lease / ticksInLease)
	defer t.Stop()
	for n := 0; ; n++ {
		select {
		case <-m.ctx.Done():
			return
		case <-t.C:
		case <-m.filesSynced:
			m.mu.Lock()
			m.awaitsSync = false
			m.step(shard.Tick{})
			m.mu.Unlock()
			continue
		}
		m.mu.Lock()
		m.step(shard.Tick{})
		if m.turns.handing && m.node.Gates(m.opt.Now()).Epoch == m.role.epoch {
			m.turns.handing = m.handsOver() // the hand-over may have failed
		}
		leads, stamp := m.role.epoch, m.node.Stamp(m.opt.Now())
		m.mu.Unlock()
		m.wake.Wake() // the address of a master may be known now
		if leads != 0 {
			m.repl.Stamp(stampText(leads, stamp))
		}
		if n%ticksInLease == 0 {
			m.log.Alarm() // wakes replies that wait, so that they check their timeout
		}
	}
}

// tail commits a master's writes while the master is the only member in sync: no acknowledgement would commit them.
func (m *Member) tail() {
	for {
		if m.isAlone() {
			m.follow()
		}
		select {
		case <-m.ctx.Done():
			return
		case <-m.wakeTail:
		}
	}
}

func (m *Member) isAlone() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.node.Shard()
	return m.role.epoch != 0 && len(s.InSync) == 1 && m.ctx.Err() == nil
}

// follow passes each growth of the log to the node, while the master is alone.
func (m *Member) follow() {
	r, err := m.log.ReaderAt(m.log.End(), oplog.ForReplica)
	if err != nil {
		return // the log was replaced: the role has changed
	}
	defer r.Close()
	for m.isAlone() {
		m.mu.Lock()
		m.step(shard.Tick{})
		m.mu.Unlock()
		for b := r.Next(); b != nil; b = r.Next() { // only the growth counts, not the bytes
			continue
		}
		ctx, cancel := context.WithTimeout(m.ctx, m.opt.Group.Lease)
		_ = r.Wait(ctx) // an error or a timeout ends the loop if the master is no longer alone
		cancel()
	}
}
