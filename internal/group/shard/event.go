package shard

import (
	"time"

	"github.com/ebbdb/ebb/internal/group/directory"
)

// Link identifies a connection between two nodes. Each node numbers its own connections, from 1 on.
type Link uint64

// Event is an input of Node.Step: one of the types of this file.
type Event any

// Registered is the directory's answer to the Register of this process.
type Registered struct {
	Self  directory.Member
	Shard directory.Shard // the state in the answer
}

// Applied says that this node has a state of the shard: its voter has applied it, or an answer contained it.
type Applied struct{ Shard directory.Shard }

// Appended gives the new end of the log: this node wrote as the master, or synced its files.
type Appended struct{ End, Synced uint64 }

// Connected says that a link to the node's Master is open. The caller greets the master with the node's member and its Epoch.
type Connected struct{ Link Link }

// Closed says that a link has ended.
type Closed struct{ Link Link }

// Greeted says that a replica has greeted this node. The node becomes its master or closes the link.
type Greeted struct {
	Link  Link
	From  directory.Member
	Epoch uint64 // the highest epoch that the replica knows
}

// Answered says that the master has answered this replica's greeting. If Full, all data is transferred first;
// otherwise the stream continues at the end of the replica's log. PSYNC has decided that by comparing the two logs.
type Answered struct {
	Link  Link
	Epoch uint64 // the master's epoch
	Full  bool
}

// Acked is an acknowledgement of a replica.
type Acked struct {
	Link Link
	Ack
}

// Streamed says that a part of the master's stream, or a heartbeat, has arrived and is applied. The node must accept
// the link (Accepts).
type Streamed struct {
	Link Link
	Stamp
	End, Synced uint64 // the log, after the part was applied
}

// Loaded says that a full resynchronisation is complete and has replaced the old data in one step. Until then the
// replica keeps the old data, even if the link ends.
type Loaded struct {
	Link        Link
	End, Synced uint64 // the log, after the load
}

// Leaving says that a member is about to stop. The master takes it out of the in-sync set at once, if k+1 fresh
// members remain, and does not add it again for Lag or until it greets again.
type Leaving struct{ Member directory.Member }

// HandOver asks the master to make another member in sync the master. The master refuses writes meanwhile, see Gates.
type HandOver struct{ To directory.NodeID }

// Tick says that time has passed.
type Tick struct{}

// Ack is a replica's acknowledgement.
type Ack struct {
	From   directory.Member
	Epoch  uint64 // the epoch of the master whose stream it acknowledges
	Offset uint64 // it has applied the stream up to here, or at level disk synced it
	Sent   Time   // the Sent of the newest stamp that it has received; 0 before the first
}

// Stamp accompanies each part of the stream and each heartbeat. A heartbeat is due each Lease/4.
type Stamp struct {
	Sent Time // the master's clock at the time of sending
	// Lease is the master's sync-lease, for which it relies on the promise. The member's own may be shorter while an
	// operator changes the directive.
	Lease time.Duration
	// Released: the master has given up its lease, which frees the member from all its promises.
	Released bool
}
