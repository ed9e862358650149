package replication

// Acks receives the acknowledgements of replicas as they arrive. A group computes the committed offset from them. Network
// loops and the goroutines of the replicas call its methods, which must not block.
type Acks interface {
	// Acked handles an acknowledgement.
	Acked(a Ack)
	// Left reports that a replica has disconnected. Its acknowledgements do not count for its next connection.
	Left(f *Replica)
}

// Ack is a replica's newest acknowledgement on its connection. A replica sends none before its resynchronisation is
// complete.
type Ack struct {
	Replica *Replica
	Term    uint64 // the log's term (oplog.Holds.Term) when the replica connected
	Applied int64  // the replica has applied the stream up to this offset
	Synced  int64  // its files hold the stream up to this offset
	Group   string // the acknowledgement of a member of a group; "" from other replicas
}

// TellAcks makes the Node pass acknowledgements to a. Call it before there are replicas.
func (r *Node) TellAcks(a Acks) { r.acks.Store(&a) }

func (r *Node) tellAcks(f *Replica, text string) {
	if a := r.acks.Load(); a != nil {
		(*a).Acked(Ack{Replica: f, Term: f.term, Applied: f.acked.Load(), Synced: f.synced.Load(), Group: text})
	}
}

func (r *Node) tellLeft(f *Replica) {
	if a := r.acks.Load(); a != nil {
		(*a).Left(f)
	}
}

// AckTime determines when a replica sends acknowledgements besides those that it sends once a second and when the
// master asks.
type AckTime int32

const (
	AckLater   AckTime = iota // never
	AckApplied                // as soon as it has applied a part of the stream
	AckSynced                 // as soon as its files hold a part of the stream
)

// AckAtOnce sets when this server, as a replica, sends acknowledgements. In a group the master's replies wait for
// them.
func (r *Node) AckAtOnce(when AckTime) { r.atOnce.Store(int32(when)) }

// AcksAtOnce returns the value that AckAtOnce has set.
func (r *Node) AcksAtOnce() AckTime { return AckTime(r.atOnce.Load()) }
