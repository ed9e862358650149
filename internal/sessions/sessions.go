// Package sessions stores the sessions of web programs: what the modules contrib/scs and contrib/gorilla
// share.
//
//	Save ─▶ "name:token"  '1' | end, 15 digits of ms | data      lives for min(idle, life)
//	Find ─▶ the data; with an idle time the key lives for that time again, up to the end
//
// A session has a key of its own, so the server expires and evicts sessions one by one, and no sweeper
// runs. On ebb the deadline of a key with an idle time slides (SET with SLIDE), so Find is a GET,
// and the log has a record when the deadline has moved by a tenth; elsewhere Find is GETEX.
//
// The server's clock ends sessions. The end of a session whose idle time slides is the exception: it is an
// instant of the program's clock, as in the libraries.
//
// Start reading at Store.Find.
package sessions

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// Store is a store of sessions. Its methods are safe for concurrent use.
type Store struct {
	c    *conn.Conn
	what string
	name string
	idle time.Duration
}

// New returns the store of that name for a package, with which its errors begin. idle is the time without a
// Find after which a session ends; 0: only its life ends it. New sends nothing to the backend.
// Errors: ebb.ErrArgument.
func New(c *conn.Conn, what, name string, idle time.Duration) (*Store, error) {
	name, err := kit.Name(c, what, name)
	if err != nil {
		return nil, err
	}
	if idle < 0 || idle > 0 && idle < time.Millisecond {
		return nil, kit.Argument(what, name, "Idle is %v; it must be at least 1 ms, or 0 for none", idle)
	}
	return &Store{c: c, what: what, name: name, idle: idle}, nil
}

func (s *Store) key(token string) string { return s.name + ":" + token }

const (
	version  = '1'
	headSize = 16 // version and end
)

// Find returns the data of a session. What another program has stored under the key is not a session.
func (s *Store) Find(ctx context.Context, token string) (data []byte, found bool, err error) {
	var v string
	if s.idle == 0 || s.c.Capabilities().Native {
		v, err = s.c.Get(ctx, s.key(token))
	} else {
		v, err = s.c.GetEx(ctx, s.key(token), s.idle)
	}
	switch {
	case err == conn.ErrNil:
		return nil, false, nil
	case err != nil:
		return nil, false, s.Wrap("find", err)
	}
	data, end, ok := parse(v)
	if ok && s.idle > 0 && time.Now().UnixMilli() > end {
		return nil, false, s.Delete(ctx, token)
	}
	return data, ok, nil
}

// parse returns the data of a session, and the ms of its end.
func parse(v string) (data []byte, end int64, ok bool) {
	if len(v) < headSize || v[0] != version {
		return nil, 0, false
	}
	end, err := strconv.ParseInt(v[1:headSize], 10, 64)
	return []byte(v[headSize:]), end, err == nil
}

// Save stores a session that lives for life, or for the idle time if that is shorter. A life that is over
// deletes the session. With existing, Save stores only if the session is there, and reports that: one that
// was deleted meanwhile does not come back.
func (s *Store) Save(ctx context.Context, token string, data []byte, life time.Duration, existing bool) (bool, error) {
	if life <= 0 {
		return true, s.Delete(ctx, token)
	}
	body := append(fmt.Appendf(make([]byte, 0, headSize+len(data)), "%c%015d", version, time.Now().Add(life).UnixMilli()), data...)
	ttl, slides := life, false
	if s.idle > 0 && s.idle < life {
		ttl, slides = s.idle, s.c.Capabilities().Native
	}
	args := []any{"SET", s.key(token), body, "PX", kit.Millis(ttl)}
	if slides {
		args = append(args, "SLIDE")
	}
	if existing {
		args = append(args, "XX")
	}
	v, err := s.c.Do(ctx, args...)
	if err != nil {
		return false, s.Wrap("save", err)
	}
	return !v.IsNull(), nil
}

// Delete removes sessions.
func (s *Store) Delete(ctx context.Context, tokens ...string) error {
	for _, token := range tokens {
		if _, err := s.c.Del(ctx, s.key(token)); err != nil {
			return s.Wrap("delete", err)
		}
	}
	return nil
}

// All returns the tokens and the data of all sessions. It extends no deadline. It scans the
// keys of the backend. A session that comes or ends meanwhile may be missing.
func (s *Store) All(ctx context.Context) iter.Seq2[Session, error] {
	return func(yield func(Session, error) bool) {
		for key, err := range s.c.Scan(ctx, kit.Escape(s.name)+":*") {
			if err != nil {
				yield(Session{}, s.Wrap("list", err))
				return
			}
			v, err := s.peek(ctx, key)
			if err == conn.ErrNil {
				continue
			}
			if err != nil {
				yield(Session{}, s.Wrap("list", err))
				return
			}
			data, end, ok := parse(v)
			if !ok || s.idle > 0 && time.Now().UnixMilli() > end {
				continue
			}
			if !yield(Session{strings.TrimPrefix(key, s.name+":"), data}, nil) {
				return
			}
		}
	}
}

// Session is a session of All.
type Session struct {
	Token string
	Data  []byte
}

// peek reads a key without moving its deadline. A GET of a sliding key moves it, and COPY does not.
func (s *Store) peek(ctx context.Context, key string) (string, error) {
	if s.idle == 0 || !s.c.Capabilities().Native {
		return s.c.Get(ctx, key)
	}
	var b conn.Batch
	other := "copy:" + kit.ID() // not among the sessions
	b.Do("COPY", key, other)
	b.Do("GETDEL", other)
	replies, err := s.c.Tx(ctx, &b)
	switch {
	case err != nil:
		return "", err
	case len(replies) != 2:
		return "", fmt.Errorf("%w: %d replies to two commands", conn.ErrValue, len(replies))
	case replies[1].IsNull():
		return "", conn.ErrNil
	}
	return replies[1].Str, errors.Join(replies[0].Err(), replies[1].Err())
}

// String describes the store.
func (s *Store) String() string {
	how := "GET and SET"
	switch {
	case s.idle > 0 && s.c.Capabilities().Native:
		how = "GET and SET SLIDE"
	case s.idle > 0:
		how = "GETEX and SET"
	}
	caps := s.c.Capabilities()
	return fmt.Sprintf("%s %q (%s of %s)", s.what, s.name, how, strings.TrimSpace(caps.Server+" "+caps.Version))
}

// Wrap adds the store and the operation to an error.
func (s *Store) Wrap(doing string, err error) error {
	return fmt.Errorf("%s %q: %s: %w", s.what, s.name, doing, err)
}
