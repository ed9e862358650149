package migrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// A source copies the keys of one server. All its keys travel in one order, over one connection to the target. So
// the last state of a key that was read is the last that is written.
type source struct {
	c            *copier
	p            *peer
	data, target *client
	batch        int
	streams      map[place]bool
	flushes      int64 // calls of commands that change keys without events
	counts       [2]int64
	setting      string // the source's notify-keyspace-events; "": it does not tell

	feed   *client
	pings  sync.Mutex    // guards the writes of feed
	ended  chan struct{} // closed when the feed's goroutine has ended
	pongs  chan string   // the token of a barrier
	mu     sync.Mutex    // guards what follows
	tokens []string      // the tokens of PINGs without a reply yet, in their order
	dirty  map[place]bool
	broken error // why the feed has ended
}

// place is a key of a database.
type place struct {
	db  int
	key string
}

func (s *source) open(ctx context.Context) (err error) {
	if _, err = s.p.refresh(ctx); err != nil {
		return err
	}
	s.flushes, s.counts = s.unseen(), s.counters()
	if s.data, err = s.p.dial(ctx); err != nil {
		return err
	}
	if s.target, err = s.c.m.to.dial(ctx); err != nil {
		return err
	}
	if s.feed, err = s.p.dial(ctx); err != nil {
		return err
	}
	s.feed.add("PSUBSCRIBE", "__keyevent@*__:*")
	if err := s.feed.flush(ctx); err != nil {
		return err
	}
	if v, err := s.feed.reply(ctx); err != nil || v.Err() != nil {
		return fmt.Errorf("FROM %s: PSUBSCRIBE to keyspace events: %w", s.p, errors.Join(err, v.Err()))
	}
	s.ended = make(chan struct{})
	go s.listen()
	return nil
}

// unseen returns the number of calls of commands that change keys without events, by INFO commandstats.
func (s *source) unseen() (n int64) {
	for _, name := range []string{"flushall", "flushdb", "swapdb"} {
		var calls int64
		_, _ = fmt.Sscanf(s.p.info["cmdstat_"+name], "calls=%d", &calls)
		n += calls
	}
	return n
}

// counters returns numbers of INFO stats that only CONFIG RESETSTAT makes smaller.
func (s *source) counters() [2]int64 {
	return [2]int64{number(s.p.info, "total_commands_processed"), number(s.p.info, "total_connections_received")}
}

// quiet is the time without an event after which the source is sent a PING.
var quiet = 10 * time.Second

// ping sends a PING behind the writes so far: its reply comes behind their events.
func (s *source) ping(ctx context.Context, token string) error {
	s.pings.Lock()
	defer s.pings.Unlock()
	s.mu.Lock()
	s.tokens = append(s.tokens, token)
	s.mu.Unlock()
	s.feed.add("PING", token)
	return s.feed.flush(ctx)
}

// answered takes the reply to the first PING without one.
func (s *source) answered() {
	s.mu.Lock()
	token := ""
	if len(s.tokens) > 0 {
		token, s.tokens = s.tokens[0], s.tokens[1:]
	}
	s.mu.Unlock()
	if token == cutoverToken {
		select {
		case s.pongs <- token:
		default:
		}
	}
}

// receive returns the next message. A source without writes is silent: it is sent a PING, and only its silence after that is an error.
func (s *source) receive() (resp.Value, error) {
	_ = s.feed.nc.SetReadDeadline(time.Now().Add(quiet))
	if _, err := s.feed.r.Peek(1); errors.Is(err, os.ErrDeadlineExceeded) {
		if err := s.ping(context.Background(), "alive"); err != nil {
			return resp.Value{}, err
		}
	}
	_ = s.feed.nc.SetReadDeadline(time.Now().Add(replyTimeout))
	return wire.ReadValue(s.feed.r)
}

// listen collects the keys that events name. It reads without pause, because a server cuts subscribers that are slow.
func (s *source) listen() {
	defer close(s.ended)
	for {
		v, err := s.receive()
		if err != nil {
			s.mu.Lock()
			s.broken = err
			s.mu.Unlock()
			close(s.pongs)
			return
		}
		switch e := v.Elems; {
		case len(e) == 4 && e[0].Str == "pmessage":
			channel, _, _ := strings.Cut(strings.TrimPrefix(e[2].Str, "__keyevent@"), "__")
			db, err := strconv.Atoi(channel)
			if err != nil || db < 0 {
				continue
			}
			s.c.events.Add(1)
			s.mu.Lock()
			s.dirty[place{db, e[3].Str}] = true
			s.mu.Unlock()
		case len(e) == 2 && e[0].Str == "pong", v.Kind == resp.KindError: // MISCONF: the error comes behind the events as well
			s.answered()
		}
	}
}

