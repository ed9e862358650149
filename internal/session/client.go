package session

import (
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/acl"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/pubsub"
	"github.com/ebbdb/ebb/internal/replication"
	"github.com/ebbdb/ebb/internal/tracking"
)

// client is the part of a session that lasts from command to command: its user, its database, its
// transaction, its subscriptions. It knows neither the connection nor the running command.
type client struct {
	charger charger
	id      int64
	created int64 // us
	// origin describes the origin of an embedded session's commands, and identity is the user that they run as;
	// nil: the program itself.
	origin   *Origin
	identity *Identity

	user    *acl.Account // only the session's goroutine sets it
	dbi     int
	authed  bool  // the client has logged in, or did not need to
	noTouch bool  // CLIENT NO-TOUCH
	reply   uint8 // CLIENT REPLY
	multi   multi
	// multiBytes is the approximate length of the requests that wait for EXEC.
	multiBytes int64
	watch      *engine.Watch
	subs       pubsub.Subscriptions
	track      tracking.State // CLIENT TRACKING

	announced replication.Announced               // by REPLCONF
	follows   atomic.Pointer[replication.Replica] // the replica that the session belongs to; nil for other clients
	view      view                                // the fields that other goroutines may read
}

// charger counts the memory that a client takes up besides the data. The engine implements it.
type charger interface {
	// ChargeApart adds n bytes, which may be negative.
	ChargeApart(n int64)
}

// These are the modes of CLIENT REPLY.
const (
	replyOn uint8 = iota
	replyOff
	replySkip     // no reply to this command
	replySkipNext // no reply to the next command
)

// view is the part of a session that other goroutines may read.
type view struct {
	last   atomic.Pointer[command.Spec]
	active atomic.Int64 // us since 1970, of the last batch
	name   atomic.Pointer[string]
	lib    atomic.Pointer[[2]string] // LIB-NAME, LIB-VER
	dbi    atomic.Int32
	multi  atomic.Int32 // commands queued, -1 outside MULTI
	// multiBytes is the memory of these commands in bytes.
	multiBytes atomic.Int64
	watch      atomic.Int32
	watchBytes atomic.Int64  // the memory of the watched keys
	nameBytes  atomic.Int64  // bytes of the name and the library
	flags      atomic.Uint32 // of the constants below

	user    atomic.Pointer[acl.Account]
	waiting atomic.Pointer[waiter] // nil if no command waits
}

const (
	viewNoEvict uint32 = 1 << iota
	viewNoTouch
	viewMonitor // MONITOR
	viewReplica // the client is a replica, which follows the stream
	viewMaster  // the client is the master of this server
)

// show sets or clears a flag.
func (v *view) show(flag uint32, on bool) {
	if on {
		v.flags.Or(flag)
	} else {
		v.flags.And(^flag)
	}
}

// setUser makes acc the user of the session.
func (c *client) setUser(acc *acl.Account) {
	c.user = acc
	c.view.user.Store(acc)
}

// LoggedOut reports whether the client has to log in before it may run commands.
func (c *Session) LoggedOut() bool { return !c.authed && c.svc.NeedsLogin() }

// SelectDB selects a database.
func (c *client) SelectDB(n int) {
	c.dbi = n
	c.view.dbi.Store(int32(n))
}

// SetReplies turns replies on or off, from the next command on.
func (c *client) SetReplies(on bool) {
	c.reply = replyOff
	if on {
		c.reply = replyOn
	}
}

// SkipReply skips the reply to the next command, if replies are on.
func (c *client) SkipReply() {
	if c.reply != replyOff {
		c.reply = replySkipNext
	}
}

func (c *client) skipReply() {
	switch c.reply {
	case replySkip:
		c.reply = replyOn
	case replySkipNext:
		c.reply = replySkip
	}
}

// Replies reports whether the client gets the reply to its command.
func (c *client) Replies() bool { return c.reply == replyOn }

// SetNoTouch sets whether the client's reads do not count as accesses.
func (c *client) SetNoTouch(on bool) {
	c.noTouch = on
	c.view.show(viewNoTouch, on)
}

// SetNoEvict exempts the client from maxmemory-clients.
func (c *client) SetNoEvict(on bool) { c.view.show(viewNoEvict, on) }

// Reset resets the session as RESET does, without its reply.
func (c *Session) Reset() {
	c.EndMulti()
	c.svc.pubsub.Leave(c)
	c.StopTracking()
	c.unmonitor()
	c.SelectDB(0)
	c.SetProto(2)
	c.SetName(nil)
	c.SetReplies(true)
	c.SetNoTouch(false)
	c.SetNoEvict(false)
	c.setDefaultUser()
}

// Announced returns the client's REPLCONF settings, for REPLCONF to change and for PSYNC to read.
func (c *client) Announced() *replication.Announced { return &c.announced }

// Subscriptions implements pub/sub's subscriber.
func (c *client) Subscriptions() *pubsub.Subscriptions { return &c.subs }

// lists returns the number of entries that the session removes one by one. Watched keys do not
// count: Unwatch removes them.
func (c *client) lists() int { return c.subs.Len() + c.track.Mode().Size() }

// showTransaction publishes the sizes of MULTI's queue and of WATCH's keys to other goroutines.
func (c *client) showTransaction() {
	queued, watched := int32(-1), int32(0)
	if c.multi.on {
		queued = int32(len(c.multi.queue))
	}
	if c.watch != nil {
		watched = int32(c.watch.Len())
	}
	if queued != c.view.multi.Load() {
		c.view.multi.Store(queued)
	}
	if old := c.view.multiBytes.Load(); c.multi.bytes != old {
		c.view.multiBytes.Store(c.multi.bytes)
		c.charger.ChargeApart(c.multi.bytes - old)
	}
	if watched != c.view.watch.Load() {
		c.view.watch.Store(watched)
		bytes := int64(0)
		if c.watch != nil {
			bytes = c.watch.Bytes()
		}
		c.view.watchBytes.Store(bytes)
	}
}
