package stream

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// Tail is the position of a reader that gets only entries that are added from now on. The empty
// string is the position before the first entry.
const Tail = "$"

// field is the one field of an entry that Add has appended. One that a delay queue has delivered, for AddAt or
// Schedule, has the fields id, payload and due.
const (
	field   = "v"
	payload = "payload"
)

const (
	// readWait is the time that one read waits at the backend; then comes the next. It
	// bounds how long a connection that died without a word goes unnoticed.
	readWait = 5 * time.Second
	// maxRead is the number of entries that one read brings.
	maxRead = 100
	// chunk is the number of old entries that a call takes out one by one. What lies in
	// whole nodes of the stream goes at once, up to chunkNodes entries.
	chunk, chunkNodes = 100, 10_000
)

// Options configures a stream. The zero value keeps all entries.
type Options[T any] struct {
	// Codec encodes values; nil: ebb.CodecOf.
	Codec conn.Codec[T]
	// MaxLen is the approximate limit of entries. The backend removes older entries in nodes of
	// some hundred (MAXLEN ~). 0: no limit.
	MaxLen int64
	// Retention is the time for which entries are kept, by the backend's clock. Add and Trim
	// remove older entries. 0: no limit.
	Retention time.Duration
	// Logger gets a description at debug level at the first use; nil: no log.
	Logger *slog.Logger
}

// Stream is a log of values. Its methods are safe for concurrent use.
type Stream[T any] struct {
	c    *conn.Conn
	name string
	o    Options[T]
	once sync.Once // the line in the log
}

// Entry is a value of a stream and its ID.
type Entry[T any] struct {
	ID    string
	Value T
}

// Time returns the instant at which the entry was added, by the backend's clock, from its ID.
func (e Entry[T]) Time() time.Time { return timeOf(e.ID) }

func timeOf(id string) time.Time {
	ms, _, _ := strings.Cut(id, "-")
	n, _ := strconv.ParseInt(ms, 10, 64)
	return time.UnixMilli(n)
}

// New returns the stream of that name, which is its key. It sends nothing to the backend.
// Errors: ebb.ErrArgument.
func New[T any](c *conn.Conn, name string, opts ...Options[T]) (*Stream[T], error) {
	name, o, err := kit.Make(c, "stream", name, opts)
	if err != nil {
		return nil, err
	}
	if o.MaxLen < 0 || o.Retention < 0 {
		return nil, kit.Argument("stream", name, "MaxLen is %d and Retention %v; neither may be negative, and 0 keeps everything",
			o.MaxLen, o.Retention)
	}
	if o.Codec, err = kit.Codec(o.Codec, "Codec"); err != nil {
		return nil, fmt.Errorf("stream %q: %w", name, err)
	}
	return &Stream[T]{c: c, name: name, o: o}, nil
}

// addScript adds an entry and removes some entries that are too old: whole nodes first, then the beginning of one.
var addScript = conn.NewScript(`
local id
if ARGV[2] ~= '0' then
	id = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', 'v', ARGV[1])
else
	id = redis.call('XADD', KEYS[1], '*', 'v', ARGV[1])
end
` + trimOld + `
return id
`)

// trimScript removes entries beyond MaxLen, and some that are too old. The reply is their number.
var trimScript = conn.NewScript(`
local before = redis.call('XLEN', KEYS[1])
if before == 0 then return 0 end
if ARGV[2] ~= '0' then
	redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', ARGV[2], 'LIMIT', ARGV[5])
	local over = math.min(redis.call('XLEN', KEYS[1]) - tonumber(ARGV[2]), tonumber(ARGV[4]))
	if over > 0 then
		for _, e in ipairs(redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', over)) do
			redis.call('XDEL', KEYS[1], e[1])
		end
	end
end
` + trimOld + `
return before - redis.call('XLEN', KEYS[1])
`)

// trimOld needs in ARGV[3] the retention in ms, 0 for none, and in ARGV[4] and [5]
// chunk and chunkNodes.
const trimOld = `
if ARGV[3] ~= '0' then
	local t = redis.call('TIME')
	local oldest = t[1] * 1000 + math.floor(t[2] / 1000) - tonumber(ARGV[3])
	if oldest > 0 then
		redis.call('XTRIM', KEYS[1], 'MINID', '~', string.format('%.0f', oldest), 'LIMIT', ARGV[5])
		local last = string.format('%.0f', oldest - 1)
		for _, e in ipairs(redis.call('XRANGE', KEYS[1], '-', last, 'COUNT', ARGV[4])) do
			redis.call('XDEL', KEYS[1], e[1])
		end
	end
end
`

