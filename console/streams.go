package console

import (
	"cmp"
	"strings"
)

// streamRow is a stream with its groups.
type streamRow struct {
	K      blob       `json:"k"`
	Length int64      `json:"length"`
	Last   string     `json:"last"`
	Groups []groupRow `json:"groups"`
}

// groupRow is a consumer group.
type groupRow struct {
	Name          blob          `json:"name"`
	Consumers     int64         `json:"consumers"`
	Pending       int64         `json:"pending"`
	Lag           *int64        `json:"lag"` // null: unknown
	Last          string        `json:"last"`
	Oldest        *int64        `json:"oldest,omitempty"` // ms since the first of the pending entries was delivered
	ConsumersRows []consumerRow `json:"consumersRows"`
}

// consumerRow is a consumer of a group. The times are in ms.
type consumerRow struct {
	Name     blob  `json:"name"`
	Pending  int64 `json:"pending"`
	Idle     int64 `json:"idle"`
	Inactive int64 `json:"inactive"`
}

// ruleRow is an expiry rule.
type ruleRow struct {
	Name      blob     `json:"name"`
	Match     blob     `json:"match"`
	Levels    []string `json:"levels"`
	To        blob     `json:"to"`
	Queue     bool     `json:"queue"` // To is a delay queue, else a stream
	MaxLen    int64    `json:"maxLen"`
	Fired     int64    `json:"fired"`
	Missed    int64    `json:"missed"`
	Suspended int64    `json:"suspended"`
	Why       *blob    `json:"why"` // null: the rule works
}

// streamColumns are the columns by which streams are sorted. The worst group of a stream determines its
// place.
var streamColumns = map[string]func(*streamRow) float64{
	"length":    func(r *streamRow) float64 { return float64(r.Length) },
	"lag":       worst(func(g *groupRow) int64 { return *cmp.Or(g.Lag, new(int64)) }),
	"pending":   worst(func(g *groupRow) int64 { return g.Pending }),
	"consumers": worst(func(g *groupRow) int64 { return g.Consumers }),
	"oldest":    worst(func(g *groupRow) int64 { return *cmp.Or(g.Oldest, new(int64)) }),
}

// worst returns the largest value among the groups of a stream, -1 without a group.
func worst(of func(*groupRow) int64) func(*streamRow) float64 {
	return func(r *streamRow) float64 {
		most := int64(-1)
		for i := range r.Groups {
			most = max(most, of(&r.Groups[i]))
		}
		return float64(most)
	}
}

// getStreams answers GET api/streams?db&match&sort.
func getStreams(k *call, q *request) (any, error) {
	keys, more, err := k.keysOf(q, "stream", q.text("match"))
	if err != nil {
		return nil, err
	}
	out := struct {
		Now int64 `json:"now"`
		*ranked[streamRow]
		Rules  []ruleRow `json:"rules"`
		Denied []string  `json:"denied,omitempty"`
	}{k.c.now(), rank[streamRow](more), []ruleRow{}, nil}
	out.add(k, keys, func(key string) *streamRow {
		v, err := k.do(q.ctx, "XINFO", "STREAM", key)
		if err != nil {
			return nil
		}
		row := &streamRow{K: bytesOf(key), Length: member(v, "length").Int, Last: member(v, "last-generated-id").Str, Groups: k.groups(q, key)}
		if row.Groups == nil {
			row.Groups = []groupRow{}
		}
		k.addOldest(q, key, row.Groups)
		return row
	})
	out.first(q.text("sort"), streamColumns)
	if rules, err := k.ruleRows(q); err == nil {
		out.Rules = rules
	}
	out.Denied = k.denied
	return out, nil
}

// groups returns the consumer groups of a stream; none if the user may not read them.
func (k *call) groups(q *request, key string) []groupRow {
	v, err := k.do(q.ctx, "XINFO", "GROUPS", key)
	if err != nil {
		return nil
	}
	var out []groupRow
	for _, g := range v.Elems {
		row := groupRow{Name: nameOf(member(g, "name")), Consumers: member(g, "consumers").Int, Pending: member(g, "pending").Int,
			Last: member(g, "last-delivered-id").Str, ConsumersRows: []consumerRow{}}
		if lag := member(g, "lag"); !lag.IsNull() {
			row.Lag = &lag.Int
		}
		if consumers, err := k.do(q.ctx, "XINFO", "CONSUMERS", key, row.Name.s); err == nil {
			for _, e := range consumers.Elems {
				row.ConsumersRows = append(row.ConsumersRows, consumerRow{Name: nameOf(member(e, "name")), Pending: member(e, "pending").Int,
					Idle: member(e, "idle").Int, Inactive: member(e, "inactive").Int})
			}
		}
		out = append(out, row)
	}
	return out
}

// addOldest adds, to each group of a stream, the time for which its first pending entry has waited for its
// consumer.
func (k *call) addOldest(q *request, key string, groups []groupRow) {
	for i := range groups {
		g := &groups[i]
		if g.Pending == 0 {
			continue
		}
		if v, err := k.do(q.ctx, "XPENDING", key, g.Name.s, "-", "+", 1); err == nil && len(v.Elems) == 1 {
			g.Oldest = &v.Elems[0].Elems[2].Int
		}
	}
}

// ruleRows returns the expiry rules.
func (k *call) ruleRows(q *request) ([]ruleRow, error) {
	rows := []ruleRow{}
	v, err := k.do(q.ctx, "EXPIRY", "RULE", "LIST")
	if err != nil {
		return rows, err
	}
	for _, r := range v.Elems {
		row := ruleRow{Name: nameOf(member(r, "name")), Match: nameOf(member(r, "match")), To: nameOf(member(r, "stream")), Levels: []string{},
			MaxLen: member(r, "maxlen").Int, Fired: member(r, "fired").Int, Missed: member(r, "missed").Int, Suspended: member(r, "suspended").Int}
		levels := member(r, "levels")
		for _, l := range levels.Elems {
			row.Levels = append(row.Levels, l.Str)
		}
		if levels.Str != "" {
			row.Levels = strings.Fields(levels.Str)
		}
		if queue := member(r, "queue").Str; queue != "" {
			row.To, row.Queue = bytesOf(queue), true
		}
		if member(r, "since").Int > 0 {
			why := nameOf(member(r, "why"))
			row.Why = &why
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// pendingRow is an entry that a consumer has received and not acknowledged.
type pendingRow struct {
	ID         string `json:"id"`
	Consumer   blob   `json:"consumer"`
	Idle       int64  `json:"idle"` // ms since it was delivered
	Deliveries int64  `json:"deliveries"`
}

// pendingRows is the number of pending entries that a page gets.
const pendingRows = 100

// getStream answers GET api/stream?db&k&g&from: one stream with its groups, and the pending entries of the
// group g, from an ID on. Without g it returns no entries.
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
		return nil, errGone("the key is not a stream, or no longer exists")
	}
	if v, err = k.do(q.ctx, "XINFO", "STREAM", key); err != nil {
		return nil, err
	}
	out.Row.Length, out.Row.Last = member(v, "length").Int, member(v, "last-generated-id").Str
	if groups := k.groups(q, key); groups != nil {
		out.Row.Groups = groups
		k.addOldest(q, key, groups)
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

// pending adds the pending entries of the group that a request names, one more than a page has.
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
