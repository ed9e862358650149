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

// Pause has a lease see the clock that it sees after a pause of the process, before its timers have fired.
func (l *Lease) Pause(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requested = Instant(time.Time(l.requested).Add(-d))
}

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