// Add appends a value and returns its ID, which is greater than all IDs before. After an error
// with ebb.ErrUnavailable or a context's error in its chain, the stream may have the value.
func (s *Stream[T]) Add(ctx context.Context, v T) (id string, err error) {
	s.log(ctx)
	data, err := s.o.Codec.Encode(v)
	if err != nil {
		return "", s.failed("add", err)
	}
	var r conn.Value
	switch {
	case s.o.Retention > 0:
		r, err = s.c.Script(ctx, addScript, []string{s.name}, data, s.o.MaxLen, kit.Millis(s.o.Retention), chunk, chunkNodes)
	case s.o.MaxLen > 0:
		r, err = s.c.Do(ctx, "XADD", s.name, "MAXLEN", "~", s.o.MaxLen, "*", field, data)
	default:
		r, err = s.c.Do(ctx, "XADD", s.name, "*", field, data)
	}
	if err != nil {
		return "", s.failed("add", err)
	}
	return r.AsString()
}

// Trim removes exactly the entries beyond MaxLen and Retention, in calls of some hundred
// entries, and returns how many it removed. Add does this too; use Trim for a stream without
// new entries.
func (s *Stream[T]) Trim(ctx context.Context) (removed int64, err error) {
	if s.o.MaxLen == 0 && s.o.Retention == 0 {
		return 0, nil
	}
	for {
		r, err := s.c.Script(ctx, trimScript, []string{s.name}, "", s.o.MaxLen, kit.Millis(s.o.Retention), chunk, chunkNodes)
		if err != nil {
			return removed, s.failed("trim", err)
		}
		n, err := r.AsInt()
		if removed += n; n == 0 || err != nil {
			return removed, err
		}
	}
}

// Len returns the number of entries. O(1).
func (s *Stream[T]) Len(ctx context.Context) (int64, error) {
	r, err := s.c.Do(ctx, "XLEN", s.name)
	if err != nil {
		return 0, s.failed("len", err)
	}
	return r.AsInt()
}

// Range returns up to n entries from one ID to another, both included; "-" and "+" are the
// ends. If the codec cannot decode an entry, Range ends with ebb.ErrValue.
func (s *Stream[T]) Range(ctx context.Context, from, to string, n int) ([]Entry[T], error) {
	r, err := s.c.Do(ctx, "XRANGE", s.name, from, to, "COUNT", n)
	if err != nil {
		return nil, s.failed("range", err)
	}
	all := make([]Entry[T], 0, len(r.Elems))
	for _, e := range r.Elems {
		x, err := s.entry(e)
		if err != nil {
			return all, s.failed("range", err)
		}
		all = append(all, x)
	}
	return all, nil
}

// Delete removes the stream with its entries, groups, delayed entries, schedules and dead letters. To find
// the keys of groups that were destroyed, it searches all keys of the backend, O(keys).
func (s *Stream[T]) Delete(ctx context.Context) error {
	_, err := s.c.Del(ctx, s.later(), s.name)
	if err == nil {
		err = kit.Sweep(ctx, s.c, []string{kit.Key(s.name, "retry:"), kit.Key(s.name, "dead:")}, "zset", "stream")
	}
	if err != nil {
		return s.failed("delete", err)
	}
	return nil
}

// Remove removes entries by ID, and returns how many of them existed. O(n) for n IDs.
func (s *Stream[T]) Remove(ctx context.Context, ids ...string) (int64, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	args := []any{"XDEL", s.name}
	for _, id := range ids {
		args = append(args, id)
	}
	r, err := s.c.Do(ctx, args...)
	if err != nil {
		return 0, s.failed("remove", err)
	}
	return r.AsInt()
}

