// Package expiries delivers expired items to the listeners of expmap and expset.
//
//	ebb              an EXPIRY RULE of the object      \
//	                                                    > stream -> group -> Listen
//	other servers    the object's scripts, which remove /
//	                 expired items in that step; Watch
//	                 calls them when an item is due
//
// Invariants: an expiry is an entry of the stream from the step on in which the item
// is removed; an entry is acknowledged after its function has returned nil, never
// before; a group begins at the stream's beginning.
//
// Start reading at Feed.Listen.
package expiries

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// Feed delivers the expiries of one object, or of a family of objects. Its fields are set
// before its first use.
type Feed struct {
	Conn *conn.Conn
	// Stream is the key of the stream that stores them.
	Stream string
	// Rule is the expiry rule for an ebb server; Native reports whether to use it.
	Rule   Rule
	Native func() bool
	// Index is a sorted set of the objects by their next deadline. Sweep removes some of one
	// object's expired items, and updates the index. Both are for servers without rules. An
	// object without an index has the Index "", and Sweep gets the name "" for it. For it,
	// Sweep returns how many ms there are until the next deadline: 0 if there is more to
	// remove, -1 if there is none.
	Index string
	Sweep func(ctx context.Context, name string) (next int64, err error)

	ruled atomic.Bool
}

// Rule is an EXPIRY RULE, whose name is that of its stream.
type Rule struct {
	Match      string // a pattern of keys
	Level      string // FIELD, MEMBER
	MaxLen     int64  // approximate limit of entries
	ValueBytes int64  // longest value that an entry contains, in bytes; 0: entries contain no values
}

// Entry is an item that has expired.
type Entry struct {
	ID       string // of the stream
	Key      string // the object's
	Item     string
	Value    string
	HasValue bool  // the entry has a Value
	Deadline int64 // ms since 1970
	FiredAt  int64 // ms since 1970
}

// Options name a listener and its group.
type Options struct {
	// Group is the name of the group; each expiration goes to one listener of a group.
	// Required.
	Group string
	// Consumer is the name of the listener. A listener that comes back under the same
	// name gets its unacknowledged entries at once. Random if empty.
	Consumer string
	// Redeliver is the time after which an entry that was not acknowledged is delivered
	// again; 30 s if 0.
	Redeliver time.Duration
	// Listen calls Failed with each error of its function, and with each error after which
	// it tries again.
	Failed func(err error)
}

// Keep is the time for which servers without rules store expirations after the last one: a
// week. It is also the time for which a key without a sweeper stores items that it has
// still to report.
const Keep = 7 * 24 * time.Hour

const (
	// nap is the longest wait of the sweeper for the next deadline, if only the sweeper
	// notices it. So it limits the delay of an item that was added meanwhile with an earlier
	// deadline. Five checks per second cost very little.
	nap = 200 * time.Millisecond
	// rest is the longest wait for an entry on ebb, which wakes the listener.
	rest = 30 * time.Second
	// handful is the number of entries that the listener takes at once. It handles them one
	// after the other.
	handful = 16
	// passes is the number of calls of the sweeper before the listener delivers the entries.
	passes = 4
)

// Ensure makes sure that an ebb server has the rule; on other servers it does nothing. It
// checks once, and again after Forget.
func (f *Feed) Ensure(ctx context.Context) error {
	if f.ruled.Load() || !f.Native() {
		return nil
	}
	args := []any{"EXPIRY", "RULE", "SET", f.Stream, "MATCH", f.Rule.Match, "LEVEL", f.Rule.Level, "TO", f.Stream,
		"MAXLEN", "~", f.Rule.MaxLen}
	if f.Rule.ValueBytes > 0 {
		args = append(args, "WITHVALUE", f.Rule.ValueBytes)
	}
	if _, err := f.Conn.Do(ctx, args...); err != nil {
		hint := ""
		if strings.Contains(err.Error(), rulesUsedUp) {
			hint = ": Delete of an object with Events gives its rule back, Clear does not; a family of objects has one rule"
		}
		return fmt.Errorf("the rule of expiries %q: %w%s", f.Stream, err, hint)
	}
	f.ruled.Store(true)
	return nil
}

// rulesUsedUp is in ebb's error for a rule above the limit of a database, which has no code of its own.
const rulesUsedUp = "expiry rules at most"

