package console

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/resp"
)

// keyView is the response of GET api/key.
type keyView struct {
	K        blob     `json:"k"`
	Type     string   `json:"type"`
	Encoding string   `json:"encoding,omitempty"`
	Bytes    *int64   `json:"bytes,omitempty"`
	Idle     *int64   `json:"idle,omitempty"` // ms
	Freq     *int64   `json:"freq,omitempty"`
	TTL      *int64   `json:"pttl,omitempty"`
	N        *int64   `json:"n,omitempty"`
	Version  string   `json:"version"`          // as in the events about the key
	Digest   string   `json:"digest,omitempty"` // of a string that is shown whole: what IFDEQ compares
	Next     *string  `json:"next"`             // from of the next page; null at the end
	Now      int64    `json:"now"`
	Body     any      `json:"body"`
	Denied   []string `json:"denied,omitempty"`
}

// itemRange is the part of a key that a request shows: at most count items, after from, that contain find.
type itemRange struct {
	from, find string
	count      int64
	large      bool // the items are so large that a page of few is larger than pageBytes
}

// viewers returns the body of a key by its type, and where its next page begins.
var viewers = map[string]func(k *call, q *request, key string, p itemRange) (body any, next string, err error){
	"string": viewString, "hash": viewHash, "set": viewSet, "zset": viewZSet, "list": viewList, "stream": viewStream,
	"limiter": viewInfo("RL.INFO"), "lock": viewInfo("LOCK.INFO"), "semaphore": viewInfo("SEM.INFO"), "delayqueue": viewInfo("DQ.INFO"),
	"MBbloom--": viewInfo("BF.INFO"),
}

// getKey answers GET api/key?k&from&count&find.
func getKey(k *call, q *request) (any, error) {
	key, err := q.key("k")
	if err != nil {
		return nil, err
	}
	p := itemRange{from: q.text("from"), find: q.text("find")}
	if p.count, err = q.number("count", 200, 1, 1000); err != nil {
		return nil, err
	}
	if !k.allowed([][]byte{[]byte("TYPE"), []byte(key)}) {
		return nil, errNotAllowed
	}
	version := k.c.versions.of(k.s.db, key) // before the reads
	v, err := k.do(q.ctx, "TYPE", key)
	if err != nil {
		return nil, err
	}
	if v.Str == "none" {
		return nil, errGone("the key does not exist")
	}
	out := &keyView{K: wholeOf(key), Type: v.Str, Now: k.c.now(), Version: k.versionOf(q, key, v.Str, version)}
	integer := func(args ...any) *int64 {
		v, err := k.do(q.ctx, args...)
		if err != nil || v.Kind != resp.KindInt {
			return nil
		}
		return &v.Int
	}
	out.TTL, out.Bytes, out.N = integer("PTTL", key), integer("MEMORY", "USAGE", key), k.count(q, key, v.Str)
	if strings.HasSuffix(k.c.svc.Config.String("maxmemory-policy"), "-lfu") { // the other command is an error
		out.Freq = integer("OBJECT", "FREQ", key)
	} else if out.Idle = integer("OBJECT", "IDLETIME", key); out.Idle != nil {
		*out.Idle *= 1000
	}
	if e, err := k.do(q.ctx, "OBJECT", "ENCODING", key); err == nil {
		out.Encoding = e.Str
	}
	n := int64(0)
	if out.N != nil {
		n = *out.N
	}
	if v.Str == "string" {
		out.Digest = k.digest(q, key)
	}
	p.count = pageOf(p.count, n, out.Bytes)
	p.large = p.count < minScan
	if view := viewers[v.Str]; view != nil {
		body, next, err := view(k, q, key, p)
		switch {
		case err == errNotAllowed: // the head says what there is
		case err != nil:
			return nil, err
		default:
			out.Body = body
		}
		if next != "" {
			out.Next = &next
		}
	}
	out.Denied = k.denied
	return out, nil
}

// pageBytes is about the size of the values of a page, which are read whole and cut afterwards, and pageBlind the number of items of a
// page where the user may not see the size of the key.
const (
	pageBytes = 4 << 20
	pageBlind = 20
	// minScan is about the number of items that HSCAN returns even where COUNT is 1.
	minScan = 16
)

// pageOf returns how many of the n items of a key a page has, at most count. bytes is the size of the key, nil: unknown.
func pageOf(count, n int64, bytes *int64) int64 {
	if bytes == nil {
		return min(count, pageBlind)
	}
	return min(count, max(1, pageBytes/(*bytes/max(n, 1)+1)))
}

