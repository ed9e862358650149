package console

import (
	"cmp"
	"math"
	"strings"

	"github.com/ebbdb/ebb/resp"
)

// keyRow is one key of a list. A field that the user may not see is missing.
type keyRow struct {
	K     blob   `json:"k"`
	Type  string `json:"type,omitempty"`
	TTL   *int64 `json:"pttl,omitempty"`  // ms; -1: no deadline
	Slide int64  `json:"slide,omitempty"` // as in a key's view
	Bytes *int64 `json:"bytes,omitempty"`
	N     *int64 `json:"n,omitempty"` // items of a container
}

// keyPage is the response of GET api/keys. Cursor begins the next page. Looked is the approximate number of
// keys that the page has examined; filters leave keys out.
type keyPage struct {
	Cursor string   `json:"cursor"`
	Done   bool     `json:"done"`
	Looked int64    `json:"looked"`
	Total  int64    `json:"total"`
	Now    int64    `json:"now"`
	Rows   []keyRow `json:"rows"`
	Denied []string `json:"denied,omitempty"`
	Named  *keyRow  `json:"named,omitempty"`
}

// keyFilter is the condition for the rows of a list of keys: a TTL (any, none, soon), and a least number of
// bytes.
type keyFilter struct {
	ttl   string
	bytes int64
}

// soonTTL is the greatest remaining time of a key that the filter ttl=soon passes.
const soonTTL = 60_000

// getKeys answers GET api/keys?cursor&match&prefix&type&ttl&size&limit&name. A prefix, encoded as k is,
// replaces match: it may contain any bytes. Named is the key whose name is exactly name, which a walk may not
// reach.
func getKeys(k *call, q *request) (any, error) {
	limit, err := q.number("limit", 200, 1, 2000)
	if err != nil {
		return nil, err
	}
	var only keyFilter
	if only.ttl, err = q.word("ttl", "any", "none", "soon"); err != nil {
		return nil, err
	}
	if only.bytes, err = q.number("size", 0, 0, math.MaxInt64); err != nil {
		return nil, err
	}
	args, err := scanOf(q, limit)
	if err != nil {
		return nil, err
	}
	page := &keyPage{Cursor: cmp.Or(q.text("cursor"), "0"), Rows: []keyRow{}}
	if q.text("name") != "" {
		name, err := q.key("name")
		if err != nil {
			return nil, err
		}
		if row, ok := k.keyRow(q, resp.Value{Str: name}, keyFilter{ttl: "any"}); ok && row.Type != "" && row.Type != "none" {
			page.Named = &row
		}
	}
	if err := k.fill(q, page, args, only, int(limit)); err != nil {
		return nil, err
	}
	if v, err := k.do(q.ctx, "DBSIZE"); err == nil {
		page.Total = v.Int
		page.Looked = min(page.Looked, v.Int)
	}
	page.Now, page.Denied = k.c.now(), k.denied
	return page, nil
}

// The indexes of the cursor and of the count in the words of scanOf.
const (
	scanCursor = 1
	scanSize   = 3
)

// scanOf returns the words of the SCAN for a request for keys.
func scanOf(q *request, limit int64) ([]any, error) {
	args := []any{"SCAN", scanCursor: "", "COUNT", scanSize: min(scanCount, int(limit))}
	if q.text("prefix") != "" {
		prefix, err := q.key("prefix")
		if err != nil {
			return nil, err
		}
		args = append(args, "MATCH", literally.Replace(prefix)+"*")
	} else if m := q.text("match"); m != "" {
		args = append(args, "MATCH", m)
	}
	if t := q.text("type"); t != "" {
		args = append(args, "TYPE", t)
	}
	return args, nil
}

// fill adds the keys that a SCAN finds and the filter passes, until the page has limit rows or the bounds of
// names and time are reached.
func (k *call) fill(q *request, page *keyPage, scan []any, only keyFilter, limit int) error {
	until, readable, room := k.c.clock.Micros()+pageTime.Microseconds(), k.v.id.Reads(readers...), pageNames
	for {
		scan[scanCursor] = page.Cursor
		v, err := k.do(q.ctx, scan...)
		if err != nil {
			return err
		}
		count := scan[scanSize].(int)
		if k.truncated && count > 1 { // long names: fewer at a time, so that none is left out
			scan[scanSize] = max(1, count/8)
			continue
		}
		page.Cursor, page.Looked = v.Elems[0].Str, page.Looked+int64(count)
		for _, e := range v.Elems[1].Elems {
			if !readable([]byte(e.Str)) {
				continue
			}
			if row, ok := k.keyRow(q, e, only); ok {
				page.Rows = append(page.Rows, row)
				room -= len(e.Str)
			}
		}
		page.Done = page.Cursor == "0"
		if page.Done || len(page.Rows) >= limit || room <= 0 || k.c.clock.Micros() > until {
			return nil
		}
	}
}

// literally escapes the characters of patterns.
var literally = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `\`, `\\`)

// keyRow returns the row of a key; ok is false if the key no longer exists, or if the filter leaves it out.
// If the console has not read the whole name, the row has its beginning.
func (k *call) keyRow(q *request, name resp.Value, only keyFilter) (row keyRow, ok bool) {
	row.K = nameOf(name)
	key := name.Str
	if int(name.Int) > len(key) {
		return row, only == keyFilter{ttl: "any"}
	}
	if v, err := k.do(q.ctx, "PTTL", key); err == nil {
		if v.Int == -2 {
			return row, false
		}
		row.TTL = &v.Int
	}
	switch {
	case only.ttl == "any":
	case row.TTL == nil, only.ttl == "none" && *row.TTL >= 0, only.ttl == "soon" && (*row.TTL < 0 || *row.TTL > soonTTL):
		return row, false
	}
	if v, err := k.do(q.ctx, "MEMORY", "USAGE", key); err == nil && !v.IsNull() {
		row.Bytes = &v.Int
	}
	if only.bytes > 0 && (row.Bytes == nil || *row.Bytes < only.bytes) {
		return row, false
	}
	row.Slide = k.slide(key, row.TTL)
	if v, err := k.do(q.ctx, "TYPE", key); err == nil {
		row.Type = v.Str
	}
	row.N = k.count(q, key, row.Type)
	return row, true
}
