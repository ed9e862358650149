package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// feedTopics is the limit of topics of a stream.
const feedTopics = 20

// topic is a subject of a stream.
type topic struct {
	name string // sample, expired, key, limits, locks, queues, walk or monitor
	db   int
	key  string // of key: the key; of a list: the pattern, "" for all
	sort string // of a list: the column
}

// isList reports whether the topic is the list of a screen.
func (t topic) isList() bool { return t.name == "limits" || t.name == "locks" || t.name == "queues" }

// parseTopics reads the parameter topics.
func (c *Console) parseTopics(q *request) ([]topic, error) {
	var out []topic
	words := strings.Split(q.text("topics"), ",")
	if len(words) > feedTopics {
		return nil, badRequest("the stream has %d topics; %d are the limit", len(words), feedTopics)
	}
	for _, w := range words {
		t, err := c.parseTopic(w)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out, t) {
			return nil, badRequest("the stream has the topic %.80q twice", w)
		}
		out = append(out, t)
	}
	return out, nil
}

// topicParts are the topics, with how many parts each has at least and at most.
var topicParts = map[string][2]int{"sample": {1, 1}, "walk": {1, 1}, "monitor": {1, 1}, "expired": {1, 2}, "limits": {2, 4},
	"locks": {2, 4}, "queues": {2, 4}, "key": {3, 3}}

func (c *Console) parseTopic(w string) (t topic, err error) {
	parts := strings.Split(w, ":")
	t.name = parts[0]
	if n := topicParts[t.name]; len(parts) < n[0] || len(parts) > n[1] {
		return t, badRequest("the topic %.80q is not known; the topics are sample, walk, monitor, expired:<db>, key:<db>:<key>, and "+
			"limits, locks and queues:<db>:<pattern>:<sort>, with keys and patterns in base64url", w)
	}
	if len(parts) > 1 {
		if t.db, err = strconv.Atoi(parts[1]); err != nil || t.db < 0 || t.db >= c.svc.DB.Databases() {
			return t, badRequest("the topic %.80q names the database %.80q, which does not exist", w, parts[1])
		}
	}
	if len(parts) > 2 {
		if t.key, err = decodeKey(parts[2]); err != nil {
			return t, badRequest("the topic %.80q has a key or a pattern that is not base64url", w)
		}
	}
	if len(parts) > 3 {
		t.sort = parts[3]
	}
	return t, nil
}

// stream is the state of a feed's request. One goroutine uses it.
type stream struct {
	q      *request
	c      *Console
	conn   *http.ResponseController
	topics []topic
	trail  *trail
	seq    uint32 // of the latest event
	keys   map[topic]*keyEvent
	lists  map[topic]*sentList
	tails  map[int]*tail // by database
	walk   sentWalk
	watch  *watch // of the topic monitor
	rests  int64  // the number of the beat at which the topics that read data go on
}

// feedShare is the time, in us, for which a stream may read data in a second, a tenth of it. After a beat whose reads took n times as
// long the stream rests for n beats: large lists come less often.
const feedShare = 100_000

// keyEvent is the event about a key. It costs the same for a value of any size.
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

// same reports whether a page that knows x must not read the key again.
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

// getFeed answers GET api/feed?topics&last, and POST api/feed with these in the body, with server-sent events.
func getFeed(c *Console, q *request) (any, error) {
	topics, err := c.parseTopics(q)
	if err != nil {
		return nil, err
	}
	conn := http.NewResponseController(q.w)
	cut := &cutter{conn: conn}
	end, err := c.stream(q, cut)
	if err != nil {
		return nil, err
	}
	defer end()
	s := &stream{q: q, c: c, conn: conn, topics: topics, keys: map[topic]*keyEvent{}, lists: map[topic]*sentList{}, tails: map[int]*tail{}}
	for _, t := range topics {
		if t.name == "key" {
			c.versions.follow(t.db, t.key)
		}
	}
	defer s.release()
	f := newFeed(cut.now)
	c.join(f)
	defer c.hub.leave(f)
	h := q.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // of proxies that would keep the events back
	q.w.WriteHeader(http.StatusOK)
	if !s.begin() {
		return nil, errSent
	}
	for {
		select {
		case x := <-f.beats:
			if f.lagged.Swap(false) && !s.resync("the stream has lagged behind", false) {
				return nil, errSent
			}
			if !s.beat(x) {
				return nil, errSent
			}
		case <-q.ctx.Done():
			if c.closing.Err() != nil {
				s.send("bye", reason{Why: "the server is shutting down"})
			}
			return nil, errSent
		}
	}
}

// begin sends hello, the events that the viewer may have missed, and the lists. Later events follow.
func (s *stream) begin() bool {
	last := s.q.text("last")
	if last == "" {
		last = s.q.r.Header.Get("Last-Event-ID") // of an EventSource that has connected again by itself
	}
	var from *trail
	s.trail, from = s.c.trails.newTrail(s.q.v.id.Name(), s.c.epoch(), last)
	hello := map[string]any{"now": s.c.now(), "epoch": s.c.epoch()}
	for _, t := range s.topics {
		switch t.name {
		case "sample":
			hello["samples"], hello["latest"] = s.c.hub.history(s.c.now())
		case "expired":
			s.followAll(t.db)
		case "monitor":
			s.watch = s.c.watchCommands(s.q.v)
		}
	}
	ok := s.send("hello", hello)
	switch {
	case last == "":
	case from == nil:
		ok = ok && s.resync("the server does not know where the stream before has ended: it was restarted, or too much has happened since", true)
	default:
		ok = ok && s.resync("the stream goes on", false)
	}
	for _, t := range s.topics {
		switch {
		case !ok:
			return false
		case t.name == "expired":
			ok = s.expired(t.db)
		case t.isList():
			ok = s.list(t, 0)
		case t.name == "key": // the page may have read the key a moment before
			delete(s.keys, t)
			ok = s.key(t)
		case t.name == "walk":
			ok = s.walking()
		}
	}
	return ok && s.conn.Flush() == nil
}

