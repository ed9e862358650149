package console

import "math"

// holderRow is a holder of a lock or of permits.
type holderRow struct {
	Owner   blob   `json:"owner"`
	Permits int64  `json:"permits,omitempty"`
	Token   string `json:"token"`
	Since   int64  `json:"since"` // ms since 1970
	Until   int64  `json:"until"` // ms since 1970
}

// waiterRow is a request that waits for a lock or for permits.
type waiterRow struct {
	Owner   blob       `json:"owner"`
	Mode    string     `json:"mode,omitempty"`
	Permits int64      `json:"permits,omitempty"`
	Client  *clientRow `json:"client"` // null where the user may not list clients
	Since   int64      `json:"since"`  // ms since 1970
}

// lockRow is a lock or a semaphore.
type lockRow struct {
	K       blob        `json:"k"`
	Kind    string      `json:"kind"`
	Mode    string      `json:"mode,omitempty"`
	Taken   int64       `json:"taken,omitempty"`
	Holders []holderRow `json:"holders"`
	Waiting int         `json:"waiting"`
	Longest int64       `json:"longest"` // ms for which the first in line has waited
	Line    []waiterRow `json:"line,omitempty"`
}

// lockColumns are the columns by which locks are sorted.
var lockColumns = map[string]func(*lockRow) float64{
	"waiting": func(r *lockRow) float64 { return float64(r.Waiting) }, "longest": func(r *lockRow) float64 { return float64(r.Longest) },
	"lease": func(r *lockRow) float64 { return r.first(func(h *holderRow) int64 { return h.Until }) },
	"held":  func(r *lockRow) float64 { return -r.first(func(h *holderRow) int64 { return h.Since }) },
}

// first returns the earliest time among the holders.
func (r *lockRow) first(of func(*holderRow) int64) float64 {
	at := math.Inf(1)
	for i := range r.Holders {
		at = min(at, float64(of(&r.Holders[i])))
	}
	return at
}

// getLocks answers GET api/locks?db&match.
func getLocks(k *call, q *request) (any, error) {
	return k.locks(q, q.text("match"), q.text("sort"), k.c.now())
}

// locks returns locks and semaphores.
func (k *call) locks(q *request, match, sort string, now int64) (any, error) {
	out := struct {
		Now int64 `json:"now"`
		*ranked[lockRow]
		Denied []string `json:"denied,omitempty"`
	}{now, rank[lockRow](false), nil}
	for _, kind := range []string{"lock", "semaphore"} {
		keys, more, err := k.keysOf(q, kind, match)
		if err != nil {
			return nil, err
		}
		out.More, out.All = out.More || more, out.All && !more
		out.add(k, keys, func(key string) *lockRow {
			row, _ := k.lockRow(q, key, kind, nil) // nil after an error
			return row
		})
	}
	out.first(sort, lockColumns)
	out.Denied = k.denied
	return out, nil
}

// getLock answers GET api/lock?db&k: one lock or semaphore with its line.
func getLock(k *call, q *request) (any, error) {
	key, err := q.key("k")
	if err != nil {
		return nil, err
	}
	v, err := k.do(q.ctx, "TYPE", key)
	if err != nil {
		return nil, err
	}
	if v.Str != "lock" && v.Str != "semaphore" {
		return nil, errGone("the key is neither a lock nor a semaphore, or no longer has a holder")
	}
	clients := map[int64]*clientRow{}
	if all, err := k.clients(q); err == nil {
		for i := range all {
			clients[all[i].ID] = &all[i]
		}
	}
	row, err := k.lockRow(q, key, v.Str, clients)
	switch {
	case err != nil:
		return nil, err
	case row == nil:
		return nil, errGone("the lock no longer has a holder")
	}
	return row, nil
}

// lockRow reads a lock or a semaphore; it returns nil if that has no holder now. clients is by id.
func (k *call) lockRow(q *request, key, kind string, clients map[int64]*clientRow) (*lockRow, error) {
	command := map[string]string{"lock": "LOCK.INFO", "semaphore": "SEM.INFO"}[kind]
	v, err := k.do(q.ctx, command, key)
	if err != nil || v.IsNull() {
		return nil, err
	}
	now := k.c.now()
	row := &lockRow{K: wholeOf(key), Kind: kind, Mode: member(v, "mode").Str, Taken: member(v, "taken").Int, Holders: []holderRow{}}
	for _, e := range member(v, "holders").Elems {
		x := e.Elems
		token := x[len(x)-2].Int // the instant of the grant in us, or a little more
		h := holderRow{Owner: nameOf(x[0]), Token: text64(token), Since: min(now, token/1000), Until: now + x[len(x)-1].Int}
		if kind == "semaphore" {
			h.Permits = x[1].Int
		}
		row.Holders = append(row.Holders, h)
	}
	line := member(v, "line").Elems
	row.Waiting = len(line)
	for i, e := range line {
		x := e.Elems
		w := waiterRow{Owner: nameOf(x[0]), Since: now - x[3].Int, Client: clients[x[2].Int]}
		if kind == "semaphore" {
			w.Permits = x[1].Int
		} else {
			w.Mode = x[1].Str
		}
		if i == 0 {
			row.Longest = x[3].Int
		}
		if clients != nil {
			row.Line = append(row.Line, w)
		}
	}
	return row, nil
}
