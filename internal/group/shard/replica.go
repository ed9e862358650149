package shard

// link is a replica's connection to its master.
type link struct {
	id      Link
	epoch   uint64 // the epoch in the master's answer; 0 before the answer
	loading bool   // a full resynchronisation is under way
	ready   bool   // the resynchronisation is complete: the stream is acknowledged
	stamp   Stamp  // the newest
}

// connect starts a link. It closes the previous one: a replica has at most one.
func (n *Node) connect(id Link) {
	if n.master != nil {
		n.out.Close = append(n.out.Close, id)
		return
	}
	n.drop()
	n.link = link{id: id}
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

// answered handles the master's answer. It refuses a master of an older epoch: that one was replaced, and needs the
// acknowledgement of this node or of another node that knows. It also refuses a master of a later epoch until a state
// of the directory names that epoch, because messages of peers raise no epoch.
func (n *Node) answered(now Time, e Answered) {
	if n.link.id != e.Link {
		return
	}
	if !n.isNewest(e.Epoch) {
		n.drop()
		return
	}
	n.link.epoch, n.link.loading, n.link.ready = e.Epoch, e.Full, !e.Full || n.acksWhileLoading()
	n.pledge(now, Stamp{})
	n.acknowledge()
}

// loaded handles the end of a full resynchronisation.
func (n *Node) loaded(e Loaded) {
	if n.link.id != e.Link || !n.link.loading {
		return
	}
	n.log = Log{End: e.End, Synced: e.Synced}
	n.link.loading, n.link.ready = false, true
	n.acknowledge()
}

// Accepts reports whether the stream of a link may be applied. The caller asks before it applies any of it.
func (n *Node) Accepts(id Link) bool {
	return n.master == nil && id != 0 && n.link.id == id && n.link.ready && !n.link.loading && n.isNewest(n.link.epoch)
}

// Loading reports whether a full resynchronisation is under way on a link.
func (n *Node) Loading(id Link) bool { return id != 0 && n.link.id == id && n.link.loading }

func (n *Node) streamed(now Time, e Streamed) {
	if !n.Accepts(e.Link) {
		return
	}
	n.log.End, n.log.Synced = e.End, e.Synced
	n.pledge(now, e.Stamp)
	n.acknowledge()
}

// pledge handles a stamp. From its arrival, this node promises not to serve as master for the lease, its own or the
// master's, whichever is longer; so the master may answer reads. A stamp of a serving master that has released its
// lease frees the node from all promises. That covers promises to earlier masters, whose leases had ended before this
// master served.
func (n *Node) pledge(now Time, s Stamp) {
	n.link.stamp = s
	if s.Released {
		n.promise = never
		return
	}
	n.promise = max(n.promise, now+max(n.conf.Lease, s.Lease))
}

// acknowledge sends the master the end of this node's log, once the resynchronisation is complete.
func (n *Node) acknowledge() {
	if n.master != nil || !n.link.ready || !n.isNewest(n.link.epoch) {
		return
	}
	n.out.Ack = &Ack{From: n.self, Epoch: n.link.epoch, Offset: n.durable(), Sent: n.link.stamp.Sent}
}
