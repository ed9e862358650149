package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/fresh"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/nearcache"
)

// Options configures a cache. The zero value works. The codecs and the name belong to the data: all programs
// that share a cache must use the same.
type Options[K comparable, V any] struct {
	// Keys and Codec encode keys and values; nil: ebb.CodecOf.
	Keys  conn.Codec[K]
	Codec conn.Codec[V]
	// Fresh is the time for which a value is fresh; 0: a minute.
	Fresh time.Duration
	// TTL is the time after which a value expires; it is longer than Fresh. 0: ten times Fresh.
	TTL time.Duration
	// Jitter lengthens Fresh and TTL by a random share, of at most this percentage, so that values that were
	// loaded together do not go stale together.
	Jitter int
	// Lease is the time for which other programs wait for a loader whose program has died, up to an hour; 0: 5
	// s. While the program lives, its loader may take longer.
	Lease time.Duration
	// AbsentTTL is the time for which the absence of a value is remembered, when a loader returns ErrAbsent;
	// 0: absence is not remembered.
	AbsentTTL time.Duration
	// Local is the number of fresh values that Get keeps in this process, the most recently used ones; 0: none.
	// A value is removed when it becomes stale, or when any program changes it; all are removed when the
	// connection is lost. If the backend cannot report changes (ebb.Conn.Track), a value is kept for a tenth of
	// Fresh at most.
	Local int
	// Alone makes Get call its loader itself while the backend does not answer, once per key in this process;
	// the result is not stored. After a call without an answer, Get does so at once until the backend answers
	// again, except with a cluster, whose other nodes may answer. Get waits at most 100 ms for a value to be
	// stored. Without Alone, Get returns the error.
	Alone bool
	// Logger receives one description of how the cache runs, and the errors of loads in the background. nil: no
	// log.
	Logger *slog.Logger
}

// State describes the age of a value.
type State int

// These are the states.
const (
	Absent = State(fresh.Absent) // there is no value
	Fresh  = State(fresh.Fresh)  // the value is fresh
	Stale  = State(fresh.Stale)  // the value is stale: the next Get lets one program load another
)

// String returns the state in a word.
func (s State) String() string {
	switch s {
	case Fresh:
		return "fresh"
	case Stale:
		return "stale"
	}
	return "absent"
}

// Figures counts the results of this process's calls of Get.
type Figures struct {
	Fresh  int64 // fresh values, including remembered absence
	Local  int64 // of these, values that were kept in this process (Options.Local)
	Stale  int64 // stale values that were returned
	Waited int64 // calls that waited for another call's load
	Loads  int64 // calls of loaders
	Failed int64 // loads that returned an error other than ErrAbsent
	Lost   int64 // loads whose value was not stored, because the key had changed meanwhile
	Alone  int64 // loads without the backend
}

// Cache is a cache on a backend. Its methods are safe for concurrent use.
type Cache[K comparable, V any] struct {
	c       *conn.Conn
	name    string
	o       Options[K, V]
	scripts bool // for tests: use scripts even on ebb
	once    sync.Once
	near    *nearcache.Cache // nil without Options.Local

	ctx    context.Context // of loads in the background
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex // guards what follows
	closed  bool
	flights map[string]*flight[V]

	away atomic.Bool // with Options.Alone: the backend does not answer

	fresh, local, stale, waited, loads, failed, superseded, alone atomic.Int64
}

// flight is a call of Get that loads or waits, while other calls of this process wait for it.
type flight[V any] struct {
	done  chan struct{} // closed when the other fields are set
	value V
	err   error
	retry bool // the context of the call has ended, or the key has changed: another call continues

	joined bool // another call waits; the cache's mu guards it
}

