package expmap

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/expiries"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/layouts"
	"github.com/ebbdb/ebb/internal/nearcache"
)

// Options configures a map. The zero value works. The codecs, Events, and whether there is an IdleTTL belong
// to the data: all programs that share a map must use the same.
type Options[K comparable, V any] struct {
	// Keys and Codec encode keys and values; nil: ebb.CodecOf.
	Keys  conn.Codec[K]
	Codec conn.Codec[V]
	// IdleTTL is the time for which an entry lives without being read or written, even if its own time is not
	// over; 0: only its own time counts. Get, GetMany and GetOrLoad count as reading; iterating does not.
	IdleTTL time.Duration
	// MaxLen is the limit of entries in the map; 0: no limit. An entry beyond it is refused with ErrFull, unless
	// there is an Eviction.
	MaxLen int64
	// Eviction makes a full map remove other entries for a new one, instead of refusing it: LRU or LFU. It needs
	// MaxLen, and belongs to the data. Set, SetMany, CompareAndSwap, Increment, Get, GetMany and GetOrLoad are
	// uses of an entry. An eviction is not an expiration: OnExpired does not report it.
	Eviction Eviction
	// Local is the number of values that Get and GetOrLoad keep in this process, the most recently used ones; 0:
	// none. A value is removed when any program changes a key of the map, or when its deadline passes; all are
	// removed when the connection is lost. If the backend cannot report changes (ebb.Conn.Track), a value is
	// kept for a tenth of its time, and at most for a second. Local cannot be combined with IdleTTL, because a
	// local read does not reach the backend; for the same reason it does not count as use for an Eviction. The
	// caller must close the map.
	Local int
	// Jitter lengthens each time by a random part, of at most this percentage, so that entries that
	// were written together do not expire together.
	Jitter int
	// Events records expirations for OnExpired. On ebb a map with Events, or a family, has an expiry
	// rule from its first write until Delete; a database has 128.
	Events bool
	// MaxEvents is the approximate number of events that are kept, delivered or not; 0: 100,000. On servers
	// other than ebb all events also expire a week after the last one.
	MaxEvents int64
	// LoadLease is the time for which other calls wait for a GetOrLoad whose program has died; 0:
	// 10 s. While the program lives, its loader may take longer.
	LoadLease time.Duration
	// SkipUnreadable makes an entry whose value Codec cannot decode count as missing for Get, GetMany
	// and GetOrLoad, which then loads and replaces it; All and Keys leave it out. Figures counts
	// such reads. Without it they return an error with ebb.ErrValue in its chain. The entry
	// still exists for SetNX, Len and MaxLen.
	SkipUnreadable bool
	// Logger receives one description of how the map runs, and errors while calls wait. nil: no log.
	Logger *slog.Logger
	// Layout is the layout of another library: redisson.NewMapCache, of the module redisson, sets it.
	// nil: ebb's layouts. A map with a Layout has no Events, and a family has none.
	Layout *Layout
}

// Layout is the layout of another library.
type Layout layouts.Map

// Map is a map on a backend. Its methods are safe for concurrent use. Without Options.Local it
// holds no resource and need not be closed.
type Map[K comparable, V any] struct {
	*core[K, V]
	key   string    // of the hash
	sub   string    // its name in its family
	extra [4]string // the other keys of its layout
	feed  *expiries.Feed
	bad   error // the reason why the map cannot be used; nil if it can

	mu    sync.Mutex // guards what follows
	loads map[K]*load[V]
}

// core is the common part of the maps of a family.
type core[K comparable, V any] struct {
	c      *conn.Conn
	o      Options[K, V]
	bounds expiries.Bounds
	keys   texts[K]     // Options.Keys
	values texts[V]     // Options.Codec
	home   string       // the name that New or NewFamily got
	other  *layouts.Map // Options.Layout
	force  mode         // for tests
	once   sync.Once

	near *nearcache.Cache // nil without Options.Local

	hits, misses, unreadable, local, evicted atomic.Int64
}

// Figures counts the results of this process's calls: those on a map, or on all maps of a family. Each key of
// GetMany counts.
type Figures struct {
	Hits       int64 // entries that Get, GetMany and GetOrLoad found
	Local      int64 // hits that this process had kept (Options.Local)
	Misses     int64 // keys without an entry; GetOrLoad counts each of its reads
	Unreadable int64 // entries that the codec could not decode: misses, and entries that All and Keys left out
	// Evicted counts the entries that the writes of this process have removed from a full map
	// (Options.Eviction). Other programs count their own. A write whose reply was lost counts none.
	Evicted int64
	// LocalEvicted counts the local values that were dropped because there were Options.Local others. Values
	// that a change or a deadline has ended do not count.
	LocalEvicted int64
}

