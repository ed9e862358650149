// Package modeltest checks an engine against others: against a second engine
// that runs its effects again, and against Redis 7, Redis 8 and Valkey 9, which are
// sent the same requests.
//
//	random requests ──▶ ebb over a socket ──▶ replies, TTLs, events ──┐
//	       │                 └─ effects ──▶ Replica: the same keys?   ├─ equal?
//	       └──────────▶ another server ────▶ replies, TTLs, events ──┘
//	                a difference that package compat does not have: Shrink, and
//	                print a transcript; a Tally counts the others
//
// Start reading at Replica.Follow for the one, and Campaign.Run for the other.
package modeltest

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/stream"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/internal/wire"
)

// Replica is a second engine that is built from the effects of a first, as a server loads
// its log. It is loading all the time. Its clock is years ahead, so that each deadline has
// passed already, its reclaimers run, and clients send requests that a loading server
// accepts. None of this may change its data. The caller closes it.
type Replica struct {
	db      *engine.DB
	svc     *session.Service
	clock   *clock.Manual
	clients *transcript.Engine
	n       int // requests of clients so far
}

// late is the time by which a replica's clock is ahead: more than any time to live in the
// tests.
const late = 20 * 365 * 24 * time.Hour

// blockedFor are the requests with which clients of a replica wait all the time.
var blockedFor = []string{"BLPOP a l1 {t}l 0", "BLMOVE l1 a LEFT RIGHT 0", "BZPOPMIN z1 {t}z a 0", "XREAD BLOCK 0 STREAMS x1 a 0 0",
	"DQ.POP {q}1 LEASE 1000 BLOCK 0", "BLMOVEM l1 a LEFT RIGHT 0 EXACTLY 2 OBO", "ZPOPDUE 2 z1 {t}z BLOCK 0", "ZMOVEDUE z1 a LEFT BLOCK 0"}

// NewReplica returns an empty replica.
func NewReplica() (*Replica, error) {
	var hooks session.Hooks
	r := &Replica{clock: clock.NewManual(transcript.Start.Add(late))}
	r.db = engine.Open(engine.Options{Clock: r.clock, Shards: 16, Hooks: &hooks})
	cfg, err := config.Load([]string{"--enable-debug-command", "yes"}, nil)
	if err == nil {
		r.svc, err = session.NewService(session.Options{DB: r.db, Table: servercmd.Table, Config: cfg}, &hooks)
	}
	if err != nil {
		r.db.Close()
		return nil, err
	}
	r.clients = transcript.Around(r.db, r.svc, r.clock)
	for i, line := range blockedFor {
		if err = r.clients.Send(10+i, strings.Fields(line)); err == nil {
			if v, replied := r.clients.Next(10 + i); replied {
				err = fmt.Errorf("%s does not wait: %v", line, v)
			}
		}
		if err != nil {
			r.Close()
			return nil, err
		}
	}
	r.db.BeginLoad()
	return r, nil
}

// Close ends the replica.
func (r *Replica) Close() {
	_ = r.clients.HangupAll() // of connections in memory
	r.svc.Close()
	r.db.Close()
}

// disturbEvery is the number of transactions between two turns of the clients.
const disturbEvery = 8

// replay runs effects again, and lets clients and reclaimers have their turn between
// the transactions.
func (r *Replica) replay(effects []engine.Effect) error {
	for len(effects) > 0 {
		n, seen := 0, 0
		for ; n < len(effects); n++ {
			if n > 0 && effects[n].Seq != effects[n-1].Seq {
				if seen++; seen == disturbEvery {
					break
				}
			}
		}
		if err := r.svc.Replay(effects[:n]); err != nil {
			return err
		}
		if err := r.disturb(effects[n-1]); err != nil {
			return err
		}
		effects = effects[n:]
	}
	return nil
}

// disturb sends requests about a key of an effect that a loading server accepts.
func (r *Replica) disturb(e engine.Effect) error {
	key := "a"
	if len(e.Args) > 1 {
		key = string(e.Args[1])
	}
	r.n++
	requests := [][]string{{"SELECT", strconv.Itoa(e.DB)}, {"WATCH", key, "l1", "h1", "z1", "r1", "k1"}, {"DEBUG", "OBJECT", key},
		{"DEBUG", "DIGEST-VALUE", key, "l1", "s1"}, {"MULTI"}, {"DEBUG", "OBJECT", "l1"}, {"EXEC"}}
	if r.n%2 == 0 {
		requests = requests[:3] // the watch goes on
	}
	for _, args := range requests {
		if err := r.clients.Send(1, args); err != nil {
			return err
		}
	}
	for _, replied := r.clients.Next(1); replied; _, replied = r.clients.Next(1) {
	}
	for i, line := range blockedFor {
		if v, replied := r.clients.Next(10 + i); replied {
			return fmt.Errorf("the replay has served %s: %v", line, v)
		}
	}
	return r.clients.Advance(time.Millisecond)
}

