package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
)

// The topics limits, locks and queues are the lists of those screens. The server makes a list once a second
// for all streams of a user with the same topic: another user may see other keys.

// listKey identifies a list.
type listKey struct {
	topic
	user string
}

// shared is a list, and the number of streams that use it.
type shared struct {
	refs int // guarded by lists.mu

	mu      sync.Mutex // held while the list is made; guards the fields below
	beat    int64
	version int
	rows    []byte // as JSON, without the time
	body    []byte
}

// lists are the lists of the open streams. The zero value is empty.
type lists struct {
	mu  sync.Mutex // guards the map
	all map[listKey]*shared
}

// get returns a list. The caller must call drop at the end.
func (x *lists) get(key listKey) *shared {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.all[key]
	if l == nil {
		if x.all == nil {
			x.all = map[listKey]*shared{}
		}
		l = &shared{beat: -1}
		x.all[key] = l
	}
	l.refs++
	return l
}

func (x *lists) drop(key listKey) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.all[key]
	if l.refs--; l.refs == 0 {
		delete(x.all, key)
	}
}

// sentList is the state of a list that a stream has sent.
type sentList struct {
	*shared
	sent int // its version; 0: not sent
}

// at returns the list as of a beat. The first stream that asks makes the list.
func (l *shared) at(n int64, make func() (any, error), t topic, now func() int64) (version int, body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.beat >= n {
		return l.version, l.body
	}
	rows, err := make()
	if errors.Is(err, context.Canceled) {
		return l.version, l.body // the stream has ended: the next one makes the list
	}
	l.beat = n
	if err != nil {
		f := failureOf(err)
		rows = struct {
			Now     int64  `json:"now"`
			Error   string `json:"error"`
			Code    string `json:"code,omitempty"`
			Command string `json:"command,omitempty"`
			Rule    string `json:"rule,omitempty"`
		}{0, f.Text, f.Code, f.Command, f.Rule}
	}
	made := encode(rows)
	if l.version > 0 && bytes.Equal(made, l.rows) {
		return l.version, l.body
	}
	l.version, l.rows = l.version+1, made
	l.body = listBody(t, made, now())
	return l.version, l.body
}

// listNow begins the JSON of a list.
const listNow = `{"now":0`

// listBody adds the topic and the time to a list that begins with listNow.
func listBody(t topic, rows []byte, now int64) []byte {
	match, err := json.Marshal(t.key)
	if err != nil {
		match = []byte(`""`)
	}
	b := strconv.AppendInt([]byte(`{"db":`), int64(t.db), 10)
	b = append(append(b, `,"match":`...), match...)
	if sort, err := json.Marshal(t.sort); err == nil && t.sort != "" {
		b = append(append(b, `,"sort":`...), sort...)
	}
	b = strconv.AppendInt(append(b, `,"now":`...), now, 10)
	return append(b, rows[len(listNow):]...)
}
