package remote

import (
	"sync"
	"time"
)

// HangupTime is the time for which a command whose caller has gone waits for the server to close the connection.
const HangupTime = 250 * time.Millisecond

// Hangup ends a command that waits on a connection of its own: it tells the server that no more commands come. A server answers
// that by closing the connection, after it has read the command and has sent its reply. So when the call ends, the command no
// longer runs. The zero value is for one command. Its methods are safe for concurrent use.
type Hangup struct {
	mu    sync.Mutex  // guards what follows
	over  bool        // the command has ended
	abort *time.Timer // nil before Begin
}

// Begin hangs up, unless the command has ended. If the server does not close the connection in time, or if the connection cannot
// be half-closed (half is nil), abort ends the command.
func (h *Hangup) Begin(half interface{ CloseWrite() error }, abort func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.over:
	case half == nil || half.CloseWrite() != nil:
		abort()
	default:
		h.abort = time.AfterFunc(HangupTime, abort)
	}
}

// End says that the command has ended.
func (h *Hangup) End() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	if h.abort != nil {
		h.abort.Stop()
	}
}
