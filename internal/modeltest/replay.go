// Package modeltest checks an engine against others: against a second engine
// that runs its effects again, and against a real redis-server that is sent the
// same requests.
//
//	random requests ──▶ ebb over a socket ──▶ replies, TTLs, events ──┐
//	       │                 └─ effects ──▶ Replica: the same keys?   ├─ equal?
//	       └──────────▶ redis-server ──────▶ replies, TTLs, events ──┘
//	                                    a difference: Shrink, and print a transcript
//
// Start reading at Replica.Follow for the one, and Campaign.Run for the other.
package modeltest

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/ebbdb/ebb/command"
	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/stream"
)

// Replica is a second engine that is built from the effects of a first. It
// removes nothing on its own. Close it.
type Replica struct {
	db  *engine.DB
	svc *command.Service
}

// NewReplica returns an empty replica.
func NewReplica() (*Replica, error) {
	r := &Replica{db: engine.Open(engine.Options{Clock: engine.NewManualClock(time.UnixMilli(1)), Shards: 16})}
	r.db.SetActiveExpiry(false)
	var err error
	if r.svc, err = command.NewService(command.Options{DB: r.db}, nil); err != nil {
		r.db.Close()
		return nil, err
	}
	return r, nil
}

// Close ends the replica.
func (r *Replica) Close() {
	r.svc.Close()
	r.db.Close()
}

// Follow takes the effects of an engine since the last call, which must be quiet
// meanwhile, runs them, and compares keys, types, values, deadlines and expiry rules. The
// error lists what differs.
func (r *Replica) Follow(db *engine.DB) error {
	effects := db.Drain()
	if err := r.svc.Replay(effects); err != nil {
		return err
	}
	if diff := r.compare(db); len(diff) > 0 {
		return fmt.Errorf("the effects give another keyspace:\n  %s\neffects:\n%s", strings.Join(diff, "\n  "), show(effects))
	}
	return nil
}

// Run runs the effects of an engine since the last call, and compares nothing: the
// engine may be busy.
func (r *Replica) Run(db *engine.DB) error { return r.svc.Replay(db.Drain()) }

// CheckEffects runs all effects of an engine, which has not been drained yet, in
// a second one, and compares the two.
func CheckEffects(db *engine.DB) error {
	r, err := NewReplica()
	if err != nil {
		return err
	}
	defer r.Close()
	return r.Follow(db)
}

// show prints the last effects, for messages.
func show(effects []engine.Effect) string {
	const most = 60
	var b strings.Builder
	if n := len(effects) - most; n > 0 {
		fmt.Fprintf(&b, "  (%d before these)\n", n)
		effects = effects[n:]
	}
	for _, e := range effects {
		fmt.Fprintf(&b, "  %d db%d %.200q\n", e.Seq, e.DB, e.Args)
	}
	return b.String()
}

// item is a key as the comparison sees it.
type item struct {
	kind     engine.Kind
	value    string // of a container: its living items with their deadlines
	deadline int64  // ms
	span     int64  // ms
}

type place struct {
	db  int
	key string
}

// dump returns the keys of all databases with what lives at now, in ms, and the
// engine's instant, which now is if it is 0. As a replay it sees the expired keys
// as well.
func dump(db *engine.DB, replay bool, now int64) (map[place]item, int64) {
	tx := db.BeginAll(0)
	defer tx.Commit()
	if replay {
		tx.Replaying()
	}
	if now == 0 {
		now = tx.Millis()
	}
	all := map[place]item{}
	for i := range db.Databases() {
		tx.Select(i)
		tx.Each(func(k engine.Key) {
			it := item{kind: k.Kind(), deadline: k.Deadline(), span: k.Span()}
			empty := false
			switch it.kind {
			case engine.String:
				it.value = string(k.Value())
			case engine.Stream:
				it.value = streamContents(k.Stream())
			case engine.Limiter, engine.Lock, engine.Semaphore, engine.DelayQueue, engine.Bloom:
				it.value = fmt.Sprintf("%x", k.Payload())
			default:
				it.value, empty = contents(k, now)
			}
			if !empty {
				all[place{i, string(k.Name())}] = it
			}
		})
	}
	return all, tx.Millis()
}

