package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/expmap"
	"github.com/ebbdb/ebb/internal/direct"
	"github.com/ebbdb/ebb/internal/embedded"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/queue"
)

// side is an engine, and a Conn with or without direct calls.
type side struct {
	t       *testing.T
	svc     *session.Service
	c       *conn.Conn
	events  *conn.Subscription
	shown   []string // by MONITOR
	monitor func()   // stops it; nil: it is off
	limits  []*limit.Limiter
	queues  []*queue.Queue[string]
	token   int64 // the latest of a lock
	entries *expmap.Map[string, string]
}

// plain is a Driver without direct calls.
type plain struct{ conn.Driver }

func newSide(t *testing.T, clock clock.Clock, calls bool) *side {
	t.Helper()
	hooks := &session.Hooks{}
	db := engine.Open(engine.Options{Clock: clock, Hooks: hooks, Shards: 4, RecordEffects: true})
	svc, err := session.NewService(session.Options{DB: db, Table: servercmd.Table}, hooks)
	must(t, err)
	s := &side{t: t, svc: svc, c: embedded.Lend(svc)}
	if !calls {
		s.c = conn.New(plain{s.c.Driver()})
	}
	t.Cleanup(func() {
		must(t, s.c.Close())
		svc.Close()
		db.Close()
	})
	s.events, err = s.c.PSubscribe(context.Background(), "__key*", "end")
	must(t, err)
	for _, o := range []limit.Options{{}, {Burst: 3}, {Algorithm: limit.SlidingWindow}, {Algorithm: limit.SlidingLog},
		{Algorithm: limit.FixedWindow}, {PerClient: true, Client: "c{1}"}} {
		o.Probe = time.Nanosecond // after OOM, each call probes
		l, err := limit.New(s.c, fmt.Sprint("limit", len(s.limits)), limit.Per(5, time.Second), limit.FailClosed, o)
		must(t, err)
		s.limits = append(s.limits, l)
	}
	for i, o := range []queue.Options[string]{{}, {MaxLen: 3}, {MaxLen: 3, Overflow: queue.DropOldest}} {
		q, err := queue.New(s.c, fmt.Sprint("queue", i), o)
		must(t, err)
		s.queues = append(s.queues, q)
	}
	s.entries, err = expmap.New[string, string](s.c, "map", expmap.Options[string, string]{MaxLen: 2})
	must(t, err)
	_, err = s.c.Do(context.Background(), "PING") // makes the session, whose HELLO MONITOR would show
	must(t, err)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// did returns what a call has done: its effects, and its lines in MONITOR. Effects of several keys that expire at one instant have
// any order.
func (s *side) did() []string {
	var all []string
	for _, e := range s.svc.DB.Drain() {
		if string(e.Args[0]) == "DEL" { // one for all keys of a shard
			for _, key := range e.Args[1:] {
				all = append(all, fmt.Sprintf("%d DEL %q", e.DB, key))
			}
			continue
		}
		all = append(all, fmt.Sprintf("%d %q", e.DB, e.Args))
	}
	slices.Sort(all)
	all, s.shown = append(all, s.shown...), nil
	return all
}

// published returns the messages since the last call.
func (s *side) published() []string {
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	if _, err := s.c.Do(ctx, "PUBLISH", "end", ""); err != nil {
		s.t.Fatal(err)
	}
	var all []string
	for {
		m, err := s.events.Next(ctx)
		must(s.t, err)
		if m.Channel == "end" {
			slices.Sort(all) // as did
			return all
		}
		all = append(all, m.Channel+" "+m.Payload)
	}
}

// stats returns the statistics that calls of both kinds have in common.
func (s *side) stats() map[string]string {
	all := map[string]string{}
	v, err := s.c.Do(context.Background(), "INFO", "stats", "commandstats")
	must(s.t, err)
	for line := range strings.Lines(v.String()) {
		name, val, _ := strings.Cut(strings.TrimSpace(line), ":")
		calls, rest, command := strings.Cut(val, ",usec=")
		switch {
		case command:
			_, failures, _ := strings.Cut(rest, ",rejected_calls")
			all[name] = calls + failures
		case name == "total_commands_processed" || name == "total_error_replies" || name == "expired_keys",
			strings.HasPrefix(name, "keyspace_"):
			all[name] = val
		}
	}
	return all
}

func (s *side) toggleMonitor() {
	if s.monitor != nil {
		s.monitor()
		s.monitor = nil
		return
	}
	s.monitor = s.svc.Monitor(func(m session.MonitorLine) { s.shown = append(s.shown, fmt.Sprintf("%d %d %q", m.At, m.DB, m.Args)) })
}

// step is one call, drawn once and made on both sides.
type step struct {
	name string
	run  func(s *side) (any, error)
}

var (
	directKeys = []string{"", "a", "b", "c", "{t}1", "{t}2", strings.Repeat("k", 300)}
	ctx        = context.Background()
)

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

func drawValue(r *rand.Rand) any {
	text := strings.Repeat(pick(r, "x", "1", "long "), pick(r, 0, 1, 7, 60, 300, 5000, 20_000))
	return pick[any](r, text, []byte(text), r.IntN(100))
}

func drawTTL(r *rand.Rand) time.Duration {
	return pick(r, 1, time.Microsecond, time.Millisecond, 3*time.Millisecond, time.Second, time.Hour, 1<<63-1)
}

// drawCall draws a call that has a direct form.
func drawCall(r *rand.Rand) step {
	key := pick(r, directKeys...)
	switch r.IntN(10) {
	case 6:
		field := pick(r, "f", "g", strings.Repeat("h", 100))
		return step{"HGet " + key + field, func(s *side) (any, error) { return s.c.HGet(ctx, key, field) }}
	case 7:
		field, val, ttl := pick(r, "f", "g", strings.Repeat("h", 100)), drawValue(r), pick(r, drawTTL(r), 0)
		return step{fmt.Sprintf("HSetTTL %s %s %.10v %v", key, field, val, ttl), func(s *side) (any, error) {
			return nil, s.c.HSetTTL(ctx, key, field, val, ttl)
		}}
	case 8:
		field, val, ttl, how := pick(r, "f", "g", "h"), fmt.Sprint(drawValue(r)), pick(r, time.Millisecond, time.Second), r.IntN(4)
		return step{fmt.Sprintf("map %s %.10v %v %d", field, val, ttl, how), func(s *side) (any, error) {
			switch how {
			case 0:
				return nil, s.entries.Set(ctx, field, val, ttl)
			case 1:
				return s.entries.SetNX(ctx, field, val, ttl)
			}
			v, ok, err := s.entries.Get(ctx, field)
			return fmt.Sprint(v, ok), err
		}}
	case 0, 1:
		return step{"Get " + key, func(s *side) (any, error) { return s.c.Get(ctx, key) }}
	case 2:
		room := pick(r, 0, 3, 400, 30_000)
		return step{"AppendGet " + key, func(s *side) (any, error) {
			got, err := s.c.AppendGet(ctx, append(make([]byte, 0, room), "ab"...), key)
			return string(got), err
		}}
	case 3:
		val, ttl := drawValue(r), pick(r, drawTTL(r), 0, -1)
		return step{fmt.Sprintf("SetTTL %s %.10v %v", key, val, ttl), func(s *side) (any, error) { return nil, s.c.SetTTL(ctx, key, val, ttl) }}
	case 4:
		val, ttl := drawValue(r), pick(r, drawTTL(r), 0)
		return step{fmt.Sprintf("SetNX %s %.10v %v", key, val, ttl), func(s *side) (any, error) { return s.c.SetNX(ctx, key, val, ttl) }}
	case 5:
		var o conn.SetOptions
		for range r.IntN(3) {
			switch r.IntN(7) {
			case 0:
				o.TTL = drawTTL(r)
			case 1:
				o.At = transcript.Start.Add(pick(r, time.Second, time.Hour, -time.Hour))
			case 2:
				o.KeepTTL = true
			case 3:
				o.NX = true
			case 4:
				o.XX = true
			case 5:
				o.Fresh = time.Millisecond
			case 6:
				o.At = pick(r, time.Unix(0, 0), time.Unix(-1, 0), time.UnixMilli(1<<60))
			}
		}
		val := drawValue(r)
		if text, ok := val.(string); ok && r.IntN(2) == 0 {
			return step{fmt.Sprintf("SetText %s %.10v %+v", key, text, o), func(s *side) (any, error) { return nil, s.c.SetText(ctx, key, text, o) }}
		}
		return step{fmt.Sprintf("Set %s %.10v %+v", key, val, o), func(s *side) (any, error) { return nil, s.c.Set(ctx, key, val, o) }}
	}
	n, who, how, cost := r.IntN(6), pick(r, "", "user", "u{1}"), r.IntN(4), int64(1+r.IntN(6))
	return step{fmt.Sprint("limiter ", n, who, how, cost), func(s *side) (any, error) {
		l := s.limits[n]
		switch how {
		case 0:
			return l.AllowN(ctx, who, cost)
		case 1:
			return l.Peek(ctx, who)
		case 2:
			return l.AllowAtMost(ctx, who, cost)
		}
		return l.Allow(ctx, who)
	}}
}

// drawObject draws a call of a lock or a queue that has a direct form.
func drawObject(r *rand.Rand) step {
	key, owner, ms := pick(r, "a", "lock", "{t}lock"), pick(r, "o", "p", ""), int64(pick(r, 1, 50, 1000))
	shared, waits := r.IntN(3) == 0, r.IntN(3) == 0
	switch r.IntN(6) {
	case 0, 1:
		elsewhere := false // the direct call would wait; the step runs on that side first
		return step{fmt.Sprint("acquire ", key, owner, ms, shared, waits), func(s *side) (any, error) {
			if d := direct.Of(s.c); d != nil {
				token, state := d.Acquire(key, owner, ms, shared, waits)
				if state != direct.Elsewhere {
					s.token = max(s.token, token)
					return token, nil
				}
				elsewhere = true
			}
			args := []any{"LOCK.ACQUIRE", key, owner, ms}
			if shared {
				args = append(args, "SHARED")
			}
			if waits && elsewhere {
				return nil, nil
			}
			if waits {
				args = append(args, "WAIT", 1)
			}
			v, err := s.c.Do(ctx, args...)
			s.token = max(s.token, v.Int)
			return v.Int, err
		}}
	case 2:
		return step{fmt.Sprint("renew ", key, owner, ms), func(s *side) (any, error) {
			if d := direct.Of(s.c); d != nil && d.Renew(key, owner, max(s.token, 1), ms) == direct.Done {
				return int64(1), nil
			}
			v, err := s.c.Do(ctx, "LOCK.RENEW", key, owner, max(s.token, 1), ms)
			return v.Int, err
		}}
	case 3:
		return step{fmt.Sprint("release ", key, owner), func(s *side) (any, error) {
			if d := direct.Of(s.c); d != nil {
				if state := d.Release(key, owner, max(s.token, 1)); state != direct.Elsewhere {
					return int64(state&direct.Done) & 1, nil
				}
			}
			v, err := s.c.Do(ctx, "LOCK.RELEASE", key, owner, max(s.token, 1))
			return v.Int, err
		}}
	}
	o := queue.PushOptions{ID: pick(r, "1", "2", "3", "4", "5", ""), Delay: pick(r, 0, time.Second), Priority: r.IntN(3),
		TTL:    pick(r, 0, time.Second),
		Unique: pick(r, 0, 0, time.Second), Replace: r.IntN(4) == 0}
	if o.Delay == 0 && r.IntN(3) == 0 {
		o.At = transcript.Start.Add(pick(r, -time.Hour, time.Second))
	}
	which, pop := r.IntN(3), r.IntN(3) == 0
	if o.ID == "" && o.Unique == 0 && !pop {
		return drawPush(r)
	}
	return step{fmt.Sprintf("push %d %+v, pop %v", which, o, pop), func(s *side) (any, error) {
		if pop {
			v, err := s.c.Do(ctx, "DQ.POP", fmt.Sprint("queue", which))
			return v.String(), err
		}
		return s.queues[which].Push(ctx, "job", o)
	}}
}

// drawPush draws a push without an id, which the engine makes. A Conn without direct calls would make a random one.
func drawPush(r *rand.Rand) step {
	name, delay := "queue0", r.IntN(2)*500
	return step{fmt.Sprint("push without an id ", delay), func(s *side) (id any, err error) {
		if direct.Of(s.c) != nil {
			id, err = s.queues[0].Push(ctx, "job", queue.PushOptions{Delay: time.Duration(delay) * time.Millisecond})
		} else {
			args := []any{"DQ.ADD", name, "*", "job"}
			if delay > 0 {
				args = append(args, "DELAY", delay)
			}
			var v conn.Value
			v, err = s.c.Do(ctx, args...)
			id = v.String()
		}
		if err != nil {
			return nil, errors.New("refused") // without the name of the queue
		}
		return id, nil
	}}
}

// drawOther draws a command or a state in which the direct calls behave differently.
func drawOther(r *rand.Rand) step {
	key := pick(r, directKeys...)
	do := func(args ...any) step {
		return step{fmt.Sprint(args...), func(s *side) (any, error) {
			v, err := s.c.Do(ctx, args...)
			return v.String(), err
		}}
	}
	switch r.IntN(24) {
	case 0:
		return do("DEL", key)
	case 1:
		return do("LPUSH", key, "x")
	case 2:
		return do("PEXPIRE", key, pick(r, 1, 1000))
	case 3:
		return do("SET", key, "slides", "PX", 50, "SLIDE")
	case 4:
		return do("APPEND", key, strings.Repeat("y", pick(r, 1, 40_000)))
	case 5:
		return do("CONFIG", "SET", "notify-keyspace-events", pick(r, "", "KEA", "KEAnm"))
	case 6:
		return do("CONFIG", "SET", "slowlog-log-slower-than", pick(r, -1, 0, 10_000))
	case 7:
		return do("CONFIG", "SET", "maxmemory", pick(r, 0, 0, 1, 1<<30))
	case 8:
		return do("CONFIG", "SET", "maxmemory-policy", pick(r, "noeviction", "noeviction", "allkeys-lfu"))
	case 9:
		return do("EXPIRY", "RULE", "ADD", "r", "MATCH", "*", "TO", "stream")
	case 10:
		return do("EXPIRY", "RULE", "DEL", "r")
	case 11:
		return do("CONFIG", "SET", "min-replicas-to-write", pick(r, 0, 0, 1))
	case 12:
		return do("FLUSHALL")
	case 13:
		return do("OBJECT", "ENCODING", key)
	case 14:
		return do("RPUSH", "limit0:user", "x")
	}
	if r.IntN(4) == 0 {
		return step{"MONITOR", func(s *side) (any, error) { s.toggleMonitor(); return nil, nil }}
	}
	return step{"calm", func(s *side) (any, error) { // calls are direct again
		if s.monitor != nil {
			s.toggleMonitor()
		}
		v, err := s.c.Do(ctx, "CONFIG", "SET", "slowlog-log-slower-than", 10_000, "maxmemory", 0, "maxmemory-policy", "noeviction",
			"min-replicas-to-write", 0, "notify-keyspace-events", "KEA")
		return v.String(), err
	}}
}

// A call is the same by the direct way and by its command: reply, error, effects, events, lines in MONITOR, statistics, dump.
func TestADirectCallDoesWhatItsCommandDoes(t *testing.T) {
	r, taken := draw.Rand(t), int64(0)
	for range draw.Rounds(0, 40) {
		clock := clock.NewManual(transcript.Start)
		a, b := newSide(t, clock, true), newSide(t, clock, false)
		if direct.Of(a.c) == nil || direct.Of(b.c) != nil {
			t.Fatal("the sides do not differ")
		}
		for n := range 400 {
			var s step
			switch r.IntN(12) {
			case 0:
				s = drawOther(r)
			case 1:
				d := draw.Below(r, pick(r, 2*time.Millisecond, 2*time.Second))
				clock.Advance(d)
				s = step{fmt.Sprint("advance ", d), func(*side) (any, error) { return nil, nil }}
			case 2, 3, 4:
				s = drawObject(r)
			default:
				s = drawCall(r)
			}
			got, gotErr := s.run(a)
			want, wantErr := s.run(b)
			if fmt.Sprint(got, gotErr) != fmt.Sprint(want, wantErr) {
				t.Fatalf("%d: %s: the direct call returned %.200v, %v; the command %.200v, %v", n, s.name, got, gotErr, want, wantErr)
			}
			if got, want := a.did(), b.did(); !slices.Equal(got, want) {
				t.Fatalf("%d: %s: the direct call did\n%.1000s\nthe command\n%.1000s", n, s.name, got, want)
			}
		}
		if got, want := a.published(), b.published(); !slices.Equal(got, want) {
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Fatalf("of %d messages the direct calls published %.80q, and of %d the commands %.80q", len(got), got[i], len(want), want[i])
				}
			}
			t.Fatalf("the direct calls published %d messages, the commands %d", len(got), len(want))
		}
		tx := a.svc.DB.BeginAll(0)
		for _, n := range tx.Stats().Direct {
			taken += n
		}
		tx.Commit()
		if got, want := a.stats(), b.stats(); !maps.Equal(got, want) {
			t.Fatalf("the direct calls count\n%v\nthe commands\n%v", got, want)
		}
		for _, key := range directKeys {
			dump := step{"DUMP", func(s *side) (any, error) { v, err := s.c.Do(ctx, "DUMP", key); return v.String(), err }}
			got, _ := dump.run(a)
			if want, _ := dump.run(b); got != want {
				t.Fatalf("the key %q differs", key)
			}
		}
	}
	if t.Logf("%d calls were direct", taken); taken < 100 {
		t.Error("these are too few")
	}
}
