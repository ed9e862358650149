package console

import "net/http"

// feedShare is the time, in us, for which a stream may read data in a second: a tenth of it. After a beat
// whose reads took n times that long, the stream rests for n beats: large lists are sent less often.
const feedShare = 100_000

// getFeed answers GET api/feed?topics&last, and POST api/feed with these in the body, with server-sent events.
func getFeed(c *Console, q *request) (any, error) {
	topics, err := parseTopics(q.text("topics"), c.svc.DB.Databases())
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
	s.expiredKeys = c.watchExpired(topics)
	defer s.release()
	f := newFeed(cut.now)
	c.hub.join(f)
	defer c.hub.leave(f)
	h := q.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // for proxies that would hold the events back
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

// begin sends hello, the events that the viewer may have missed, and the lists.
func (s *stream) begin() bool {
	last := s.q.text("last")
	if last == "" {
		last = s.q.r.Header.Get("Last-Event-ID") // sent by an EventSource that has reconnected by itself
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
		case t.name == "key": // the page may have read the key a moment ago
			delete(s.keys, t)
			ok = s.key(t)
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
	s.expiredKeys.stop()
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

// beat sends the changes of a second. It returns false when the stream must end.
func (s *stream) beat(x *beat) bool {
	if !s.q.v.valid() {
		s.send("bye", reason{Why: "the login of the user has ended"})
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

// key writes the changes of a key. The caller flushes.
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

func (s *stream) listKey(t topic) listKey { return listKey{t, s.q.v.id.Name()} }

// list sends a list if it has changed. n is the number of the beat; with 0 it accepts the list that another
// stream has already made.
func (s *stream) list(t topic, n int64) bool {
	l := s.lists[t]
	if l == nil {
		l = &sentList{shared: s.c.lists.get(s.listKey(t))}
		s.lists[t] = l
	}
	version, body := l.at(n, func() (any, error) { return s.makeList(t) }, t, s.c.now)
	if version == l.sent {
		return true
	}
	l.sent = version
	return s.sendJSON(t.name, body)
}

// makeList runs the commands of a list.
func (s *stream) makeList(t topic) (any, error) {
	k, err := s.c.as(s.q.v, t.db)
	if err != nil {
		return nil, err
	}
	defer k.release()
	var list any
	switch t.name {
	case "limits":
		list, err = k.limits(s.q, t.key, t.sort, 0)
	case "locks":
		list, err = k.locks(s.q, t.key, t.sort, 0)
	default:
		list, err = k.queues(s.q, t.key, t.sort, 0)
	}
	return list, k.named(err)
}