// Figures returns the counts of this process so far.
func (k *core[K, V]) Figures() Figures {
	f := Figures{Hits: k.hits.Load(), Misses: k.misses.Load(), Unreadable: k.unreadable.Load(), Local: k.local.Load(),
		Evicted: k.evicted.Load()}
	if k.near != nil {
		f.LocalEvicted = k.near.Evicted()
	}
	return f
}

// Close removes the values of Options.Local, in a family those of all its maps, and ends the tracking that
// keeps them coherent. Later reads keep none. Without Local it does nothing. It may be called twice.
func (k *core[K, V]) Close() {
	if k.near != nil {
		k.near.Close()
	}
}

// mode selects how the operations of a map run.
type mode int

const (
	modeAuto   mode = iota
	modeNative      // ebb's commands
	modeFields      // scripts on a hash whose fields have deadlines
	modeZset        // scripts on a hash and a sorted set of deadlines
	modeLayout      // Options.Layout
)

// valueBytes is the greatest length of a value in an event; zsetPrelude has it too.
const valueBytes = 1 << 20

// New returns the map of that name, which is the key of its hash. It sends nothing to the
// backend. Errors: ebb.ErrArgument.
func New[K comparable, V any](c *conn.Conn, name string, opts ...Options[K, V]) (*Map[K, V], error) {
	k, err := newCore(c, "expmap", name, opts)
	if err != nil {
		return nil, err
	}
	m := &Map[K, V]{core: k, key: k.home, extra: [4]string{kit.Key(k.home, "due"), kit.Key(k.home, "expired"), kit.Key(k.home, "next"),
		kit.Key(k.home, "used")}}
	if k.other != nil {
		if k.o.Events {
			return nil, kit.Argument("expmap", name, "Events is set; %s has no events", k.other.Name())
		}
		m.extra = k.other.Keys(k.home)
	}
	m.localize()
	m.feed = k.newFeed(m.extra[1], kit.Escape(k.home))
	m.feed.Sweep = func(ctx context.Context, _ string) (int64, error) { return m.sweep(ctx) }
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
	if k.other != nil {
		return nil, kit.Argument("expmap: family", name, "Layout is set; a family has ebb's layouts")
	}
	f := &Family[K, V]{core: k}
	f.feed = k.newFeed(kit.Key(k.home, ":expired"), kit.Escape(kit.Key(k.home, ""))+"*")
	f.feed.Index = kit.Key(k.home, ":next")
	if k.o.Local > 0 { // the deadlines of map x are in :due:x
		prefix, due := kit.Key(k.home, ""), kit.Key(k.home, ":due:")
		k.near = nearcache.New(c, k.o.Local, func(key string) string {
			if sub, ok := strings.CutPrefix(key, due); ok {
				return prefix + sub
			}
			return key
		}, prefix)
	}
	f.feed.Sweep = func(ctx context.Context, sub string) (int64, error) { return f.Map(sub).sweep(ctx) }
	return f, nil
}

// Map returns the family's map of that name. The name must not be empty or begin with a colon; otherwise the
// methods of the map return ebb.ErrArgument. GetOrLoad runs one call at a time for each key and each Map
// value of a process: keep the Map value if that matters. Map sends nothing to the backend.
func (f *Family[K, V]) Map(name string) *Map[K, V] {
	m := &Map[K, V]{core: f.core, key: kit.Key(f.home, name), sub: name, feed: f.feed}
	m.extra = [4]string{kit.Key(f.home, ":due:"+name), f.feed.Stream, f.feed.Index, kit.Key(f.home, ":used:"+name)}
	if name == "" || name[0] == ':' {
		m.bad = kit.Argument("expmap: family", f.home, "the name of a map is %q; it must have at least one character and must "+
			"not begin with a colon", name)
	}
	return m
}

// String describes the family.
func (f *Family[K, V]) String() string { return f.describe("maps", f.home) }

