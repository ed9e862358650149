package expmap

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/direct"
	"github.com/ebbdb/ebb/internal/expiries"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/resp"
)

// Set sets an entry that lives for ttl, or without a deadline if ttl is 0, and replaces the
// entry that existed. It returns ErrFull if the entry is new and the map is full.
func (m *Map[K, V]) Set(ctx context.Context, key K, value V, ttl time.Duration) error {
	_, err := m.set(ctx, key, value, ttl, false)
	return m.failed("set", err)
}

// SetNX sets an entry that lives for ttl, or without a deadline if ttl is 0, unless the entry
// exists, and reports whether it did. It returns ErrFull if the entry is new and the map is
// full.
func (m *Map[K, V]) SetNX(ctx context.Context, key K, value V, ttl time.Duration) (bool, error) {
	did, err := m.set(ctx, key, value, ttl, true)
	return did, m.failed("set", err)
}

// SetMany sets entries in one round trip, each to live for ttl, or without a deadline if ttl is 0,
// and replaces those that existed. It sets all of them or none: none if an error is returned,
// such as ErrFull if the map has no space for all new entries. Options.Jitter applies to each entry.
// O(n) for n entries, during which the backend does nothing else.
func (m *Map[K, V]) SetMany(ctx context.Context, entries map[K]V, ttl time.Duration) error {
	if len(entries) == 0 {
		return nil
	}
	return m.failed("set many", m.setMany(ctx, entries, ttl))
}

func (m *Map[K, V]) setMany(ctx context.Context, entries map[K]V, ttl time.Duration) error {
	native := m.mode() == modeNative && m.o.Jitter == 0 // HSETEX gives all fields one deadline
	args := make([]any, 0, 8+3*len(entries))
	if native {
		args = append(args, "HSETEX", m.key)
	}
	for key, value := range entries {
		f, v, ms, err := m.encode(key, value, ttl)
		if err != nil {
			return err
		}
		if !native {
			args = append(args, f, v, ms)
			continue
		}
		if len(args) == 2 {
			if ms > 0 {
				args = append(args, "PX", ms)
			}
			if m.o.MaxLen > 0 {
				args = append(args, "MAXLEN", m.o.MaxLen)
			}
			args = append(args, "FIELDS", len(entries))
		}
		args = append(args, f, v)
	}
	if err := m.begin(ctx, true); err != nil {
		return err
	}
	defer m.changed()
	if native {
		_, err := m.c.Do(ctx, args...)
		return err
	}
	reply, err := m.runEvicting(ctx, m.layout().setMany, "", args...)
	_, err = m.outcome(reply, err)
	return err
}

func (m *Map[K, V]) set(ctx context.Context, key K, value V, ttl time.Duration, nx bool) (bool, error) {
	f, v, ms, err := m.encode(key, value, ttl)
	if err != nil {
		return false, err
	}
	if err := m.begin(ctx, true); err != nil {
		return false, err
	}
	defer m.changed()
	if m.mode() != modeNative {
		reply, err := m.runEvicting(ctx, m.layout().set, "", f, v, ms, nx)
		return m.outcome(reply, err)
	}
	if d := direct.Of(m.c); d != nil && ctx.Err() == nil {
		switch d.HSet(m.key, f, v, direct.FieldOptions{TTL: ms, MaxLen: m.o.MaxLen, NX: nx}) {
		case direct.Done:
			return true, nil
		case direct.Absent:
			return false, nil
		}
	}
	args := append(make([]any, 0, 12), "HSETEX", m.key)
	if nx {
		args = append(args, "FNX")
	}
	if ms > 0 {
		args = append(args, "PX", ms)
	}
	if m.o.MaxLen > 0 {
		args = append(args, "MAXLEN", m.o.MaxLen)
	}
	return truth(m.c.Do(ctx, append(args, "FIELDS", 1, f, v)...))
}

// outcome returns the result in a reply to opSet.
func (m *Map[K, V]) outcome(v conn.Value, err error) (bool, error) {
	n, err := kit.Number(v, err)
	if err == nil && n < 0 {
		err = fmt.Errorf("%w: it has MaxLen (%d) entries", ErrFull, m.o.MaxLen)
	}
	return n > 0, err
}

