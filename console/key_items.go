package console

import (
	"cmp"
	"strconv"

	"github.com/ebbdb/ebb/resp"
)

// itemRange is the part of a key that a request shows: at most count items, after from, that contain find.
type itemRange struct {
	from, find string
	count      int64
	highest    bool  // of a sorted set: from the highest score down
	large      bool  // the items are so large that a page of few items is larger than pageBytes
	state      int64 // of the key, for marks
}

const (
	// pageBlind is the number of items of a page if the user may not see the size of the key.
	pageBlind = 20
	// minScan is the approximate number of items that HSCAN returns even with COUNT 1.
	minScan = 16
)

// pageOf returns the number of items on a page of a key with n items, at most count. bytes is the size of the
// key, nil if unknown.
func pageOf(count, n int64, bytes *int64) int64 {
	if bytes == nil {
		return min(count, pageBlind)
	}
	return min(count, max(1, pageBytes/(*bytes/max(n, 1)+1)))
}

// usage returns the size of a key, or nil if the user may not see it. It does not report that, because no
// screen needs the size.
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

// rows is the body of a container.
type rows[T any] struct {
	Rows []T `json:"rows"`
}

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

// name returns the item's name in commands: its field, member or index. whole is false if the console has
// read only the beginning of the name.
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
		items = append(items, item{F: &f, V: &v, Seen: k.c.markOf(elems[i+1], p.state, "hget", key, elems[i].Str)})
	}
	k.times(q, "HPTTL", key, "FIELDS", items)
	return rows[item]{living(items)}, next, nil
}

// viewLargeHash shows a hash whose values may be large. It reads the values of at most pageBytes/minScan
// bytes, and the lengths of the others.
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
			v, seen = k.c.valueOf(got), k.c.markOf(got, p.state, "hget", key, e.Str)
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
		return 0, badRequest("the parameter from is %q; it must be an index", p.from)
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
		args := []any{"ZRANGE", key, from, from + p.count, "WITHSCORES"} // one more than a page
		if p.highest {
			args = append(args, "REV")
		}
		v, err := k.do(q.ctx, args...)
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
	return item{M: &m, Score: &text, Seen: k.c.markOf(resp.Value{Kind: resp.KindBulk, Str: text}, 0, "zscore", key, member.Str)}
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
		items[i] = item{I: &at, V: &v, Seen: k.c.markOf(e, p.state, "lindex", key, text64(at))}
	}
	k.times(q, "LPTTL", key, "INDEXES", items)
	return rows[item]{items}, next, nil
}