// usage returns the size of a key; nil if the user may not see it, which no screen need say.
func (k *call) usage(q *request, key string) *int64 {
	argv := [][]byte{[]byte("MEMORY"), []byte("USAGE"), []byte(key)}
	if ok, _ := k.v.id.May(argv); !ok {
		return nil
	}
	v, err := k.run(q.ctx, argv)
	if err != nil || v.Kind != resp.KindInt {
		return nil
	}
	return &v.Int
}

// digest returns what IFDEQ compares of a string. It is "" for one that the page does not get whole, and so does not edit, and where
// the user may not request it. A viewer with the digest of a hidden value could try values.
func (k *call) digest(q *request, key string) string {
	if k.c.opt.HideValues {
		return ""
	}
	length, err := k.do(q.ctx, "STRLEN", key)
	if err != nil || length.Kind != resp.KindInt || length.Int > previewBytes {
		return ""
	}
	v, err := k.do(q.ctx, "DIGEST", key)
	if err != nil {
		return ""
	}
	return v.Str
}

// rows is the body of a container.
type rows[T any] struct {
	Rows []T `json:"rows"`
}

func viewString(k *call, q *request, key string, _ itemRange) (any, string, error) {
	length, err := k.do(q.ctx, "STRLEN", key)
	if err != nil {
		return nil, "", err
	}
	body := struct {
		V    blob   `json:"v"`
		Len  int64  `json:"len"`
		Seen string `json:"seen,omitempty"` // the mark of a value that is shown whole
	}{Len: length.Int}
	if k.c.opt.HideValues {
		body.V = blob{n: int(length.Int), hidden: true}
		return body, "", nil
	}
	v, err := k.do(q.ctx, "GETRANGE", key, 0, previewBytes-1+utf8Rest)
	if err != nil {
		return nil, "", err
	}
	if body.V = cutTo(v.Str, previewBytes); body.V.cut {
		body.V.n = int(length.Int)
	} else {
		body.Seen = k.c.markOf(v, "get", key)
	}
	return body, "", nil
}

// utf8Rest is the number of bytes beyond a preview that show whether it ends within a character.
const utf8Rest = 4

// item is one row of a container. The fields that its type does not have are missing.
type item struct {
	F     *blob   `json:"f,omitempty"`
	M     *blob   `json:"m,omitempty"`
	I     *int64  `json:"i,omitempty"`
	V     *blob   `json:"v,omitempty"`
	Score *string `json:"score,omitempty"`
	TTL   *int64  `json:"pttl,omitempty"`
	Seen  string  `json:"seen,omitempty"` // the mark of the value: see expectation
}

// scan returns a page of HSCAN, SSCAN or ZSCAN. more are further arguments.
func (k *call) scan(q *request, command, key string, p itemRange, more ...any) (elems []resp.Value, next string, err error) {
	p.from = cmp.Or(p.from, "0")
	args := append([]any{command, key, p.from, "COUNT", p.count}, more...)
	if p.find != "" {
		args = append(args, "MATCH", patternOf(p.find))
	}
	for {
		args[2] = p.from
		v, err := k.do(q.ctx, args...)
		if err != nil {
			return nil, "", err
		}
		p.from, elems = v.Elems[0].Str, append(elems, v.Elems[1].Elems...)
		if p.from == "0" {
			return elems, "", nil
		}
		if len(elems) > 0 {
			return elems, p.from, nil
		}
	}
}

