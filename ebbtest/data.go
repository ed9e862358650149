package ebbtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/conn"
)

// Data reads what a Backend has stored. Its methods take no context, return no errors, and
// do not see the faults of the Backend. If a key holds another type, the test fails. A key
// that does not exist reads as empty. Data sends the commands that clients send, so a read
// extends a sliding deadline. Its methods may be called from the goroutine of the test
// only.
type Data struct {
	t  testing.TB
	c  *conn.Conn
	db int
}

// Entry is an entry of a stream, with its fields and values in turn.
type Entry struct {
	ID     string
	Fields []string
}

// DB returns the data of another database; a Backend's Data is database 0.
func (d *Data) DB(n int) *Data { return &Data{t: d.t, c: d.c, db: n} }

// Do runs a command, and fails the test if it fails.
func (d *Data) Do(args ...any) conn.Value {
	d.t.Helper()
	var v conn.Value
	var err error
	if d.db == 0 {
		v, err = d.c.Do(context.Background(), args...)
	} else {
		v, err = d.inDB(args)
	}
	if err != nil {
		d.t.Fatalf("ebbtest: %v: %v", args, err)
	}
	return v
}

// inDB runs a command in another database.
func (d *Data) inDB(args []any) (v conn.Value, err error) {
	own, ok := conn.Find[interface{ Select(dbi int) conn.Driver }](d.c)
	if !ok {
		return v, conn.ErrRemote
	}
	c := conn.New(own.Select(d.db))
	defer func() { err = errors.Join(err, c.Close()) }()
	return c.Do(context.Background(), args...)
}

// Keys returns the names of the keys, sorted.
func (d *Data) Keys() []string {
	d.t.Helper()
	keys := texts(d.Do("KEYS", "*"))
	slices.Sort(keys)
	return keys
}

// Exists reports whether there is a key.
func (d *Data) Exists(key string) bool { d.t.Helper(); return d.Do("EXISTS", key).Int == 1 }

// Type returns "string", "hash", ..., or "none".
func (d *Data) Type(key string) string { d.t.Helper(); return d.Do("TYPE", key).Str }

// TTL returns the time until a key expires: ebb.Forever if it has no deadline, 0 if there
// is no such key.
func (d *Data) TTL(key string) time.Duration {
	d.t.Helper()
	return ttl(d.Do("PTTL", key).Int)
}

// Get returns a string.
func (d *Data) Get(key string) string { d.t.Helper(); return d.Do("GET", key).Str }

// Hash returns the fields of a hash.
func (d *Data) Hash(key string) map[string]string {
	d.t.Helper()
	all := map[string]string{}
	flat := texts(d.Do("HGETALL", key))
	for i := 0; i+1 < len(flat); i += 2 {
		all[flat[i]] = flat[i+1]
	}
	return all
}

// FieldTTL returns the time until a field of a hash expires, as TTL does.
func (d *Data) FieldTTL(key, field string) time.Duration {
	d.t.Helper()
	return first(d.Do("HPTTL", key, "FIELDS", 1, field))
}

// List returns the elements of a list.
func (d *Data) List(key string) []string {
	d.t.Helper()
	return texts(d.Do("LRANGE", key, 0, -1))
}

// Set returns the members of a set, sorted.
func (d *Data) Set(key string) []string {
	d.t.Helper()
	all := texts(d.Do("SMEMBERS", key))
	slices.Sort(all)
	return all
}

// MemberTTL returns the time until a member of a set or a sorted set expires, as TTL does.
func (d *Data) MemberTTL(key, member string) time.Duration {
	d.t.Helper()
	name := "SPTTL"
	if d.Type(key) == "zset" {
		name = "ZPTTL"
	}
	return first(d.Do(name, key, "MEMBERS", 1, member))
}

