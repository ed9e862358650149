package console

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// walkSlice is the time that a walk works before it rests for walkRest: a tenth of a core at most.
	walkSlice = 2 * time.Millisecond
	walkRest  = 18 * time.Millisecond
	// walkScans is the limit of SCANs of a slice, each of a hundred keys.
	walkScans = 20
	// walkPrefixes is the limit of prefixes that a walk counts; the keys of others count under "".
	walkPrefixes = 20_000
	// walkRows is the limit of rows in an answer, those with most bytes first.
	walkRows = 1000
	// walkBig is the number of biggest keys that a walk keeps.
	walkBig = 50
)

// walkBounds are the upper bounds, in ms, of the remaining times that a walk tells apart. Before them comes the
// count of keys without a deadline, behind them that of all later ones.
var walkBounds = [...]int64{60_000, 3_600_000, 86_400_000, 30 * 86_400_000}

// walk is a run over all keys of a database in the background, as the user who has begun it.
type walk struct {
	id   string
	kind string
	v    *viewer
	end  context.CancelFunc

	mu     sync.Mutex // guards what follows
	looked int64
	total  int64
	began  int64 // ms
	took   int64
	done   bool
	err    string
	rows   map[string]*walkRow
	big    []bigRow
}

// walkRow is a prefix and its keys.
type walkRow struct {
	P     blob             `json:"p"`
	Keys  int64            `json:"keys"`
	Bytes int64            `json:"bytes"`
	TTL   [6]int64         `json:"ttl"`
	Types map[string]int64 `json:"types"`
}

// bigRow is one of the biggest keys.
type bigRow struct {
	K     blob   `json:"k"`
	Type  string `json:"type"`
	Bytes int64  `json:"bytes"`
}

// walks holds the latest walk. There is one at a time.
type walks struct {
	mu   sync.Mutex
	last *walk
	next int64
}

// postWalk answers POST api/walk {"db","kind":"prefixes","sep":":","depth":1,"match":"*"}.
func postWalk(c *Console, q *request) (any, error) {
	in := struct {
		DB    int64  `json:"db"`
		Kind  string `json:"kind"`
		Sep   string `json:"sep"`
		Depth int    `json:"depth"`
		Match string `json:"match"`
	}{Kind: "prefixes", Sep: ":", Depth: 1, Match: "*"}
	if err := q.body(&in); err != nil {
		return nil, err
	}
	switch {
	case in.Kind != "prefixes":
		return nil, badRequest("the kind of a walk is %q, and must be prefixes", in.Kind)
	case len(in.Sep) < 1 || len(in.Sep) > 8:
		return nil, badRequest("the separator is %q, and must have 1 to 8 bytes", in.Sep)
	case in.Depth < 1 || in.Depth > 8:
		return nil, badRequest("the depth is %d, and must be from 1 to 8", in.Depth)
	}
	k, err := c.as(q.v, int(in.DB))
	if err != nil {
		return nil, err
	}
	v, err := k.do(q.ctx, "DBSIZE")
	if err != nil {
		k.release()
		return nil, err
	}
	c.walks.mu.Lock()
	defer c.walks.mu.Unlock()
	if w := c.walks.last; w != nil && !w.over() {
		k.release()
		return nil, &failure{status: 409, Text: "another walk is under way, and the server does one at a time"}
	}
	if !c.enter() {
		k.release()
		return nil, errClosing
	}
	c.walks.next++
	w := &walk{id: text64(c.walks.next), kind: in.Kind, v: q.v, total: v.Int, began: c.now(), rows: map[string]*walkRow{}}
	ctx, cancel := context.WithCancel(c.closing)
	w.end = cancel
	c.walks.last = w
	go func() {
		defer c.work.Done()
		defer cancel()
		defer k.release()
		w.run(ctx, k, in.Match, in.Sep, in.Depth)
	}()
	return map[string]string{"id": w.id}, nil
}

// walkOf returns the walk of a request's parameter id. A viewer sees its own walks alone, because they show names.
func (c *Console) walkOf(q *request) (*walk, error) {
	c.walks.mu.Lock()
	defer c.walks.mu.Unlock()
	if w := c.walks.last; w != nil && w.id == q.text("id") && w.v == q.v {
		return w, nil
	}
	return nil, errGone("the walk does not exist, or another one has begun since")
}

