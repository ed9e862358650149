package expset

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/expiries"
	"github.com/ebbdb/ebb/internal/kit"
)

// Add adds members that live for ttl, or without a deadline if ttl is 0, and returns the number
// of new ones; members that exist get the new time. If the set has no space for all new
// members, Add adds none and returns ErrFull.
func (s *Set[T]) Add(ctx context.Context, ttl time.Duration, members ...T) (int64, error) {
	return s.add(ctx, ttl, false, members)
}

// AddNX does the work of Add, but members that exist keep their time.
func (s *Set[T]) AddNX(ctx context.Context, ttl time.Duration, members ...T) (int64, error) {
	return s.add(ctx, ttl, true, members)
}

func (s *Set[T]) add(ctx context.Context, ttl time.Duration, nx bool, members []T) (int64, error) {
	ms, err := s.bounds.Millis(ttl)
	if err != nil || len(members) == 0 {
		return 0, s.failed("add", err)
	}
	args, err := s.members(members)
	if err == nil {
		err = s.begin(ctx, true)
	}
	if err != nil {
		return 0, s.failed("add", err)
	}
	if !s.native() {
		n, err := kit.Number(s.run(ctx, addScript, append([]any{ms, nx}, args...)...))
		if err == nil && n < 0 {
			return 0, s.full("add")
		}
		return n, s.failed("add", err)
	}
	cmd := append(make([]any, 0, 9+len(args)), "SADDEX", s.key)
	if nx {
		cmd = append(cmd, "NX")
	}
	if ms > 0 {
		cmd = append(cmd, "PX", ms)
	}
	if s.o.MaxLen > 0 {
		cmd = append(cmd, "MAXLEN", s.o.MaxLen)
	}
	n, err := kit.Number(s.c.Do(ctx, append(append(cmd, "MEMBERS", len(args)), args...)...))
	return n, s.failed("add", err)
}

// Remove removes members, and returns the number of members that existed. If several calls remove the same
// member, exactly one counts it. Remove records no expirations.
func (s *Set[T]) Remove(ctx context.Context, members ...T) (int64, error) {
	args, err := s.members(members)
	if err == nil {
		err = s.begin(ctx, false)
	}
	if err != nil || len(members) == 0 {
		return 0, s.failed("remove", err)
	}
	var n int64
	if s.native() {
		n, err = kit.Number(s.c.Do(ctx, append([]any{"SREM", s.key}, args...)...))
	} else {
		n, err = kit.Number(s.run(ctx, removeScript, args...))
	}
	return n, s.failed("remove", err)
}

// Contains reports whether member is in the set.
func (s *Set[T]) Contains(ctx context.Context, member T) (bool, error) {
	all, err := s.ContainsMany(ctx, member)
	return len(all) == 1 && all[0], err
}

// ContainsMany reports for each member whether it is in the set, in one step.
func (s *Set[T]) ContainsMany(ctx context.Context, members ...T) ([]bool, error) {
	args, err := s.members(members)
	if err == nil {
		err = s.begin(ctx, false)
	}
	if err != nil || len(members) == 0 {
		return nil, s.failed("contains", err)
	}
	var v conn.Value
	if s.native() {
		v, err = s.c.Do(ctx, append([]any{"SMISMEMBER", s.key}, args...)...)
	} else {
		v, err = s.run(ctx, containsScript, args...)
	}
	if err == nil && len(v.Elems) != len(members) {
		err = fmt.Errorf("%w: %d answers for %d members", conn.ErrValue, len(v.Elems), len(members))
	}
	if err != nil {
		return nil, s.failed("contains", err)
	}
	all := make([]bool, len(members))
	for i, e := range v.Elems {
		if all[i], err = e.AsBool(); err != nil {
			return nil, s.failed("contains", err)
		}
	}
	return all, nil
}