// SortedSet returns the members of a sorted set and their scores.
func (d *Data) SortedSet(key string) map[string]float64 {
	d.t.Helper()
	all := map[string]float64{}
	v := d.Do("ZRANGE", key, 0, -1, "WITHSCORES")
	flat := flatten(v)
	for i := 0; i+1 < len(flat); i += 2 {
		score, err := flat[i+1].AsFloat()
		if err != nil {
			d.t.Fatalf("ebbtest: score of %q: %v", flat[i].Str, err)
		}
		all[flat[i].Str] = score
	}
	return all
}

// Stream returns the entries of a stream.
func (d *Data) Stream(key string) []Entry {
	d.t.Helper()
	var all []Entry
	for _, e := range d.Do("XRANGE", key, "-", "+").Elems {
		all = append(all, Entry{e.Elems[0].Str, texts(e.Elems[1])})
	}
	return all
}

// Jobs returns the ids of the jobs of a delay queue, in every state, in the order in which
// they become due.
func (d *Data) Jobs(key string) []string {
	d.t.Helper()
	var all []string
	for _, j := range d.Do("DQ.PEEK", key, "COUNT", 1_000_000).Elems {
		all = append(all, j.Elems[0].Str)
	}
	return all
}

// LockOwner returns the owner of a lock, "" if it has none, and the fencing token.
func (d *Data) LockOwner(key string) (owner string, token int64) {
	d.t.Helper()
	v := d.Do("LOCK.INFO", key)
	for i := 0; i+1 < len(v.Elems); i += 2 {
		if h := v.Elems[i+1]; v.Elems[i].Str == "holders" && len(h.Elems) > 0 {
			return h.Elems[0].Elems[0].Str, h.Elems[0].Elems[1].Int
		}
	}
	return "", 0
}

// Dump returns all keys with their values, for the message of a test that failed.
func (d *Data) Dump() string {
	d.t.Helper()
	var s strings.Builder
	for _, key := range d.Keys() {
		kind := d.Type(key)
		fmt.Fprintf(&s, "%s (%s", key, kind)
		if t := d.TTL(key); t != conn.Forever {
			fmt.Fprintf(&s, ", %v", t)
		}
		s.WriteString(")\n")
		switch kind {
		case "string":
			fmt.Fprintf(&s, "  %q\n", d.Get(key))
		case "hash":
			flat := texts(d.Do("HGETALL", key))
			for i := 0; i+1 < len(flat); i += 2 {
				fmt.Fprintf(&s, "  %q: %q\n", flat[i], flat[i+1])
			}
		case "list":
			lines(&s, d.List(key))
		case "set":
			lines(&s, d.Set(key))
		case "zset":
			for _, m := range texts(d.Do("ZRANGE", key, 0, -1)) {
				score, _ := d.Do("ZSCORE", key, m).AsFloat()
				fmt.Fprintf(&s, "  %s %q\n", strconv.FormatFloat(score, 'g', -1, 64), m)
			}
		case "stream":
			for _, e := range d.Stream(key) {
				fmt.Fprintf(&s, "  %s %q\n", e.ID, e.Fields)
			}
		}
	}
	return s.String()
}

func lines(s *strings.Builder, all []string) {
	for _, x := range all {
		fmt.Fprintf(s, "  %q\n", x)
	}
}

// ttl converts a reply of PTTL or a similar command.
func ttl(ms int64) time.Duration {
	switch ms {
	case -1:
		return conn.Forever
	case -2:
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

// first reads the reply for one item.
func first(v conn.Value) time.Duration {
	if len(v.Elems) == 0 {
		return 0
	}
	return ttl(v.Elems[0].Int)
}

func texts(v conn.Value) []string {
	all := make([]string, 0, len(v.Elems))
	for _, e := range v.Elems {
		all = append(all, e.String())
	}
	return all
}

// flatten returns the pairs of a reply as a flat list. In RESP3 each pair is an array, in
// RESP2 it is not.
func flatten(v conn.Value) []conn.Value {
	var all []conn.Value
	for _, e := range v.Elems {
		if len(e.Elems) > 0 {
			all = append(all, e.Elems...)
		} else {
			all = append(all, e)
		}
	}
	return all
}
