package session

import (
	"fmt"
	"runtime/debug"

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
)

// A panic in a command's handler is a fault of this program. It ends the caller of the command, but not the
// process:
//
//	a connection, on a loop or in the background, a script, EXEC   the connection is closed
//	a command that waits and is being served               its connection is closed; the
//	                                                       transaction that served it continues
//	the link to the master                                 the link ends
//	a log that is loaded                                   the start is refused
//	an embedded caller (Session.Do)                        the panic reaches the caller
//
// The stack is in the log. The session unlocks the shards in each case (engine.Tx.Abandon). If the
// command was a write, memory may contain a part of it that the stream does not. Clients have seen
// the state in memory, so that state is the valid one from then on: the server rewrites the
// append-only files from it and gives the stream a new name, so that replicas request all data. If
// this server is a replica, it requests all data of its master.

// errPanicked is the reply to the client, if the client still gets one.
const errPanicked = command.ReplyError("ERR the command has failed inside the server: its log has the details")

// maxPanic is the greatest number of bytes of a panic's text in the log, the same as for a script's message.
const maxPanic = MaxLogged

// Panics returns the number of handlers that have panicked, and the message of the last panic.
func (s *Service) Panics() (n int64, last string) {
	if text := s.crashes.last.Load(); text != nil {
		last = *text
	}
	return s.crashes.n.Load(), last
}

// logPanic logs a panic of a command's handler. The deferred function that has recovered the panic
// calls it, so that the stack is that of the handler.
func (s *Service) logPanic(what any, spec *command.Spec, id int64) {
	name := ""
	if spec != nil {
		name = spec.Name
	}
	// The panic's value may quote input of a client, so it is made one line; the stack keeps its lines.
	text := fmt.Sprintf("panic: %s\n%s", cleantext.Line(fmt.Sprint(what), maxPanic), debug.Stack())
	s.crashes.last.Store(&text)
	s.crashes.n.Add(1)
	s.Log.Error("a command has panicked: this is a mistake in ebb, please report it", "command", name, "client", id, "panic", text)
}

// resyncAll rewrites the append-only files from memory, and makes the replicas synchronise again.
func (s *Service) resyncAll() {
	s.repl.Distrust("a command has panicked: replicas must synchronise all data again")
	if s.keeper != nil {
		s.keeper.Replaced()
	}
}

// crashed cleans up the state that the session's command has left after a panic.
func (c *Session) crashed(what any) {
	c.svc.logPanic(what, c.ctx.Spec, c.id)
	if c.tx.Abandon() {
		c.svc.resyncAll()
	}
	if st := c.coroutine; st != nil && c.stats.coroutine == st {
		c.stats.coroutine, c.stats.scratch = nil, nil // the coroutine of the session has ended
	}
	c.coroutine, c.multi, c.last = nil, multi{}, nil
	c.closing = true
}

// executeParked runs a parked command in the background.
func (c *Session) executeParked(p *parked) (what outcome) {
	defer func() {
		if x := recover(); x != nil {
			c.crashed(x)
			c.out.Buf, what = nil, done
		}
	}()
	if st := p.coroutine; st != nil {
		what = st.resume()
		st.stop()
		return what
	}
	return c.executeInBackground(p)
}

// run runs the command of a waiter in the transaction of another session. A panic in it ends only
// the waiter.
func (w *waiter) run(x *command.Ctx) (err error) {
	defer func() {
		if what := recover(); what != nil {
			w.c.svc.logPanic(what, x.Spec, w.c.id)
			w.c.svc.resyncAll()
			w.lost = true
			err = errPanicked
		}
	}()
	return x.Spec.Run(x)
}

// applySafely runs a command from a log, and returns an error if it panics.
func (a *rerun) applySafely(args [][]byte) (what outcome, err error) {
	defer func() {
		if x := recover(); x != nil {
			a.c.svc.logPanic(x, a.c.ctx.Spec, a.c.id)
			a.c.tx.Abandon()
			err = fmt.Errorf("panic: %v", x)
		}
	}()
	return a.c.dispatch(args), nil
}

// dispatchSafely does the work of dispatch for an embedded caller, which receives the panic.
func (c *Session) dispatchSafely(args [][]byte) outcome {
	ok := false
	defer func() {
		if !ok {
			c.svc.logPanic("of an embedded caller's command", c.ctx.Spec, c.id)
			if c.tx.Abandon() {
				c.svc.resyncAll()
			}
		}
	}()
	what := c.dispatch(args)
	ok = true
	return what
}