// getWalk answers GET api/walk?id.
func getWalk(c *Console, q *request) (any, error) {
	w, err := c.walkOf(q)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	out := struct {
		ID     string     `json:"id"`
		Kind   string     `json:"kind"`
		Done   float64    `json:"done"`
		Looked int64      `json:"looked"`
		Total  int64      `json:"total"`
		Took   int64      `json:"took"` // ms
		Error  string     `json:"error,omitempty"`
		Rows   []*walkRow `json:"rows"`
		Big    []bigRow   `json:"big"`
	}{w.id, w.kind, 1, w.looked, w.total, w.took, w.err, []*walkRow{}, slices.Clone(w.big)}
	if !w.done {
		out.Done = min(0.99, float64(w.looked)/float64(max(1, w.total)))
		out.Took = c.now() - w.began
	}
	for _, r := range w.rows {
		row := *r
		row.Types = map[string]int64{}
		for t, n := range r.Types {
			row.Types[t] = n
		}
		out.Rows = append(out.Rows, &row)
	}
	slices.SortFunc(out.Rows, func(a, b *walkRow) int {
		if a.Bytes != b.Bytes {
			return int(min(1, max(-1, b.Bytes-a.Bytes)))
		}
		return strings.Compare(a.P.s, b.P.s)
	})
	out.Rows = out.Rows[:min(len(out.Rows), walkRows)]
	return out, nil
}

// deleteWalk answers DELETE api/walk?id: it ends the walk.
func deleteWalk(c *Console, q *request) (any, error) {
	w, err := c.walkOf(q)
	if err != nil {
		return nil, err
	}
	w.end()
	return nil, nil
}

// over reports whether the walk has ended.
func (w *walk) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done
}

// run walks over the keys, in slices with rests.
func (w *walk) run(ctx context.Context, k *call, match, sep string, depth int) {
	c := k.c
	cursor := "0"
	q := &request{ctx: ctx, v: k.v}
	rest := time.NewTimer(walkRest)
	defer rest.Stop()
	for {
		until := c.clock.Micros() + walkSlice.Microseconds()
		for range walkScans {
			v, err := k.do(ctx, "SCAN", cursor, "COUNT", 100, "MATCH", match)
			if err != nil {
				w.finish(c, err)
				return
			}
			cursor = v.Elems[0].Str
			for _, e := range v.Elems[1].Elems {
				if row, ok := k.keyRow(q, e.Str, "any"); ok {
					w.count(row, prefixOf(e.Str, sep, depth))
				}
			}
			w.mu.Lock()
			w.looked = min(w.looked+100, w.total)
			w.mu.Unlock()
			if cursor == "0" || c.clock.Micros() >= until {
				break
			}
		}
		if cursor == "0" {
			w.finish(c, nil)
			return
		}
		rest.Reset(walkRest)
		select {
		case <-rest.C:
		case <-ctx.Done():
			w.finish(c, ctx.Err())
			return
		}
	}
}

// finish ends the walk.
func (w *walk) finish(c *Console, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done, w.took = true, c.now()-w.began
	if err != nil {
		w.err = err.Error()
		return
	}
	w.looked = w.total
}

// prefixOf returns a name up to and with its depth-th separator; "" for a name that has fewer.
func prefixOf(name, sep string, depth int) string {
	at := 0
	for range depth {
		i := strings.Index(name[at:], sep)
		if i < 0 {
			return name[:at]
		}
		at += i + len(sep)
	}
	return name[:at]
}

// count adds a key.
func (w *walk) count(row keyRow, prefix string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.rows[prefix]
	if r == nil {
		if len(w.rows) >= walkPrefixes {
			prefix = ""
		}
		if r = w.rows[prefix]; r == nil {
			r = &walkRow{P: bytesOf(prefix), Types: map[string]int64{}}
			w.rows[prefix] = r
		}
	}
	r.Keys++
	r.Types[row.Type]++
	if row.Bytes != nil {
		r.Bytes += *row.Bytes
		w.keepBig(row)
	}
	if row.TTL == nil {
		return
	}
	at := 0
	if ttl := *row.TTL; ttl >= 0 {
		for at = 1; at <= len(walkBounds) && ttl >= walkBounds[at-1]; at++ {
		}
	}
	r.TTL[at]++
}

// keepBig keeps the key if it is one of the biggest.
func (w *walk) keepBig(row keyRow) {
	if n := len(w.big); n == walkBig && w.big[n-1].Bytes >= *row.Bytes {
		return
	}
	at, _ := slices.BinarySearchFunc(w.big, *row.Bytes, func(b bigRow, bytes int64) int { return int(min(1, max(-1, bytes-b.Bytes))) })
	w.big = slices.Insert(w.big, at, bigRow{row.K, row.Type, *row.Bytes})
	w.big = w.big[:min(len(w.big), walkBig)]
}
