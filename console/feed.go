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

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/resp"
)

const (
	// samplesKept is the number of samples, one a second, that a new viewer gets.
	samplesKept = 900
	// feedLag is the number of events that may wait for a viewer. A viewer that lags by more is cut off; its page
	// connects again, and reads its state anew.
	feedLag = 64
	// feedTopics is the limit of topics of a stream.
	feedTopics = 20
	// tailCount is the limit of expirations of a stream in a second.
	tailCount = 200
)

// hub takes a sample each second while a stream is open, and hands it to all streams.
type hub struct {
	mu      sync.Mutex // guards what follows
	streams map[*feed]struct{}
	ring    []*sample // the last samplesKept, the latest last
	meter   *admin.Meter
	last    *reading
	minute  []*reading // one of each second of the last minute
	running bool
}

// feed is one stream of server-sent events.
type feed struct {
	samples chan *sample
	cut     func() // ends the stream of a viewer that does not read
}

// join adds a stream, and begins to take samples if it is the first.
func (c *Console) join(f *feed) (history []*sample, ok bool) {
	h := &c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.running {
		if !c.enter() {
			return nil, false
		}
		h.running = true
		if h.meter == nil {
			h.meter = admin.NewMeter(c.svc.Admin())
		}
		h.last, h.minute = c.read(h.meter), nil
		go func() {
			defer c.work.Done()
			c.takeSamples()
		}()
	}
	if h.streams == nil {
		h.streams = map[*feed]struct{}{}
	}
	h.streams[f] = struct{}{}
	return slices.Clone(h.ring), true
}

// part removes a stream.
func (h *hub) part(f *feed) {
	h.mu.Lock()
	delete(h.streams, f)
	h.mu.Unlock()
}

// takeSamples takes a sample each second until no stream is open, or the console is closed.
func (c *Console) takeSamples() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.closing.Done():
		}
		if !c.tick() {
			return
		}
	}
}

// tick takes one sample, and reports whether the next one is wanted.
func (c *Console) tick() bool {
	h := &c.hub
	h.mu.Lock()
	if len(h.streams) == 0 || c.closing.Err() != nil {
		h.running = false
		h.mu.Unlock()
		return false
	}
	before, history := h.last, h.ring
	first := before
	if len(h.minute) > 0 {
		first = h.minute[0]
	}
	h.mu.Unlock()
	now := c.read(h.meter)
	s := c.sampleOf(now, before)
	s.Attention = attend(s, now, first, history)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = now
	if h.minute = append(h.minute, now); len(h.minute) > 60 {
		h.minute = slices.Delete(h.minute, 0, 1)
	}
	if h.ring = append(slices.Clip(h.ring), s); len(h.ring) > samplesKept {
		h.ring = h.ring[1:]
	}
	for f := range h.streams {
		select {
		case f.samples <- s:
		default:
			f.cut()
			delete(h.streams, f)
		}
	}
	return true
}

// topic is what a stream tells of.
type topic struct {
	name string // sample, expired or key
	db   int
	key  string
}

// parseTopics reads the parameter topics.
func (c *Console) parseTopics(q *request) ([]topic, error) {
	var out []topic
	words := strings.Split(q.text("topics"), ",")
	if len(words) > feedTopics {
		return nil, badRequest("the stream has %d topics; %d are the limit", len(words), feedTopics)
	}
	for _, w := range words {
		parts := strings.Split(w, ":")
		t := topic{name: parts[0]}
		if len(parts) > 1 {
			n, err := strconv.Atoi(parts[1])
			if err != nil || n < 0 || n >= c.svc.DB.Databases() {
				return nil, badRequest("the topic %q names the database %q, which does not exist", w, parts[1])
			}
			t.db = n
		}
		switch {
		case (t.name == "sample" || t.name == "expired" || t.name == "walk") && len(parts) <= 2:
		case t.name == "key" && len(parts) == 3:
			key, err := decodeKey(parts[2])
			if err != nil {
				return nil, badRequest("the topic %q has a key that is not base64url", w)
			}
			t.key = key
		default:
			return nil, badRequest("the topic %q is not known; the topics are sample, expired:<db>, walk, and key:<db>:<key in base64url>", w)
		}
		out = append(out, t)
	}
	return out, nil
}