// noteVersions stores the versions of the keys of the stream. The page reads the keys itself.
func (s *stream) noteVersions() {
	for _, t := range s.topics {
		if t.name != "key" {
			continue
		}
		if now, err := s.keyNow(t); err == nil {
			s.keys[t] = now
		}
	}
}

// release releases the resources of a stream.
func (s *stream) release() {
	if s.watch != nil {
		s.watch.stop()
	}
	for t := range s.lists {
		s.c.lists.drop(s.listKey(t))
	}
	for _, t := range s.topics {
		if t.name == "key" {
			s.c.versions.leave(t.db, t.key)
		}
	}
	s.c.trails.close(s.trail)
}

// resync makes the page read its state again.
func (s *stream) resync(text string, gap bool) bool {
	s.noteVersions()
	for _, l := range s.lists {
		l.sent = 0
	}
	return s.send("resync", reason{text, gap})
}

// epoch names this run of the server.
func (c *Console) epoch() string { return text64(c.svc.Admin().Started) }

// send writes an event, and reports whether the viewer is there.
func (s *stream) send(event string, data any) bool {
	body, err := json.Marshal(data)
	if err != nil {
		return false
	}
	return s.sendJSON(event, body) && s.conn.Flush() == nil
}

// sendJSON sends data that is JSON, and does not flush.
func (s *stream) sendJSON(event string, data []byte) bool {
	s.seq++
	_, err := fmt.Fprintf(s.q.w, "id: %s-%d\nevent: %s\ndata: %s\n\n", s.c.epoch(), s.trail.number(s.seq), event, data)
	return err == nil
}

// beat sends the changes of a second. It returns false when the stream must end.
func (s *stream) beat(x *beat) bool {
	if !s.q.v.valid() {
		s.send("bye", reason{Why: "the user may not be here any longer"})
		return false
	}
	resting, read := x.n < s.rests, int64(0)
	for _, t := range s.topics {
		ok := true
		switch t.name {
		case "sample":
			ok = s.sendJSON("sample", x.sample)
		case "expired":
			ok = s.expired(t.db)
		case "key", "limits", "locks", "queues":
			if resting {
				continue
			}
			began := s.c.clock.Micros()
			if t.isList() {
				ok = s.list(t, x.n)
			} else {
				ok = s.key(t)
			}
			read += s.c.clock.Micros() - began
		case "walk":
			ok = s.walking()
		case "monitor":
			ok = s.monitor()
		}
		if !ok {
			return false
		}
	}
	if !resting {
		s.rests = x.n + 1 + read/feedShare
	}
	return s.conn.Flush() == nil
}

// keyNow returns the state of a key.
func (s *stream) keyNow(t topic) (*keyEvent, error) {
	k, err := s.c.as(s.q.v, t.db)
	if err != nil {
		return nil, err
	}
	defer k.release()
	if !k.allowed([][]byte{[]byte("TYPE"), []byte(t.key)}) {
		return nil, errNotAllowed
	}
	now, version := &keyEvent{Db: t.db, K: wholeOf(t.key), At: s.c.now(), TTL: -1}, s.c.versions.of(t.db, t.key)
	v, err := k.do(s.q.ctx, "TYPE", t.key)
	if err != nil {
		return nil, err
	}
	if now.Type = v.Str; v.Str == "none" {
		now.gone = true
		return now, nil
	}
	if v, err := k.do(s.q.ctx, "PTTL", t.key); err == nil {
		now.TTL = v.Int
	}
	if n := k.count(s.q, t.key, v.Str); n != nil {
		now.N = *n
	}
	now.Version = k.versionOf(s.q, t.key, now.Type, version)
	return now, nil
}

// key writes what has changed about a key. The caller flushes.
func (s *stream) key(t topic) bool {
	now, err := s.keyNow(t)
	if err != nil {
		return true
	}
	before := s.keys[t]
	s.keys[t] = now
	switch {
	case before != nil && before.same(now):
		return true
	case now.gone:
		return s.sendJSON("gone", encode(now))
	}
	return s.sendJSON("key", encode(now))
}

// byeTime is the time in which the last event of a stream must be written when the console closes.
const byeTime = 200 * time.Millisecond

// cutter ends the writes of a connection, unless its handler has returned.
type cutter struct {
	conn *http.ResponseController

	mu    sync.Mutex // guards what follows
	over  bool
	timer *time.Timer
}

// now ends the writes of the response at once.
func (x *cutter) now() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.over {
		_ = x.conn.SetWriteDeadline(pastDeadline) // not every ResponseWriter can
	}
}

// soon ends the writes after byeTime.
func (x *cutter) soon() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.over && x.timer == nil {
		x.timer = time.AfterFunc(byeTime, x.now)
	}
}

// end is called before the handler returns.
func (x *cutter) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	if x.timer != nil {
		x.timer.Stop()
	}
}
