package queue

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// scripts keeps a queue by Lua scripts: see lua.go.
type scripts struct {
	c    *conn.Conn
	name string
	max  int
}

// keys are those that all scripts have, with space for more.
func (s *scripts) keys(more int) []string {
	keys := make([]string, 0, 6+more)
	for _, suffix := range [...]string{"jobs", "waiting", "events", "died", "letters", "last"} {
		keys = append(keys, kit.Key(s.name, suffix))
	}
	return keys
}

// remove removes the marks of Unique too, which nothing lists: they outlive their jobs.
func (s *scripts) remove(ctx context.Context) error {
	if _, err := s.c.Del(ctx, append(s.keys(3), s.timed()...)...); err != nil {
		return err
	}
	return kit.Sweep(ctx, s.c, []string{kit.Key(s.name, "once:")}, "string")
}

func (s *scripts) run(ctx context.Context, script *conn.Script, more []string, args ...any) (conn.Value, error) {
	keys := s.keys(len(more))
	return s.c.Script(ctx, script, append(keys, more...), append([]any{kit.Key(s.name, "wake")}, args...)...)
}

func (s *scripts) truth(ctx context.Context, script *conn.Script, args ...any) (bool, error) {
	n, err := s.count(ctx, script, args...)
	return n == 1, err
}

func (s *scripts) count(ctx context.Context, script *conn.Script, args ...any) (int64, error) {
	v, err := s.run(ctx, script, nil, args...)
	if err != nil {
		return 0, err
	}
	return v.AsInt()
}

func (s *scripts) push(ctx context.Context, items []pushItem, maxLen int64, drop bool) ([]pushed, error) {
	args := append(make([]any, 0, 2+8*len(items)), maxLen, drop)
	var marks []string
	for i := range items {
		p := &items[i]
		args = append(args, p.id, p.payload, p.delay, p.at, p.priority, p.ttl, p.unique, p.replace)
		if p.unique > 0 {
			marks = append(marks, kit.Key(s.name, p.mark()))
		}
	}
	v, err := s.run(ctx, pushScript, marks, args...)
	if err != nil {
		return nil, err
	}
	if len(v.Elems) != len(items) {
		return nil, unreadable("a push", v)
	}
	results := make([]pushed, len(items))
	for i, e := range v.Elems {
		if len(e.Elems) != 2 {
			return nil, unreadable("a push", e)
		}
		results[i] = pushed{id: e.Elems[1].String(), state: pushState(e.Elems[0].Int)}
	}
	return results, nil
}

// mark is the end of the key that keeps out others like this job.
func (p *pushItem) mark() string {
	if p.id != "" {
		return "once:id:" + p.id
	}
	sum := sha256.Sum256(p.payload)
	return "once:value:" + hex.EncodeToString(sum[:16])
}

func (s *scripts) take(ctx context.Context, count int, lease int64) (t taken, err error) {
	for round := 0; ; round++ {
		enough := round >= ticksMost
		v, err := s.run(ctx, takeScript, s.timed(), count, lease, s.max, enough)
		if err != nil && !errors.Is(err, conn.ErrNotReplicated) {
			return t, err
		}
		if len(v.Elems) == 0 {
			return t, unreadable("a pop", v)
		}
		if v.Elems[0].Int == ticksDue {
			if err := s.tick(ctx, v.Elems[1:]); err != nil {
				return t, err
			}
			continue
		}
		if t.wait = time.Duration(v.Elems[0].Int) * time.Microsecond; enough {
			t.wait = 0
		}
		jobs, bad := rawJobs(v.Elems[1:])
		t.jobs = jobs
		return t, cmp.Or(err, bad)
	}
}

func (s *scripts) late(v conn.Value) []raw {
	if len(v.Elems) == 0 || v.Elems[0].Int == ticksDue {
		return nil
	}
	jobs, _ := rawJobs(v.Elems[1:])
	return jobs
}

// rawJobs reads jobs as DQ.POP and the script reply with them.
func rawJobs(elems []conn.Value) ([]raw, error) {
	jobs := make([]raw, len(elems))
	for i, e := range elems {
		if len(e.Elems) != 5 {
			return nil, unreadable("a pop", e)
		}
		f := e.Elems
		jobs[i] = raw{id: f[0].String(), payload: f[1].String(), deliveries: f[2].Int, token: f[3].Int, due: f[4].Int}
	}
	return jobs, nil
}

func unreadable(what string, v conn.Value) error {
	return fmt.Errorf("%w: %s is replied to with %s", conn.ErrValue, what, v)
}

func (s *scripts) ack(ctx context.Context, id string, token int64) (bool, error) {
	return s.truth(ctx, ackScript, id, token)
}

func (s *scripts) nack(ctx context.Context, r *raw, delay int64, reason string) (bool, error) {
	return s.truth(ctx, nackScript, r.id, r.token, delay, reason)
}

func (s *scripts) extend(ctx context.Context, id string, token, lease int64) (bool, error) {
	return s.truth(ctx, extendScript, id, token, lease)
}

func (s *scripts) bury(ctx context.Context, r *raw, reason string) (bool, error) {
	return s.truth(ctx, buryScript, r.id, r.token, reason, r.deliveries, r.payload)
}

func (s *scripts) cancel(ctx context.Context, ids []string) (int64, error) {
	return s.count(ctx, cancelScript, list(ids)...)
}

func (s *scripts) revive(ctx context.Context, ids []string) (int64, error) {
	return s.count(ctx, reviveScript, list(ids)...)
}

func (s *scripts) discard(ctx context.Context, ids []string) (int64, error) {
	return s.count(ctx, discardScript, list(ids)...)
}

func list(ids []string) []any {
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	return args
}

func (s *scripts) info(ctx context.Context) (i Info, err error) {
	v, err := s.run(ctx, infoScript, s.timed())
	if err != nil {
		return i, err
	}
	if len(v.Elems) != 9 {
		return i, unreadable("info", v)
	}
	n := func(at int) int64 { return v.Elems[at].Int }
	i = Info{Delayed: n(0), Ready: n(1), Leased: n(2), Dead: n(3), Lateness: span(n(4)), NextDue: until(n(5)), Schedules: n(6), NextOccurrence: until(n(7)),
		Paused: n(8) >= 0}
	if n(8) > 0 {
		i.PausedUntil = time.UnixMilli(n(8))
	}
	return i, nil
}

// until is a time of Info in ms; -1: there is none.
func until(ms int64) time.Duration {
	if ms < 0 {
		return -1
	}
	return span(ms)
}

func (s *scripts) dead(ctx context.Context, n int, after string) ([]deadRaw, error) {
	v, err := s.run(ctx, deadScript, nil, n, after)
	if err != nil {
		return nil, err
	}
	if v.Int == -1 {
		return nil, ErrNoJob
	}
	list := make([]deadRaw, len(v.Elems))
	for i, e := range v.Elems {
		if len(e.Elems) != 3 {
			return nil, unreadable("dead letters", e)
		}
		d := deadRaw{raw: raw{id: e.Elems[0].String(), due: e.Elems[1].Int}}
		deliveries, rest, _ := strings.Cut(e.Elems[2].String(), " ")
		size, rest, _ := strings.Cut(rest, " ")
		length, err := strconv.Atoi(size)
		if d.deliveries, _ = strconv.ParseInt(deliveries, 10, 64); err != nil || length > len(rest) {
			return nil, unreadable("dead letters", e)
		}
		d.reason, d.payload = rest[:length], rest[length:]
		list[i] = d
	}
	return list, nil
}
