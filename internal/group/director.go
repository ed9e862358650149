package group

import (
	"net"
	"strconv"
)

// The director gives the server the role that shard.Node has decided on: master of an epoch, replica of a master, or
// neither. It alone changes the role, with all shards locked, and compares role and decision whenever something may
// have changed.

// directLoop is the director's goroutine.
func (m *Member) directLoop() {
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-m.wake:
			m.adjust()
		}
	}
}

// wanted returns the role that the server should have.
func (m *Member) wanted() (epoch uint64, follows string) {
	peers := m.peers()
	m.mu.Lock()
	defer m.mu.Unlock()
	if epoch = m.node.Gates(m.opt.Now()).Epoch; epoch != 0 {
		return epoch, ""
	}
	master := m.node.Master()
	for _, p := range peers {
		if p.ID == master && p.ID != m.opt.Group.Self.ID {
			follows = p.Clients
		}
	}
	return 0, follows
}

// adjust gives the server the role that shard.Node has decided on.
func (m *Member) adjust() {
	m.keepTime()
	epoch, follows := m.wanted()
	have := m.role // the director alone writes it
	if have.epoch != 0 && have.epoch != epoch {
		m.stepDown()
	}
	switch {
	case epoch != 0 && have.epoch != epoch:
		m.lead(epoch)
	case epoch == 0 && m.role.follows != follows:
		m.followMaster(follows)
	}
	m.open()
}

// stepDown ends the server's role as master, and disconnects its clients.
func (m *Member) stepDown() {
	tx := m.db.BeginAll(0)
	defer tx.Commit()
	m.repl.Rest(tx)
	m.log.Rest() // the term is over: replies that wait become errors
	m.svc.CloseClients()
	m.mu.Lock()
	m.opt.Logger.Warn("this node is no longer the master of its group", "epoch", m.role.epoch)
	m.role = role{}
	if m.turns.handing {
		m.turns.handedOver++
	} else {
		m.turns.replaced++
	}
	m.turns.handing = false
	m.mu.Unlock()
	m.steppedDown.Wake()
}

// lead makes the server the master of an epoch, unless the node has lost the epoch meanwhile.
func (m *Member) lead(epoch uint64) {
	m.svc.SetGroupWritable(false)
	tx := m.db.BeginAll(0)
	defer tx.Commit()
	m.mu.Lock()
	still := m.node.Gates(m.opt.Now()).Epoch == epoch
	m.writable = false
	m.mu.Unlock()
	if !still {
		return // the change has already woken the director again
	}
	m.resume()
	m.repl.SetQuiet(tx, true)
	m.log.Lead()
	m.repl.Lead(tx, m.nameOf(epoch))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns.promoted++
	m.ahead = difference{} // it was the lead of the previous master
	m.role = role{epoch: epoch, term: m.log.Holds().Term(), end: m.log.End()}
	m.opt.Logger.Warn("this node is the master of its group", "epoch", epoch, "offset", m.role.end)
	m.wakeTail.Wake()
}

// followMaster makes the server a replica of the master at an address. With "" it follows no master.
func (m *Member) followMaster(address string) {
	host, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	tx := m.db.BeginAll(0)
	defer tx.Commit()
	if address == "" {
		m.repl.Rest(tx)
	} else {
		m.repl.Follow(tx, host, n)
	}
	m.mu.Lock()
	m.role.follows = address
	m.mu.Unlock()
}

// open applies the node's gates: writes, reads, and whether the stream is quiet. Clients of a replica get READONLY
// anyway.
func (m *Member) open() {
	m.mu.Lock()
	g := m.node.Gates(m.opt.Now())
	writable, lease := m.isWritable(g), m.lease(g)
	change, back := writable != m.writable, lease && !m.leased
	m.writable, m.leased = writable, lease
	m.mu.Unlock()
	if change {
		m.svc.SetGroupWritable(writable)
		tx := m.db.BeginAll(0)
		m.repl.SetQuiet(tx, !writable)
		tx.Commit()
	}
	if back {
		m.log.Alarm()
	}
}
