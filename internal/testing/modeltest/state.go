package modeltest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/compat"
	"github.com/ebbdb/ebb/resp"
)

// databases is the number of databases that the test compares at the end: those that
// SELECT, MOVE and COPY use.
const databases = 3

// held is a key that a server has at the end.
type held struct {
	where          string // database and key
	typ            string
	value          string
	encoding       string
	deadline       int64            // ms since the epoch; negative for none
	fieldDeadlines map[string]int64 // of a hash's fields, those that have one
}

// sameDeadlines is the greatest difference of deadlines, in ms: the two servers get a
// request at different times, and count from there.
const sameDeadlines = 2000

// compareState compares the final state: keys, values, deadlines, the events on the way,
// and between servers of one version the digest.
func (c *Campaign) compareState(ops []Op, ours, theirs *end) (*Fault, error) {
	var states [2][]held
	for try := range 3 {
		for i, e := range []*end{ours, theirs} {
			var err error
			if states[i], err = e.state(c.fields); err != nil {
				return nil, err
			}
		}
		f := c.compareHeld(len(ops), states[0], states[1])
		if f == nil {
			break
		}
		if try == 2 {
			return f, nil
		}
		sleep(40 * time.Millisecond) // a key may just be expiring
	}
	if f := c.compareEncodings(len(ops), states[0], states[1]); f != nil {
		return f, nil
	}
	if f, err := c.compareAllEvents(ops, ours, theirs); f != nil || err != nil {
		return f, err
	}
	if f, err := comparePushes(ops, ours, theirs); f != nil || err != nil {
		return f, err
	}
	if c.HasDigest {
		return c.compareDigests(ops, ours, theirs)
	}
	return nil, nil
}

// compareHeld compares what two servers hold, both in order.
func (c *Campaign) compareHeld(at int, a, b []held) *Fault {
	fault := func(x, y string) *Fault { return &Fault{at, "keyspace", x, y} }
	for i := range max(len(a), len(b)) {
		switch {
		case i == len(a) || i < len(b) && b[i].where < a[i].where:
			return fault("without "+b[i].where, b[i].String())
		case i == len(b) || a[i].where < b[i].where:
			return fault(a[i].String(), "without "+a[i].where)
		case a[i].typ != b[i].typ || !c.sameValue(a[i], b[i]) || !near(a[i].deadline, b[i].deadline) ||
			len(a[i].fieldDeadlines) != len(b[i].fieldDeadlines):
			return fault(a[i].String(), b[i].String())
		}
		for name, x := range a[i].fieldDeadlines {
			if y, ok := b[i].fieldDeadlines[name]; !ok || !near(x, y) {
				return fault(a[i].String(), b[i].String())
			}
		}
	}
	return nil
}

// lagOf matches the progress of a group in a reply of XINFO STREAM.
var lagOf = regexp.MustCompile(` "(lag|entries-read)"( -?[0-9]+| "")`)

// sameValue compares two values as text. Redis 7.0 and Valkey count the
// lag of groups otherwise.
func (c *Campaign) sameValue(a, b held) bool {
	if a.value == b.value {
		return true
	}
	if c.Server == compat.Redis8 || a.typ != "stream" || lagOf.ReplaceAllString(a.value, "") != lagOf.ReplaceAllString(b.value, "") {
		return false
	}
	c.tally.difference(streamLag)
	return true
}

func near(a, b int64) bool {
	return (a < 0) == (b < 0) && a-b <= sameDeadlines && b-a <= sameDeadlines
}

func (h held) String() string {
	s := fmt.Sprintf("%s %s %.300q (%d bytes)", h.where, h.typ, h.value, len(h.value))
	if h.deadline >= 0 {
		s += fmt.Sprintf(", until %d", h.deadline)
	}
	for name, at := range h.fieldDeadlines {
		s += fmt.Sprintf(", field %q until %d", name, at)
	}
	return s
}

// compareEncodings counts the keys whose OBJECT ENCODING differs. The allowances say which
// pairs there are.
func (c *Campaign) compareEncodings(at int, a, b []held) *Fault {
	for i := range a {
		x, y := a[i].encoding, b[i].encoding
		if x == y || x == "" || y == "" {
			continue
		}
		args := []string{"OBJECT", "ENCODING", a[i].where}
		if !c.sameReply(args, resp.Value{Kind: resp.KindBulk, Str: x}, resp.Value{Kind: resp.KindBulk, Str: y}) {
			return &Fault{at, "encoding", a[i].String() + ": " + x, b[i].String() + ": " + y}
		}
		if c.tally != nil {
			c.tally.Encodings[a[i].typ+": "+x+" / "+y]++
		}
	}
	return nil
}

// compareDigests compares DEBUG DIGEST, more than once because redis-server
// counts what has expired until it is removed.
func (c *Campaign) compareDigests(ops []Op, ours, theirs *end) (f *Fault, err error) {
	for range 3 {
		x, y, err := c.both(ours.conns[0], theirs.conns[0], []string{"DEBUG", "DIGEST"})
		if err != nil || equal(x, y) {
			return nil, err
		}
		f = &Fault{len(ops), "DEBUG DIGEST", tty(x), tty(y)}
		sleep(40 * time.Millisecond)
		if _, err := theirs.state(c.fields); err != nil { // reads every key
			return nil, err
		}
	}
	return f, nil
}