// contents writes down the items of a container that live at now: in order
// where it has one.
func contents(k engine.Key, now int64) (text string, empty bool) {
	var items []string
	k.Items(func(x engine.Item) {
		if x.Deadline != 0 && x.Deadline < now {
			return
		}
		s := fmt.Sprintf("%q", x.Key)
		switch k.Kind() {
		case engine.Hash:
			s += fmt.Sprintf("=%q", x.Value)
		case engine.ZSet:
			s += fmt.Sprint("=", x.Score+0) // -0 is 0 in small sets, as in Redis, and engines may differ in what is small
		}
		if x.Deadline != 0 {
			s += fmt.Sprint(" until ", x.Deadline)
		}
		items = append(items, s)
	})
	if k.Kind() == engine.Hash || k.Kind() == engine.Set {
		sort.Strings(items)
	}
	return strings.Join(items, ", "), len(items) == 0
}

// streamContents writes down a stream: entries, groups, and what is pending. When
// a consumer was last seen is not among the effects.
func streamContents(s *stream.Stream) string {
	var b strings.Builder
	fmt.Fprintf(&b, "last %v, deleted %v, added %d", s.Last, s.MaxDeleted, s.Added)
	for it := s.Iter(stream.ID{}); it.Next(); {
		fmt.Fprintf(&b, "; %v", it.ID())
		for range it.Fields() {
			name, value := it.Field()
			fmt.Fprintf(&b, " %q=%q", name, value.String())
		}
	}
	for _, g := range s.Groups() {
		fmt.Fprintf(&b, "; group %q at %v, read %d", g.Name(), g.Last, g.Read)
		for _, c := range g.Consumers() {
			fmt.Fprintf(&b, ", consumer %q", c.Name())
		}
		for it := g.PendingFrom(stream.ID{}); it.Next(); {
			p := it.Pending()
			fmt.Fprintf(&b, ", %v pending for %q since %d, %d times", p.ID, p.Consumer.Name(), p.Time, p.Count)
		}
	}
	return b.String()
}

// compare lists what differs between a living engine and the replica.
func (r *Replica) compare(db *engine.DB) (diff []string) {
	want, now := dump(db, false, 0)
	got, _ := dump(r.db, true, now)
	for p, w := range want {
		g, ok := got[p]
		switch {
		case !ok:
			diff = append(diff, fmt.Sprintf("db%d %q: is missing", p.db, p.key))
		case g.kind != w.kind || g.value != w.value || g.span != w.span:
			diff = append(diff, fmt.Sprintf("db%d %q: %s, want %s", p.db, p.key, g, w))
		case g.deadline != w.deadline && !slidThere(g, w):
			diff = append(diff, fmt.Sprintf("db%d %q: deadline %d, want %d", p.db, p.key, g.deadline, w.deadline))
		}
	}
	for p, g := range got {
		if _, ok := want[p]; !ok && (g.deadline == 0 || g.deadline >= now) {
			diff = append(diff, fmt.Sprintf("db%d %q: should not be there: %s", p.db, p.key, g))
		}
	}
	diff = append(diff, r.compareRules(db)...)
	sort.Strings(diff)
	return diff
}

// compareRules lists the databases whose rules differ: what they say, not what has
// become of them.
func (r *Replica) compareRules(db *engine.DB) (diff []string) {
	want, got := rules(db), rules(r.db)
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			diff = append(diff, fmt.Sprintf("db%d: rules %+v, want %+v", i, got[i], want[i]))
		}
	}
	return diff
}

// rules returns the rules of all databases.
func rules(db *engine.DB) [][]engine.Rule {
	tx := db.BeginAll(0)
	defer tx.Commit()
	all := make([][]engine.Rule, db.Databases())
	for i := range all {
		tx.Select(i)
		for _, r := range tx.Rules() {
			all[i] = append(all[i], r.Rule)
		}
	}
	return all
}

// slidThere reports whether a sliding deadline is early by no more than the log
// may leave out: a tenth of the span.
func slidThere(g, w item) bool {
	return w.span > 0 && g.deadline < w.deadline && w.deadline-g.deadline <= w.span/10+1
}

func (i item) String() string {
	return fmt.Sprintf("%v %.200q, deadline %d, span %d", i.kind, i.value, i.deadline, i.span)
}