// stream is the state of a feed's request. One goroutine uses it.
type stream struct {
	q    *request
	c    *Console
	conn *http.ResponseController
	seq  int64
	keys map[topic]*keyNews
	tail map[int]*tail // by database
}

// keyNews is what a page knows of a key.
type keyNews struct {
	Db     int    `json:"db"`
	K      blob   `json:"k"`
	Digest string `json:"digest,omitempty"`
	TTL    int64  `json:"pttl"`
	Type   string `json:"type"`
	N      int64  `json:"n"`
	At     int64  `json:"at"`
	gone   bool
}

// same reports whether a page that knows x must not read the key again.
func (x *keyNews) same(y *keyNews) bool {
	deadline := func(z *keyNews) int64 {
		if z.TTL < 0 {
			return z.TTL
		}
		return z.At + z.TTL
	}
	d := deadline(x) - deadline(y)
	return x.Digest == y.Digest && x.Type == y.Type && x.N == y.N && x.gone == y.gone && d > -50 && d < 50
}

// getFeed answers GET api/feed?topics&last with server-sent events.
func getFeed(c *Console, q *request) (any, error) {
	topics, err := c.parseTopics(q)
	if err != nil {
		return nil, err
	}
	end, err := c.stream(q)
	if err != nil {
		return nil, err
	}
	defer end()
	s := &stream{q: q, c: c, conn: http.NewResponseController(q.w), keys: map[topic]*keyNews{}, tail: map[int]*tail{}}
	f := &feed{samples: make(chan *sample, feedLag), cut: func() { _ = s.conn.SetWriteDeadline(longAgo) }}
	history, ok := c.join(f)
	if !ok {
		return nil, errClosing
	}
	defer c.hub.part(f)
	h := q.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // of proxies that would keep the events back
	q.w.WriteHeader(http.StatusOK)
	wants := func(name string) bool {
		return slices.ContainsFunc(topics, func(t topic) bool { return t.name == name })
	}
	hello := map[string]any{"now": c.now(), "epoch": c.epoch()}
	if wants("sample") {
		hello["samples"] = history
	}
	ok = s.send("hello", hello)
	if ok && q.text("last") != "" {
		ok = s.send("resync", struct{}{})
	}
	for ok {
		select {
		case x, open := <-f.samples:
			ok = open && s.beat(topics, x)
		case <-q.ctx.Done():
			ok = false
		}
	}
	if c.closing.Err() == nil && q.ctx.Err() == nil {
		s.send("bye", map[string]string{"why": "the stream has ended"})
	}
	return nil, errSent
}

// epoch names this run of the server.
func (c *Console) epoch() string { return text64(c.svc.Admin().Started) }

// send writes an event, and reports whether the viewer is there.
func (s *stream) send(event string, data any) bool {
	body, err := json.Marshal(data)
	if err != nil {
		return false
	}
	s.seq++
	if _, err := fmt.Fprintf(s.q.w, "id: %s-%d\nevent: %s\ndata: %s\n\n", s.c.epoch(), s.seq, event, body); err != nil {
		return false
	}
	return s.conn.Flush() == nil
}

// beat sends the news of a second. It reports false when the stream has to end.
func (s *stream) beat(topics []topic, x *sample) bool {
	if !s.q.v.alive() {
		s.send("bye", map[string]string{"why": "the user may not be here any longer"})
		return false
	}
	for _, t := range topics {
		ok := true
		switch t.name {
		case "sample":
			ok = s.send("sample", x)
		case "expired":
			ok = s.expired(t.db)
		case "key":
			ok = s.key(t)
		}
		if !ok {
			return false
		}
	}
	return true
}

