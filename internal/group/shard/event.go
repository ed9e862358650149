package shard

import (
	"time"

	"github.com/ebbdb/ebb/internal/group/directory"
)

// Link names a connection between two nodes. Each of the two numbers its own connections, from 1 on.
type Link uint64

// Event is an input of Node.Step: one of the types of this file.
type Event any

// Registered is the answer to the Register of this process.
type Registered struct {
	Self  directory.Member
	Shard directory.Shard // as the answer has it
}

// Applied says that the directory's log has reached a state of the shard on this node, or that an answer had it.
type Applied struct{ Shard directory.Shard }

// Appended says how far the log goes now: by writes of this node as master, or because something was synced.
type Appended struct{ End, Synced uint64 }

// Connected says that a link to the node's Master is open. The caller greets the master with the node's member and its Epoch.
type Connected struct{ Link Link }

// Closed says that a link has ended.
type Closed struct{ Link Link }

// Greeted says that a replica has greeted this node. The node is to be its master, or closes the link.
type Greeted struct {
	Link  Link
	From  directory.Member
	Epoch uint64 // the highest that the replica knows
}

// Answered says that a master has answered the greeting of this replica. The stream goes on from the end of the replica's log, or, if it is
// Full, all data comes first. The two ends have decided that by their logs (PSYNC).
type Answered struct {
	Link  Link
	Epoch uint64 // of the master
	Full  bool
}

// Acked is an acknowledgement of a replica.
type Acked struct {
	Link Link
	Ack
}

// Streamed says that a part of the master's stream, or a heartbeat, has arrived on a link that Accepts it, and that it is applied.
type Streamed struct {
	Link Link
	Stamp
	End, Synced uint64 // of the log, afterwards
}

// Loaded says that a full resynchronisation is complete, and has replaced the old data in one step. Until then the old data is there, and
// survives the end of the link.
type Loaded struct {
	Link        Link
	End, Synced uint64 // of the log, afterwards
}

// Leaving says that a member is about to stop. Its master takes it out of the in-sync set at once, if k+1 fresh ones remain, and does not
// add it again for Lag, or until it has greeted again.
type Leaving struct{ Member directory.Member }

// HandOver asks the master to make another member in sync the master. Writes wait meanwhile, see Gates.
type HandOver struct{ To directory.NodeID }

// Tick says that time has passed.
type Tick struct{}

// Ack is a replica's acknowledgement.
type Ack struct {
	From   directory.Member
	Epoch  uint64 // of the master whose stream it acknowledges
	Offset uint64 // applied, or at level disk synced, up to here
	Sent   Time   // of the newest stamp that it has received: the master's clock; 0 before the first
}

// Stamp goes with each part of the stream and each heartbeat, of which one is due each Lease/4.
type Stamp struct {
	Sent Time // the master's clock as it was sent
	// Lease is the master's, for which it counts on the promise: this node's own may be shorter while the directive is being changed.
	Lease time.Duration
	// Released: the master has given up its lease, so the replica is free of the promises that it has made.
	Released bool
}
