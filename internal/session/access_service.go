package session

import (
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/hotkeys"
	"github.com/ebbdb/ebb/internal/pubsub"
	"github.com/ebbdb/ebb/internal/script"
)

// Clients returns the sessions that CLIENT LIST shows, by id: those that have connections or an origin.
func (s *Service) Clients() []*Session { return s.clients.shown() }

// Client returns the session with an id, nil if there is none.
func (s *Service) Client(id int64) *Session { return s.clients.find(id) }

// Unblock ends the wait of a client's command, with an error or as if its time were up, and reports whether it waited. tx is
// the caller's transaction.
func (s *Service) Unblock(tx *engine.Tx, id int64, withError bool) bool {
	w := s.clients.waiter(id)
	switch {
	case w == nil:
		return false
	case withError:
		return w.unblock(tx)
	}
	return w.timeOut(tx)
}

// Pause suspends the clients for some ms: all their commands, or those that write. Of two pauses the later end and the
// stricter mode hold.
func (s *Service) Pause(ms int64, all bool) { s.pause.begin(ms, all) }

// Unpause ends a Pause.
func (s *Service) Unpause() { s.pause.end() }

// PubSub returns the subscriptions of all clients.
func (s *Service) PubSub() *pubsub.Broker { return &s.pubsub }

// Scripts returns the engine that runs scripts and functions.
func (s *Service) Scripts() *script.Engine { return s.scripts }

// HotTracker returns what HOTKEYS counts.
func (s *Service) HotTracker() *hotkeys.Tracker { return s.hot }

// NodeID returns the node's id in the cluster of one node.
func (s *Service) NodeID() string { return s.nodeID }

// BusyAfter returns the time, in us, after which a script is overdue.
func (s *Service) BusyAfter() int64 { return s.busyAfter.Load() }

// DebugCopies returns the counter of the bytes of data that debugging sessions have copied.
func (s *Service) DebugCopies() *atomic.Int64 { return &s.copied }

// RunDebugged runs an EVAL of the client in an embedded session of this service, which may be another one than the client's,
// under a debugger. It returns the reply in RESP.
func (s *Service) RunDebugged(client *Session, d script.Console, args [][]byte) (reply []byte, err error) {
	c := s.NewSession(nil)
	defer c.Closed(nil)
	c.setUser(client.user)
	c.dbi, c.debugger, c.quit = client.dbi, d, client.svc.ctx.Done()
	c.out.Proto = client.out.Proto
	c.dispatchSafely(args)
	c.endBatch(0, 0)
	if s.DB.Log().Always() {
		err = c.durably(s.ctx, false)
	}
	return c.out.Buf, err
}

// Interrupt ends the scripts that run, at any point, and the waits of embedded sessions. Close follows.
func (s *Service) Interrupt() { s.stop() }