func (m *Map[K, V]) encode(key K, value V, ttl time.Duration) (f, v string, ms int64, err error) {
	if ms, err = m.bounds.Millis(ttl); err != nil {
		return "", "", 0, err
	}
	if f, err = m.keys.encode(key); err != nil {
		return "", "", 0, err
	}
	v, err = m.values.encode(value)
	return f, v, ms, err
}

// Get returns the value of an entry, and whether the entry exists. In a map with an IdleTTL it
// restarts the idle time.
func (m *Map[K, V]) Get(ctx context.Context, key K) (V, bool, error) {
	v, ok, err := m.get(ctx, key)
	return v, ok, m.failed("get", err)
}

func (m *Map[K, V]) get(ctx context.Context, key K) (value V, ok bool, err error) {
	f, err := m.keys.encode(key)
	if err != nil {
		return value, false, err
	}
	if err := m.begin(ctx, false); err != nil {
		return value, false, err
	}
	if m.near != nil {
		return m.getLocal(ctx, f)
	}
	var v conn.Value
	if d := direct.Of(m.c); d != nil && m.plainReads() && ctx.Err() == nil {
		switch text, state := d.HGet(m.key, f); state {
		case direct.Done:
			return m.read(conn.Value{Kind: resp.KindBulk, Str: text})
		case direct.Absent:
			return m.read(conn.Value{Kind: resp.KindNull})
		}
	}
	if m.plainReads() {
		v, err = m.c.Do(ctx, "HGET", m.key, f)
	} else if v, err = m.run(ctx, m.layout().get, "", f); err == nil && len(v.Elems) == 1 {
		v = v.Elems[0]
	}
	if err != nil {
		return value, false, err
	}
	return m.read(v)
}

// read decodes a value from a server, and counts it.
func (k *core[K, V]) read(v conn.Value) (value V, ok bool, err error) {
	if v.IsNull() {
		k.misses.Add(1)
		return value, false, nil
	}
	if value, err = k.decode(v.String()); err == nil {
		k.hits.Add(1)
		return value, true, nil
	}
	var none V
	if !k.skipUndecodable(err) {
		return none, false, err
	}
	k.misses.Add(1)
	return none, false, nil
}

// skipUndecodable reports whether an entry that could not be decoded counts as missing, and counts it.
func (k *core[K, V]) skipUndecodable(err error) bool {
	if err == nil || !k.o.SkipUnreadable {
		return false
	}
	k.unreadable.Add(1)
	return true
}

// GetMany returns the values of those keys that have an entry, read in one step. In a map with
// an IdleTTL it restarts their idle times. It uses no local values.
func (m *Map[K, V]) GetMany(ctx context.Context, keys ...K) (map[K]V, error) {
	all := make(map[K]V, len(keys))
	if len(keys) == 0 {
		return all, nil
	}
	args, err := m.fields(keys)
	if err == nil {
		err = m.begin(ctx, false)
	}
	if err != nil {
		return nil, m.failed("get many", err)
	}
	var v conn.Value
	if m.plainReads() {
		v, err = m.c.Do(ctx, append([]any{"HMGET", m.key}, args...)...)
	} else {
		v, err = m.run(ctx, m.layout().get, "", args...)
	}
	if err == nil && len(v.Elems) != len(keys) {
		err = fmt.Errorf("%w: %d values for %d keys", conn.ErrValue, len(v.Elems), len(keys))
	}
	if err != nil {
		return nil, m.failed("get many", err)
	}
	for i, e := range v.Elems {
		value, ok, err := m.read(e)
		if err != nil {
			return nil, m.failed("get many", err)
		}
		if ok {
			all[keys[i]] = value
		}
	}
	return all, nil
}

func (m *Map[K, V]) fields(keys []K) ([]any, error) {
	args := make([]any, len(keys))
	for i, key := range keys {
		f, err := m.o.Keys.Encode(key)
		if err != nil {
			return nil, err
		}
		args[i] = f
	}
	return args, nil
}

