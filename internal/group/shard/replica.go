package shard

// link is a replica's connection to its master.
type link struct {
	id      Link
	epoch   uint64 // of the master, by its answer; 0 before
	loading bool   // a full resynchronisation is not complete
	ready   bool   // the resynchronisation is finished: what arrives is acknowledged
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

// answered takes the master's answer. A master of an older epoch is refused: it was replaced, and needs the acknowledgement of this node or
// of another one that knows. One of a later epoch is refused until a state of the directory has come here that names it: what a peer says
// raises no epoch.
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

// loaded ends a full resynchronisation.
func (n *Node) loaded(e Loaded) {
	if n.link.id != e.Link || !n.link.loading {
		return
	}
	n.log = Log{End: e.End, Synced: e.Synced}
	n.link.loading, n.link.ready = false, true
	n.acknowledge()
}

// Accepts reports whether what arrives on a link may be applied. The caller asks before it applies it.
func (n *Node) Accepts(id Link) bool {
	return n.master == nil && id != 0 && n.link.id == id && n.link.ready && !n.link.loading && n.isNewest(n.link.epoch)
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
	if n.master != nil || !n.link.ready || !n.isNewest(n.link.epoch) {
		return
	}
	n.out.Ack = &Ack{From: n.self, Epoch: n.link.epoch, Offset: n.durable(), Sent: n.link.stamp.Sent}
}
