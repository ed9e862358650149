package session

import (
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/acl"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/pubsub"
	"github.com/ebbdb/ebb/internal/replication"
	"github.com/ebbdb/ebb/internal/tracking"
)

// client is the part of a session that lasts from command to command: its user, its database, its transaction, its subscriptions. It
// knows neither the connection nor the command that runs.
type client struct {
	svc     *Service
	id      int64
	created int64 // us
	// origin says where the commands of an embedded session come from, and identity as whom they run;
	// nil: the program itself.
	origin   *Origin
	identity *Identity

	user    *acl.Account // only the session's goroutine sets it
	dbi     int
	authed  bool  // it has logged in, or did not have to
	noTouch bool  // CLIENT NO-TOUCH
	reply   uint8 // CLIENT REPLY
	multi   multi
	// multiBytes is about the length of the requests that wait for EXEC.
	multiBytes int64
	watch      *engine.Watch
	subs       pubsub.Subscriptions
	track      tracking.State // CLIENT TRACKING

	announced replication.Announced               // by REPLCONF
	follows   atomic.Pointer[replication.Replica] // the replica whose session it is; nil for other clients
	view      view                                // what other goroutines may read
}

// These are the modes of CLIENT REPLY.
const (
	replyOn uint8 = iota
	replyOff
	replySkip     // no reply to this command
	replySkipNext // no reply to the next command
)
