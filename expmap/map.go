package expmap

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/expiries"
	"github.com/ebbdb/ebb/internal/kit"
)

// Options configures a map. The zero value works. Whether there is an IdleTTL, Events and the
// codecs belong to the data: all programs that share a map must use the same.
type Options[K comparable, V any] struct {
	// Keys and Codec encode keys and values; nil: ebb.CodecOf.
	Keys  conn.Codec[K]
	Codec conn.Codec[V]
	// IdleTTL is the time for which an entry lives without being read or written, even if its own
	// time is not over; 0: only its own time counts. Get, GetMany and GetOrLoad count as reading,
	// iterating does not.
	IdleTTL time.Duration
	// MaxLen is the limit of entries in the map; 0: no limit. An entry above it is refused with
	// ErrFull; the map evicts nothing.
	MaxLen int64
	// Jitter lengthens each time by a random part of up to so many percent, so that entries that
	// were written together do not expire together.
	Jitter int
	// Events records expirations for OnExpired.
	Events bool
	// MaxEvents is the approximate number of events that are kept, delivered or not; 0: 100,000.
	// On other servers than ebb all events also expire a week after the last one.
	MaxEvents int64
	// LoadLease is the time for which other calls wait for a GetOrLoad whose program has died; 0:
	// 10 s. While the program lives, its loader may take longer.
	LoadLease time.Duration
	// Logger gets one description of how the map runs, and errors while calls wait. nil: no log.
	Logger *slog.Logger
}

// Map is a map on a backend. Its methods are safe for concurrent use. It holds no resource and
// need not be closed.
type Map[K comparable, V any] struct {
	*core[K, V]
	key   string    // of the hash
	sub   string    // its name in its family
	extra [3]string // the other keys of its layout
	feed  *expiries.Feed
	bad   error // why it cannot be used

	mu    sync.Mutex // guards what follows
	loads map[K]*load[V]
}

// core is what the maps of a family have in common.
type core[K comparable, V any] struct {
	c        *conn.Conn
	o        Options[K, V]
	bounds   expiries.Bounds
	home     string // the name given
	redisson bool
	force    mode // for tests
	once     sync.Once
}

// mode is how a map runs.
type mode int

const (
	modeAuto     mode = iota
	modeNative        // ebb's commands
	modeFields        // scripts on a hash whose fields have deadlines
	modeZset          // scripts on a hash and a sorted set of deadlines
	modeRedisson      // Redisson's layout
)

// valueBytes is how long a value may be that an event takes along; zsetPrelude has it
// too.
const valueBytes = 1 << 20

// New returns the map of that name, which is the key of its hash. It sends nothing to the
// backend. Errors: ebb.ErrArgument.
func New[K comparable, V any](c *conn.Conn, name string, opts ...Options[K, V]) (*Map[K, V], error) {
	k, err := newCore(c, "expmap", name, opts)
	if err != nil {
		return nil, err
	}
	m := &Map[K, V]{core: k, key: name, extra: [3]string{kit.Key(name, "due"), kit.Key(name, "expired"), kit.Key(name, "next")}}
	m.feed = k.newFeed(m.extra[1], kit.Escape(name))
	m.feed.Sweep = func(ctx context.Context, _ string) (int64, error) { return m.sweep(ctx) }
	return m, nil
}

// Redisson returns the map of that name in the layout of Redisson's MapCache, which Java
// programs can share. Their codec is StringCodec, or one that writes what opts.Keys and
// opts.Codec write. The map has no Events; IdleTTL is that of the entries that this program
// writes.
func Redisson[K comparable, V any](c *conn.Conn, name string, opts ...Options[K, V]) (*Map[K, V], error) {
	m, err := New(c, name, opts...)
	if err != nil {
		return nil, err
	}
	if m.o.Events {
		return nil, kit.Argument("expmap", name, "Events is set; Redisson's layout has no events")
	}
	m.redisson = true
	m.extra = [3]string{kit.Prefixed("redisson__timeout__set", name), kit.Prefixed("redisson__idle__set", name)}
	return m, nil
}

// Family is a group of maps that share options and one stream of events. Its methods are safe
// for concurrent use.
type Family[K comparable, V any] struct {
	*core[K, V]
	feed *expiries.Feed
}

// NewFamily returns the family of the maps whose keys are "{name}:" and a name of their own. In
// a cluster they share a slot. On servers without expiry rules a sorted set holds the next
// deadline of each map.
func NewFamily[K comparable, V any](c *conn.Conn, name string, opts ...Options[K, V]) (*Family[K, V], error) {
	k, err := newCore(c, "expmap: family", name, opts)
	if err != nil {
		return nil, err
	}
	f := &Family[K, V]{core: k}
	f.feed = k.newFeed(kit.Key(name, ":expired"), kit.Escape(kit.Key(name, ""))+"*")
	f.feed.Index = kit.Key(name, ":next")
	f.feed.Sweep = func(ctx context.Context, sub string) (int64, error) { return f.Map(sub).sweep(ctx) }
	return f, nil
}

