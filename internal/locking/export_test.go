package locking

import (
	"time"

	"github.com/ebbdb/ebb/conn"
)

// MaxLists is maxLists.
const MaxLists = maxLists

// Listed reports whether the first renewal of a lease comes, or came, from a list.
func (l *Lease) Listed() bool { return l.renewals != nil }

// ListIsIdle reports whether a Conn's list for leases of a length is empty, and its timer does not run.
func ListIsIdle(c *conn.Conn, ttl time.Duration) bool {
	list := renewalsOf(c, ttl)
	list.mu.Lock()
	defer list.mu.Unlock()
	return list.first == nil && list.last == nil && !list.armed
}
