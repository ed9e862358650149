package console

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/glob"
	"github.com/ebbdb/ebb/resp"
)

const (
	// walkSlice is the time that a walk works before it pauses for walkPause: a tenth of a core at most.
	walkSlice = 2 * time.Millisecond
	walkPause = 18 * time.Millisecond
	// walkStep is the number of keys that a walk looks at under the lock of a shard, some 20 us.
	walkStep = 128
	// walkSteps is the limit of steps of a slice: a clock that stands still, as in tests, ends no slice.
	walkSteps = 160
	// walkTries is the number of attempts to lock a shard that others hold, before the walk pauses.
	walkTries = 20
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

// walkOrder is the request for a walk.
type walkOrder struct {
	DB    int64  `json:"db"`
	Kind  string `json:"kind"`
	Sep   string `json:"sep"`
	Depth int    `json:"depth"`
	Match string `json:"match"`
}

// walk is a run over all keys of a database in the background, as the user who has begun it.
type walk struct {
	walkOrder
	id    string
	v     *viewer
	total int64
	began int64 // ms
	end   context.CancelFunc

	mu     sync.Mutex // guards what follows; the walk holds it for one walkStep
	looked int64
	took   int64
	done   bool
	err    string
	rows   map[string]*walkRow
	all    walkSum
	big    []bigRow // biggest first
}

// walkSum counts keys.
type walkSum struct {
	Keys     int64    `json:"keys"`
	Bytes    int64    `json:"bytes"`
	BytesTTL int64    `json:"bytesTTL"` // of keys with a deadline
	TTL      [6]int64 `json:"ttl"`
	types    [engine.Bloom + 1]int64
}

// walkRow is a prefix and its keys.
type walkRow struct {
	P blob `json:"p"`
	walkCount
}

// walkCount is a walkSum for a page.
type walkCount struct {
	walkSum
	Types map[string]int64 `json:"types"`
}

// bigRow is one of the biggest keys.
type bigRow struct {
	K     blob   `json:"k"`
	Type  string `json:"type"`
	Bytes int64  `json:"bytes"`
	TTL   int64  `json:"pttl"`
}

// walks holds the latest walk. There is one at a time.
type walks struct {
	mu   sync.Mutex
	last *walk
	next int64
}

// postWalk answers POST api/walk {"db","kind":"prefixes","sep":":","depth":1,"match":"*"}.
func postWalk(c *Console, q *request) (any, error) {
	in := walkOrder{Kind: "prefixes", Sep: ":", Depth: 1, Match: "*"}
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
	if err == nil {
		_, err = k.do(q.ctx, "SCAN", 0, "COUNT", 1, "MATCH", in.Match)
	}
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
	w := &walk{walkOrder: in, id: text64(c.walks.next), v: q.v, total: v.Int, began: c.now(), rows: map[string]*walkRow{}}
	ctx, cancel := context.WithCancel(c.closing)
	w.end = cancel
	c.walks.last = w
	go func() {
		defer c.work.Done()
		defer cancel()
		defer k.release()
		w.finish(c, w.run(ctx, k))
	}()
	return map[string]string{"id": w.id}, nil
}

// walkOf returns the walk of a request's parameter id, or without it the latest one. A viewer sees its own walks alone, because
// they show names.
func (c *Console) walkOf(q *request) (*walk, error) {
	if w := c.latestWalk(q.v); w != nil && (q.text("id") == "" || q.text("id") == w.id) {
		return w, nil
	}
	return nil, errGone("the walk does not exist, or another one has begun since")
}

// latestWalk returns the latest walk if it is the viewer's, else nil.
func (c *Console) latestWalk(v *viewer) *walk {
	c.walks.mu.Lock()
	defer c.walks.mu.Unlock()
	if w := c.walks.last; w != nil && w.v == v {
		return w
	}
	return nil
}

// walkState is the progress of a walk.
type walkState struct {
	ID     string  `json:"id"`
	Kind   string  `json:"kind"`
	Done   float64 `json:"done"`
	Over   bool    `json:"over"`
	Looked int64   `json:"looked"`
	Total  int64   `json:"total"`
	Took   int64   `json:"took"` // ms
	Error  string  `json:"error,omitempty"`
}

// state returns the progress of the walk. The caller holds w.mu.
func (w *walk) state(now int64) walkState {
	s := walkState{ID: w.id, Kind: w.Kind, Done: 1, Over: w.done, Looked: w.looked, Total: w.total, Took: w.took, Error: w.err}
	if !w.done {
		s.Done = min(0.99, float64(w.looked)/float64(max(1, w.total)))
		s.Took = now - w.began
	}
	return s
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
		walkState
		DB    int64      `json:"db"`
		Sep   string     `json:"sep"`
		Depth int        `json:"depth"`
		Match string     `json:"match"`
		Keys  int64      `json:"keys"`
		Bytes int64      `json:"bytes"`
		Rows  []walkRow  `json:"rows"`
		Rest  *walkCount `json:"rest"` // of the prefixes that are not among the rows
		Big   []bigRow   `json:"big"`
	}{w.state(c.now()), w.DB, w.Sep, w.Depth, w.Match, w.all.Keys, w.all.Bytes, []walkRow{}, nil, append([]bigRow{}, w.big...)}
	rows := make([]*walkRow, 0, len(w.rows))
	for _, r := range w.rows {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *walkRow) int {
		if a.Bytes != b.Bytes {
			return int(min(1, max(-1, b.Bytes-a.Bytes)))
		}
		return strings.Compare(a.P.s, b.P.s)
	})
	for i, r := range rows {
		switch {
		case i < walkRows:
			out.Rows = append(out.Rows, walkRow{r.P, r.count()})
			continue
		case i == walkRows:
			out.Rest = &walkCount{}
		}
		out.Rest.add(&r.walkSum)
	}
	if out.Rest != nil {
		*out.Rest = out.Rest.count()
	}
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