// key sends what has changed about a key.
func (s *stream) key(t topic) bool {
	k, err := s.c.as(s.q.v, t.db)
	if err != nil {
		return true
	}
	defer k.release()
	now := &keyNews{Db: t.db, K: bytesOf(t.key), At: s.c.now(), TTL: -1}
	v, err := k.do(s.q.ctx, "TYPE", t.key)
	if err != nil {
		return true
	}
	if now.Type = v.Str; v.Str == "none" {
		now.gone = true
	} else {
		if v, err := k.do(s.q.ctx, "PTTL", t.key); err == nil {
			now.TTL = v.Int
		}
		if n := k.count(s.q, t.key, v.Str); n != nil {
			now.N = *n
		}
		now.Digest = k.digest(s.q, t.key, now.Type, now.N)
	}
	before := s.keys[t]
	s.keys[t] = now
	if before == nil || before.same(now) {
		return true
	}
	if now.gone {
		return s.send("gone", now)
	}
	return s.send("key", now)
}

// tail is how far a stream has read the streams of a database's expiry rules.
type tail struct {
	names []string
	last  []string
}

// expiredNews is one expiration.
type expiredNews struct {
	At    int64  `json:"at"`
	DB    int    `json:"db"`
	Level string `json:"level"`
	K     blob   `json:"k"`
	Item  *blob  `json:"item"`
	Lag   int64  `json:"lag"` // ms
	id    string
}

// expired sends the expirations that the rules of a database have recorded since the last beat. A user who may
// not list the rules gets none.
func (s *stream) expired(db int) bool {
	k, err := s.c.as(s.q.v, db)
	if err != nil {
		return true
	}
	defer k.release()
	t := s.tail[db]
	if t == nil {
		t = &tail{}
		s.tail[db] = t
	}
	rules, err := k.do(s.q.ctx, "EXPIRY", "RULE", "LIST")
	if err != nil {
		return true
	}
	for _, r := range rules.Elems {
		name := member(r, "stream").Str
		if slices.Contains(t.names, name) {
			continue
		}
		last := "0-0"
		if info, err := k.do(s.q.ctx, "XINFO", "STREAM", name); err == nil {
			last = member(info, "last-generated-id").Str
		}
		t.names, t.last = append(t.names, name), append(t.last, last)
	}
	if len(t.names) == 0 {
		return true
	}
	args := []any{"XREAD", "COUNT", tailCount, "STREAMS"}
	for _, n := range t.names {
		args = append(args, n)
	}
	for _, l := range t.last {
		args = append(args, l)
	}
	v, err := k.do(s.q.ctx, args...)
	if err != nil || v.IsNull() {
		return true
	}
	for name, entries := range v.Pairs {
		at := slices.Index(t.names, name.Str)
		if at < 0 {
			continue
		}
		for _, e := range entries.Elems {
			x := expirationOf(e)
			t.last[at] = x.id
			x.DB = db
			if k.readable(x.K.s) && !s.send("expired", x) {
				return false
			}
		}
	}
	return true
}

// expirationOf reads an entry of a rule's stream.
func expirationOf(e resp.Value) *expiredNews {
	x := &expiredNews{id: e.Elems[0].Str}
	fields := e.Elems[1].Elems
	var deadline int64
	for i := 0; i+1 < len(fields); i += 2 {
		value := fields[i+1].Str
		switch fields[i].Str {
		case "key":
			x.K = bytesOf(value)
		case "item":
			item := bytesOf(value)
			x.Item = &item
		case "level":
			x.Level = value
		case "deadline":
			deadline, _ = strconv.ParseInt(value, 10, 64) // a client may have added another entry: 0
		case "fired-at":
			x.At, _ = strconv.ParseInt(value, 10, 64)
		}
	}
	x.Lag = max(0, x.At-deadline)
	return x
}