// Members returns the living members at one moment, in no particular order. Use All for large sets.
func (s *Set[T]) Members(ctx context.Context) ([]T, error) {
	if err := s.begin(ctx, false); err != nil {
		return nil, s.failed("members", err)
	}
	var v conn.Value
	var err error
	if s.native() {
		v, err = s.c.Do(ctx, "SMEMBERS", s.key)
	} else {
		v, err = s.run(ctx, membersScript)
	}
	if err != nil {
		return nil, s.failed("members", err)
	}
	all := make([]T, len(v.Elems))
	for i, e := range v.Elems {
		if all[i], err = s.o.Codec.Decode([]byte(e.String())); err != nil {
			return nil, s.failed("members", err)
		}
	}
	return all, nil
}

// pageLen is the approximate number of members in one step of an iteration.
const pageLen = 200

// All yields the living members in batches, and ends with the first error. It yields a member
// that exists during the whole iteration at least once; a member that is added or removed
// meanwhile may be yielded.
func (s *Set[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		if err := s.begin(ctx, false); err != nil {
			yield(none, s.failed("iterate", err))
			return
		}
		for cursor := "0"; ; {
			v, err := s.page(ctx, cursor)
			if err != nil {
				yield(none, s.failed("iterate", err))
				return
			}
			for _, e := range v.Elems[1].Elems {
				m, err := s.o.Codec.Decode([]byte(e.String()))
				if err != nil {
					yield(none, s.failed("iterate", err))
					return
				}
				if !yield(m, nil) {
					return
				}
			}
			if cursor = v.Elems[0].String(); cursor == "0" {
				return
			}
		}
	}
}

func (s *Set[T]) page(ctx context.Context, cursor string) (v conn.Value, err error) {
	if s.native() {
		v, err = s.c.Do(ctx, "SSCAN", s.key, cursor, "COUNT", pageLen)
	} else {
		v, err = s.run(ctx, pageScript, cursor, pageLen)
	}
	if err == nil && len(v.Elems) != 2 {
		err = fmt.Errorf("%w: a page is a cursor and a list, got %d parts", conn.ErrValue, len(v.Elems))
	}
	return v, err
}

// Len returns the exact number of living members.
func (s *Set[T]) Len(ctx context.Context) (int64, error) {
	if err := s.begin(ctx, false); err != nil {
		return 0, s.failed("len", err)
	}
	if s.native() {
		n, err := kit.Number(s.c.Do(ctx, "SCARD", s.key))
		return n, s.failed("len", err)
	}
	n, err := kit.Number(s.run(ctx, lenScript))
	return n, s.failed("len", err)
}

// TTL returns the remaining time of a member, ebb.Forever without a deadline, and whether the
// member exists.
func (s *Set[T]) TTL(ctx context.Context, member T) (time.Duration, bool, error) {
	m, err := s.o.Codec.Encode(member)
	if err == nil {
		err = s.begin(ctx, false)
	}
	if err != nil {
		return 0, false, s.failed("ttl", err)
	}
	var v conn.Value
	if !s.native() {
		v, err = s.run(ctx, ttlScript, m)
	} else if v, err = s.c.Do(ctx, "SPTTL", s.key, "MEMBERS", 1, m); err == nil && len(v.Elems) == 1 {
		v = v.Elems[0]
	}
	n, err := kit.Number(v, err)
	switch {
	case err != nil:
		return 0, false, s.failed("ttl", err)
	case n == -2:
		return 0, false, nil
	case n == -1:
		return conn.Forever, true, nil
	}
	return time.Duration(n) * time.Millisecond, true, nil
}

// Expire gives a member a new time to live, which is positive, and reports whether the member
// exists.
func (s *Set[T]) Expire(ctx context.Context, member T, ttl time.Duration) (bool, error) {
	if ttl <= 0 {
		return false, s.failed("expire", fmt.Errorf("%w: the time to live is %v; it must be positive"+
			" (Persist removes the deadline, Remove the member)", conn.ErrArgument, ttl))
	}
	did, err := s.setDeadline(ctx, member, ttl)
	return did, s.failed("expire", err)
}