// patternOf returns a pattern that finds a text within names. A text with a character of patterns is one itself.
func patternOf(find string) string {
	if strings.ContainsAny(find, `*?[\`) {
		return find
	}
	return "*" + find + "*"
}

// name returns what a command calls the item: its field, member or index. whole is false for a name of which the console has
// read a beginning alone.
func (i *item) name() (name any, whole bool) {
	switch {
	case i.F != nil:
		return i.F.s, !i.F.cut
	case i.M != nil:
		return i.M.s, !i.M.cut
	}
	return *i.I, true
}

// times adds the remaining times of items, except those whose names are cut. word is FIELDS, MEMBERS or INDEXES.
func (k *call) times(q *request, command, key, word string, items []item) {
	args, asked := []any{command, key, word, 0}, make([]int, 0, len(items))
	for i := range items {
		if name, whole := items[i].name(); whole {
			args, asked = append(args, name), append(asked, i)
		}
	}
	if len(asked) == 0 {
		return
	}
	args[3] = len(asked)
	v, err := k.do(q.ctx, args...)
	if err != nil || len(v.Elems) != len(asked) {
		return
	}
	for at, i := range asked {
		items[i].TTL = &v.Elems[at].Int
	}
}

// living leaves out the items that have expired since they were read.
func living(items []item) []item {
	out := items[:0]
	for _, i := range items {
		if i.TTL == nil || *i.TTL != -2 {
			out = append(out, i)
		}
	}
	return out
}

func viewHash(k *call, q *request, key string, p itemRange) (any, string, error) {
	if p.large {
		if ok, _ := k.v.id.May([][]byte{[]byte("HSTRLEN"), []byte(key), nil}); ok {
			return viewLargeHash(k, q, key, p)
		}
	}
	elems, next, err := k.scan(q, "HSCAN", key, p)
	if err != nil {
		return nil, "", err
	}
	items := make([]item, 0, len(elems)/2)
	for i := 0; i+1 < len(elems); i += 2 {
		f, v := nameOf(elems[i]), k.c.valueOf(elems[i+1])
		items = append(items, item{F: &f, V: &v, Seen: k.c.markOf(elems[i+1], "hget", key, elems[i].Str)})
	}
	k.times(q, "HPTTL", key, "FIELDS", items)
	return rows[item]{living(items)}, next, nil
}

// viewLargeHash is viewHash where values may be large. It reads those of at most pageBytes/minScan bytes, and the lengths of the others.
func viewLargeHash(k *call, q *request, key string, p itemRange) (any, string, error) {
	fields, next, err := k.scan(q, "HSCAN", key, p, "NOVALUES")
	if err != nil {
		return nil, "", err
	}
	items := make([]item, len(fields))
	for i, e := range fields {
		f := nameOf(e)
		if f.cut {
			items[i] = item{F: &f, V: &blob{cut: true}}
			continue
		}
		length, err := k.do(q.ctx, "HSTRLEN", key, e.Str)
		if err != nil {
			return nil, "", err
		}
		v, seen := blob{n: int(length.Int), cut: true, hidden: k.c.opt.HideValues}, ""
		if length.Int <= pageBytes/minScan && !v.hidden {
			got, err := k.do(q.ctx, "HGET", key, e.Str)
			if err != nil {
				return nil, "", err
			}
			v, seen = k.c.valueOf(got), k.c.markOf(got, "hget", key, e.Str)
		}
		items[i] = item{F: &f, V: &v, Seen: seen}
	}
	k.times(q, "HPTTL", key, "FIELDS", items)
	return rows[item]{living(items)}, next, nil
}

func viewSet(k *call, q *request, key string, p itemRange) (any, string, error) {
	elems, next, err := k.scan(q, "SSCAN", key, p)
	if err != nil {
		return nil, "", err
	}
	items := make([]item, len(elems))
	for i, e := range elems {
		m := nameOf(e)
		items[i] = item{M: &m}
	}
	k.times(q, "SPTTL", key, "MEMBERS", items)
	return rows[item]{living(items)}, next, nil
}

// start returns the index at which a page begins.
func (p itemRange) start() (int64, error) {
	if p.from == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(p.from, 10, 64)
	if err != nil || n < 0 {
		return 0, badRequest("the parameter from is %q, and must be an index", p.from)
	}
	return n, nil
}

func viewZSet(k *call, q *request, key string, p itemRange) (any, string, error) {
	var items []item
	var next string
	if p.find != "" {
		elems, after, err := k.scan(q, "ZSCAN", key, p)
		if err != nil {
			return nil, "", err
		}
		next = after
		for i := 0; i+1 < len(elems); i += 2 {
			items = append(items, k.scored(key, elems[i], elems[i+1]))
		}
	} else {
		from, err := p.start()
		if err != nil {
			return nil, "", err
		}
		v, err := k.do(q.ctx, "ZRANGE", key, from, from+p.count, "WITHSCORES") // one more than a page
		if err != nil {
			return nil, "", err
		}
		for _, e := range v.Elems {
			items = append(items, k.scored(key, e.Elems[0], e.Elems[1]))
		}
		if int64(len(items)) > p.count {
			items, next = items[:p.count], text64(from+p.count)
		}
	}
	k.times(q, "ZPTTL", key, "MEMBERS", items)
	return rows[item]{living(items)}, next, nil
}

// scored returns the row of a member with its score.
func (k *call) scored(key string, member, score resp.Value) item {
	m, text := nameOf(member), scoreText(score)
	return item{M: &m, Score: &text, Seen: k.c.markOf(resp.Value{Kind: resp.KindBulk, Str: text}, "zscore", key, member.Str)}
}

// scoreText returns a score as the server writes it.
func scoreText(v resp.Value) string {
	if v.Kind == resp.KindDouble {
		return string(numeral.AppendDouble(nil, v.Float))
	}
	return v.Str
}

func viewList(k *call, q *request, key string, p itemRange) (any, string, error) {
	from, err := p.start()
	if err != nil {
		return nil, "", err
	}
	v, err := k.do(q.ctx, "LRANGE", key, from, from+p.count)
	if err != nil {
		return nil, "", err
	}
	next, elems := "", v.Elems
	if int64(len(elems)) > p.count {
		elems, next = elems[:p.count], text64(from+p.count)
	}
	items := make([]item, len(elems))
	for i, e := range elems {
		at, v := from+int64(i), k.c.valueOf(e)
		items[i] = item{I: &at, V: &v, Seen: k.c.markOf(e, "lindex", key, text64(at))}
	}
	k.times(q, "LPTTL", key, "INDEXES", items)
	return rows[item]{items}, next, nil
}

// entry is one entry of a stream.
type entry struct {
	ID     string   `json:"id"`
	Fields [][2]any `json:"fields"`
	More   int      `json:"more,omitempty"` // fields that are left out
}

// entryFields is the number of fields of an entry that a page gets.
const entryFields = 20

// viewStream shows the entries of a stream, the newest first, and its groups.
func viewStream(k *call, q *request, key string, p itemRange) (any, string, error) {
	var body struct {
		Rows   []entry        `json:"rows"`
		Info   map[string]any `json:"info,omitempty"`
		Groups []groupRow     `json:"groups,omitempty"`
	}
	before := p.from
	if before == "" || before == "0" {
		before = "+"
	}
	v, err := k.do(q.ctx, "XREVRANGE", key, before, "-", "COUNT", p.count+1)
	if err != nil {
		return nil, "", err
	}
	next, elems := "", v.Elems
	if int64(len(elems)) > p.count {
		elems = elems[:p.count]
		next = "(" + elems[p.count-1].Elems[0].Str
	}
	body.Rows = make([]entry, len(elems))
	for i, e := range elems {
		body.Rows[i].ID = e.Elems[0].Str
		fields := e.Elems[1].Elems
		for j := 0; j+1 < len(fields); j += 2 {
			if j/2 >= entryFields {
				body.Rows[i].More = len(fields)/2 - entryFields
				break
			}
			body.Rows[i].Fields = append(body.Rows[i].Fields, [2]any{nameOf(fields[j]), k.c.valueOf(fields[j+1])})
		}
	}
	if info, err := k.do(q.ctx, "XINFO", "STREAM", key); err == nil {
		body.Info = map[string]any{}
		for name, v := range info.Pairs {
			if name.Str != "first-entry" && name.Str != "last-entry" {
				body.Info[name.Str] = k.c.factsJSON(v)
			}
		}
	}
	body.Groups = k.groups(q, key)
	return body, next, nil
}

// groupRow is a consumer group.
type groupRow struct {
	Name          blob          `json:"name"`
	Consumers     int64         `json:"consumers"`
	Pending       int64         `json:"pending"`
	Lag           *int64        `json:"lag"` // null: unknown
	Last          string        `json:"last"`
	ConsumersRows []consumerRow `json:"consumersRows"`
}

// consumerRow is a consumer of a group. The times are in ms.
type consumerRow struct {
	Name     blob  `json:"name"`
	Pending  int64 `json:"pending"`
	Idle     int64 `json:"idle"`
	Inactive int64 `json:"inactive"`
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

// member returns the value of a name in a reply of pairs; null if it is missing.
func member(v resp.Value, name string) resp.Value {
	got, _ := v.Get(name)
	return got
}

// viewInfo returns a viewer that shows the reply of a command about the key.
func viewInfo(command string) func(*call, *request, string, itemRange) (any, string, error) {
	return func(k *call, q *request, key string, _ itemRange) (any, string, error) {
		v, err := k.do(q.ctx, command, key)
		if err != nil {
			return nil, "", err
		}
		if v.IsNull() {
			return nil, "", errGone("the key has expired")
		}
		return struct {
			Info any `json:"info"`
		}{k.c.factsJSON(v)}, "", nil
	}
}

// factsJSON returns a reply in a form without kinds, for facts: integers as text, strings as byte strings,
// maps as objects.
func (c *Console) factsJSON(v resp.Value) any {
	switch v.Kind {
	case resp.KindMap:
		out := map[string]any{}
		for name, x := range v.Pairs {
			out[name.Str] = c.factsJSON(x)
		}
		return out
	case resp.KindArray, resp.KindSet, resp.KindPush:
		out := make([]any, len(v.Elems))
		for i, e := range v.Elems {
			out[i] = c.factsJSON(e)
		}
		return out
	case resp.KindInt:
		return text64(v.Int)
	case resp.KindDouble:
		return double(v.Float)
	case resp.KindBulk, resp.KindStatus, resp.KindVerbatim:
		return nameOf(v)
	case resp.KindBool:
		return v.Int != 0
	}
	return nil
}