// Read yields the entries after an ID, "" for all entries and Tail for new ones. Then it waits
// for more, until the context ends; it does not yield that end. After an error with
// ebb.ErrUnavailable in its chain, and after a temporary error reply such as LOADING, a loop
// that continues loses nothing: Read continues at its position when the backend replies again.
// After ebb.ErrValue, whose text has the entry's ID, the next entry follows. Any other error is
// the last.
func (s *Stream[T]) Read(ctx context.Context, after string) iter.Seq2[Entry[T], error] {
	return func(yield func(Entry[T], error) bool) {
		s.log(ctx)
		at, failures := after, 0
		for ctx.Err() == nil {
			batch, err := s.next(ctx, &at)
			if kit.Ended(ctx, err) {
				return
			}
			if err != nil {
				if !yield(Entry[T]{}, s.failed("read", err)) || !conn.Temporary(err) || retryPause(ctx, failures) != nil {
					return
				}
				failures++
				continue
			}
			failures = 0
			for _, e := range batch {
				x, err := s.entry(e)
				if err != nil {
					err = s.failed("read", err)
				}
				if at = x.ID; !yield(x, err) || ctx.Err() != nil {
					return
				}
			}
		}
	}
}

// next waits for entries after at. It replaces "" and Tail in at by an ID.
func (s *Stream[T]) next(ctx context.Context, at *string) ([]conn.Value, error) {
	switch *at {
	case "":
		*at = "0-0"
	case Tail:
		r, err := s.c.Do(ctx, "XREVRANGE", s.name, "+", "-", "COUNT", 1)
		if err != nil {
			return nil, err
		}
		if *at = "0-0"; len(r.Elems) > 0 && len(r.Elems[0].Elems) > 0 {
			*at = r.Elems[0].Elems[0].Str
		}
	}
	r, err := s.c.Block(ctx, "XREAD", "COUNT", maxRead, "BLOCK", readWait.Milliseconds(), "STREAMS", s.name, *at)
	return entriesOf(r), err
}

// entriesOf returns the entries of the one stream that XREAD reads: a map
// in RESP3, an array of pairs in RESP2.
func entriesOf(r conn.Value) []conn.Value {
	switch {
	case len(r.Elems) == 0:
		return nil
	case len(r.Elems[0].Elems) == 2:
		return r.Elems[0].Elems[1].Elems
	case len(r.Elems) == 2:
		return r.Elems[1].Elems
	}
	return nil
}

// entry returns the Entry of an ID and fields. With an error too, it has the ID.
func (s *Stream[T]) entry(v conn.Value) (e Entry[T], err error) {
	if len(v.Elems) < 2 {
		return e, fmt.Errorf("%w: %s is not an entry", conn.ErrValue, v)
	}
	e.ID = v.Elems[0].Str
	data, ok := v.Elems[1].Get(field)
	if !ok { // a delay queue has delivered it
		data, ok = v.Elems[1].Get(payload)
	}
	if !ok {
		return e, fmt.Errorf("%w: entry %s has no field %q", conn.ErrValue, e.ID, field)
	}
	if e.Value, err = s.o.Codec.Decode([]byte(data.Str)); err != nil {
		return e, fmt.Errorf("entry %s: %w", e.ID, err)
	}
	return e, nil
}

// retryPause waits before attempt n: long enough that a backend in an outage gets few requests, and short enough that the caller soon
// notices its end.
func retryPause(ctx context.Context, n int) error {
	return kit.Sleep(ctx, kit.Backoff(10*time.Millisecond, time.Second, n))
}

// String describes the stream.
func (s *Stream[T]) String() string {
	keeps := "everything is kept"
	switch {
	case s.o.MaxLen > 0 && s.o.Retention > 0:
		keeps = fmt.Sprintf("about %d entries of the last %v are kept", s.o.MaxLen, s.o.Retention)
	case s.o.MaxLen > 0:
		keeps = fmt.Sprintf("about %d entries are kept", s.o.MaxLen)
	case s.o.Retention > 0:
		keeps = fmt.Sprintf("entries of the last %v are kept, by a Lua script", s.o.Retention)
	}
	return fmt.Sprintf("stream %q (%s)", s.name, keeps)
}

func (s *Stream[T]) log(ctx context.Context) {
	if s.o.Logger == nil {
		return
	}
	s.once.Do(func() { s.o.Logger.DebugContext(ctx, s.String(), "backend", s.c.String()) })
}

// failed adds the stream and the operation to an error.
func (s *Stream[T]) failed(doing string, err error) error {
	return fmt.Errorf("stream %q: %s: %w", s.name, doing, err)
}
