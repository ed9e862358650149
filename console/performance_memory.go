package console

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/glob"
	"github.com/ebbdb/ebb/resp"
)

// postWalk answers POST api/walk {"db","kind":"prefixes","sep":":","depth":1,"match":"*"}.
func postWalk(c *Console, q *request) (any, error) {
	in := walkOrder{Kind: "prefixes", Sep: ":", Depth: 1, Match: "*"}
	if err := q.body(&in); err != nil {
		return nil, err
	}
	switch {
	case in.Kind != "prefixes":
		return nil, badRequest("the kind of a walk is %q; it must be prefixes", in.Kind)
	case len(in.Sep) < 1 || len(in.Sep) > 8:
		return nil, badRequest("the separator is %q; it must have 1 to 8 bytes", in.Sep)
	case in.Depth < 1 || in.Depth > 8:
		return nil, badRequest("the depth is %d; it must be from 1 to 8", in.Depth)
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

// walkOf returns the walk of a request's parameter id, or without it the last walk. A viewer can see only its
// own walks, because they show names.
func (c *Console) walkOf(q *request) (*walk, error) {
	if w := c.latestWalk(q.v); w != nil && (q.text("id") == "" || q.text("id") == w.id) {
		return w, nil
	}
	return nil, errGone("the walk does not exist, or another one has begun since")
}

// latestWalk returns the last walk if it is the viewer's, otherwise nil.
func (c *Console) latestWalk(v *viewer) *walk {
	c.walks.mu.Lock()
	defer c.walks.mu.Unlock()
	if w := c.walks.last; w != nil && w.v == v {
		return w
	}
	return nil
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
		Rest  *walkCount `json:"rest"` // of the prefixes without a row
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

// run walks over the keys, in slices with pauses. Before each slice it runs a command as the user, like any
// other command: that one waits for a running script, and fails if the server or the user's rules refuse it.
// The slice itself reads the keys without commands, and waits for no lock.
func (w *walk) run(ctx context.Context, k *call) error {
	rest := time.NewTimer(walkRest * walkSlice)
	defer rest.Stop()
	var cursor uint64
	for {
		took := walkSlice
		_, err := k.do(ctx, "SCAN", 0, "COUNT", 1)
		var refused resp.ReplyError
		switch {
		case err == nil:
			began, over := k.c.clock.Micros(), false
			if cursor, over = w.slice(ctx, k, cursor); over {
				return nil
			}
			took = time.Duration(k.c.clock.Micros()-began) * time.Microsecond
		case errors.As(err, &refused) && refused.Code() == "BUSY": // a long-running script
		default:
			return err
		}
		rest.Reset(walkRest * min(max(took, walkSlice), walkLongest))
		select {
		case <-rest.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if !w.v.valid() {
			return errors.New("the login of the user has ended")
		}
	}
}

// slice walks for walkSlice, and returns the next cursor; over means that the walk is complete.
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