// New returns the cache of that name. It sends nothing to the backend. The caller must close the cache. No
// name may be the beginning of another up to a colon, as "user" is of "user:1": the two could share entries.
// Errors: ebb.ErrArgument.
func New[K comparable, V any](c *conn.Conn, name string, opts ...Options[K, V]) (*Cache[K, V], error) {
	name, o, err := kit.Make(c, "cache", name, opts)
	if err != nil {
		return nil, err
	}
	o.Fresh = cmp.Or(o.Fresh, time.Minute)
	if o.TTL == 0 && o.Fresh > 0 && o.Fresh <= maxSpan/10 {
		o.TTL = 10 * o.Fresh
	}
	o.Lease = cmp.Or(o.Lease, 5*time.Second)
	bad := ""
	switch {
	case o.Fresh < time.Millisecond || o.Fresh > maxSpan:
		bad = fmt.Sprintf("Fresh is %v; it must be from 1 ms to 10 years", o.Fresh)
	case o.TTL <= o.Fresh || o.TTL > maxSpan:
		bad = fmt.Sprintf("TTL is %v; it must be longer than Fresh, which is %v, and at most 10 years", o.TTL, o.Fresh)
	case o.Jitter < 0 || o.Jitter > 100:
		bad = fmt.Sprintf("Jitter is %d; it must be from 0 to 100 percent", o.Jitter)
	case o.Lease < time.Millisecond || o.Lease > time.Hour:
		bad = fmt.Sprintf("Lease is %v; it must be from 1 ms to an hour", o.Lease)
	case o.Local < 0:
		bad = fmt.Sprintf("Local is %d; it must be 0 (no local values) or more", o.Local)
	case o.AbsentTTL < 0 || o.AbsentTTL > maxSpan:
		bad = fmt.Sprintf("AbsentTTL is %v; it must be from 0 (absence is not remembered) to 10 years", o.AbsentTTL)
	}
	if bad != "" {
		return nil, kit.Argument("cache", name, "%s", bad)
	}
	if o.Keys, err = kit.Codec(o.Keys, "Keys"); err != nil {
		return nil, fmt.Errorf("cache %q: %w", name, err)
	}
	if o.Codec, err = kit.Codec(o.Codec, "Codec"); err != nil {
		return nil, fmt.Errorf("cache %q: %w", name, err)
	}
	x := &Cache[K, V]{c: c, name: name, o: o, flights: map[string]*flight[V]{}}
	if o.Local > 0 {
		x.near = nearcache.New(c, o.Local, nil, "{"+name+":")
	}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	return x, nil
}

// maxSpan bounds the options that are times.
const maxSpan = 10 * 365 * 24 * time.Hour

// Close ends the loads in the background, waits for them, and removes the values of Options.Local. Other
// programs that share the cache continue, and may load these keys again. Running calls of Get continue too;
// later calls return stale values without a new load. Close may be called twice.
func (x *Cache[K, V]) Close() {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.cancel()
	x.work.Wait()
	if x.near != nil {
		x.near.Close()
	}
}

// changed removes local values, so that this process reads its own writes. Each call that writes calls it at
// its end, even after an error, because the write may have taken effect.
func (x *Cache[K, V]) changed(keys ...string) {
	if x.near == nil {
		return
	}
	for _, key := range keys {
		x.near.Changed(key)
	}
}

// String describes the cache: `cache "page" (GETFRESH of ebb)`.
func (x *Cache[K, V]) String() string {
	caps := x.c.Capabilities()
	how := "Lua scripts on " + strings.TrimSpace(caps.Server+" "+caps.Version)
	if x.native() {
		how = "GETFRESH of ebb"
	}
	return fmt.Sprintf("cache %q (%s)", x.name, how)
}

// Figures returns the counts of this process so far.
func (x *Cache[K, V]) Figures() Figures {
	return Figures{Fresh: x.fresh.Load(), Local: x.local.Load(), Stale: x.stale.Load(), Waited: x.waited.Load(), Loads: x.loads.Load(),
		Failed: x.failed.Load(), Lost: x.superseded.Load(), Alone: x.alone.Load()}
}

func (x *Cache[K, V]) native() bool { return x.c.Capabilities().Native && !x.scripts }

