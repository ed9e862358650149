package session

import (
	"net"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/replication"
	"github.com/ebbdb/ebb/internal/script"
)

// This file and access_service.go are what the commands about the server (package servercmd) ask of a
// session and of its service, as far as it is not beside what it concerns: connection.go and client.go have
// the two parts of a session, describe.go what is shown of a client, users.go its user and its permissions,
// multi.go its transaction, caching.go client-side caching, observe.go MONITOR, and script_host.go its scripts.
//
// A handler gets its session by Of. Methods whose comments do not name another goroutine are called by the
// handlers of that session alone.

// HandOver takes the connection out of its transport after the replies so far are sent, and calls run with it and
// with the input that was read already. The client's subscriptions end. The connection is a reactor.Hijacker.
func (c *Session) HandOver(run func(nc net.Conn, buffered []byte)) {
	c.takeOver = run
	c.closing = true // for the transport
	c.svc.pubsub.Leave(c)
}

// Reset does what RESET does, but for its reply.
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

// SendQueued writes the messages that wait for the client before the reply to its command x. In EXEC, and while the client
// gets no replies, they keep waiting.
func (c *Session) SendQueued(x *command.Ctx) {
	if x == &c.ctx && c.reply == replyOn {
		x.Out.Raw(c.takeQueue(nil))
	}
}

// Follow makes the client a replica, whose connection f takes over.
func (c *Session) Follow(f *replication.Replica) {
	c.view.show(viewReplica, true)
	c.HandOver(f.Run)
	f.Join()
	c.follows.Store(f)
}

// AwaitAcks ends the wait that the client's command has begun, with a reply, when met reports that enough replicas have
// acknowledged.
func (c *Session) AwaitAcks(met func() bool, reply func(*command.Ctx)) {
	w := c.waiting
	c.svc.repl.Await(&replication.AckWait{Over: w.over.Load, Met: met, End: func() { w.answer(nil, reply) }})
}

// Debug returns the function that runs the client's next EVAL under a debugger; nil: there is none.
func (c *Session) Debug() func(*command.Ctx) error { return c.debug }

// SetDebug sets what Debug returns.
func (c *Session) SetDebug(eval func(*command.Ctx) error) { c.debug = eval }

// Debugger returns the debugger under which the session's EVAL runs, nil if there is none: see RunDebugged.
func (c *Session) Debugger() script.Console { return c.debugger }