// decode returns a stored value. In a map with an idle TTL it follows a time and a colon.
func (k *core[K, V]) decode(stored string) (value V, err error) {
	if k.o.IdleTTL > 0 && k.other == nil {
		_, rest, ok := strings.Cut(stored, ":")
		if !ok {
			return value, fmt.Errorf("%w: the entry has no absolute deadline; all programs that write to the map must set Options.IdleTTL",
				conn.ErrValue)
		}
		stored = rest
	}
	return k.values.decode(stored)
}

// Remove removes entries, and returns the number of entries that existed. It records no expirations. O(n) for
// n keys.
func (m *Map[K, V]) Remove(ctx context.Context, keys ...K) (int64, error) {
	if len(keys) == 0 {
		return 0, nil
	}
	args, err := m.fields(keys)
	if err == nil {
		err = m.begin(ctx, false)
	}
	if err != nil {
		return 0, m.failed("remove", err)
	}
	defer m.changed()
	var n int64
	if m.native() && m.o.Eviction == NoEviction { // Redis's HDEL counts expired fields too
		n, err = kit.Number(m.c.Do(ctx, append([]any{"HDEL", m.key}, args...)...))
	} else {
		n, err = kit.Number(m.run(ctx, m.layout().del, "", args...))
	}
	return n, m.failed("remove", err)
}

// TTL returns the remaining time of an entry, ebb.Forever without a deadline, and whether the
// entry exists. With an IdleTTL it is the remaining time without use. TTL does not count as
// use.
func (m *Map[K, V]) TTL(ctx context.Context, key K) (time.Duration, bool, error) {
	f, err := m.o.Keys.Encode(key)
	if err == nil {
		err = m.begin(ctx, false)
	}
	if err != nil {
		return 0, false, m.failed("ttl", err)
	}
	var v conn.Value
	if m.mode() == modeNative || m.mode() == modeFields {
		if v, err = m.c.Do(ctx, "HPTTL", m.key, "FIELDS", 1, f); err == nil && len(v.Elems) == 1 {
			v = v.Elems[0]
		}
		if v.IsNull() { // Redis replies this for a key that does not exist
			return 0, false, m.failed("ttl", err)
		}
	} else {
		v, err = m.run(ctx, m.layout().ttl, "", f)
	}
	n, err := kit.Number(v, err)
	switch {
	case err != nil:
		return 0, false, m.failed("ttl", err)
	case n == -2:
		return 0, false, nil
	case n == -1:
		return conn.Forever, true, nil
	}
	return time.Duration(n) * time.Millisecond, true, nil
}

// Expire gives an entry a new time to live, which is positive, and reports whether the entry
// exists.
func (m *Map[K, V]) Expire(ctx context.Context, key K, ttl time.Duration) (bool, error) {
	if ttl <= 0 {
		return false, m.failed("expire", fmt.Errorf("%w: the time to live is %v; it must be positive"+
			" (Persist removes the deadline, Remove the entry)", conn.ErrArgument, ttl))
	}
	did, err := m.setDeadline(ctx, key, ttl)
	return did, m.failed("expire", err)
}

// Persist removes an entry's deadline, and reports whether it had one. An IdleTTL stays, and counts as a
// deadline.
func (m *Map[K, V]) Persist(ctx context.Context, key K) (bool, error) {
	did, err := m.setDeadline(ctx, key, 0)
	return did, m.failed("persist", err)
}

func (m *Map[K, V]) setDeadline(ctx context.Context, key K, ttl time.Duration) (bool, error) {
	ms, err := m.bounds.Millis(ttl)
	if err != nil {
		return false, err
	}
	f, err := m.o.Keys.Encode(key)
	if err != nil {
		return false, err
	}
	if err := m.begin(ctx, true); err != nil {
		return false, err
	}
	defer m.changed()
	if m.mode() != modeNative {
		return truth(m.run(ctx, m.layout().setDeadline, "", f, ms))
	}
	var v conn.Value
	if ms > 0 {
		v, err = m.c.Do(ctx, "HPEXPIRE", m.key, ms, "FIELDS", 1, f)
	} else {
		v, err = m.c.Do(ctx, "HPERSIST", m.key, "FIELDS", 1, f)
	}
	if err != nil || len(v.Elems) != 1 {
		return false, err
	}
	n, err := v.Elems[0].AsInt()
	return n == 1, err
}

