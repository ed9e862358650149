package console

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/resp"
)

const (
	// maxTail is the limit of expirations that a stream sends in a second for each database. maxTailFirst is the
	// limit for the first second of a stream that continues an earlier one.
	maxTail      = 200
	maxTailFirst = 2000
	// tailLate is the time, in ms, by which a stream may fall behind if more keys expire than it may send. It
	// then skips to the latest tailLatest, and reports how many are missing.
	tailLate   = 5000
	tailLatest = 100
)

// expiredEvent is one expiration.
type expiredEvent struct {
	At    int64  `json:"at"`
	DB    int    `json:"db"`
	Level string `json:"level"`
	K     blob   `json:"k"`
	Item  *blob  `json:"item"`
	Lag   int64  `json:"lag"` // ms; -1: not known
	id    string
	from  string // the rules' stream
}

// skippedEvent reports the number of expirations that a stream has left out.
type skippedEvent struct {
	DB      int   `json:"db"`
	Skipped int64 `json:"skipped"`
}

// followAll begins to read the streams of a database's expiry rules, if the user may list the rules.
func (s *stream) followAll(db int) {
	k, err := s.c.as(s.q.v, db)
	if err != nil {
		return
	}
	defer k.release()
	if fired, err := s.fired(k); err == nil {
		s.follow(k, db, fired)
	}
}

// expired sends the expirations of a database since the last beat: those that rules have recorded, and the
// keys that keyspace events report.
func (s *stream) expired(db int) bool {
	k, err := s.c.as(s.q.v, db)
	if err != nil {
		return true
	}
	defer k.release()
	return s.recorded(k, db) && s.published(k, db)
}

