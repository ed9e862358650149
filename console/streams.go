package console

import "cmp"

// pendingRow is an entry that a consumer has and has not acknowledged.
type pendingRow struct {
	ID         string `json:"id"`
	Consumer   blob   `json:"consumer"`
	Idle       int64  `json:"idle"` // ms since it was delivered
	Deliveries int64  `json:"deliveries"`
}

// pendingRows is the number of pending entries that a page gets.
const pendingRows = 100

// getStream answers GET api/stream?db&k&g&from: one stream with its groups, and entries that are pending in the group g, from an ID on.
// Without g it has no entries.
func getStream(k *call, q *request) (any, error) {
	key, err := q.key("k")
	if err != nil {
		return nil, err
	}
	out := struct {
		Now     int64        `json:"now"`
		Row     streamRow    `json:"row"`
		Pending []pendingRow `json:"pending"`
		More    bool         `json:"more"`
		Denied  []string     `json:"denied,omitempty"`
	}{Now: k.c.now(), Row: streamRow{K: wholeOf(key), Groups: []groupRow{}}, Pending: []pendingRow{}}
	v, err := k.do(q.ctx, "TYPE", key)
	if err != nil {
		return nil, err
	}
	if v.Str != "stream" {
		return nil, errGone("the key is no stream, or no longer exists")
	}
	if v, err = k.do(q.ctx, "XINFO", "STREAM", key); err != nil {
		return nil, err
	}
	out.Row.Length, out.Row.Last = member(v, "length").Int, member(v, "last-generated-id").Str
	if groups := k.groups(q, key); groups != nil {
		out.Row.Groups = groups
	}
	if q.has("g") {
		if err := k.pending(q, key, &out.Pending); err != nil && err != errNotAllowed {
			return nil, err
		}
	}
	if out.More = len(out.Pending) > pendingRows; out.More {
		out.Pending = out.Pending[:pendingRows]
	}
	out.Denied = k.denied
	return out, nil
}

// pending adds the pending entries of the group that a request names, and one more than a page has.
func (k *call) pending(q *request, key string, rows *[]pendingRow) error {
	group, err := q.key("g")
	if err != nil {
		return err
	}
	from := cmp.Or(q.text("from"), "-")
	v, err := k.do(q.ctx, "XPENDING", key, group, from, "+", pendingRows+1)
	if err != nil {
		return err
	}
	for _, e := range v.Elems {
		x := e.Elems
		*rows = append(*rows, pendingRow{x[0].Str, nameOf(x[1]), x[2].Int, x[3].Int})
	}
	return nil
}
