package expiries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// listener is one call of Listen.
type listener struct {
	f       *Feed
	o       Options
	fn      func(ctx context.Context, e Entry) error
	claim   <-chan time.Time // ticks when it is time to claim entries of other consumers
	passing bool             // no later call uses the consumer's name
	grouped bool             // the group exists
	claimed bool             // the claim has reached the end of the pending entries
	from    string           // if not claimed: the position of the claim
	back    bool             // the entries that this consumer had not acknowledged were delivered
	behind  bool             // the stream may have more entries
	after   string           // the position up to which entries were delivered
}

// round delivers the entries that are there, or waits for one. After an error it first
// looks for the pending entries of this consumer: a reply may be lost, or the server may
// not have received an acknowledgement.
func (l *listener) round(ctx context.Context) error {
	err := l.look(ctx)
	if r, ok := errors.AsType[conn.ReplyError](err); ok && r.Code() == "NOGROUP" {
		l.grouped = false // the data was flushed: join creates the group again
	}
	if err != nil {
		l.back, l.after = false, ""
	}
	return err
}

func (l *listener) look(ctx context.Context) error {
	if err := l.join(ctx); err != nil {
		return err
	}
	wait := min(rest, max(l.o.Redeliver/2, time.Millisecond))
	switch {
	case l.behind: // other consumers can take the rest of the entries
		wait = time.Millisecond
	case !l.f.Native():
		next, err := l.f.sweep(ctx)
		if err != nil {
			return err
		}
		wait = min(wait, next)
	}
	if !l.back {
		return l.resume(ctx)
	}
	select {
	case <-l.claim:
		l.claimed, l.from = false, ""
	default:
	}
	if !l.claimed {
		return l.adopt(ctx)
	}
	v, err := l.f.Conn.Block(ctx, "XREADGROUP", "GROUP", l.o.Group, l.o.Consumer, "COUNT", handful, "BLOCK", max(kit.Millis(wait), 1),
		"STREAMS", l.f.Stream, ">")
	if err != nil {
		return err
	}
	entries := read(v)
	l.behind = len(entries) == handful
	return l.deliver(ctx, entries)
}

// join creates the rule and the group. On a server without rules it also gives the stream
// a deadline.
func (l *listener) join(ctx context.Context) error {
	if err := l.f.Ensure(ctx); err != nil || l.grouped {
		return err
	}
	_, err := l.f.Conn.Do(ctx, "XGROUP", "CREATE", l.f.Stream, l.o.Group, "0", "MKSTREAM")
	var r conn.ReplyError
	if err != nil && (!errors.As(err, &r) || r.Code() != "BUSYGROUP") {
		return fmt.Errorf("the group of listeners %q of %q: %w", l.o.Group, l.f.Stream, err)
	}
	if !l.f.Native() {
		if _, err := l.f.Conn.Do(ctx, "PEXPIRE", l.f.Stream, kit.Millis(Keep), "NX"); err != nil {
			return err
		}
	}
	l.grouped = true
	return nil
}

// resume delivers the entries that this consumer took in an earlier run and did not
// acknowledge.
func (l *listener) resume(ctx context.Context) error {
	after := cmp.Or(l.after, "0")
	v, err := l.f.Conn.Do(ctx, "XREADGROUP", "GROUP", l.o.Group, l.o.Consumer, "COUNT", handful, "STREAMS", l.f.Stream, after)
	if err != nil {
		return err
	}
	entries := read(v)
	if len(entries) == 0 {
		l.back = true
		return nil
	}
	l.after = entries[len(entries)-1].Elems[0].String()
	return l.deliver(ctx, entries)
}

// adopt delivers the entries that a consumer took and did not acknowledge in time. It goes
// through all pending entries, a part at a time, so an entry that fails again and again
// does not delay the entries after it.
func (l *listener) adopt(ctx context.Context) error {
	from := cmp.Or(l.from, "0-0")
	v, err := l.f.Conn.Do(ctx, "XAUTOCLAIM", l.f.Stream, l.o.Group, l.o.Consumer, kit.Millis(l.o.Redeliver), from, "COUNT", handful)
	if err != nil {
		return err
	}
	if len(v.Elems) < 2 {
		return fmt.Errorf("%w: XAUTOCLAIM replied %s", conn.ErrValue, v)
	}
	l.from = v.Elems[0].String()
	l.claimed = l.from == "0-0"
	return l.deliver(ctx, v.Elems[1].Elems)
}

// read returns the entries of XREADGROUP's reply, of one stream: a map, or an array
// of pairs, or nothing.
func read(v conn.Value) []conn.Value {
	if v.IsNull() || len(v.Elems) == 0 {
		return nil
	}
	pair := v.Elems
	if len(v.Elems) == 1 {
		pair = v.Elems[0].Elems
	}
	if len(pair) < 2 {
		return nil
	}
	return pair[1].Elems
}

// deliver calls the function, one entry after the other, and acknowledges.
func (l *listener) deliver(ctx context.Context, entries []conn.Value) error {
	for _, v := range entries {
		if len(v.Elems) < 1 {
			continue
		}
		e := entry(v)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if len(v.Elems) > 1 && !v.Elems[1].IsNull() { // otherwise the entry was trimmed
			if err := l.fn(ctx, e); err != nil {
				if l.o.Failed != nil {
					l.o.Failed(fmt.Errorf("the listener of %q failed; %q will be delivered again in %v: %w", l.f.Stream, e.Item, l.o.Redeliver, err))
				}
				continue
			}
		}
		if err := l.ack(ctx, e.ID); err != nil {
			return err
		}
	}
	return nil
}

// ack acknowledges an entry, even when the context has ended meanwhile: the work is done.
// A server that does not reply in time does not end the listener.
func (l *listener) ack(ctx context.Context, id string) error {
	return kit.Release(ctx, nil, conn.Temporary, func(ctx context.Context) error {
		_, err := l.f.Conn.Do(ctx, "XACK", l.f.Stream, l.o.Group, id)
		return err
	})
}

// entry decodes an entry of a stream.
func entry(v conn.Value) Entry {
	e := Entry{ID: v.Elems[0].String()}
	if len(v.Elems) < 2 {
		return e
	}
	for name, x := range v.Elems[1].Pairs {
		switch name.String() {
		case "key":
			e.Key = x.String()
		case "item":
			e.Item = x.String()
		case "value":
			e.Value, e.HasValue = x.String(), true
		case "deadline":
			e.Deadline, _ = x.AsInt()
		case "fired-at":
			e.FiredAt, _ = x.AsInt()
		}
	}
	return e
}

// leaveScript removes a consumer ARGV[2] of the group ARGV[1] that has no pending
// entries.
var leaveScript = conn.NewScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) > 0 then return 0 end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 1
`)

// leave removes a consumer whose name no process will use again. Other consumers claim
// its pending entries.
func (l *listener) leave(ctx context.Context) {
	if !l.passing || !l.grouped {
		return
	}
	_ = kit.ReleaseBriefly(ctx, nil, conn.Temporary, func(ctx context.Context) error {
		_, err := l.f.Conn.Script(ctx, leaveScript, []string{l.f.Stream}, l.o.Group, l.o.Consumer)
		return err
	})
}