func newCore[K comparable, V any](c *conn.Conn, what, name string, opts []Options[K, V]) (*core[K, V], error) {
	name, o, err := kit.Make(c, what, name, opts)
	if err != nil {
		return nil, err
	}
	k := &core[K, V]{c: c, home: name, o: o, other: (*layouts.Map)(o.Layout)}
	k.bounds = expiries.Bounds{MaxLen: k.o.MaxLen, Jitter: k.o.Jitter, MaxEvents: k.o.MaxEvents}
	bad := k.bounds.Check()
	switch o := k.o; {
	case bad != "":
	case o.IdleTTL < 0 || o.IdleTTL > expiries.Longest:
		bad = fmt.Sprintf("IdleTTL is %v; it must be from 0 (none) to 100 years", o.IdleTTL)
	case o.Local < 0:
		bad = fmt.Sprintf("Local is %d; it must be 0 (no local values) or more", o.Local)
	case o.Local > 0 && o.IdleTTL > 0:
		bad = fmt.Sprintf("Local is %d and IdleTTL is %v; use one of them, because a local read cannot restart the idle time", o.Local, o.IdleTTL)
	case o.Eviction < NoEviction || o.Eviction > LFU:
		bad = fmt.Sprintf("Eviction is %d; it must be NoEviction, LRU or LFU", o.Eviction)
	case o.Eviction != NoEviction && o.MaxLen == 0:
		bad = fmt.Sprintf("Eviction is %v and MaxLen is 0; an eviction needs a MaxLen", o.Eviction)
	case o.LoadLease < 0:
		bad = fmt.Sprintf("LoadLease is %v; it must be 0 (10 s) or more", o.LoadLease)
	}
	if bad != "" {
		return nil, kit.Argument(what, name, "%s", bad)
	}
	if k.keys, err = newTexts(o.Keys, "Keys"); err != nil {
		return nil, fmt.Errorf("%s %q: %w", what, name, err)
	}
	if k.values, err = newTexts(o.Codec, "Codec"); err != nil {
		return nil, fmt.Errorf("%s %q: %w", what, name, err)
	}
	k.o.Keys, k.o.Codec = k.keys.codec, k.values.codec
	k.o.LoadLease = cmp.Or(k.o.LoadLease, 10*time.Second)
	return k, nil
}

func (k *core[K, V]) newFeed(stream, match string) *expiries.Feed {
	return &expiries.Feed{
		Conn: k.c, Stream: stream,
		Rule:   expiries.Rule{Match: match, Level: "FIELD", MaxLen: k.bounds.MaxEvents, ValueBytes: valueBytes},
		Native: k.native,
	}
}

// plainReads reports whether a read is a plain command: the backend omits expired fields, and a read need not
// count as use.
func (k *core[K, V]) plainReads() bool {
	lay := k.mode()
	return lay == modeNative || lay == modeFields && k.o.IdleTTL == 0 && k.o.Eviction == NoEviction
}

// native reports whether the server removes expired entries and records their events.
func (k *core[K, V]) native() bool {
	return k.c.Capabilities().Native && k.other == nil && (k.force == modeAuto || k.force == modeNative)
}

// mode returns how an operation runs.
func (k *core[K, V]) mode() mode {
	caps := k.c.Capabilities()
	switch {
	case k.other != nil:
		return modeLayout
	case k.force != modeAuto:
		return k.force
	case caps.Native && k.o.IdleTTL == 0 && k.o.Eviction == NoEviction:
		return modeNative
	case caps.Native || caps.HashFieldTTL && !k.o.Events && k.o.Eviction == NoEviction:
		return modeFields
	}
	return modeZset
}

func (k *core[K, V]) layout() *layout {
	switch k.mode() {
	case modeLayout:
		return layoutOf(k.other)
	case modeZset:
		if k.o.Eviction != NoEviction {
			return evictingZsetLayout
		}
		return zsetLayout
	}
	if k.o.Eviction != NoEviction {
		return evictingFieldsLayout
	}
	return fieldsLayout // also for operations that one command of ebb cannot do
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
	case modeLayout:
		how = k.other.Name() + ", Lua scripts on " + on
	}
	return fmt.Sprintf("%s %q (%s)", what, name, how)
}

// begin must be called at the beginning of each operation.
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
	keys := append(make([]string, 0, 6), m.key)
	events := int64(0)
	mode := m.mode()
	switch mode {
	case modeLayout:
		keys = append(keys, m.extra[:]...)
	case modeZset:
		keys = append(keys, m.extra[:3]...)
		if m.o.Events {
			events = m.bounds.MaxEvents
		}
	}
	if mode != modeLayout && m.o.Eviction != NoEviction {
		keys = append(keys, m.extra[3])
	}
	if marker != "" {
		keys = append(keys, marker)
	}
	all := append(make([]any, 0, 8+len(args)), kit.Millis(m.o.IdleTTL), m.o.MaxLen, expiries.OnTheWay, events,
		kit.Millis(expiries.Keep), m.sub,
		m.c.Capabilities().Native, m.o.Eviction.String())
	return m.c.Script(ctx, s, keys, append(all, args...)...)
}

// runEvicting runs a script that may evict entries, as run does. It counts the evicted entries, and returns
// the script's reply without their number.
func (m *Map[K, V]) runEvicting(ctx context.Context, s *conn.Script, marker string, args ...any) (conn.Value, error) {
	v, err := m.run(ctx, s, marker, args...)
	if err == nil && len(v.Elems) == 2 {
		m.evicted.Add(v.Elems[1].Int)
		return v.Elems[0], nil
	}
	return v, err
}
