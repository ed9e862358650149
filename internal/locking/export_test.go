package locking

import (
	"time"

	"github.com/ebbdb/ebb/conn"
)

// MaxLists is maxLists.
const MaxLists = maxLists

// Listed reports whether the first renewal of a lease comes, or came, from a list.
func (l *Lease) Listed() bool { return l.lane != nil }

// Made reports whether something has needed the object of a lease.
func (l *Lease) Made() bool { return l.object.Load() != nil }

// ListIsIdle reports whether a Conn's list for leases of a length is empty, and none of its timers runs.
func ListIsIdle(c *conn.Conn, ttl time.Duration) bool {
	idle := true
	for i := range keptRenewals(c).of(ttl) {
		list := &keptRenewals(c).of(ttl)[i]
		list.mu.Lock()
		idle = idle && list.first == nil && list.last == nil && !list.armed
		list.mu.Unlock()
	}
	return idle
}
