package expset

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/expiries"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/layouts"
)

// Options configures a set. The zero value works. Events and Codec belong to the data: all
// programs that share a set must use the same.
type Options[T comparable] struct {
	// Codec encodes members; nil: ebb.CodecOf.
	Codec conn.Codec[T]
	// MaxLen is the limit of members in a set; 0: no limit. A member beyond it is refused with ErrFull.
	MaxLen int64
	// Jitter lengthens each time by a random part, of at most this percentage, so that members that were written
	// together do not expire together.
	Jitter int
	// Events records expirations for OnExpired. On ebb a set with Events, or a family, has an expiry
	// rule from its first write until Delete; a database has 128.
	Events bool
	// MaxEvents is the approximate number of events that are kept, delivered or not; 0: 100,000. On servers
	// other than ebb all events also expire a week after the last one.
	MaxEvents int64
	// Logger receives one description of how the set runs, and errors while calls wait. nil: no log.
	Logger *slog.Logger
	// Layout is the layout of another library: redisson.NewSetCache, of the module redisson, sets it.
	// nil: ebb's layouts. A set with a Layout has no Events, and a family has none.
	Layout *Layout
}

// Layout is the layout of another library.
type Layout layouts.Set

// Set is a set on a backend. Its methods are safe for concurrent use. It holds no resource and
// need not be closed.
type Set[T comparable] struct {
	*core[T]
	key string
	sub string // its name in its family
	bad error  // the reason why the set cannot be used; nil if it can
}

// Family is a group of sets that share options and one stream of events. Its methods are safe
// for concurrent use.
type Family[T comparable] struct {
	*core[T]
}

// core is the common part of the sets of a family.
type core[T comparable] struct {
	c       *conn.Conn
	o       Options[T]
	bounds  expiries.Bounds
	home    string // the name that New or NewFamily got
	stream  string
	index   string
	feed    *expiries.Feed
	other   *layouts.Set // Options.Layout
	scripts bool         // for tests: use scripts even on ebb
	once    sync.Once
}

// New returns the set of that name, which is its key. It sends nothing to the backend. Errors:
// ebb.ErrArgument.
func New[T comparable](c *conn.Conn, name string, opts ...Options[T]) (*Set[T], error) {
	k, err := newCore(c, "expset", name, opts)
	if err != nil {
		return nil, err
	}
	if k.other != nil && k.o.Events {
		return nil, kit.Argument("expset", name, "Events is set; %s has no events", k.other.Name())
	}
	s := &Set[T]{core: k, key: k.home}
	k.stream = kit.Key(k.home, "expired")
	k.newFeed(kit.Escape(k.home))
	k.feed.Sweep = func(ctx context.Context, _ string) (int64, error) { return s.sweep(ctx) }
	return s, nil
}

// NewFamily returns the family of the sets whose keys are "{name}:" and a name of their own. In
// a cluster they share a slot. On servers without expiry rules a sorted set holds the next
// deadline of each set.
func NewFamily[T comparable](c *conn.Conn, name string, opts ...Options[T]) (*Family[T], error) {
	k, err := newCore(c, "expset: family", name, opts)
	if err != nil {
		return nil, err
	}
	if k.other != nil {
		return nil, kit.Argument("expset: family", name, "Layout is set; a family has ebb's layouts")
	}
	f := &Family[T]{core: k}
	k.stream, k.index = kit.Key(k.home, ":expired"), kit.Key(k.home, ":next")
	k.newFeed(kit.Escape(kit.Key(k.home, "")) + "*")
	k.feed.Index = k.index
	k.feed.Sweep = func(ctx context.Context, sub string) (int64, error) { return f.Set(sub).sweep(ctx) }
	return f, nil
}

// Set returns the family's set of that name. The name is not empty and does not begin with a
// colon; otherwise the methods of the set return ebb.ErrArgument. Set sends nothing to the
// backend.
func (f *Family[T]) Set(name string) *Set[T] {
	s := &Set[T]{core: f.core, key: kit.Key(f.home, name), sub: name}
	if name == "" || name[0] == ':' {
		s.bad = kit.Argument("expset: family", f.home, "the name of a set is %q; it must have at least one character and must "+
			"not begin with a colon", name)
	}
	return s
}

func newCore[T comparable](c *conn.Conn, what, name string, opts []Options[T]) (*core[T], error) {
	name, o, err := kit.Make(c, what, name, opts)
	if err != nil {
		return nil, err
	}
	k := &core[T]{c: c, home: name, o: o, other: (*layouts.Set)(o.Layout)}
	k.bounds = expiries.Bounds{MaxLen: k.o.MaxLen, Jitter: k.o.Jitter, MaxEvents: k.o.MaxEvents}
	if bad := k.bounds.Check(); bad != "" {
		return nil, kit.Argument(what, name, "%s", bad)
	}
	if k.o.Codec, err = kit.Codec(o.Codec, "Codec"); err != nil {
		return nil, fmt.Errorf("%s %q: %w", what, name, err)
	}
	return k, nil
}

func (k *core[T]) newFeed(match string) {
	k.feed = &expiries.Feed{
		Conn: k.c, Stream: k.stream, Native: k.native,
		Rule: expiries.Rule{Match: match, Level: "MEMBER", MaxLen: k.bounds.MaxEvents},
	}
}

// native reports whether the set runs on ebb's commands.
func (k *core[T]) native() bool {
	return k.c.Capabilities().Native && k.other == nil && !k.scripts
}

// String describes the set: `set "online" (SADDEX of ebb)`.
func (s *Set[T]) String() string { return s.describe("set", s.key) }

// String describes the family.
func (f *Family[T]) String() string { return f.describe("sets", f.home) }

func (k *core[T]) describe(what, name string) string {
	caps := k.c.Capabilities()
	how := "Lua scripts and a sorted set by deadline on "
	if k.other != nil {
		how = k.other.Name() + ", Lua scripts on "
	}
	how += strings.TrimSpace(caps.Server + " " + caps.Version)
	if k.native() {
		how = "SADDEX of ebb"
	}
	return fmt.Sprintf("%s %q (%s)", what, name, how)
}

// begin must be called at the beginning of each operation.
func (s *Set[T]) begin(ctx context.Context, writes bool) error {
	if s.bad != nil {
		return s.bad
	}
	s.once.Do(func() {
		if s.o.Logger != nil {
			s.o.Logger.Debug("expset: first use", "set", s.String())
		}
	})
	if writes && s.o.Events {
		return s.feed.Ensure(ctx)
	}
	return nil
}

// run runs a script.
func (s *Set[T]) run(ctx context.Context, script *conn.Script, args ...any) (conn.Value, error) {
	events, grace, never, dead := int64(0), kit.Millis(expiries.Keep), "inf", "("
	if s.o.Events {
		events = s.bounds.MaxEvents
	}
	if s.other != nil {
		never, dead, grace = s.other.Never(), "", -1
	}
	index := s.index
	if index == "" {
		index = kit.Key(s.home, "next") // not used; it is in the same slot
	}
	all := append(make([]any, 0, 7+len(args)), s.o.MaxLen, expiries.OnTheWay, events, grace, s.sub, never, dead)
	return s.c.Script(ctx, script, []string{s.key, s.stream, index}, append(all, args...)...)
}

func (k *core[T]) members(members []T) ([]any, error) {
	args := make([]any, len(members))
	for i, m := range members {
		b, err := k.o.Codec.Encode(m)
		if err != nil {
			return nil, err
		}
		args[i] = b
	}
	return args, nil
}
