package console

import (
	"fmt"
	"sync"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/session"
)

// expiredKeys collects, for one stream, the expired keys of some databases that keyspace events report.
type expiredKeys struct {
	stop func()

	mu sync.Mutex // guards the lists
	by map[int]*expiredList
}

// expiredList has the keys of a database that have expired since the last beat, at most maxTail.
type expiredList struct {
	events  []*expiredEvent
	skipped int64
}

// watchExpired begins to collect the keys that expire.
func (c *Console) watchExpired(topics []topic) *expiredKeys {
	x := &expiredKeys{by: map[int]*expiredList{}}
	for _, t := range topics {
		if t.name == "expired" {
			x.by[t.db] = &expiredList{}
		}
	}
	x.stop = func() {}
	if len(x.by) > 0 {
		x.stop = c.svc.Expirations(x.note)
	}
	return x
}

// note records a key. The server holds locks during the call.
func (x *expiredKeys) note(k session.ExpiredKey) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch l := x.by[k.DB]; {
	case l == nil:
	case len(l.events) == maxTail:
		l.skipped++
	default:
		l.events = append(l.events, &expiredEvent{At: k.At, DB: k.DB, Level: "key", K: bytesOf(string(k.Key)), Lag: -1})
	}
}

// take returns the keys of a database since the last call.
func (x *expiredKeys) take(db int) expiredList {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := *x.by[db]
	*x.by[db] = expiredList{}
	return l
}

// eventsRule returns the ACL rule that the user lacks to receive the expired keys of a database, or "".
func (k *call) eventsRule(db int) string {
	_, need := k.v.id.May([][]byte{[]byte("SUBSCRIBE"), fmt.Appendf(nil, "__keyevent@%d__:expired", db)})
	return need
}

// eventsSetting returns the value of notify-keyspace-events with which the server reports each expired key;
// "" if it does so already.
func (c *Console) eventsSetting() string {
	on := c.svc.Config.Events()
	if all := on | config.EventKeyevent | config.EventExpired; all != on {
		return all.String()
	}
	return ""
}

// published sends the keys that have expired since the last beat, if the user may read them.
func (s *stream) published(k *call, db int) bool {
	l := s.expiredKeys.take(db)
	if len(l.events) == 0 || k.eventsRule(db) != "" {
		return true
	}
	may := k.v.id.Reads(readers...)
	for _, x := range l.events {
		if may([]byte(x.K.s)) && !s.sendJSON("expired", encode(x)) {
			return false
		}
	}
	return l.skipped == 0 || s.sendJSON("expired", encode(skippedEvent{db, l.skipped}))
}
