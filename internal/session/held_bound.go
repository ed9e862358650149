package session

import (
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/wire"
)

// heldBytes bounds the replies of all connections that wait for the group. While they have sync-held-max
// bytes or more, connections that hold nothing read no further request for data: each connection holds one
// batch, so a group that does not answer would otherwise cost memory for each client. A connection that holds
// a batch reads no request anyway, and gets its reply, or UNSYNCED after sync-timeout, so the bytes decrease.
type heldBytes struct {
	bytes atomic.Int64
	max   atomic.Int64 // sync-held-max; 0: no bound
	parks atomic.Int64 // the number of sessions that have been added to waiting, or are about to be

	mu      sync.Mutex // guards waiting
	waiting map[oplog.Waker]struct{}
}

// alwaysServed returns the length of the request at the start of in if it is always served: the handshake of the
// member that the group waits for, and the requests of operators and health checks. It returns 0 for every
// other request.
func (c *Session) alwaysServed(in []byte) int {
	name, sub, n := wire.Peek(in)
	if n == 0 {
		return 0
	}
	spec, err := c.svc.table.Find([][]byte{name, sub})
	if err == nil && (spec.Has(command.Admin) || spec.Has(command.OfServer) || spec.Group == command.GroupConnection) {
		return n
	}
	return 0
}

// add adds n bytes, which may be negative, and wakes the waiting sessions if there is room. It costs two
// atomic operations.
func (h *heldBytes) add(n int) {
	now := h.bytes.Add(int64(n))
	if n < 0 && h.parks.Load() > 0 && !h.over(now) {
		h.wake()
	}
}

// setMax sets the bound.
func (h *heldBytes) setMax(n int64) {
	h.max.Store(n)
	h.wake()
}

func (h *heldBytes) over(bytes int64) bool {
	most := h.max.Load()
	return most > 0 && bytes >= most
}

// full reports whether the bound is reached. If so, w is woken once when it no longer is.
func (h *heldBytes) full(w oplog.Waker) bool {
	if !h.over(h.bytes.Load()) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parks.Add(1)
	if !h.over(h.bytes.Load()) { // add may not have seen parks
		h.parks.Add(-1)
		return false
	}
	if h.waiting == nil {
		h.waiting = map[oplog.Waker]struct{}{}
	}
	h.waiting[w] = struct{}{}
	return true
}

// wake wakes all waiting sessions. Those without room wait again.
func (h *heldBytes) wake() {
	h.mu.Lock()
	all := h.waiting
	h.waiting = nil
	h.parks.Store(0) // full changes it only with mu held
	h.mu.Unlock()
	for w := range all {
		w.Wake()
	}
}

// countHeld records the number of bytes that the connection holds for the group.
func (c *connection) countHeld(n int) {
	if n != c.held.counted {
		c.host.holding().add(n - c.held.counted)
		c.held.counted = n
	}
}
