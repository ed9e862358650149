package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

const (
	// maxScan is the number of pending entries among which a call searches for abandoned ones. The next call continues there, and
	// waits for new entries for scanWait only.
	maxScan  = 500
	scanWait = 20 * time.Millisecond
	// scanEvery is the number of calls with entries from one search to the next: a busy consumer spends little on those of others.
	scanEvery = 16
	// pollInterval bounds the wait for new entries, and so the delay of entries that another consumer has abandoned or returned.
	pollInterval = time.Second
	// deadConsumerAge is the idle time after which the group removes a consumer with a random name: its process has died.
	deadConsumerAge = 24 * time.Hour
	// maxRedrive is the number of dead letters that one call moves.
	maxRedrive = 100
)

// GroupOptions configures a group. The zero value works.
type GroupOptions struct {
	// From is the position at which a new group begins: "" before the first entry, Tail after the
	// last, or an ID.
	From string
	// ClaimAfter is the time that a delivery may take. Afterwards the next consumer that reads
	// gets the entry. Call Extend for longer work. Default: 30 s.
	ClaimAfter time.Duration
	// MaxDeliveries is the number of deliveries after which an entry becomes a dead letter.
	// Default: 16; negative: no limit.
	MaxDeliveries int
	// Batch is the number of entries that a consumer reads at a time. Their ClaimAfter begins at
	// the same instant, although the loop handles them one after the other. Entries that the loop
	// has not reached when it ends are delivered again after ClaimAfter. Default: 1.
	Batch int
	// DeadLen is the approximate number of dead letters that are kept, the newest; default 10,000.
	// DeadTTL is the time after the last one for which all are kept; default 30 days.
	DeadLen int64
	DeadTTL time.Duration
}

// Group is a group of consumers that share the entries of a stream: one consumer at a time has
// an entry, until it acknowledges it.
type Group[T any] struct {
	s    *Stream[T]
	name string
	o    GroupOptions
	keys []string // stream, retry set, dead letters
}

// Group returns a group of the stream. The first use creates it if it does not exist. Errors:
// ebb.ErrArgument.
func (s *Stream[T]) Group(name string, opts ...GroupOptions) (*Group[T], error) {
	o, err := kit.Option(opts)
	if err != nil {
		return nil, fmt.Errorf("stream %q: group %q: %w", s.name, name, err)
	}
	if name == "" {
		return nil, kit.Argument("stream", s.name, "the name of the group is empty; it must have at least one character")
	}
	if o.ClaimAfter < 0 || o.Batch < 0 || o.DeadLen < 0 || o.DeadTTL < 0 {
		return nil, kit.Argument("stream", s.name, "group %q: ClaimAfter is %v, Batch %d, DeadLen %d and DeadTTL %v; "+
			"none of them may be negative",
			name, o.ClaimAfter, o.Batch, o.DeadLen, o.DeadTTL)
	}
	o.ClaimAfter = cmp.Or(o.ClaimAfter, 30*time.Second)
	switch {
	case o.MaxDeliveries == 0:
		o.MaxDeliveries = 16
	case o.MaxDeliveries < 0:
		o.MaxDeliveries = 0 // 0 means no limit in scripts
	}
	o.Batch = cmp.Or(o.Batch, 1)
	o.DeadLen = cmp.Or(o.DeadLen, 10_000)
	o.DeadTTL = cmp.Or(o.DeadTTL, 30*24*time.Hour)
	keys := []string{s.name, kit.Key(s.name, "retry:"+name), kit.Key(s.name, "dead:"+name)}
	return &Group[T]{s: s, name: name, o: o, keys: keys}, nil
}

// Create makes the group if it does not exist, so that it gets the entries that are added from
// now on. The first Consume does the same.
func (g *Group[T]) Create(ctx context.Context) error { return g.create(ctx, g.o.From) }

func (g *Group[T]) create(ctx context.Context, from string) error {
	from = cmp.Or(from, "0")
	_, err := g.s.c.Do(ctx, "XGROUP", "CREATE", g.s.name, g.name, from, "MKSTREAM")
	if err != nil && errorCode(err) != "BUSYGROUP" {
		return g.failed("create", err)
	}
	return nil
}

// errorCode returns the first word of an error reply.
func errorCode(err error) string {
	if r, ok := errors.AsType[conn.ReplyError](err); ok {
		return r.Code()
	}
	return ""
}

