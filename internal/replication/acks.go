package replication

// Acks is told at once what replicas acknowledge; a group decides by it what is committed. The goroutines of the replicas call it. Its
// methods must not block.
type Acks interface {
	// Acked takes an acknowledgement.
	Acked(a Ack)
	// Left says that a replica has disconnected: what it has acknowledged says nothing of what it has when it comes back.
	Left(f *Replica)
}

// Ack is a replica's newest acknowledgement on its connection. It sends none before its resynchronisation is finished.
type Ack struct {
	Replica *Replica
	Term    uint64 // of the log (oplog.Holds.Term) when the connection became a replica's
	Applied int64  // it has the stream in memory up to this offset
	Synced  int64  // its files hold the stream up to this offset
	Group   string // what a member of a group says besides
}

// TellAcks makes the Node tell a of acknowledgements. Call it before there are replicas.
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

// AckTime is the time at which a replica acknowledges what it has. It also does so once a second, and when the master asks.
type AckTime int32

const (
	AckLater   AckTime = iota // at no other time
	AckApplied                // at once what it has applied
	AckSynced                 // at once what its files hold
)

// AckAtOnce sets when this server acknowledges as a replica. In a group its master waits for it.
func (r *Node) AckAtOnce(when AckTime) { r.atOnce.Store(int32(when)) }

// AcksAtOnce returns what AckAtOnce has set.
func (r *Node) AcksAtOnce() AckTime { return AckTime(r.atOnce.Load()) }
