package group

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/internal/group/shard"
	"github.com/ebbdb/ebb/internal/oplog"
)

// The goroutines of a member beside the director: each belongs to Begin, and Close waits for it.

// propose takes proposals to the directory. Their answers are states, too.
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
				m.opt.Logger.Info("a change of the group's directory has no answer", "error", err)
				continue
			}
			m.applied(a.Shards)
		}
	}
}

// tick passes the time to the node, and stamps the stream of a master.
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
			m.turns.handing = m.handsOver() // it may have failed
		}
		leads, stamp := m.role.epoch, m.node.Stamp(m.opt.Now())
		m.mu.Unlock()
		m.wake.Wake() // an address may be known now
		if leads != 0 {
			m.repl.Stamp(stampText(leads, stamp))
		}
		if n%ticksInLease == 0 {
			m.log.Alarm() // replies that wait look at how long they have waited
		}
	}
}

// tail commits what a master writes that is alone in the in-sync set: nothing is acknowledged then.
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
		for b := r.Next(); b != nil; b = r.Next() { // the bytes are of no interest
			continue
		}
		ctx, cancel := context.WithTimeout(m.ctx, m.opt.Group.Lease)
		_ = r.Wait(ctx) // it may be over because the master is no longer alone
		cancel()
	}
}