// Len returns the exact number of living entries. It costs O(n) on servers other than ebb whose hash fields
// have deadlines.
func (m *Map[K, V]) Len(ctx context.Context) (int64, error) {
	if err := m.begin(ctx, false); err != nil {
		return 0, m.failed("len", err)
	}
	if m.native() {
		n, err := kit.Number(m.c.Do(ctx, "HLEN", m.key))
		return n, m.failed("len", err)
	}
	n, err := kit.Number(m.run(ctx, m.layout().length, ""))
	return n, m.failed("len", err)
}

// Clear removes all entries. It records no expirations. With Events it keeps the recorded events, their
// listeners and, on ebb, the expiry rule, so that programs that use the map can continue: Delete gives the
// rule back.
func (m *Map[K, V]) Clear(ctx context.Context) error {
	if err := m.begin(ctx, false); err != nil {
		return m.failed("clear", err)
	}
	defer m.changed()
	if m.mode() == modeNative || m.mode() == modeFields {
		_, err := m.c.Do(ctx, "UNLINK", m.key, m.extra[3])
		return m.failed("clear", err)
	}
	for { // expired entries get their events first
		more, err := truth(m.run(ctx, m.layout().clear, "", expiries.AtOnce))
		if err != nil || !more {
			return m.failed("clear", err)
		}
	}
}

// Delete removes the map: its entries and, unless it belongs to a family, the recorded events, their
// listeners, and ebb's expiry rule, of which a database has 128. End the listeners first: a listener that
// continues creates the rule and the stream again. Other programs that have written to the map with Events
// record no more events until they connect again or make the map again. The map may be used again. Delete
// costs two requests.
func (m *Map[K, V]) Delete(ctx context.Context) error {
	if m.bad != nil {
		return m.failed("delete", m.bad)
	}
	defer m.changed()
	var err error
	switch {
	case m.other != nil:
		_, err = m.c.Del(ctx, append([]string{m.key}, m.extra[:]...)...)
	case m.sub != "":
		_, err = m.c.Script(ctx, dropScript, []string{m.key, m.extra[0], m.extra[3], m.feed.Index}, m.sub)
	default:
		if _, err = m.c.Del(ctx, m.key, m.extra[0], m.extra[2], m.extra[3]); err == nil {
			err = m.deleteEvents(ctx, m.feed)
		}
	}
	return m.failed("delete", err)
}

// Delete removes the family: its maps, the recorded events, their listeners, and ebb's expiry rule. The
// backend has no list of the maps. Delete searches all keys, O(keys), and removes each hash whose key has the
// family's prefix.
func (f *Family[K, V]) Delete(ctx context.Context) error {
	err := kit.Sweep(ctx, f.c, []string{kit.Key(f.home, "")}, "hash", "zset")
	if err == nil {
		err = f.deleteEvents(ctx, f.feed)
	}
	if err != nil {
		return fmt.Errorf("expmap: family %q: delete: %w", f.home, err)
	}
	return nil
}

// deleteEvents removes the stream of events, and the rule.
func (k *core[K, V]) deleteEvents(ctx context.Context, feed *expiries.Feed) error {
	if !k.o.Events {
		return nil
	}
	return feed.Delete(ctx)
}

// dropScript removes the map KEYS[1], its deadlines KEYS[2], its uses KEYS[3], and its name ARGV[1] in the index
// KEYS[4] of its family.
var dropScript = conn.NewScript(`
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
return redis.call('ZREM', KEYS[4], ARGV[1])
`)

// sweep removes some expired entries. It returns the ms until the next one expires: 0 if there are more, -1 if none has a deadline.
func (m *Map[K, V]) sweep(ctx context.Context) (int64, error) {
	n, err := kit.Number(m.run(ctx, m.layout().sweep, "", expiries.AtOnce))
	return n, m.failed("sweep", err)
}

func truth(v conn.Value, err error) (bool, error) {
	n, err := kit.Number(v, err)
	return n > 0, err
}