// state lists the keys of the first databases with type, value and deadlines. Reading
// every pool key removes the expired ones.
func (e *end) state(fields bool) (all []held, err error) {
	p := e.conns[0]
	for db := range databases {
		if _, err := p.do("SELECT", fmt.Sprint(db)); err != nil {
			return nil, err
		}
		names, err := e.scan()
		if err != nil {
			return nil, err
		}
		for _, k := range names {
			h, err := e.describe(k, fields)
			if err != nil {
				return nil, err
			}
			if h.typ != "none" {
				h.where = fmt.Sprintf("db%d %q", db, k)
				all = append(all, h)
			}
		}
	}
	slices.SortFunc(all, func(x, y held) int { return cmp.Compare(x.where, y.where) })
	_, err = p.do("SELECT", "0")
	return all, err
}

func (e *end) describe(key string, fields bool) (h held, err error) {
	p := e.conns[0]
	typ, err := p.do("TYPE", key)
	if err != nil {
		return h, err
	}
	h.typ = typ.Str
	if h.value, err = e.value(key, h.typ); err != nil || h.typ == "none" {
		return h, err
	}
	v, err := p.do("PEXPIRETIME", key)
	if err != nil {
		return h, err
	}
	if h.deadline = v.Int; h.deadline == -2 {
		h.typ = "none" // it has expired since
		return h, nil
	}
	if v, err = p.do("OBJECT", "ENCODING", key); err != nil {
		return h, err
	}
	h.encoding = v.Str
	if h.typ == "hash" && fields {
		h.fieldDeadlines, err = e.fieldDeadlines(key)
	}
	return h, err
}

func (e *end) fieldDeadlines(key string) (map[string]int64, error) {
	p := e.conns[0]
	names, err := p.do("HKEYS", key)
	if err != nil || len(names.Elems) == 0 {
		return nil, err
	}
	args := []string{"HPEXPIRETIME", key, "FIELDS", strconv.Itoa(len(names.Elems))}
	for _, n := range names.Elems {
		args = append(args, n.Str)
	}
	v, err := p.do(args...)
	if err != nil || len(v.Elems) != len(names.Elems) {
		return nil, err
	}
	deadlines := map[string]int64{}
	for i, at := range v.Elems {
		if at.Int >= 0 {
			deadlines[names.Elems[i].Str] = at.Int
		}
	}
	return deadlines, nil
}

// value reads a whole value as text, the same for equal values.
func (e *end) value(key, typ string) (string, error) {
	read := map[string][]string{
		"string": {"GET", key}, "hash": {"HGETALL", key}, "list": {"LRANGE", key, "0", "-1"}, "set": {"SMEMBERS", key},
		"zset": {"ZRANGE", key, "0", "-1", "WITHSCORES"}, "stream": {"XRANGE", key, "-", "+"}, "none": {"EXISTS", key},
	}[typ]
	if read == nil {
		return "", fmt.Errorf("%q is a %q", key, typ)
	}
	v, err := e.conns[0].do(read...)
	if err != nil || v.Elems == nil {
		return v.Str, err
	}
	var parts []string
	switch typ {
	case "stream":
		return e.streamState(key, tty(v))
	case "hash":
		for i := 0; i+1 < len(v.Elems); i += 2 {
			parts = append(parts, fmt.Sprintf("%q=%q", v.Elems[i].Str, v.Elems[i+1].Str))
		}
	case "zset":
		for i := 0; i+1 < len(v.Elems); i += 2 {
			parts = append(parts, fmt.Sprintf("%q=%v", v.Elems[i].Str, number(v.Elems[i+1].Str)))
		}
	default:
		for _, x := range v.Elems {
			parts = append(parts, strconv.Quote(x.Str))
		}
	}
	if typ == "hash" || typ == "set" {
		sort.Strings(parts)
	}
	return strings.Join(parts, " "), nil
}

// streamState adds to a stream's entries what else it consists of, but for
// times.
func (e *end) streamState(key, entries string) (string, error) {
	v, err := e.conns[0].do("XINFO", "STREAM", key, "FULL", "COUNT", "0")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(entries)
	timeless(&b, v)
	return b.String(), nil
}

// timeless writes a reply without the numbers that depend on when it was asked
// for, or on the structure inside.
func timeless(b *strings.Builder, v resp.Value) {
	for i := 0; i < len(v.Elems); i++ {
		x := v.Elems[i]
		switch x.Str {
		case "radix-tree-keys", "radix-tree-nodes", "seen-time", "active-time":
			i++
			continue
		case "entries":
			i++ // compared by XRANGE
			continue
		}
		switch {
		case idle(x):
		case x.Kind == resp.KindArray:
			b.WriteByte('[')
			timeless(b, x)
			b.WriteByte(']')
		case x.Kind == resp.KindInt && x.Int > 1e12: // the time of a delivery
		case x.Kind == resp.KindInt:
			fmt.Fprintf(b, " %d", x.Int)
		default:
			fmt.Fprintf(b, " %q", x.Str)
		}
	}
}

// idle reports whether a part of XINFO's reply is a consumer without an entry:
// redis-server 7.0 makes one when it gets its first.
func idle(x resp.Value) bool {
	if len(x.Elems) < 2 || !strings.HasPrefix(x.Elems[1].Str, "c") {
		return false
	}
	for i, e := range x.Elems[:len(x.Elems)-1] {
		if e.Str == "pel-count" {
			return x.Elems[i+1].Int == 0
		}
	}
	return false
}

// scan lists the keys of the selected database, and all keys of the pools.
func (e *end) scan() ([]string, error) {
	names := slices.Clone(keys)
	for cursor := "0"; ; {
		v, err := e.conns[0].do("SCAN", cursor, "COUNT", "1000")
		if err != nil {
			return nil, err
		}
		if len(v.Elems) != 2 { // no SCAN yet
			break
		}
		more, err := v.Elems[1].AsStrings()
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
		if cursor = v.Elems[0].Str; cursor == "0" {
			break
		}
	}
	sort.Strings(names)
	return slices.Compact(names), nil
}
