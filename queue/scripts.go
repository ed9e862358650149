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

// scripts uses Lua scripts: see lua.go.
type scripts struct {
	c    *conn.Conn
	name string
	max  int
}

// keys returns the KEYS that all scripts have, with capacity for more.
func (s *scripts) keys(more int) []string {
	keys := make([]string, 0, 6+more)
	for _, suffix := range [...]string{"jobs", "waiting", "events", "died", "letters", "last"} {
		keys = append(keys, kit.Key(s.name, suffix))
	}
	return keys
}

// remove removes the records of Unique too. They outlive their jobs, and no key lists them.
func (s *scripts) remove(ctx context.Context) error {
	if _, err := s.c.Del(ctx, append(s.keys(3), s.scheduleKeys()...)...); err != nil {
		return err
	}
	return kit.Sweep(ctx, s.c, []string{kit.Key(s.name, "once:")}, "string")
}

func (s *scripts) run(ctx context.Context, script *conn.Script, more []string, args ...any) (conn.Value, error) {
	keys := s.keys(len(more))
	return s.c.Script(ctx, script, append(keys, more...), append([]any{kit.Key(s.name, "wake")}, args...)...)
}

func (s *scripts) boolean(ctx context.Context, script *conn.Script, args ...any) (bool, error) {
	n, err := s.count(ctx, script, args...)
	return n == 1, err
}

func (s *scripts) count(ctx context.Context, script *conn.Script, args ...any) (int64, error) {
	return kit.Number(s.run(ctx, script, nil, args...))
}

func (s *scripts) push(ctx context.Context, items []pushItem, maxLen int64, drop bool) ([]pushResult, error) {
	forget := forgets(items)
	args := append(make([]any, 0, 3+8*len(items)), maxLen, drop, forget)
	var more []string
	if forget {
		for i := range items {
			more = append(more, stateKey(s.name, items[i].id))
		}
	}
	for i := range items {
		p := &items[i]
		args = append(args, p.id, p.payload, p.delay, p.at, p.priority, p.ttl, p.unique, p.replace)
		if p.unique > 0 {
			more = append(more, kit.Key(s.name, p.uniqueKey()))
		}
	}
	v, err := s.run(ctx, pushScript, more, args...)
	if err != nil {
		return nil, err
	}
	if len(v.Elems) != len(items) {
		return nil, errorReply("a push", v)
	}
	results := make([]pushResult, len(items))
	for i, e := range v.Elems {
		if len(e.Elems) != 2 {
			return nil, errorReply("a push", e)
		}
		results[i] = pushResult{id: e.Elems[1].String(), state: pushState(e.Elems[0].Int)}
	}
	return results, nil
}

// uniqueKey returns the suffix of the key that records the job for Unique.
func (p *pushItem) uniqueKey() string {
	if p.id != "" {
		return "once:id:" + p.id
	}
	sum := sha256.Sum256([]byte(p.payload))
	return "once:value:" + hex.EncodeToString(sum[:16])
}

