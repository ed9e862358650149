package console

import (
	"cmp"
	"slices"

	"github.com/ebbdb/ebb/resp"
)

// concern is a queue, a limiter, a lock, a stream or a rule that an operator should look at, or must act on.
// It describes the current state, whether or not a viewer watched as it began. Concerns about the whole
// server are in a sample: see attend.
type concern struct {
	Code  string `json:"code"`
	Level string `json:"level"` // act or look
	DB    int    `json:"db"`
	K     blob   `json:"k"`
	Group *blob  `json:"group,omitempty"`
	N     int64  `json:"n"`
	MS    int64  `json:"ms,omitempty"` // for that long
	Why   string `json:"why,omitempty"`
}

// The limits from which a state is a concern.
const (
	unattendedMS = 10_000 // ms for which jobs are due, and no worker has one or requests one
	lockWaitMS   = 30_000 // ms for which the first in line waits
	deniedRate   = 10     // denied requests a minute: limiters deny a few at all times
	maxLag       = 100    // entries that a group has not read
)

// worstMost is the number of concerns of a kind that a page gets, the worst ones: for two thousand queues
// without a worker it is enough to name three.
const worstMost = 3

// concerns collects the concerns for a viewer's request.
type concerns struct {
	k  *call
	q  *request
	db int

	rows []concern
	part bool // not all queues, locks and streams were examined
}

// getConcerns answers GET api/concerns?db: the concerns of all databases that have keys, those to act on first.
func getConcerns(k *call, q *request) (any, error) {
	x := &concerns{k: k, q: q, db: k.s.db, rows: []concern{}}
	dbs := append([]int{x.db}, k.c.hub.filled()...)
	for i, db := range dbs {
		if slices.Contains(dbs[:i], db) {
			continue
		}
		if x.db = db; k.selectDB(db) != nil {
			continue // the user may not select this database
		}
		for _, look := range []func() error{x.queues, x.limiters, x.locks, x.groups, x.rules} {
			if err := look(); err != nil && err != errNotAllowed {
				return nil, err
			}
		}
	}
	rows, more := x.worst()
	return struct {
		Now    int64          `json:"now"`
		Rows   []concern      `json:"rows"`
		More   map[string]int `json:"more,omitempty"` // by code: the number of further concerns
		Part   bool           `json:"part,omitempty"` // not all queues, locks and streams were examined
		Denied []string       `json:"denied,omitempty"`
	}{k.c.now(), rows, more, x.part, k.denied}, nil
}

// worst returns the worst concerns of each kind, those to act on first, and the number of further ones of
// each kind.
func (x *concerns) worst() (rows []concern, more map[string]int) {
	kind := map[string]int{} // in the order in which they were found
	for _, r := range x.rows {
		if _, ok := kind[r.Code]; !ok {
			kind[r.Code] = len(kind)
		}
	}
	slices.SortStableFunc(x.rows, func(a, b concern) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(kind[a.Code], kind[b.Code]), cmp.Compare(b.weight(), a.weight()))
	})
	rows, more = []concern{}, map[string]int{}
	seen := map[string]int{}
	for _, r := range x.rows {
		if seen[r.Code]++; seen[r.Code] <= worstMost {
			rows = append(rows, r)
		} else {
			more[r.Code]++
		}
	}
	return rows, more
}

// weight returns the severity of a concern, to compare it with others of its kind: its duration, or its
// number.
func (c *concern) weight() int64 {
	if c.MS > 0 {
		return c.MS
	}
	return c.N
}

// keysOf returns the keys of a type, and a function that reports whether the time for them is over. It
// records whether keys were left out.
func (x *concerns) keysOf(kind string) (keys []string, over func() bool, err error) {
	keys, more, err := x.k.keysOf(x.q, kind, "")
	x.part = x.part || more
	late := x.k.rowsTimeOver()
	return keys, func() bool {
		if !late() {
			return false
		}
		x.part = true
		return true
	}, err
}