// Consume yields deliveries to the named consumer: first entries that are due again, then new
// ones. Then it waits for more, until the context ends; it does not yield that end. The
// consumer settles each delivery with Ack or Nack; otherwise the group delivers the entry again
// after ClaimAfter, to this consumer or another. If the name is "", the consumer has a random
// name while the loop runs. If the process dies, the group removes that name a day later, when
// another such loop begins or ends.
//
// Consume yields the errors of Stream.Read with a nil Delivery, and ebb.ErrValue with a
// Delivery without Value. If the loop continues after an error, Consume continues when the
// backend replies again. If the group was deleted, Consume makes it again, for all entries of
// the stream.
func (g *Group[T]) Consume(ctx context.Context, consumer string) iter.Seq2[*Delivery[T], error] {
	return func(yield func(*Delivery[T], error) bool) {
		g.s.log(ctx)
		k := &cursor{consumer: consumer, scanAfter: "-", from: g.o.From}
		if consumer == "" {
			k.consumer, k.sweep = kit.ID(), true
			defer g.removeConsumers(ctx, k.consumer)
		}
		for ctx.Err() == nil {
			got, err := g.take(ctx, k)
			if kit.Ended(ctx, err) {
				return
			}
			if err != nil {
				if !yield(nil, g.failed("consume", err)) || !conn.Temporary(err) || retryPause(ctx, k.failures) != nil {
					return
				}
				k.failures++
				continue
			}
			k.failures = 0
			for _, d := range g.forThisGroup(ctx, got) {
				if !yield(g.delivery(k.consumer, d)) || ctx.Err() != nil {
					return
				}
			}
		}
	}
}

// forThisGroup returns the entries that are for this group. It acknowledges entries that another group has redriven; if that fails, they
// are delivered again after ClaimAfter.
func (g *Group[T]) forThisGroup(ctx context.Context, got []conn.Value) []conn.Value {
	ack := []any{"XACK", g.s.name, g.name}
	kept := got[:0]
	for _, v := range got {
		if only, ok := targetGroup(v); ok && only != g.name {
			ack = append(ack, v.Elems[0].Str)
		} else {
			kept = append(kept, v)
		}
	}
	if len(ack) > 3 {
		_, _ = g.s.c.Do(ctx, ack...)
	}
	return kept
}

// targetGroup returns the group for which a Redrive has added an entry. ok: there is one.
func targetGroup(v conn.Value) (group string, ok bool) {
	if len(v.Elems) < 2 {
		return "", false
	}
	x, ok := v.Elems[1].Get(groupField)
	return x.Str, ok
}

// cursor is the state of one Consume.
type cursor struct {
	consumer  string
	scanAfter string // the position at which the search for abandoned entries continues
	calls     int
	empty     bool // the last call returned no entry
	failures  int
	created   bool   // the group exists
	sweep     bool   // dead consumers must still be removed
	from      string // the position at which a new group begins
}

// take returns entries for the consumer, in the form of takeScript. It returns none if there were none for a second.
func (g *Group[T]) take(ctx context.Context, k *cursor) ([]conn.Value, error) {
	var full error
	if !k.created {
		switch err := g.create(ctx, k.from); {
		case errorCode(err) == "OOM":
			full = err // a group that exists can be read: that is how entries are worked off
		case err != nil:
			return nil, err
		}
		k.created, k.from = true, "" // a group that is deleted later begins before the first entry
		if k.sweep {
			g.removeConsumers(ctx, k.consumer)
			k.sweep = false
		}
	}
	look := 0
	if k.empty || k.calls%scanEvery == 0 {
		look = maxScan
	}
	k.calls++
	r, err := g.s.c.Script(ctx, takeScript, g.keys, g.args(k.consumer, kit.Millis(g.o.ClaimAfter), g.o.Batch, k.scanAfter, look)...)
	if err != nil {
		k.created = k.created && errorCode(err) != "NOGROUP"
		if !k.created {
			return nil, full // without an error the next call creates it
		}
		return nil, err
	}
	if len(r.Elems) != 3 {
		return nil, fmt.Errorf("%w: the reply has %d parts, want 3", conn.ErrValue, len(r.Elems))
	}
	k.scanAfter = r.Elems[1].Str
	if k.empty = len(r.Elems[0].Elems) == 0; !k.empty {
		return r.Elems[0].Elems, nil
	}
	if look == 0 {
		return nil, nil // the next call searches before it waits
	}
	wait := pollInterval.Milliseconds()
	if k.scanAfter != "-" {
		wait = scanWait.Milliseconds()
	}
	if soon := r.Elems[2].Int; soon >= 0 {
		wait = min(wait, soon+1)
	}
	return g.wait(ctx, k, wait)
}

// wait waits for new entries, in the form of takeScript.
func (g *Group[T]) wait(ctx context.Context, k *cursor, ms int64) ([]conn.Value, error) {
	r, err := g.s.c.Block(ctx, "XREADGROUP", "GROUP", g.name, k.consumer, "COUNT", g.o.Batch, "BLOCK", ms, "STREAMS", g.s.name, ">")
	if err != nil {
		k.created = k.created && errorCode(err) != "NOGROUP"
		if !k.created || errorCode(err) == "UNBLOCKED" {
			return nil, nil
		}
		return nil, err
	}
	got := entriesOf(r)
	for i := range got {
		got[i].Elems = append(got[i].Elems[:2:2], firstDelivery)
	}
	return got, nil
}

