package console

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ebbdb/ebb/resp"
)

const (
	// scanCount is the number of entries that one SCAN of a page examines.
	scanCount = 500
	// pageTime is the longest time that a page takes if no key passes its filters.
	pageTime = 50 * time.Millisecond
	// pageNames is the approximate number of bytes of the names of a page.
	pageNames = 1 << 20
)

const (
	// maxRows is the limit of rows of a screen's list: a list is made each second while its screen is open.
	maxRows = 200
	// maxRowKeys is the greatest number of keys among which a list finds its rows, and rowsTime the longest time
	// for that: see ranked.
	maxRowKeys = 10_000
	rowsTime   = 100 * time.Millisecond
)

// readers are commands that read a key. A list leaves out a key's name unless the user may run one of them on
// the key.
var readers = []string{"PTTL", "TYPE", "GET", "HGETALL"}

// keysOf returns the keys of a type that the user may read, by SCAN with the index of that type, in the order
// of their names. more reports that there are others: the limits are maxRowKeys keys and about pageNames
// bytes, and keys whose names the console has not read in full are left out. A match without a pattern
// character is a part of the name.
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
		if count := args[3].(int); k.truncated && count > 1 { // long names, as in fill
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

// patternOf returns a pattern that finds a text within names. A text with a pattern character is itself the
// pattern.
func patternOf(find string) string {
	if strings.ContainsAny(find, `*?[\`) {
		return find
	}
	return "*" + find + "*"
}

// cardinality is the command that counts the items of a type.
var cardinality = map[string]string{
	"hash": "HLEN", "set": "SCARD", "zset": "ZCARD", "list": "LLEN", "stream": "XLEN", "MBbloom--": "BF.CARD",
}

// count returns the number of items of a container; nil for other types.
func (k *call) count(q *request, key, kind string) *int64 {
	name := cardinality[kind]
	if name == "" {
		return nil
	}
	v, err := k.do(q.ctx, name, key)
	if err != nil || v.Kind != resp.KindInt {
		return nil
	}
	return &v.Int
}

// ranked has the rows of a list: of all keys of a type, the first ones by a column.
type ranked[T any] struct {
	Rows   []T  `json:"rows"`
	More   bool `json:"more"`   // there are others
	Looked int  `json:"looked"` // the number of keys that were examined
	All    bool `json:"all"`    // they are all keys of the type
}

// rowsTimeOver returns a function that reports whether rowsTime has passed since now.
func (k *call) rowsTimeOver() (over func() bool) {
	until := k.c.clock.Micros() + rowsTime.Microseconds()
	return func() bool { return k.c.clock.Micros() > until }
}

// rank begins a list.
func rank[T any](more bool) *ranked[T] {
	return &ranked[T]{Rows: []T{}, More: more, All: !more}
}

// add adds the rows of keys: row returns nil for a key that no longer exists. Its time is bounded, so that
// others do not wait long.
func (x *ranked[T]) add(k *call, keys []string, row func(key string) *T) {
	over := k.rowsTimeOver()
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

// first sorts the rows by a column of by, "-name" for descending order, and keeps the rows that a page gets.
// Rows with equal values, and all rows for an unknown sort, are in the order of their names.
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