// take returns the keys that have changed since the last take.
func (s *source) take() map[place]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.dirty) == 0 {
		return nil
	}
	d := s.dirty
	s.dirty = map[place]bool{}
	return d
}

func (s *source) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.dirty)
}

// batch is keys of one database with their states.
type batch struct {
	db     int
	keys   []string
	states []state
}

// transfer lets produce read batches while those before are written to the target, and returns when all are.
func (s *source) transfer(ctx context.Context, produce func(emit func(db int, keys []string) error) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches, done := make(chan batch, 1), make(chan error, 1)
	go func() {
		for b := range batches {
			if err := s.write(ctx, b); err != nil {
				done <- err
				cancel()
				for range batches { // until produce notices
				}
				return
			}
		}
		done <- nil
	}()
	err := produce(func(db int, keys []string) error { return s.read(ctx, db, keys, batches) })
	close(batches)
	if failed := <-done; failed != nil {
		return failed
	}
	return err
}

// read reads keys and hands them on, in batches of a bounded size.
func (s *source) read(ctx context.Context, db int, keys []string, to chan<- batch) error {
	for len(keys) > 0 {
		n := min(s.batch, len(keys))
		states, err := read(ctx, s.p, s.data, db, keys[:n])
		if err != nil {
			return again(err)
		}
		bytes := 0
		for i, st := range states {
			bytes += len(st.payload)
			if st.exists && isStream(st.payload) {
				s.streams[place{db, keys[i]}] = true
			}
		}
		switch {
		case bytes > batchBytes:
			s.batch = max(1, s.batch/2)
		case bytes < batchBytes/8:
			s.batch = min(batchKeys, 2*s.batch)
		}
		select {
		case to <- batch{db, keys[:n], states}:
		case <-ctx.Done():
			return ctx.Err()
		}
		keys = keys[n:]
	}
	return nil
}

// isStream reports whether a payload of DUMP is a stream's, in any of its layouts.
func isStream(payload string) bool {
	return payload != "" && (payload[0] == 15 || payload[0] == 19 || payload[0] == 21)
}

// write restores a batch on the target, and deletes the keys that the source no longer has.
func (s *source) write(ctx context.Context, b batch) error {
	c := s.target
	if err := c.use(ctx, b.db); err != nil {
		return again(err)
	}
	for i, key := range b.keys {
		switch st := b.states[i]; {
		case st.moved:
			c.add("PING") // another node has it; check sees the new layout
		case !st.exists:
			c.add("DEL", key)
		default:
			c.add("RESTORE", key, strconv.FormatInt(st.deadline, 10), st.payload, "REPLACE", "ABSTTL")
		}
	}
	if err := c.flush(ctx); err != nil {
		return again(fmt.Errorf("TO %s: %w", s.c.m.to, err))
	}
	for _, key := range b.keys {
		v, err := c.reply(ctx)
		if err != nil {
			return again(fmt.Errorf("TO %s: %w", s.c.m.to, err))
		}
		if err := v.Err(); err != nil {
			if !strings.HasPrefix(v.Str, "ERR") { // OOM, READONLY, MISCONF, NOPERM: the next key fails as well
				return fmt.Errorf("TO %s: RESTORE %s: %w", s.c.m.to, wire.AppendQuoted(nil, key), err)
			}
			s.c.refuse(b.db, key, err)
		}
	}
	return nil
}

// copyAll copies all keys of the source.
func (s *source) copyAll(ctx context.Context) error {
	return s.transfer(ctx, func(emit func(int, []string) error) error {
		for _, d := range databases(s.p.info) {
			err := scan(ctx, s.data, d.n, batchKeys, func(keys []string) (bool, error) {
				if err := emit(d.n, keys); err != nil {
					return false, err
				}
				n := s.c.copied.Add(int64(len(keys)))
				s.c.m.out.progress(time.Second, "copy %3d %%  %d of some %d keys, %d keys/s, %d changed meanwhile",
					percent(n, s.c.all), n, s.c.all, perSecond(n, s.c.began), s.waiting())
				return true, nil
			})
			if err != nil {
				return again(err)
			}
		}
		return nil
	})
}

// copyKeys copies some keys of the source again.
func (s *source) copyKeys(ctx context.Context, keys map[place]bool) error {
	if len(keys) == 0 {
		return nil
	}
	by := map[int][]string{}
	for k := range keys {
		by[k.db] = append(by[k.db], k.key)
	}
	return s.transfer(ctx, func(emit func(int, []string) error) error {
		for db, keys := range by {
			err := s.data.use(ctx, db)
			if refused, ok := errors.AsType[resp.ReplyError](err); ok && refused.Code() == "ERR" {
				continue // a client has published this: there is no such database
			}
			if err := emit(db, keys); err != nil {
				return err
			}
		}
		return nil
	})
}