func (x *concerns) add(c concern) {
	c.DB = x.db
	x.rows = append(x.rows, c)
}

// queues adds the queues that have dead letters or no worker, and those that cannot deliver to their stream.
func (x *concerns) queues() error {
	keys, over, err := x.keysOf("delayqueue")
	if err != nil {
		return err
	}
	all, dead := []*queueRow{}, map[string]bool{}
	for _, key := range keys {
		if over() {
			break
		}
		row, err := x.k.queueRow(x.q, key)
		if err != nil || row == nil {
			continue
		}
		all = append(all, row)
		if row.To != nil {
			dead[row.To.s] = true
		}
	}
	counted := map[string]bool{} // queues of dead letters, which several queues may share
	for _, r := range all {
		if x.k.letters(x.q, r); r.Letters != nil && *r.Letters > 0 && !counted[r.To.s] {
			counted[r.To.s] = true
			x.add(concern{Code: "dead", Level: "look", K: r.K, N: *r.Letters})
		}
		if r.Unattended && !dead[r.K.s] {
			x.add(concern{Code: "unattended", Level: "look", K: r.K, N: r.Ready, MS: r.Late})
		}
		if r.Wrong != "" {
			x.add(concern{Code: "undelivered", Level: "act", K: r.K, N: r.Ready, Why: r.Wrong})
		}
	}
	return nil
}

// limiters adds the limiters that deny many requests.
func (x *concerns) limiters() error {
	top, err := x.k.top(x.q)
	for _, r := range top {
		if n := r.rate(x.k.c.now()); n >= deniedRate {
			x.add(concern{Code: "throttled", Level: "look", K: r.K, N: int64(n)})
		}
	}
	return err
}

// locks adds the locks and semaphores whose first request in line has waited for long.
func (x *concerns) locks() error {
	for _, kind := range []string{"lock", "semaphore"} {
		keys, over, err := x.keysOf(kind)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if over() {
				break
			}
			row, err := x.k.lockRow(x.q, key, kind, nil)
			if err == nil && row != nil && row.Waiting > 0 && row.Longest >= lockWaitMS {
				x.add(concern{Code: "lockwait", Level: "look", K: row.K, N: int64(row.Waiting), MS: row.Longest})
			}
		}
	}
	return nil
}

// groups adds the consumer groups with many unread entries.
func (x *concerns) groups() error {
	keys, over, err := x.keysOf("stream")
	if err != nil {
		return err
	}
	for _, key := range keys {
		if over() {
			break
		}
		v, err := x.k.do(x.q.ctx, "XINFO", "GROUPS", key)
		if err != nil {
			continue // the key is no longer a stream
		}
		for _, g := range v.Elems {
			if lag := member(g, "lag"); lag.Kind == resp.KindInt && lag.Int >= maxLag {
				name := nameOf(member(g, "name"))
				x.add(concern{Code: "behind", Level: "look", K: bytesOf(key), Group: &name, N: lag.Int})
			}
		}
	}
	return nil
}

// rules adds the expiry rules that cannot record expirations.
func (x *concerns) rules() error {
	rows, err := x.k.ruleRows(x.q)
	for _, r := range rows {
		if r.Why != nil {
			x.add(concern{Code: "rule", Level: "act", K: r.Name, N: r.Suspended, Why: r.Why.s})
		}
	}
	return err
}

// getSamples answers GET api/samples?span=15m|1h.
func getSamples(c *Console, q *request) (any, error) {
	span, err := q.word("span", "15m", "1h")
	if err != nil {
		return nil, err
	}
	now, step := c.now(), shortStep
	h := &c.hub
	h.mu.Lock()
	var points []point
	if span == "1h" {
		step, points = longStep, h.long.since(now-longKept*longStep.Milliseconds())
	} else {
		points = h.quarter(now)
	}
	h.mu.Unlock()
	return seriesJSON(now, points, step), nil
}