// Map returns the family's map of that name. The name is not empty and does not begin with a
// colon; otherwise the methods of the map return ebb.ErrArgument. GetOrLoad lets one call for
// each key run in a process, for each Map value: keep the value if that matters. Map sends
// nothing to the backend.
func (f *Family[K, V]) Map(name string) *Map[K, V] {
	m := &Map[K, V]{core: f.core, key: kit.Key(f.home, name), sub: name, feed: f.feed}
	m.extra = [3]string{kit.Key(f.home, ":due:"+name), f.feed.Stream, f.feed.Index}
	if name == "" || name[0] == ':' {
		m.bad = kit.Argument("expmap: family", f.home, "a map of it is named %q; a name has at least one character and does not begin with a colon", name)
	}
	return m
}

// String describes the family.
func (f *Family[K, V]) String() string { return f.describe("maps", f.home) }

func newCore[K comparable, V any](c *conn.Conn, what, name string, opts []Options[K, V]) (*core[K, V], error) {
	o, err := kit.Make(c, what, name, opts)
	if err != nil {
		return nil, err
	}
	k := &core[K, V]{c: c, home: name, o: o}
	k.bounds = expiries.Bounds{MaxLen: k.o.MaxLen, Jitter: k.o.Jitter, MaxEvents: k.o.MaxEvents}
	bad := k.bounds.Check()
	switch o := k.o; {
	case bad != "":
	case o.IdleTTL < 0 || o.IdleTTL > expiries.Longest:
		bad = fmt.Sprintf("IdleTTL is %v: from 0 (none) to 100 years", o.IdleTTL)
	case o.LoadLease < 0:
		bad = fmt.Sprintf("LoadLease is %v: 0 (10 s) or more", o.LoadLease)
	}
	if bad != "" {
		return nil, kit.Argument(what, name, "%s", bad)
	}
	if k.o.Keys == nil {
		k.o.Keys = conn.CodecOf[K]()
	}
	if k.o.Codec == nil {
		k.o.Codec = conn.CodecOf[V]()
	}
	if k.o.LoadLease == 0 {
		k.o.LoadLease = 10 * time.Second
	}
	return k, nil
}

func (k *core[K, V]) newFeed(stream, match string) *expiries.Feed {
	return &expiries.Feed{
		Conn: k.c, Stream: stream,
		Rule:   expiries.Rule{Match: match, Level: "FIELD", MaxLen: k.bounds.MaxEvents, ValueBytes: valueBytes},
		Native: k.native,
	}
}

// native reports whether no call needs to sweep, and rules keep the events.
func (k *core[K, V]) native() bool {
	return k.c.Capabilities().Native && !k.redisson && (k.force == modeAuto || k.force == modeNative)
}

// mode says how an operation runs.
func (k *core[K, V]) mode() mode {
	caps := k.c.Capabilities()
	switch {
	case k.redisson:
		return modeRedisson
	case k.force != modeAuto:
		return k.force
	case caps.Native && k.o.IdleTTL == 0:
		return modeNative
	case caps.Native || caps.HashFieldTTL && !k.o.Events:
		return modeFields
	}
	return modeZset
}

func (k *core[K, V]) layout() *layout {
	switch k.mode() {
	case modeRedisson:
		return redissonLayout
	case modeZset:
		return zsetLayout
	}
	return fieldsLayout // also for what ebb's commands cannot do alone
}

// String describes the map: `map "sessions" (HSETEX of ebb)`.
func (m *Map[K, V]) String() string { return m.describe("map", m.key) }

func (k *core[K, V]) describe(what, name string) string {
	caps, how := k.c.Capabilities(), ""
	on := strings.TrimSpace(caps.Server + " " + caps.Version)
	switch k.mode() {
	case modeNative:
		how = "HSETEX of ebb"
	case modeFields:
		how = "HPEXPIRE in Lua scripts on " + on
	case modeZset:
		how = "Lua scripts and a sorted set of deadlines on " + on
	case modeRedisson:
		how = "Redisson's layout, Lua scripts on " + on
	}
	return fmt.Sprintf("%s %q (%s)", what, name, how)
}

// begin is called by each operation.
func (m *Map[K, V]) begin(ctx context.Context, writes bool) error {
	if m.bad != nil {
		return m.bad
	}
	m.once.Do(func() {
		if m.o.Logger != nil {
			m.o.Logger.Debug("expmap: first use", "map", m.String())
		}
	})
	if writes && m.o.Events {
		return m.feed.Ensure(ctx)
	}
	return nil
}

// run runs a script of the map's layout.
func (m *Map[K, V]) run(ctx context.Context, s *conn.Script, marker string, args ...any) (conn.Value, error) {
	keys := append(make([]string, 0, 5), m.key)
	events := int64(0)
	switch m.mode() {
	case modeRedisson:
		keys = append(keys, m.extra[:2]...)
	case modeZset:
		keys = append(keys, m.extra[:]...)
		if m.o.Events {
			events = m.bounds.MaxEvents
		}
	}
	if marker != "" {
		keys = append(keys, marker)
	}
	all := append(make([]any, 0, 6+len(args)), kit.Millis(m.o.IdleTTL), m.o.MaxLen, expiries.OnTheWay, events, kit.Millis(expiries.Keep), m.sub)
	return m.c.Script(ctx, s, keys, append(all, args...)...)
}
