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

// Connected says that a link to Leader is open. The node sends its Greeting.
type Connected struct{ Link Link }

// Closed says that a link has ended.
type Closed struct{ Link Link }

// Received is a message of another node.
type Received struct{ Message }

// Streamed says that a part of the master's stream, or a heartbeat, has arrived on a link that Accepts it, and that it is applied.
type Streamed struct {
	Link Link
	Stamp
	End, Synced uint64 // of the log, afterwards
}

// Loaded says that a full resynchronisation is complete: at level disk it is synced, and it has replaced the old data in one
// step. Until then the old data is there, and survives the end of the link.
type Loaded struct {
	Link Link
	End  uint64
}

// Leaving says that a member is about to stop. Its master takes it out of the in-sync set at once, if k+1 fresh ones remain, and does not
// add it again for Lag, or until it has greeted again.
type Leaving struct{ Member directory.Member }

// HandOver asks the master to make another member in sync the master. Writes wait meanwhile, see Gates.
type HandOver struct{ To directory.NodeID }

// Tick says that time has passed.
type Tick struct{}

// Greeting is a replica's first message on a link.
type Greeting struct {
	From  directory.Member
	Epoch uint64 // the highest that it knows
	Log   Log
}

// Resync is the master's answer to a Greeting: what comes next on the link. The caller that sends it may make it Full, if it no longer
// has the stream from the end of the replica's log on.
type Resync struct {
	Epoch uint64
	Full  bool // all data comes first, and replaces what the replica has; otherwise the stream from the end of its log on
	Log   Log  // of the master
	Stamp Stamp
}

// Ack is a replica's acknowledgement.
type Ack struct {
	From   directory.Member
	Epoch  uint64 // of the master whose stream it acknowledges
	Offset uint64 // applied, or at level disk synced, up to here
	Sent   Time   // of the newest stamp that it has received: the master's clock
}

// Stamp goes with each part of the stream and each heartbeat, of which one is due each Lease/4.
type Stamp struct {
	Sent Time // the master's clock as it was sent
	// Lease is the master's, for which it counts on the promise: this node's own may be shorter while the directive is being changed.
	Lease time.Duration
	// Released: the master has given up its lease, so the replica is free of the promises that it has made.
	Released bool
}