// Persist removes a member's deadline, and reports whether it had one.
func (s *Set[T]) Persist(ctx context.Context, member T) (bool, error) {
	did, err := s.setDeadline(ctx, member, 0)
	return did, s.failed("persist", err)
}

func (s *Set[T]) setDeadline(ctx context.Context, member T, ttl time.Duration) (bool, error) {
	ms, err := s.bounds.Millis(ttl)
	if err != nil {
		return false, err
	}
	m, err := s.o.Codec.Encode(member)
	if err != nil {
		return false, err
	}
	if err := s.begin(ctx, true); err != nil {
		return false, err
	}
	var v conn.Value
	switch {
	case !s.native():
		n, err := kit.Number(s.run(ctx, deadlineScript, m, ms))
		return n == 1, err
	case ms > 0:
		v, err = s.c.Do(ctx, "SPEXPIRE", s.key, ms, "MEMBERS", 1, m)
	default:
		v, err = s.c.Do(ctx, "SPERSIST", s.key, "MEMBERS", 1, m)
	}
	if err != nil || len(v.Elems) != 1 {
		return false, err
	}
	n, err := v.Elems[0].AsInt()
	return n == 1, err
}

// Clear removes all members. It records no expirations. With Events it keeps the recorded events, their
// listeners and, on ebb, the expiry rule, so that programs that use the set can continue: Delete gives the
// rule back.
func (s *Set[T]) Clear(ctx context.Context) error {
	if err := s.begin(ctx, false); err != nil {
		return s.failed("clear", err)
	}
	if s.native() {
		_, err := s.c.Do(ctx, "UNLINK", s.key)
		return s.failed("clear", err)
	}
	for { // expired members get their events first
		more, err := kit.Number(s.run(ctx, clearScript, expiries.AtOnce))
		if err != nil || more == 0 {
			return s.failed("clear", err)
		}
	}
}

// Delete removes the set: its members and, unless it belongs to a family, the recorded events, their
// listeners, and ebb's expiry rule, of which a database has 128. End the listeners first: a listener that
// continues creates the rule and the stream again. Other programs that have written to the set with Events
// record no more events until they connect again or make the set again. The set may be used again. Delete
// costs two requests.
func (s *Set[T]) Delete(ctx context.Context) error {
	if s.bad != nil {
		return s.failed("delete", s.bad)
	}
	var err error
	if s.sub != "" {
		_, err = s.c.Script(ctx, dropScript, []string{s.key, s.index}, s.sub)
	} else if _, err = s.c.Del(ctx, s.key); err == nil {
		err = s.deleteEvents(ctx)
	}
	return s.failed("delete", err)
}

// Delete removes the family: its sets, the recorded events, their listeners, and ebb's expiry rule. The
// backend has no list of the sets. Delete searches all keys, O(keys), and removes each set (on servers other
// than ebb, each sorted set) whose key has the family's prefix.
func (f *Family[T]) Delete(ctx context.Context) error {
	err := kit.Sweep(ctx, f.c, []string{kit.Key(f.home, "")}, "set", "zset")
	if err == nil {
		err = f.deleteEvents(ctx)
	}
	if err != nil {
		return fmt.Errorf("expset: family %q: delete: %w", f.home, err)
	}
	return nil
}

// deleteEvents removes the stream of events, and the rule.
func (k *core[T]) deleteEvents(ctx context.Context) error {
	if !k.o.Events {
		return nil
	}
	return k.feed.Delete(ctx)
}

// dropScript removes the set KEYS[1] from the index KEYS[2] of its family, in which its name is ARGV[1].
var dropScript = conn.NewScript(`
redis.call('DEL', KEYS[1])
return redis.call('ZREM', KEYS[2], ARGV[1])
`)

// sweep removes some expired members. It returns the ms until the next one expires: 0 if there are more, -1 if none has a deadline.
func (s *Set[T]) sweep(ctx context.Context) (int64, error) {
	n, err := kit.Number(s.run(ctx, sweepScript, expiries.AtOnce))
	return n, s.failed("sweep", err)
}
