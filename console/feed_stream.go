package console

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// stream is the state of a feed's request. One goroutine uses it.
type stream struct {
	q      *request
	c      *Console
	conn   *http.ResponseController
	topics []topic
	trail  *trail
	seq    uint32 // of the last event
	keys   map[topic]*keyEvent
	lists  map[topic]*sentList
	tails  map[int]*tail // by database
	rests  int64         // the number of the beat from which the topics read data again

	expiredKeys *expiredKeys
}

// keyEvent is the event about a key. Its cost does not depend on the size of the value.
type keyEvent struct {
	Db      int    `json:"db"`
	K       blob   `json:"k"`
	Version string `json:"version,omitempty"`
	TTL     int64  `json:"pttl"`
	Type    string `json:"type"`
	N       int64  `json:"n"`
	At      int64  `json:"at"`
	gone    bool
}

// same reports whether a page that knows x need not read the key again.
func (x *keyEvent) same(y *keyEvent) bool {
	deadline := func(z *keyEvent) int64 {
		if z.TTL < 0 {
			return z.TTL
		}
		return z.At + z.TTL
	}
	d := deadline(x) - deadline(y)
	return x.Version == y.Version && x.Type == y.Type && x.N == y.N && x.gone == y.gone && d > -50 && d < 50
}

// reason is the data of the events resync and bye.
type reason struct {
	Why string `json:"why"`
	// Gap means that expirations may be missing.
	Gap bool `json:"gap,omitempty"`
}

// epoch identifies this run of the server.
func (c *Console) epoch() string { return text64(c.svc.Admin().Started) }

// send writes an event, and reports whether the viewer is there.
func (s *stream) send(event string, data any) bool {
	body, err := json.Marshal(data)
	if err != nil {
		return false
	}
	return s.sendJSON(event, body) && s.conn.Flush() == nil
}

// sendJSON sends data that is JSON already, and does not flush.
func (s *stream) sendJSON(event string, data []byte) bool {
	s.seq++
	_, err := fmt.Fprintf(s.q.w, "id: %s-%d\nevent: %s\ndata: %s\n\n", s.c.epoch(), s.trail.number(s.seq), event, data)
	return err == nil
}