// Follow takes the effects of an engine since the last call, runs them, and compares keys,
// types, values, deadlines and expiry rules. The error lists what differs.
//
// The engine may be busy: one transaction on all shards takes both its effects and its
// keyspace. Follow compares what the two engines store, so that no clock takes part: the
// replica must hold what has expired in the engine as long as the engine holds it, because
// the removal is an effect too. Only an expired item of a container may be missing in the
// replica: HDEL of some fields, for example, names those that have expired as well.
func (r *Replica) Follow(db *engine.DB) error {
	tx := db.BeginAll(0)
	effects := tx.Drain()
	want := see(tx, tx.Millis())
	tx.Commit()
	if err := r.replay(effects); err != nil {
		return err
	}
	if err := checkPlain(effects); err != nil {
		return err
	}
	if diff := r.compare(want); len(diff) > 0 {
		return fmt.Errorf("the effects give another keyspace:\n  %s\neffects:\n%s", strings.Join(diff, "\n  "), show(effects))
	}
	return nil
}

// checkPlain passes effects through what a plain replica of Redis 7.0 is sent. A command of
// Redis or Valkey that this overwrites is lost on that replica: it must be a StreamEffect,
// of which only a deadline is lost.
func checkPlain(effects []engine.Effect) error {
	var p oplog.Plain
	for _, e := range effects {
		words := make([]string, len(e.Args))
		for i, a := range e.Args {
			words[i] = string(a)
		}
		sent := wire.AppendCommand(nil, words...)
		got, err := p.Next(bytes.Clone(sent))
		if err != nil {
			return fmt.Errorf("the effect %q ends the link of a plain replica: %w", e.Args, err)
		}
		spec := specOf(words[0])
		switch {
		case bytes.Equal(got, sent):
		case spec == nil && strings.HasPrefix(words[0], engine.OwnPrefix), spec != nil && (spec.OfEbb() || spec.Stream&command.StreamEffect != 0):
		default:
			return fmt.Errorf("the effect %q is lost on a plain replica: say so in its Spec by StreamEffect, or log a command of Redis 7.0", e.Args)
		}
	}
	return nil
}

var table = sync.OnceValues(servercmd.DefaultTable)

// specOf finds a command by its name, nil if there is none.
func specOf(name string) *command.Spec {
	t, err := table()
	if err != nil {
		return nil
	}
	return t.LookupFull(name)
}

// Run runs the effects of an engine since the last call, and compares nothing: the
// engine may be busy.
func (r *Replica) Run(db *engine.DB) error { return r.replay(db.Drain()) }

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
	const limit = 60
	var b strings.Builder
	if n := len(effects) - limit; n > 0 {
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
	fresh    int64  // ms; 1 if the value is stale
}

type place struct {
	db  int
	key string
}

// seen is all that an engine stores at one instant.
type seen struct {
	keys  map[place]item
	dead  map[place][]string // the items of containers that have expired and are still there
	rules [][]engine.Rule    // of each database: what they say, not what has become of them
	lent  map[place]string   // the refresh leases that are not over
	now   int64              // ms: when an item whose deadline is earlier has expired
}

// see returns all that the engine of a transaction on all shards stores, with the keys and
// the items that have expired, before now, in ms, and are still there.
func see(tx *engine.Tx, now int64) seen {
	tx.Replaying()
	s := seen{map[place]item{}, map[place][]string{}, rulesOf(tx), map[place]string{}, now}
	tx.Leases(func(db int, key string, token, until int64, owner string) {
		if until >= now {
			s.lent[place{db, key}] = fmt.Sprintf("token %d of %q until %d", token, owner, until)
		}
	})
	collect(tx, now, func(at place, it item, dead []string, _ bool) { s.keys[at], s.dead[at] = it, dead })
	return s
}

// rulesOf returns the rules of all databases. The transaction holds all shards.
func rulesOf(tx *engine.Tx) [][]engine.Rule {
	all := make([][]engine.Rule, tx.DB().Databases())
	for i := range all {
		tx.Select(i)
		for _, r := range tx.Rules() {
			all[i] = append(all[i], r.Rule)
		}
	}
	return all
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
	collect(tx, now, func(at place, it item, _ []string, empty bool) {
		if !empty {
			all[at] = it
		}
	})
	return all, tx.Millis()
}