// sentWalk is the progress of a walk that a stream has sent.
type sentWalk struct {
	id   string
	over bool
}

// walking sends the progress of the viewer's walk, each second until its end.
func (s *stream) walking() bool {
	w := s.c.latestWalk(s.q.v)
	if w == nil || s.walk == (sentWalk{w.id, true}) {
		return true
	}
	w.mu.Lock()
	x := w.state(s.c.now())
	w.mu.Unlock()
	s.walk = sentWalk{x.ID, x.Over}
	return s.sendJSON("walk", encode(x))
}

// over reports whether the walk has ended.
func (w *walk) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done
}

// run walks over the keys, in slices with rests. Before each slice a command of the user goes the way of all commands: it
// waits for a script that is running, and fails where the server or the user's rules refuse it. The slice itself
// reads the keys without commands, and waits for no lock.
func (w *walk) run(ctx context.Context, k *call) error {
	rest := time.NewTimer(walkPause)
	defer rest.Stop()
	var cursor uint64
	for {
		_, err := k.do(ctx, "SCAN", 0, "COUNT", 1)
		var refused resp.ReplyError
		switch {
		case err == nil:
			var over bool
			if cursor, over = w.slice(ctx, k, cursor); over {
				return nil
			}
		case errors.As(err, &refused) && refused.Code() == "BUSY": // a script runs for long
		default:
			return err
		}
		rest.Reset(walkPause)
		select {
		case <-rest.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if !w.v.valid() {
			return errors.New("the user may not be here any longer")
		}
	}
}

// slice walks for walkSlice, and returns where to go on; over means at the end.
func (w *walk) slice(ctx context.Context, k *call, cursor uint64) (next uint64, over bool) {
	clock, db := k.c.clock, k.c.svc.DB
	v := newVisit(w, k)
	until := clock.Micros() + walkSlice.Microseconds()
	for steps, tries := 0, 0; steps < walkSteps && ctx.Err() == nil; steps++ {
		w.mu.Lock()
		v.n = 0
		next, ok := db.TryScan(int(w.DB), cursor, walkStep, v.key)
		w.looked = min(w.looked+int64(v.n), w.total)
		w.mu.Unlock()
		if ok {
			if cursor = next; cursor == 0 {
				return 0, true
			}
		} else if tries++; tries == walkTries {
			break
		} else {
			runtime.Gosched()
		}
		if clock.Micros() >= until {
			break
		}
	}
	return cursor, false
}

// finish records the result and the duration of the walk.
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

// walkVisitor looks at the keys of a slice, under the user's rules of that moment.
type walkVisitor struct {
	w        *walk
	n        int
	may      func(key []byte) bool
	sep      []byte
	match    func(key []byte) bool // nil: all
	ttl      bool                  // the user may see these
	usage    bool
	kind     bool
	sequence *walkRow // the row of the key before
	prefix   []byte   // its prefix
}

func newVisit(w *walk, k *call) *walkVisitor {
	v := &walkVisitor{w: w, may: k.v.id.Reads(readers...), sep: []byte(w.Sep)}
	allowed := func(words ...string) bool {
		argv := make([][]byte, len(words))
		for i, x := range words {
			argv[i] = []byte(x)
		}
		return k.v.id.MayRun(argv...)
	}
	v.ttl, v.usage, v.kind = allowed("PTTL", "k"), allowed("MEMORY", "USAGE", "k"), allowed("TYPE", "k")
	if w.Match != "*" && w.Match != "" {
		p := glob.New(w.Match)
		v.match = p.Match
	}
	return v
}

// key counts a key. The engine holds its shard's lock.
func (v *walkVisitor) key(k engine.Key) {
	v.n++
	name := k.Name()
	if v.match != nil && !v.match(name) || !v.may(name) {
		return
	}
	p := prefixOf(name, v.sep, v.w.Depth)
	r := v.sequence
	if r == nil || !bytes.Equal(p, v.prefix) {
		r = v.w.row(p)
		v.sequence, v.prefix = r, append(v.prefix[:0], p...)
	}
	ttl, at, size := int64(engine.NoDeadline), -1, int64(0)
	if v.ttl {
		at = 0
		if ttl = k.TTL(); ttl >= 0 {
			for at = 1; at <= len(walkBounds) && ttl >= walkBounds[at-1]; at++ {
			}
		}
	}
	if v.usage {
		size = k.MemoryUsage()
	}
	for _, s := range [...]*walkSum{&r.walkSum, &v.w.all} {
		s.Keys++
		s.Bytes += size
		if ttl >= 0 {
			s.BytesTTL += size
		}
		if at >= 0 {
			s.TTL[at]++
		}
		if v.kind {
			s.types[k.Kind()]++
		}
	}
	if big := v.w.big; v.usage && (len(big) < walkBig || big[len(big)-1].Bytes < size) {
		kind := ""
		if v.kind {
			kind = k.Kind().String()
		}
		v.w.keepBig(bigRow{bytesOf(string(name)), kind, size, ttl})
	}
}

// prefixOf returns a name up to and with its depth-th separator, or the last one if it has fewer.
func prefixOf(name, sep []byte, depth int) []byte {
	at := 0
	for range depth {
		i := bytes.Index(name[at:], sep)
		if i < 0 {
			break
		}
		at += i + len(sep)
	}
	return name[:at]
}

// row returns the row of a prefix. Prefixes beyond walkPrefixes share the row "".
func (w *walk) row(prefix []byte) *walkRow {
	if r := w.rows[string(prefix)]; r != nil {
		return r
	}
	if len(w.rows) >= walkPrefixes {
		prefix = nil
	}
	r := w.rows[string(prefix)]
	if r == nil {
		r = &walkRow{P: bytesOf(string(prefix))}
		w.rows[r.P.s] = r
	}
	return r
}

// add adds the counts of another sum.
func (s *walkSum) add(x *walkSum) {
	s.Keys += x.Keys
	s.Bytes += x.Bytes
	s.BytesTTL += x.BytesTTL
	for i, n := range x.TTL {
		s.TTL[i] += n
	}
	for i, n := range x.types {
		s.types[i] += n
	}
}

// count returns the sum for a page.
func (s *walkSum) count() walkCount {
	c := walkCount{*s, map[string]int64{}}
	for kind, n := range s.types {
		if n > 0 {
			c.Types[engine.Kind(kind).String()] = n
		}
	}
	return c
}

// keepBig keeps a key that is one of the biggest.
func (w *walk) keepBig(row bigRow) {
	at, _ := slices.BinarySearchFunc(w.big, row.Bytes, func(b bigRow, bytes int64) int { return int(min(1, max(-1, bytes-b.Bytes))) })
	w.big = slices.Insert(w.big, at, row)
	w.big = w.big[:min(len(w.big), walkBig)]
}
