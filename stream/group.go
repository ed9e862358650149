package stream

import (
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
	// lookMost is how many pending entries a call looks at for abandoned ones; the
	// next goes on from there, without waiting longer than lookWait for new ones.
	lookMost = 500
	lookWait = 20 * time.Millisecond
	// lookEvery is how many calls that bring something pass between two looks: a
	// busy consumer pays little for those of others.
	lookEvery = 16
	// poll bounds the wait for new entries, and so how late a consumer notices
	// what another one has abandoned or handed back.
	poll = time.Second
	// forgetAfter is after how long without a sign of life a consumer that had a name
	// of its own, and died, leaves the list of the group's.
	forgetAfter = 24 * time.Hour
	// redriveMost is how many dead letters one call moves.
	redriveMost = 100
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
		return nil, kit.Argument("stream", s.name, "group %q: ClaimAfter is %v, Batch %d, DeadLen %d and DeadTTL %v; none of them may be negative",
			name, o.ClaimAfter, o.Batch, o.DeadLen, o.DeadTTL)
	}
	if o.ClaimAfter == 0 {
		o.ClaimAfter = 30 * time.Second
	}
	switch {
	case o.MaxDeliveries == 0:
		o.MaxDeliveries = 16
	case o.MaxDeliveries < 0:
		o.MaxDeliveries = 0 // as the scripts have it
	}
	if o.Batch == 0 {
		o.Batch = 1
	}
	if o.DeadLen == 0 {
		o.DeadLen = 10_000
	}
	if o.DeadTTL == 0 {
		o.DeadTTL = 30 * 24 * time.Hour
	}
	keys := []string{s.name, kit.Key(s.name, "retry:"+name), kit.Key(s.name, "dead:"+name)}
	return &Group[T]{s: s, name: name, o: o, keys: keys}, nil
}

// Create makes the group if it does not exist, so that it gets the entries that are added from
// now on. The first Consume does the same.
func (g *Group[T]) Create(ctx context.Context) error { return g.create(ctx, g.o.From) }

func (g *Group[T]) create(ctx context.Context, from string) error {
	if from == "" {
		from = "0"
	}
	_, err := g.s.c.Do(ctx, "XGROUP", "CREATE", g.s.name, g.name, from, "MKSTREAM")
	if err != nil && code(err) != "BUSYGROUP" {
		return g.failed("create", err)
	}
	return nil
}

// code is the first word of an error reply.
func code(err error) string {
	var r conn.ReplyError
	if errors.As(err, &r) {
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
		k := &cursor{consumer: consumer, after: "-", from: g.o.From}
		if consumer == "" {
			k.consumer, k.sweep = kit.ID(), true
			defer g.leave(ctx, k.consumer)
		}
		for ctx.Err() == nil {
			got, err := g.take(ctx, k)
			if kit.Ended(ctx, err) {
				return
			}
			if err != nil {
				if !yield(nil, g.failed("consume", err)) || !conn.Temporary(err) || pause(ctx, k.failures) != nil {
					return
				}
				k.failures++
				continue
			}
			k.failures = 0
			for _, d := range g.ours(ctx, got) {
				if !yield(g.delivery(k.consumer, d)) || ctx.Err() != nil {
					return
				}
			}
		}
	}
}

// ours returns what is for this group: an entry that another group has redriven is done
// at once. If that fails it comes again after ClaimAfter.
func (g *Group[T]) ours(ctx context.Context, got []conn.Value) []conn.Value {
	ack := []any{"XACK", g.s.name, g.name}
	kept := got[:0]
	for _, v := range got {
		if only, ok := only(v); ok && only != g.name {
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

// only returns the group that an entry is for, if it is for one.
func only(v conn.Value) (group string, ok bool) {
	if len(v.Elems) < 2 {
		return "", false
	}
	x, ok := v.Elems[1].Get(forField)
	return x.Str, ok
}

// cursor is what one Consume remembers.
type cursor struct {
	consumer string
	after    string // where to go on looking for the abandoned
	calls    int
	empty    bool // the last call brought nothing
	failures int
	made     bool   // the group is there
	sweep    bool   // consumers that died are still to be looked for
	from     string // where it begins if it is not
}

// take returns entries for the consumer, as takeScript does: none if a second
// passed without any.
func (g *Group[T]) take(ctx context.Context, k *cursor) ([]conn.Value, error) {
	if !k.made {
		if err := g.create(ctx, k.from); err != nil {
			return nil, err
		}
		k.made, k.from = true, "" // a group that vanishes later has missed nothing
		if k.sweep {
			g.leave(ctx, k.consumer)
			k.sweep = false
		}
	}
	look := 0
	if k.empty || k.calls%lookEvery == 0 {
		look = lookMost
	}
	k.calls++
	r, err := g.s.c.Script(ctx, takeScript, g.keys, g.args(k.consumer, kit.Millis(g.o.ClaimAfter), g.o.Batch, k.after, look)...)
	if err != nil {
		k.made = k.made && code(err) != "NOGROUP"
		if !k.made {
			return nil, nil // made again by the next call
		}
		return nil, err
	}
	if len(r.Elems) != 3 {
		return nil, fmt.Errorf("%w: a reply of %d parts", conn.ErrValue, len(r.Elems))
	}
	k.after = r.Elems[1].Str
	if k.empty = len(r.Elems[0].Elems) == 0; !k.empty {
		return r.Elems[0].Elems, nil
	}
	if look == 0 {
		return nil, nil // look before waiting
	}
	wait := poll.Milliseconds()
	if k.after != "-" {
		wait = lookWait.Milliseconds()
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
		k.made = k.made && code(err) != "NOGROUP"
		if !k.made || code(err) == "UNBLOCKED" {
			return nil, nil
		}
		return nil, err
	}
	got := entriesOf(r)
	for i := range got {
		got[i].Elems = append(got[i].Elems[:2:2], one)
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
		all = append(all, Dead[T]{e, word(v.Elems[1], "id"), int(number(v.Elems[1], "deliveries"))})
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
		step := min(left, redriveMost)
		args := g.args(redriven, step, kit.Millis(g.o.ClaimAfter+retryKept))
		r, err := g.s.c.Script(ctx, redriveScript, g.keys, args...)
		if code(err) == "NOGROUP" { // it is made at its first use
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

// leave takes a consumer out of the group if nothing is pending for it, and those
// that died. It is a courtesy: what fails is left.
func (g *Group[T]) leave(ctx context.Context, consumer string) {
	_ = kit.Courtesy(ctx, nil, conn.Temporary, func(ctx context.Context) error {
		_, err := g.s.c.Script(ctx, leaveScript, g.keys[:1], g.name, consumer, forgetAfter.Milliseconds())
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

// args are the arguments that all scripts of a group begin with, and more.
func (g *Group[T]) args(consumer string, more ...any) []any {
	return append([]any{g.name, consumer, g.o.MaxDeliveries, g.o.DeadLen, kit.Millis(g.o.DeadTTL)}, more...)
}

func (g *Group[T]) failed(doing string, err error) error {
	return fmt.Errorf("stream %q: group %q: %s: %w", g.s.name, g.name, doing, err)
}