// recorded sends the expirations that the rules of a database have recorded since the last beat. A user who may
// not list the rules gets none.
func (s *stream) recorded(k *call, db int) bool {
	fired, err := s.fired(k)
	if err != nil {
		return true
	}
	t := s.follow(k, db, fired)
	var names []string
	for name, n := range fired {
		if t.at[name].fired != n {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return true
	}
	slices.Sort(names)
	return s.sendExpirations(k, db, t, names, fired)
}

// fired returns the number of entries that the expiry rules of a database have written, by the name of their
// stream.
func (s *stream) fired(k *call) (map[string]int64, error) {
	rules, err := k.do(s.q.ctx, "EXPIRY", "RULE", "LIST")
	if err != nil {
		return nil, err
	}
	n := map[string]int64{}
	for _, r := range rules.Elems {
		if name := member(r, "stream").Str; name != "" || member(r, "queue").Str == "" { // jobs are read by their workers
			n[name] += member(r, "fired").Int
		}
	}
	return n, nil
}

// follow begins to read the new rules' streams of a database: at the place where the previous stream of
// events ended, or at their ends.
func (s *stream) follow(k *call, db int, fired map[string]int64) *tail {
	t, later := s.tails[db], true
	if t == nil {
		t, later = &tail{at: map[string]*mark{}}, false
		s.tails[db] = t
	}
	for name, n := range fired {
		if t.at[name] != nil {
			continue
		}
		at := source{db, name}
		m, ok := s.trail.mark(at)
		switch {
		case ok:
			t.older = true
		case later && n <= maxTail: // the rule was made after the last beat
			m = s.before(k, name, n)
		default:
			m = s.endOf(k, name)
		}
		if !ok {
			s.trail.start(at, m)
		}
		t.at[name] = &m
	}
	return t
}

// endOf returns the end of a rules' stream.
func (s *stream) endOf(k *call, name string) mark {
	m := mark{id: "0-0"}
	if info, err := k.do(s.q.ctx, "XINFO", "STREAM", name); err == nil {
		m.id = member(info, "last-generated-id").Str
	}
	if n, err := s.fired(k); err == nil { // read after the id: a count that is too high skips nothing
		m.fired = n[name]
	}
	return m
}

// before returns the place before the last n entries of a rules' stream.
func (s *stream) before(k *call, name string, n int64) mark {
	v, err := k.do(s.q.ctx, "XREVRANGE", name, "+", "-", "COUNT", n+1)
	if err != nil || int64(len(v.Elems)) <= n {
		return mark{id: "0-0"}
	}
	return mark{id: v.Elems[n].Elems[0].Str}
}

// sendExpirations sends the new entries of rules' streams. fired is the number of entries that the rules had
// written before.
func (s *stream) sendExpirations(k *call, db int, t *tail, names []string, fired map[string]int64) bool {
	limit := maxTail
	if t.older {
		limit, t.older = maxTailFirst, false
	}
	limit = max(1, limit/len(names))
	got := map[string]int{}
	var all []*expiredEvent
	names = slices.DeleteFunc(names, func(name string) bool { // the user may have other read permissions than the others
		v, err := k.do(s.q.ctx, "XREAD", "COUNT", limit, "STREAMS", name, t.at[name].id)
		for _, entries := range v.Pairs {
			got[name] = len(entries.Elems)
			for _, e := range entries.Elems {
				x := s.c.expirationOf(e)
				x.DB, x.from = db, name
				all = append(all, x)
			}
		}
		return err != nil
	})
	slices.SortStableFunc(all, func(a, b *expiredEvent) int { return int(min(1, max(-1, a.At-b.At))) })
	may := k.v.id.Reads(readers...)
	for _, x := range all {
		m := t.at[x.from]
		m.id, m.fired = x.id, m.fired+1
		if may([]byte(x.K.s)) && !s.sendEntry(x, source{db, x.from}, *m) {
			return false
		}
	}
	for _, n := range names {
		m := t.at[n]
		if got[n] == limit {
			if !s.catchUp(k, db, n, m, fired[n], may) {
				return false
			}
			continue
		}
		left := fired[n] - m.fired // MAXLEN or a client has removed them
		m.fired = fired[n]
		if left > 0 && !s.sendEntry(skippedEvent{db, left}, source{db, n}, *m) {
			return false
		}
	}
	return true
}

// sendEntry sends an expiration, and records it in the trail.
func (s *stream) sendEntry(x any, at source, m mark) bool {
	if !s.sendJSON("expired", encode(x)) {
		return false
	}
	s.trail.record(s.seq, at, m)
	return true
}

// catchUp skips expirations if the stream has fallen too far behind, and continues with the latest.
func (s *stream) catchUp(k *call, db int, name string, m *mark, fired int64, may func([]byte) bool) bool {
	ms, _ := idOf(m.id)
	if uint64(max(0, s.c.now()-tailLate)) < ms {
		return true
	}
	v, err := k.do(s.q.ctx, "XREVRANGE", name, "+", "-", "COUNT", tailLatest)
	if err != nil {
		return true
	}
	entries := slices.DeleteFunc(slices.Clone(v.Elems), func(e resp.Value) bool { return !laterID(e.Elems[0].Str, m.id) })
	slices.Reverse(entries)
	if left := fired - m.fired - int64(len(entries)); left > 0 {
		m.fired += left
		if !s.sendEntry(skippedEvent{db, left}, source{db, name}, *m) {
			return false
		}
	}
	for _, e := range entries {
		x := s.c.expirationOf(e)
		x.DB = db
		m.id, m.fired = x.id, m.fired+1
		if may([]byte(x.K.s)) && !s.sendEntry(x, source{db, name}, *m) {
			return false
		}
	}
	m.fired = fired
	return true
}

// idOf returns the two numbers of an entry's id.
func idOf(id string) (ms, n uint64) {
	a, b, _ := strings.Cut(id, "-")
	ms, _ = strconv.ParseUint(a, 10, 64) // the server made the id
	n, _ = strconv.ParseUint(b, 10, 64)
	return ms, n
}

// laterID reports whether the entry a follows the entry b.
func laterID(a, b string) bool {
	ams, an := idOf(a)
	bms, bn := idOf(b)
	return ams > bms || ams == bms && an > bn
}

// expirationOf reads an entry of a rule's stream. If values are hidden, it hides the parts of an entry that a
// client may have written: a stream may have entries of any kind before a rule writes to it.
func (c *Console) expirationOf(e resp.Value) *expiredEvent {
	x := &expiredEvent{id: e.Elems[0].Str}
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
			deadline, _ = strconv.ParseInt(value, 10, 64) // 0 for an entry that a client has added
		case "fired-at":
			x.At, _ = strconv.ParseInt(value, 10, 64)
		}
	}
	if x.Lag = max(0, x.At-deadline); x.Item != nil {
		*x.Item = c.itemOf(x.Level, *x.Item)
	}
	if _, known := engine.LevelNamed(x.Level); !known {
		x.K = c.itemOf(x.Level, x.K)
	}
	return x
}
