package shard

// link is a replica's connection to its master.
type link struct {
	id      Link
	epoch   uint64 // of the master, by its Resync; 0 before
	loading bool   // a full resynchronisation is not complete
	ready   bool   // the resynchronisation is finished: what arrives is acknowledged
	next    Log    // of the data that is being loaded
	stamp   Stamp  // the newest
}

// connect begins a link. The one before ends: a replica has one.
func (n *Node) connect(id Link) {
	if n.master != nil {
		n.out.Close = append(n.out.Close, id)
		return
	}
	n.drop()
	n.link = link{id: id}
	n.out.Send = append(n.out.Send, Message{id, Greeting{From: n.self, Epoch: n.epoch, Log: n.log}})
}

// drop closes the link to the master.
func (n *Node) drop() {
	if n.link.id != 0 {
		n.out.Close = append(n.out.Close, n.link.id)
	}
	n.link = link{}
}

func (n *Node) closed(id Link) {
	if n.link.id == id {
		n.link = link{}
	}
	if n.master != nil {
		n.master.closed(id)
	}
}

// receive takes a message of another node.
func (n *Node) receive(now Time, e Received) {
	switch body := e.Body.(type) {
	case Greeting:
		n.greeted(now, e.Link, body)
	case Ack:
		n.acknowledged(now, e.Link, body)
	case Resync:
		if n.link.id == e.Link {
			n.resync(now, body)
		}
	}
}

// resync begins what the master has answered. A master of an older epoch is refused: it was replaced, and needs the
// acknowledgement of this node or of another one that knows. One of a later epoch is refused until a state of the directory has
// come here that names it: what a peer says raises no epoch.
func (n *Node) resync(now Time, r Resync) {
	if r.Epoch != n.epoch && !n.faults.AnyEpoch {
		n.drop()
		return
	}
	n.link.epoch, n.link.next = r.Epoch, r.Log
	n.pledge(now, r.Stamp)
	if r.Full {
		n.link.loading, n.out.Load = true, true
		if n.faults.AckEarly {
			n.link.ready = true
			n.acknowledge()
		}
		return
	}
	n.adopt(r.Log)
	n.link.ready = true
	n.acknowledge()
}

// adopt makes the log a beginning of the master's history.
func (n *Node) adopt(master Log) {
	if n.log.History != master.History {
		n.log.Before, n.log.Until = n.log.History, n.log.End
	}
	n.log.History = master.History
}

// loaded ends a full resynchronisation.
func (n *Node) loaded(e Loaded) {
	if n.link.id != e.Link || !n.link.loading {
		return
	}
	n.log = n.link.next
	n.log.End, n.log.Synced = e.End, e.End
	n.link.loading, n.link.ready = false, true
	n.acknowledge()
}

// current reports whether the link is of the newest epoch that the node knows.
func (n *Node) current() bool { return n.link.epoch == n.epoch || n.faults.AnyEpoch }

// Accepts reports whether what arrives on a link may be applied. The caller asks before it applies it.
func (n *Node) Accepts(id Link) bool {
	return n.master == nil && id != 0 && n.link.id == id && n.link.ready && !n.link.loading && n.current()
}

// Loading reports whether a link is the one on which a full resynchronisation is under way.
func (n *Node) Loading(id Link) bool { return id != 0 && n.link.id == id && n.link.loading }

func (n *Node) streamed(now Time, e Streamed) {
	if !n.Accepts(e.Link) {
		return
	}
	n.log.End, n.log.Synced = e.End, e.Synced
	n.pledge(now, e.Stamp)
	n.acknowledge()
}

// pledge takes a stamp: from when it arrives this node does not serve as master for the lease, its own or the master's, so that the
// master may answer reads. A master that serves and has given its lease up frees it. That covers what it has promised to masters before
// as well: their leases ended before this master served.
func (n *Node) pledge(now Time, s Stamp) {
	n.link.stamp = s
	if s.Released {
		n.promise = never
		return
	}
	n.promise = max(n.promise, now+max(n.conf.Lease, s.Lease))
}

// acknowledge tells the master how far this node is, once the resynchronisation of the link is finished.
func (n *Node) acknowledge() {
	if n.master != nil || !n.link.ready || !n.current() {
		return
	}
	n.out.Send = append(n.out.Send, Message{n.link.id, Ack{From: n.self, Epoch: n.link.epoch, Offset: n.durable(), Sent: n.link.stamp.Sent}})
}
