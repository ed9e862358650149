package console

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// maxRows is the limit of rows of a screen's list: a list is made each second while its screen is open.
	maxRows = 200
	// maxRowKeys is the limit of keys among which a list finds its rows, and rowsTime that of the time for that: see ranked.
	maxRowKeys = 10_000
	rowsTime   = 100 * time.Millisecond
)

// keysOf returns the keys of a type that the user may read, by SCAN with the index of that type, in the order of their names. more reports
// that there are others: there is a limit of maxRowKeys keys and about pageNames bytes, and keys with names that the console has not read
// whole are left out. A match without a character of patterns is a part of the name.
func (k *call) keysOf(q *request, kind, match string) (keys []string, more bool, err error) {
	cursor, readable, room := "0", k.v.id.Reads(readers...), pageNames
	args := []any{"SCAN", "", "COUNT", scanCount, "TYPE", kind}
	if match != "" {
		args = append(args, "MATCH", patternOf(match))
	}
	for {
		args[1] = cursor
		v, err := k.do(q.ctx, args...)
		if err != nil {
			return nil, false, err
		}
		if count := args[3].(int); k.truncated && count > 1 { // long names, as in getKeys
			args[3] = max(1, count/8)
			continue
		}
		for _, e := range v.Elems[1].Elems {
			switch {
			case int(e.Int) > len(e.Str), len(e.Str) > nameBytes, room < 0:
				more = true
			case readable([]byte(e.Str)):
				keys = append(keys, e.Str)
				room -= len(e.Str)
			}
		}
		cursor = v.Elems[0].Str
		if cursor == "0" || len(keys) > maxRowKeys || room < 0 {
			break
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	return keys[:min(len(keys), maxRowKeys)], more || cursor != "0" || len(keys) > maxRowKeys, nil
}

// ranked is the rows of a list: of all keys of a type, those that come first by a column.
type ranked[T any] struct {
	Rows   []T  `json:"rows"`
	More   bool `json:"more"`   // there are others
	Looked int  `json:"looked"` // the number of keys among which it was found
	All    bool `json:"all"`    // which are all
}

// timer returns a function that reports whether rowsTime is over, which begins now.
func (k *call) timer() (over func() bool) {
	until := k.c.clock.Micros() + rowsTime.Microseconds()
	return func() bool { return k.c.clock.Micros() > until }
}

// rank begins a list.
func rank[T any](more bool) *ranked[T] {
	return &ranked[T]{Rows: []T{}, More: more, All: !more}
}

// add adds the rows of keys: row returns nil for a key that is gone. The time for that is bounded, and so what the others wait.
func (x *ranked[T]) add(k *call, keys []string, row func(key string) *T) {
	over := k.timer()
	for _, key := range keys {
		if over() {
			x.More, x.All = true, false
			return
		}
		x.Looked++
		if r := row(key); r != nil {
			x.Rows = append(x.Rows, *r)
		}
	}
}

// first sorts the rows by a column of by, "-name" from the largest down, and leaves those that a page gets. Rows that are equal there, and
// all rows for another sort, stand in the order of their names.
func (x *ranked[T]) first(sort string, by map[string]func(*T) float64) {
	name, down := strings.CutPrefix(sort, "-")
	if value := by[name]; value != nil {
		slices.SortStableFunc(x.Rows, func(a, b T) int {
			if down {
				a, b = b, a
			}
			return cmp.Compare(value(&a), value(&b))
		})
	} else if name == "k" && down {
		slices.Reverse(x.Rows)
	}
	if len(x.Rows) > maxRows {
		x.Rows, x.More = x.Rows[:maxRows], true
	}
}

// us returns a time in us as ms.
func us(n int64) float64 { return float64(n) / 1000 }

// limitRow is a limiter. Times are in ms.
type limitRow struct {
	K            blob    `json:"k"`
	Algorithm    string  `json:"algorithm"`
	Limit        int64   `json:"limit"`
	Period       int64   `json:"period"`
	Remaining    int64   `json:"remaining"`
	Retry        float64 `json:"retry"`
	Reset        float64 `json:"reset"`
	Reservations int     `json:"reservations"`
	Line         int     `json:"line"`
	Burst        int64   `json:"burst"`
}

// topRow is a limiter that denies requests.
type topRow struct {
	K       blob  `json:"k"`
	Denied  int64 `json:"denied"`
	Allowed int64 `json:"allowed"`
	Since   int64 `json:"since"`
	Error   int64 `json:"error"`
}

// rate returns the denied requests a minute. The server halves the counts each minute, so that those of a limiter that always denies
// are of a minute and a half on average.
func (r *topRow) rate(now int64) float64 {
	return float64(r.Denied) / min(1.5, max(1, float64(now-r.Since)/60_000))
}

// top returns the limiters that deny most requests.
func (k *call) top(q *request) ([]topRow, error) {
	v, err := k.do(q.ctx, "RL.TOP", "COUNT", 50)
	rows := make([]topRow, 0, len(v.Elems))
	if err != nil {
		return rows, err
	}
	for _, e := range v.Elems {
		x := e.Elems
		rows = append(rows, topRow{nameOf(x[0]), x[1].Int, x[2].Int, x[3].Int, x[4].Int})
	}
	return rows, nil
}

// getLimits answers GET api/limits?db&match.
func getLimits(k *call, q *request) (any, error) {
	return k.limits(q, q.text("match"), q.text("sort"), k.c.now())
}

// limitColumns are the columns by which limiters are sorted.
var limitColumns = map[string]func(*limitRow) float64{
	"left":   func(r *limitRow) float64 { return float64(r.Remaining) / float64(max(1, r.Limit)) },
	"period": func(r *limitRow) float64 { return float64(r.Period) }, "retry": func(r *limitRow) float64 { return r.Retry },
	"reset": func(r *limitRow) float64 { return r.Reset }, "held": func(r *limitRow) float64 { return float64(r.Reservations) },
	"line": func(r *limitRow) float64 { return float64(r.Line) },
}

// limits returns limiters, and those that deny most. Like that of locks and queues, the answer begins with the time: see
// listNow.
func (k *call) limits(q *request, match, sort string, now int64) (any, error) {
	keys, more, err := k.keysOf(q, "limiter", match)
	if err != nil {
		return nil, err
	}
	out := struct {
		Now int64    `json:"now"`
		Top []topRow `json:"top"`
		*ranked[limitRow]
		Denied []string `json:"denied,omitempty"`
	}{now, []topRow{}, rank[limitRow](more), nil}
	if top, err := k.top(q); err == nil {
		out.Top = top
	}
	out.add(k, keys, func(key string) *limitRow {
		v, err := k.do(q.ctx, "RL.INFO", key)
		if err != nil || v.IsNull() {
			return nil
		}
		return &limitRow{bytesOf(key), member(v, "algo").Str, member(v, "limit").Int, member(v, "period").Int, member(v, "remaining").Int,
			us(member(v, "retry-after-us").Int), us(member(v, "reset-after-us").Int), len(member(v, "reservations").Elems),
			int(member(v, "waiting").Int), member(v, "burst").Int}
	})
	out.first(sort, limitColumns)
	out.Denied = k.denied
	return out, nil
}

// holderRow is a holder of a lock or of permits.
type holderRow struct {
	Owner   blob   `json:"owner"`
	Permits int64  `json:"permits,omitempty"`
	Token   string `json:"token"`
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
	Longest int64       `json:"longest"` // ms that the first of the line has waited
	Line    []waiterRow `json:"line,omitempty"`
}

// lockRow reads a lock or a semaphore; nil if it has no holder now. clients is by id.
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
		h := holderRow{Owner: nameOf(x[0]), Token: text64(x[len(x)-2].Int), Until: now + x[len(x)-1].Int}
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

// getLocks answers GET api/locks?db&match.
func getLocks(k *call, q *request) (any, error) {
	return k.locks(q, q.text("match"), q.text("sort"), k.c.now())
}

// lockColumns are the columns by which locks are sorted.
var lockColumns = map[string]func(*lockRow) float64{
	"waiting": func(r *lockRow) float64 { return float64(r.Waiting) }, "longest": func(r *lockRow) float64 { return float64(r.Longest) },
	"lease": func(r *lockRow) float64 {
		at := math.Inf(1)
		for _, h := range r.Holders {
			at = min(at, float64(h.Until))
		}
		return at
	},
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
		return nil, errGone("the key is no lock and no semaphore, or no longer has a holder")
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

// streamRow is a stream with its groups.
type streamRow struct {
	K      blob       `json:"k"`
	Length int64      `json:"length"`
	Last   string     `json:"last"`
	Groups []groupRow `json:"groups"`
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

// streamColumns are the columns by which streams are sorted. A stream stands where its worst group does.
var streamColumns = map[string]func(*streamRow) float64{
	"length":    func(r *streamRow) float64 { return float64(r.Length) },
	"lag":       worst(func(g *groupRow) int64 { return *cmp.Or(g.Lag, new(int64)) }),
	"pending":   worst(func(g *groupRow) int64 { return g.Pending }),
	"consumers": worst(func(g *groupRow) int64 { return g.Consumers }),
}

// worst returns the largest value of the groups of a stream, -1 without a group.
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
		return row
	})
	out.first(q.text("sort"), streamColumns)
	if rules, err := k.ruleRows(q); err == nil {
		out.Rules = rules
	}
	out.Denied = k.denied
	return out, nil
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

// clientRow is a connection. Times are in seconds.
type clientRow struct {
	ID     int64  `json:"id"`
	Addr   string `json:"addr"`
	Name   string `json:"name"`
	User   blob   `json:"user"`
	DB     int64  `json:"db"`
	Age    int64  `json:"age"`
	Idle   int64  `json:"idle"`
	Cmd    string `json:"cmd"`
	Flags  string `json:"flags"`
	Mem    int64  `json:"mem"`
	Resp   int64  `json:"resp"`
	Lib    string `json:"lib"`
	LibVer string `json:"libVer"`
}

// clients returns the rows of CLIENT LIST.
func (k *call) clients(q *request) ([]clientRow, error) {
	v, err := k.do(q.ctx, "CLIENT", "LIST")
	if err != nil {
		return []clientRow{}, err
	}
	return parseClients(v.Str), nil
}

// parseClients reads the text of CLIENT LIST.
func parseClients(text string) []clientRow {
	rows, f := []clientRow{}, map[string]string{}
	for line := range strings.Lines(text) {
		clear(f)
		for _, word := range strings.Fields(line) {
			name, value, _ := strings.Cut(word, "=")
			f[name] = value
		}
		row := clientRow{
			ID: number(f, "id"), Addr: f["addr"], Name: f["name"], User: bytesOf(f["user"]), DB: number(f, "db"),
			Age: number(f, "age"), Idle: number(f, "idle"), Cmd: f["cmd"], Flags: f["flags"], Mem: number(f, "tot-mem"),
			Resp: number(f, "resp"), Lib: f["lib-name"], LibVer: f["lib-ver"],
		}
		if row.ID > 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// clientText is the length of the longest text of a client that a page gets: a client chooses its name, and that of its library.
const clientText = 128

// clientColumns are the columns by which clients are sorted.
var clientColumns = map[string]func(*clientRow) float64{
	"id": func(r *clientRow) float64 { return float64(r.ID) }, "db": func(r *clientRow) float64 { return float64(r.DB) },
	"age": func(r *clientRow) float64 { return float64(r.Age) }, "idle": func(r *clientRow) float64 { return float64(r.Idle) },
	"mem": func(r *clientRow) float64 { return float64(r.Mem) },
}

// has reports whether a text of a client has a part, in any case.
func (r *clientRow) has(part string) bool {
	texts := []string{r.Addr, r.Name, r.User.s, r.Cmd, r.Lib, strconv.FormatInt(r.ID, 10)}
	return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(strings.ToLower(s), part) })
}

// getClients answers GET api/clients?find&sort: the connections that have a text, those that come first by a column.
func getClients(k *call, q *request) (any, error) {
	all, err := k.clients(q)
	if err != nil && err != errNotAllowed {
		return nil, err
	}
	return struct {
		*ranked[clientRow]
		Total  int      `json:"total"`
		Denied []string `json:"denied,omitempty"`
	}{clientsBy(all, q.text("find"), q.text("sort")), len(all), k.denied}, nil
}

// clientsBy returns the clients that have a text, those that come first by a column. It cuts their texts.
func clientsBy(all []clientRow, find, sort string) *ranked[clientRow] {
	out := &ranked[clientRow]{Rows: []clientRow{}, All: true}
	find = strings.ToLower(find)
	for _, r := range all {
		if find == "" || r.has(find) {
			out.Rows = append(out.Rows, r)
		}
	}
	out.Looked = len(out.Rows)
	text := map[string]func(*clientRow) string{
		"addr": func(r *clientRow) string { return r.Addr }, "name": func(r *clientRow) string { return r.Name },
		"user": func(r *clientRow) string { return r.User.s }, "cmd": func(r *clientRow) string { return r.Cmd },
		"lib": func(r *clientRow) string { return r.Lib },
	}
	name, down := strings.CutPrefix(sort, "-")
	if of := text[name]; of != nil {
		slices.SortStableFunc(out.Rows, func(a, b clientRow) int {
			if down {
				a, b = b, a
			}
			return strings.Compare(of(&a), of(&b))
		})
	}
	out.first(sort, clientColumns)
	for i := range out.Rows {
		r := &out.Rows[i]
		for _, s := range []*string{&r.Name, &r.Lib, &r.LibVer, &r.Cmd} {
			if len(*s) > clientText {
				*s = (*s)[:clientText] + "…"
			}
		}
	}
	return out
}

// slowRow is a slow call. Arguments are hidden as values are.
type slowRow struct {
	ID   int64  `json:"id"`
	At   int64  `json:"at"` // ms since 1970
	Us   int64  `json:"us"`
	Argv []blob `json:"argv"`
	Addr string `json:"addr"`
	Name blob   `json:"name"`
}

// getSlowlog answers GET api/slowlog.
func getSlowlog(k *call, q *request) (any, error) {
	v, err := k.do(q.ctx, "SLOWLOG", "GET", 128)
	if err != nil && err != errNotAllowed {
		return nil, err
	}
	out := struct {
		Rows      []slowRow `json:"rows"`
		Threshold string    `json:"threshold,omitempty"` // us
		Max       string    `json:"max,omitempty"`
		Denied    []string  `json:"denied,omitempty"`
	}{Rows: []slowRow{}}
	for _, e := range v.Elems {
		x := e.Elems
		row := slowRow{ID: x[0].Int, At: x[1].Int * 1000, Us: x[2].Int, Addr: x[4].Str, Name: nameOf(x[5])}
		for i, a := range x[3].Elems {
			if i == 0 {
				row.Argv = append(row.Argv, nameOf(a)) // the command's name
				continue
			}
			row.Argv = append(row.Argv, k.c.valueOf(a))
		}
		out.Rows = append(out.Rows, row)
	}
	out.Denied = slices.Clone(k.denied)
	if v, err := k.do(q.ctx, "CONFIG", "GET", "slowlog-*"); err == nil {
		out.Threshold, out.Max = member(v, "slowlog-log-slower-than").Str, member(v, "slowlog-max-len").Str
	}
	return out, nil
}

// getServer answers GET api/server: INFO everything, by section.
func getServer(k *call, q *request) (any, error) {
	v, err := k.do(q.ctx, "INFO", "everything")
	if err != nil && err != errNotAllowed {
		return nil, err
	}
	info, section := map[string]map[string]string{}, ""
	for line := range strings.Lines(v.Str) {
		line = strings.TrimRight(line, "\r\n")
		if name, ok := strings.CutPrefix(line, "# "); ok {
			section = strings.ToLower(name)
			info[section] = map[string]string{}
			continue
		}
		if name, value, ok := strings.Cut(line, ":"); ok && section != "" {
			info[section][name] = value
		}
	}
	return struct {
		Info   map[string]map[string]string `json:"info"`
		Now    int64                        `json:"now"`
		Denied []string                     `json:"denied,omitempty"`
	}{info, k.c.now(), k.denied}, nil
}