// Delete removes the rule, and the keys of the feed and of its sources. A running
// listener creates the rule and its group again.
func (f *Feed) Delete(ctx context.Context, keys ...string) error {
	if f.Native() {
		if _, err := f.Conn.Do(ctx, "EXPIRY", "RULE", "DEL", f.Stream); err != nil {
			return fmt.Errorf("the rule of expiries %q: %w", f.Stream, err)
		}
		f.Forget()
	}
	_, err := f.Conn.Del(ctx, append([]string{f.Stream}, keys...)...)
	return err
}

// Forget makes Ensure check again: after a lost connection the server may have lost the
// rule.
func (f *Feed) Forget() { f.ruled.Store(false) }

// Listen calls fn with each expiry until the context ends, whose error it returns then. It
// continues after lost connections. An entry is delivered to one member of the group at a
// time, and again after Redeliver until a call of fn has returned nil.
func (f *Feed) Listen(ctx context.Context, o Options, fn func(ctx context.Context, e Entry) error) error {
	if o.Group == "" {
		return fmt.Errorf("%w: the name of the listener is empty; it must have at least one character", conn.ErrArgument)
	}
	if o.Redeliver <= 0 {
		o.Redeliver = 30 * time.Second
	}
	l := &listener{f: f, o: o, fn: fn, passing: o.Consumer == ""}
	if l.passing {
		l.o.Consumer = kit.ID()
		l.back = true
	}
	claim := time.NewTicker(max(o.Redeliver/2, time.Millisecond))
	defer claim.Stop()
	defer l.leave(ctx)
	l.claim = claim.C
	return f.repeat(ctx, o.Failed, l.round)
}

// Watch removes expired items in time until the context ends, whose error it returns. On
// ebb the server does this itself.
func (f *Feed) Watch(ctx context.Context) error {
	return f.repeat(ctx, nil, func(ctx context.Context) error {
		wait := rest
		if !f.Native() {
			var err error
			if wait, err = f.sweep(ctx); err != nil {
				return err
			}
		}
		return kit.Sleep(ctx, wait)
	})
}

// repeat calls round until the context ends, or until an error that a retry cannot solve.
func (f *Feed) repeat(ctx context.Context, failed func(error), round func(ctx context.Context) error) error {
	for attempt := 0; ; attempt++ {
		err := round(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case kit.Ended(ctx, err):
			return err
		case err == nil:
			attempt = -1
			continue
		case !passing(err):
			return err
		}
		f.Forget()
		if failed != nil {
			failed(err)
		}
		if err := kit.Sleep(ctx, kit.Backoff(20*time.Millisecond, time.Second, attempt)); err != nil {
			return err
		}
	}
}

// passing reports whether a retry can succeed after an error. Listen creates a deleted
// group again.
func passing(err error) bool {
	var r conn.ReplyError
	return conn.Temporary(err) || errors.As(err, &r) && r.Code() == "NOGROUP"
}

// dueScript returns 0 and the names in the index KEYS[1] whose deadline has passed. If
// there are none, it returns the ms until the next deadline, -1 without one.
var dueScript = conn.NewScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local names = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. string.format('%.0f', now), 'LIMIT', 0, 64)
if #names > 0 then return {0, unpack(names)} end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if not first[1] then return {-1} end
return {tonumber(first[2]) - now + 1}
`)

// sweep removes expired items, and returns the time until the next work: 0 if there is
// more now.
func (f *Feed) sweep(ctx context.Context) (time.Duration, error) {
	for range passes {
		next, names, err := f.due(ctx)
		if err != nil {
			return 0, err
		}
		for _, name := range names {
			if next, err = f.Sweep(ctx, name); err != nil {
				return 0, err
			}
		}
		switch {
		case f.Index != "" && len(names) > 0 || next == 0:
		case next < 0:
			return nap, nil
		default:
			return min(time.Duration(next)*time.Millisecond, nap), nil
		}
	}
	return 0, nil
}

func (f *Feed) due(ctx context.Context) (next int64, names []string, err error) {
	if f.Index == "" {
		return 0, []string{""}, nil
	}
	v, err := f.Conn.Script(ctx, dueScript, []string{f.Index})
	if err != nil {
		return 0, nil, err
	}
	if len(v.Elems) == 0 {
		return 0, nil, fmt.Errorf("%w: the index of expiries %q replied %s", conn.ErrValue, f.Index, v)
	}
	if next, err = v.Elems[0].AsInt(); err != nil {
		return 0, nil, err
	}
	for _, e := range v.Elems[1:] {
		names = append(names, e.String())
	}
	return next, names, nil
}