// Dead is a dead letter. Its Entry has the ID of the letter, and its Time is the instant at
// which the group gave the entry up.
type Dead[T any] struct {
	Entry[T]          // the ID is the letter's, Time the instant at which the group gave it up
	Original   string // the entry's ID in the stream
	Deliveries int
}

// DeadLetters returns up to n dead letters, the oldest first, after the letter with the ID
// after; "" begins at the first. A letter that the codec cannot decode has no Value, and the
// error then has ebb.ErrValue in its chain.
func (g *Group[T]) DeadLetters(ctx context.Context, after string, n int) ([]Dead[T], error) {
	from := "-"
	if after != "" {
		from = "(" + after
	}
	r, err := g.s.c.Do(ctx, "XRANGE", g.keys[2], from, "+", "COUNT", n)
	if err != nil {
		return nil, g.failed("dead letters", err)
	}
	all := make([]Dead[T], 0, len(r.Elems))
	for _, v := range r.Elems {
		e, bad := g.s.entry(v)
		if bad != nil {
			err = errors.Join(err, g.failed("dead letters", bad))
		}
		all = append(all, Dead[T]{e, fieldText(v.Elems[1], "id"), int(fieldNumber(v.Elems[1], "deliveries"))})
	}
	return all, err
}

// Redrive delivers up to n dead letters, the oldest first, to this group again, as new entries.
// An entry that is still in the stream keeps its ID. Otherwise Redrive adds it at the end under
// a new ID, with a field that names the group: other groups skip it, and Read yields it.
// Redrive drops letters without a value, from entries without a field v. It returns the number
// of letters that it moved; after an error with ebb.ErrUnavailable or a context's error in its
// chain, up to a hundred more may have moved.
func (g *Group[T]) Redrive(ctx context.Context, n int64) (moved int64, err error) {
	for left := n; left > 0; {
		step := min(left, maxRedrive)
		args := g.args(redriven, step, kit.Millis(g.o.ClaimAfter+retryTTL))
		r, err := g.s.c.Script(ctx, redriveScript, g.keys, args...)
		if errorCode(err) == "NOGROUP" { // the group does not exist yet
			if err := g.create(ctx, g.o.From); err != nil {
				return moved, err
			}
			r, err = g.s.c.Script(ctx, redriveScript, g.keys, args...)
		}
		if err != nil {
			return moved, g.failed("redrive", err)
		}
		if len(r.Elems) != 2 {
			return moved, g.failed("redrive", fmt.Errorf("%w: %s", conn.ErrValue, r))
		}
		moved += r.Elems[0].Int
		if r.Elems[1].Int < step {
			break // there are no more
		}
		left -= step
	}
	return moved, nil
}

// Destroy removes the group and its pending entries. Dead letters stay. Destroy of a group that
// does not exist does nothing.
func (g *Group[T]) Destroy(ctx context.Context) error {
	var b conn.Batch
	b.Do("XGROUP", "DESTROY", g.s.name, g.name)
	b.Do("DEL", g.keys[1])
	replies, err := g.s.c.Tx(ctx, &b)
	for _, v := range replies {
		if bad := v.Err(); err == nil && bad != nil && !strings.Contains(bad.Error(), "requires the key to exist") {
			err = bad
		}
	}
	if err != nil {
		return g.failed("destroy", err)
	}
	return nil
}

// Delete removes the group as Destroy does, and its dead letters.
func (g *Group[T]) Delete(ctx context.Context) error {
	if err := g.Destroy(ctx); err != nil {
		return err
	}
	if _, err := g.s.c.Del(ctx, g.keys[2]); err != nil {
		return g.failed("delete", err)
	}
	return nil
}

// removeConsumers removes a consumer from the group if it has no pending entries, and consumers that have died. It ignores errors.
func (g *Group[T]) removeConsumers(ctx context.Context, consumer string) {
	_ = kit.ReleaseBriefly(ctx, nil, conn.Temporary, func(ctx context.Context) error {
		_, err := g.s.c.Script(ctx, leaveScript, g.keys[:1], g.name, consumer, deadConsumerAge.Milliseconds())
		return err
	})
}

// String describes the group.
func (g *Group[T]) String() string {
	dead := fmt.Sprintf("dead after %d deliveries", g.o.MaxDeliveries)
	if g.o.MaxDeliveries == 0 {
		dead = "no dead letters"
	}
	return fmt.Sprintf("group %q of stream %q (claims after %v, %s; XREADGROUP and Lua scripts)", g.name, g.s.name, g.o.ClaimAfter, dead)
}

// args returns the common arguments of the group's scripts followed by more.
func (g *Group[T]) args(consumer string, more ...any) []any {
	return append([]any{g.name, consumer, g.o.MaxDeliveries, g.o.DeadLen, kit.Millis(g.o.DeadTTL)}, more...)
}

func (g *Group[T]) failed(doing string, err error) error {
	return fmt.Errorf("stream %q: group %q: %s: %w", g.s.name, g.name, doing, err)
}