func (s *scripts) take(ctx context.Context, count int, lease int64) (t takeResult, err error) {
	for round := 0; ; round++ {
		enough := round >= maxTickRounds
		v, err := s.run(ctx, takeScript, s.scheduleKeys(), count, lease, s.max, enough)
		if err != nil && !errors.Is(err, conn.ErrNotReplicated) {
			return t, err
		}
		if len(v.Elems) == 0 {
			return t, errorReply("a pop", v)
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
		jobs, bad := parseJobs(v.Elems[1:])
		t.jobs = jobs
		return t, cmp.Or(err, bad)
	}
}

func (s *scripts) jobsOfReply(v conn.Value) []storedJob {
	if len(v.Elems) == 0 || v.Elems[0].Int == ticksDue {
		return nil
	}
	jobs, _ := parseJobs(v.Elems[1:])
	return jobs
}

// parseJobs returns the jobs of a reply to DQ.POP or takeScript.
func parseJobs(elems []conn.Value) ([]storedJob, error) {
	jobs := make([]storedJob, len(elems))
	for i, e := range elems {
		if len(e.Elems) != 5 {
			return nil, errorReply("a pop", e)
		}
		f := e.Elems
		jobs[i] = storedJob{id: f[0].String(), payload: f[1].String(), deliveries: f[2].Int, token: f[3].Int, due: f[4].Int}
	}
	return jobs, nil
}

func errorReply(what string, v conn.Value) error {
	return fmt.Errorf("%w: the reply to %s is %s", conn.ErrValue, what, v)
}

func (s *scripts) ack(ctx context.Context, id string, token int64) (bool, error) {
	return s.boolean(ctx, ackScript, id, token)
}

func (s *scripts) nack(ctx context.Context, r *storedJob, delay int64, reason string) (bool, error) {
	return s.boolean(ctx, nackScript, r.id, r.token, delay, reason)
}

func (s *scripts) extend(ctx context.Context, id string, token, lease int64) (bool, error) {
	return s.boolean(ctx, extendScript, id, token, lease)
}

func (s *scripts) bury(ctx context.Context, r *storedJob, reason string) (bool, error) {
	return s.boolean(ctx, buryScript, r.id, r.token, reason, r.deliveries, r.payload)
}

func (s *scripts) cancel(ctx context.Context, ids []string) (int64, error) {
	return kit.Number(s.run(ctx, cancelScript, stateKeys(s.name, ids), idArgs(ids)...))
}

func (s *scripts) revive(ctx context.Context, ids []string) (int64, error) {
	return s.count(ctx, reviveScript, idArgs(ids)...)
}

func (s *scripts) discard(ctx context.Context, ids []string) (int64, error) {
	return kit.Number(s.run(ctx, discardScript, stateKeys(s.name, ids), idArgs(ids)...))
}

func idArgs(ids []string) []any {
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	return args
}

func (s *scripts) info(ctx context.Context) (i Info, err error) {
	v, err := s.run(ctx, infoScript, s.scheduleKeys())
	if err != nil {
		return i, err
	}
	if len(v.Elems) != 9 {
		return i, errorReply("info", v)
	}
	n := func(at int) int64 { return v.Elems[at].Int }
	i = Info{Delayed: n(0), Ready: n(1), Leased: n(2), Dead: n(3), Lateness: toDuration(n(4)), NextDue: timeUntil(n(5)),
		Schedules: n(6), NextOccurrence: timeUntil(n(7)),
		Paused: n(8) >= 0}
	if n(8) > 0 {
		i.PausedUntil = time.UnixMilli(n(8))
	}
	return i, nil
}

// timeUntil converts a time of Info from ms; -1 means none.
func timeUntil(ms int64) time.Duration {
	if ms < 0 {
		return -1
	}
	return toDuration(ms)
}

func (s *scripts) dead(ctx context.Context, n int, after string) ([]storedLetter, error) {
	v, err := s.run(ctx, deadScript, nil, n, after)
	if err != nil {
		return nil, err
	}
	if v.Int == -1 {
		return nil, ErrNoJob
	}
	list := make([]storedLetter, len(v.Elems))
	for i, e := range v.Elems {
		if len(e.Elems) != 3 {
			return nil, errorReply("dead letters", e)
		}
		d := storedLetter{storedJob: storedJob{id: e.Elems[0].String(), due: e.Elems[1].Int}}
		deliveries, rest, _ := strings.Cut(e.Elems[2].String(), " ")
		size, rest, _ := strings.Cut(rest, " ")
		length, err := strconv.Atoi(size)
		if d.deliveries, _ = strconv.ParseInt(deliveries, 10, 64); err != nil || length > len(rest) {
			return nil, errorReply("dead letters", e)
		}
		d.reason, d.payload = rest[:length], rest[length:]
		list[i] = d
	}
	return list, nil
}