func (x *Cache[K, V]) backend() fresh.Backend {
	x.once.Do(func() {
		if x.o.Logger != nil {
			x.o.Logger.Debug("cache: first use", "cache", x.String())
		}
	})
	return fresh.On(x.c, x.scripts)
}

// key returns the key of an entry.
func (x *Cache[K, V]) key(k K) (string, error) {
	b, err := x.o.Keys.Encode(k)
	if err != nil {
		return "", err
	}
	return "{" + x.name + ":" + string(b) + "}", nil
}

func (x *Cache[K, V]) keys(ks []K) ([]string, error) {
	keys := make([]string, len(ks))
	for i, k := range ks {
		var err error
		if keys[i], err = x.key(k); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// The value of an entry is a flag and the codec's bytes.
const (
	flagValue  = 'v'
	flagAbsent = 'a' // the loader returned ErrAbsent
)

// decode returns the value of an entry, or ErrAbsent.
func (x *Cache[K, V]) decode(body string) (v V, err error) {
	switch {
	case body == string(flagAbsent):
		return v, ErrAbsent
	case body == "" || body[0] != flagValue:
		return v, fmt.Errorf("%w: the entry does not begin with a flag of package cache", conn.ErrValue)
	}
	return x.o.Codec.Decode([]byte(body[1:]))
}

// spans returns the two times to live of a value.
func (x *Cache[K, V]) spans() (span, ttl time.Duration) {
	share := 1 + rand.Float64()*float64(x.o.Jitter)/100
	return time.Duration(float64(x.o.Fresh) * share), max(time.Duration(float64(x.o.TTL)*share), x.o.Fresh+time.Millisecond)
}

// Look returns the value of a key and its state. It loads nothing. The error is ErrAbsent if a loader has
// returned that within AbsentTTL.
func (x *Cache[K, V]) Look(ctx context.Context, k K) (v V, s State, err error) {
	key, err := x.key(k)
	if err != nil {
		return v, Absent, x.wrap("look", err)
	}
	l, err := x.backend().Look(ctx, key, 0, 1)
	if err != nil || l.State == fresh.Absent {
		return v, Absent, x.wrap("look", err)
	}
	if v, err = x.decode(l.Body); err != nil {
		return v, Absent, x.wrap("look", err)
	}
	return v, State(l.State), nil
}

// Set stores a value. A load of the key that is under way stores nothing.
func (x *Cache[K, V]) Set(ctx context.Context, k K, v V) error {
	key, err := x.key(k)
	if err != nil {
		return x.wrap("set", err)
	}
	b, err := x.o.Codec.Encode(v)
	if err != nil {
		return x.wrap("set", err)
	}
	span, ttl := x.spans()
	defer x.changed(key)
	_, err = x.backend().Set(ctx, key, string(flagValue)+string(b), "", span, ttl)
	return x.wrap("set", err)
}

// Stale makes the values of keys stale: the next Get of each still returns the value, and lets one program
// load another. A load that is under way stores nothing.
func (x *Cache[K, V]) Stale(ctx context.Context, ks ...K) error {
	keys, err := x.keys(ks)
	if err == nil && len(keys) > 0 {
		err = x.backend().Stale(ctx, keys)
		x.changed(keys...)
	}
	return x.wrap("make stale", err)
}

// Delete removes the values of keys. A load that is under way stores nothing.
func (x *Cache[K, V]) Delete(ctx context.Context, ks ...K) error {
	keys, err := x.keys(ks)
	if err == nil && len(keys) > 0 {
		err = x.backend().Remove(ctx, keys)
		x.changed(keys...)
	}
	return x.wrap("delete", err)
}

// ErrAbsent is the error of a loader that finds no value, and then of Get. With
// Options.AbsentTTL the cache remembers it.
var ErrAbsent = errors.New("there is no value")

// wrap adds the cache and the operation to an error. It leaves ErrAbsent unchanged, because that is a result.
func (x *Cache[K, V]) wrap(doing string, err error) error {
	if err == nil || err == ErrAbsent {
		return err
	}
	return fmt.Errorf("cache %q: %s: %w", x.name, doing, err)
}