// collect visits the keys of all databases that the transaction, which holds all shards,
// sees. A container in which nothing lives at now, in ms, is empty.
func collect(tx *engine.Tx, now int64, visit func(at place, it item, dead []string, empty bool)) {
	for i := range tx.DB().Databases() {
		tx.Select(i)
		tx.Each(func(k engine.Key) {
			it := item{kind: k.Kind(), deadline: k.Deadline(), span: k.Span(), fresh: k.Fresh()}
			if it.fresh != 0 && it.fresh < now {
				it.fresh = 1 // how long the value has been stale is not stored
			}
			var dead []string
			empty := false
			switch it.kind {
			case engine.String:
				it.value = string(k.Value())
			case engine.Stream:
				it.value = streamContents(k.Stream())
			case engine.Limiter, engine.Lock, engine.Semaphore, engine.DelayQueue, engine.Bloom:
				it.value = fmt.Sprintf("%x", k.Payload())
			default:
				it.value, dead, empty = contents(k, now)
			}
			visit(place{i, string(k.Name())}, it, dead, empty)
		})
	}
}

// contents writes down the items of a container that live at now, in order where it has
// one, and lists the others.
func contents(k engine.Key, now int64) (text string, dead []string, empty bool) {
	var items []string
	k.Items(func(x engine.Item) {
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
		if x.Deadline != 0 && x.Deadline < now {
			dead = append(dead, s)
		} else {
			items = append(items, s)
		}
	})
	if k.Kind() == engine.Hash || k.Kind() == engine.Set {
		sort.Strings(items)
	}
	return strings.Join(items, ", "), dead, len(items) == 0
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

// compare lists what differs between what an engine held and the replica.
func (r *Replica) compare(master seen) (diff []string) {
	tx := r.db.BeginAll(0)
	replica := see(tx, master.now)
	tx.Commit()
	want, got := master.keys, replica.keys
	for p, w := range want {
		g, ok := got[p]
		switch {
		case !ok && len(master.dead[p]) > 0 && w.value == "":
		case !ok:
			diff = append(diff, fmt.Sprintf("db%d %q: is missing: %s", p.db, p.key, w))
		case g.kind != w.kind || g.value != w.value || g.span != w.span || g.fresh != w.fresh:
			diff = append(diff, fmt.Sprintf("db%d %q: %s, want %s", p.db, p.key, g, w))
		case g.deadline != w.deadline && !slidThere(g, w):
			diff = append(diff, fmt.Sprintf("db%d %q: deadline %d, want %d", p.db, p.key, g.deadline, w.deadline))
		}
		if more := without(replica.dead[p], master.dead[p]); len(more) > 0 {
			diff = append(diff, fmt.Sprintf("db%d %q: the engine has removed the expired %.200q", p.db, p.key, more))
		}
	}
	for p, g := range got {
		if _, ok := want[p]; !ok {
			diff = append(diff, fmt.Sprintf("db%d %q: should not be there: %s", p.db, p.key, g))
		}
	}
	for i, rules := range master.rules {
		if !slices.Equal(replica.rules[i], rules) {
			diff = append(diff, fmt.Sprintf("db%d: rules %+v, want %+v", i, replica.rules[i], rules))
		}
	}
	for p, l := range master.lent {
		if replica.lent[p] != l {
			diff = append(diff, fmt.Sprintf("db%d %q: the lease is %q, want %q", p.db, p.key, replica.lent[p], l))
		}
	}
	for p, l := range replica.lent {
		if master.lent[p] == "" {
			diff = append(diff, fmt.Sprintf("db%d %q: there should be no lease, it is %q", p.db, p.key, l))
		}
	}
	sort.Strings(diff)
	return diff
}

// without returns what is in all and not in others.
func without(all, others []string) []string {
	there := make(map[string]bool, len(others))
	for _, s := range others {
		there[s] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return there[s] })
}

// slidThere reports whether a sliding deadline is early by no more than the log
// may leave out: a tenth of the span.
func slidThere(g, w item) bool {
	return w.span > 0 && g.deadline < w.deadline && w.deadline-g.deadline <= w.span/10+1
}

func (i item) String() string {
	return fmt.Sprintf("%v %.200q, deadline %d, span %d, fresh %d", i.kind, i.value, i.deadline, i.span, i.fresh)
}
