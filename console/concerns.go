package console

import (
	"slices"
	"sync"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/resp"
)

// concern is a queue, a limiter, a lock, a stream or a rule that an operator should look at, or must act on. It tells what is so now,
// whether a viewer watched as it began or not. What concerns the whole server is in a sample: see attend.
type concern struct {
	Code  string `json:"code"`
	Level string `json:"level"` // act or look
	DB    int    `json:"db"`
	K     blob   `json:"k"`
	Group *blob  `json:"group,omitempty"`
	N     int64  `json:"n"`
	MS    int64  `json:"ms,omitempty"` // for how long
	Why   string `json:"why,omitempty"`
}

// From these on something is a concern.
const (
	unattendedMS = 10_000 // for as long jobs wait that are due, and no worker has one or asks for one
	lockWaitMS   = 30_000 // for as long the first of a line waits
	deniedRate   = 10     // denied requests a minute: limiters deny a few at all times
	behindMost   = 100    // entries that a group has not read
)

// concerns are those of a viewer's request.
type concerns struct {
	k  *call
	q  *request
	db int

	rows []concern
}

// getConcerns answers GET api/concerns?db: the concerns of all databases that have keys, those to act on first.
func getConcerns(k *call, q *request) (any, error) {
	x := &concerns{k: k, q: q, db: k.s.db, rows: []concern{}}
	dbs := append([]int{x.db}, k.c.hub.filled()...)
	for i, db := range dbs {
		if slices.Contains(dbs[:i], db) {
			continue
		}
		if x.db = db; k.use(db) != nil {
			continue // the user may not select it
		}
		for _, look := range []func() error{x.queues, x.limiters, x.locks, x.groups, x.rules} {
			if err := look(); err != nil && err != errNotAllowed {
				return nil, err
			}
		}
	}
	slices.SortStableFunc(x.rows, func(a, b concern) int {
		switch {
		case a.Level == b.Level:
			return 0
		case a.Level == "act":
			return -1
		}
		return 1
	})
	return struct {
		Now    int64     `json:"now"`
		Rows   []concern `json:"rows"`
		Denied []string  `json:"denied,omitempty"`
	}{k.c.now(), x.rows, k.denied}, nil
}

func (x *concerns) add(c concern) {
	c.DB = x.db
	x.rows = append(x.rows, c)
}

// queues adds the queues that have dead letters, that have no worker, and that cannot deliver to their stream.
func (x *concerns) queues() error {
	keys, _, err := x.k.keysOf(x.q, "delayqueue", "")
	if err != nil {
		return err
	}
	all, dead := []*queueRow{}, map[string]bool{}
	for _, key := range keys {
		row, err := x.k.queueRow(x.q, key)
		if err != nil || row == nil {
			continue
		}
		all = append(all, row)
		if row.To != nil {
			dead[row.To.s] = true
		}
	}
	told := map[string]bool{} // queues of dead letters, which several queues may share
	for _, r := range all {
		if x.k.letters(x.q, r); r.Letters != nil && *r.Letters > 0 && !told[r.To.s] {
			told[r.To.s] = true
			x.add(concern{Code: "dead", Level: "look", K: r.K, N: *r.Letters})
		}
		if r.Ready > 0 && r.Leased == 0 && r.Waiting == 0 && r.Late >= unattendedMS && !r.Paused && r.Stream == nil && !dead[r.K.s] {
			x.add(concern{Code: "unattended", Level: "look", K: r.K, N: r.Ready, MS: r.Late})
		}
		if r.Wrong != "" {
			x.add(concern{Code: "undelivered", Level: "act", K: r.K, N: r.Ready, Why: r.Wrong})
		}
	}
	return nil
}

// limiters adds those that deny many requests.
func (x *concerns) limiters() error {
	top, err := x.k.top(x.q)
	for _, r := range top {
		if n := r.rate(x.k.c.now()); n >= deniedRate {
			x.add(concern{Code: "throttled", Level: "look", K: r.K, N: int64(n)})
		}
	}
	return err
}

// locks adds the locks and semaphores for which a request waits for long.
func (x *concerns) locks() error {
	for _, kind := range []string{"lock", "semaphore"} {
		keys, _, err := x.k.keysOf(x.q, kind, "")
		if err != nil {
			return err
		}
		for _, key := range keys {
			row, err := x.k.lockRow(x.q, key, kind, nil)
			if err == nil && row != nil && row.Waiting > 0 && row.Longest >= lockWaitMS {
				x.add(concern{Code: "lockwait", Level: "look", K: row.K, N: int64(row.Waiting), MS: row.Longest})
			}
		}
	}
	return nil
}

// groups adds the consumer groups that have not read many entries of their streams.
func (x *concerns) groups() error {
	if !x.k.may([][]byte{[]byte("SCAN"), []byte("0")}) {
		return errNotAllowed
	}
	readable := x.k.v.id.Reads(readers...)
	for _, key := range x.k.c.found.look(x.k.c.svc.DB, x.db) {
		if !readable([]byte(key)) {
			continue
		}
		v, err := x.k.do(x.q.ctx, "XINFO", "GROUPS", key)
		if err != nil {
			if err != errNotAllowed { // it is no stream any more
				x.k.c.found.forget(x.db, key)
			}
			continue
		}
		for _, g := range v.Elems {
			if lag := member(g, "lag"); lag.Kind == resp.KindInt && lag.Int >= behindMost {
				name := nameOf(member(g, "name"))
				x.add(concern{Code: "behind", Level: "look", K: bytesOf(key), Group: &name, N: lag.Int})
			}
		}
	}
	return nil
}

// rules adds the expiry rules that cannot record what expires.
func (x *concerns) rules() error {
	rows, err := x.k.ruleRows(x.q)
	for _, r := range rows {
		if r.Why != nil {
			x.add(concern{Code: "rule", Level: "act", K: r.Name, N: r.Suspended, Why: r.Why.s})
		}
	}
	return err
}

// streamNames are the names of streams by database. No index finds them, so a look goes on through the keys where the one before
// has ended: in a database of a million keys a stream is found within some minutes. Its zero value knows none.
type streamNames struct {
	mu sync.Mutex // guards what follows
	of map[int]*streamWalk
}

// streamWalk is the walk through the keys of a database, and the streams that it has found.
type streamWalk struct {
	cursor uint64
	names  map[string]bool
}

const (
	streamSteps = 40  // of a look
	streamStep  = 500 // keys
	streamMost  = rowsMax
)

// look returns the streams of a database that it and earlier looks have found, in their order. It waits for no lock.
func (s *streamNames) look(db *engine.DB, n int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of[n]
	if x == nil {
		if s.of == nil {
			s.of = map[int]*streamWalk{}
		}
		x = &streamWalk{names: map[string]bool{}}
		s.of[n] = x
	}
	for range streamSteps {
		next, ok := db.TryScan(n, x.cursor, streamStep, func(k engine.Key) {
			if k.Kind() == engine.Stream && len(x.names) < streamMost && len(k.Name()) <= nameBytes {
				x.names[string(k.Name())] = true
			}
		})
		if !ok {
			break
		}
		if x.cursor = next; next == 0 {
			break
		}
	}
	out := make([]string, 0, len(x.names))
	for name := range x.names {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// forget removes a stream that is gone.
func (s *streamNames) forget(n int, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.of[n]; x != nil {
		delete(x.names, name)
	}
}

// filled returns the databases that have keys, as of the latest sample.
func (h *hub) filled() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.latest == nil {
		return nil
	}
	return h.latest.filled
}
