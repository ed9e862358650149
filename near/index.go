package near

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

// Options configures an index. The zero value works.
type Options struct {
	// Logger gets one description of how the index runs. nil: no log.
	Logger *slog.Logger
}

// Index is a set of members with positions. Its methods are safe for concurrent use. It holds
// no resource and need not be closed.
type Index struct {
	c       *conn.Conn
	name    string
	due     string
	log     *slog.Logger
	scripts bool // for tests: also on ebb
	once    sync.Once
}

// maxLatitude is the greatest latitude of the Mercator projection of GEOADD.
const maxLatitude = 85.05112878

// New returns the index of that name, which is its key. It sends nothing to the backend.
// Errors: ebb.ErrArgument.
func New(c *conn.Conn, name string, opts ...Options) (*Index, error) {
	name, o, err := kit.Make(c, "near", name, opts)
	if err != nil {
		return nil, err
	}
	x := &Index{c: c, name: name, due: kit.Key(name, "due"), log: o.Logger}
	return x, nil
}

// String describes the index: `index "drivers" (GEOADD and ZPEXPIRE of ebb)`.
func (x *Index) String() string {
	caps := x.c.Capabilities()
	how := "Lua scripts and a sorted set of deadlines on " + strings.TrimSpace(caps.Server+" "+caps.Version)
	if x.hasCommands() {
		how = "GEOADD and ZPEXPIRE of ebb"
	}
	return fmt.Sprintf("index %q (%s)", x.name, how)
}

// native reports whether the index runs on ebb's commands. Each operation calls it first.
func (x *Index) native() bool {
	x.once.Do(func() {
		if x.log != nil {
			x.log.Debug("near: first use", "index", x.String())
		}
	})
	return x.hasCommands()
}

// hasCommands does the work of native without the log, which calls it.
func (x *Index) hasCommands() bool { return x.c.Capabilities().Native && !x.scripts }

func (x *Index) run(ctx context.Context, s *conn.Script, args ...any) (conn.Value, error) {
	return x.c.Script(ctx, s, []string{x.name, x.due}, append([]any{expiries.OnTheWay}, args...)...)
}

// Place sets the position of a member, which lives for ttl, or without a deadline if ttl is 0.
func (x *Index) Place(ctx context.Context, member string, lon, lat float64, ttl time.Duration) error {
	if err := checkPosition(lon, lat); err != nil {
		return x.failed("place", err)
	}
	ms, err := new(expiries.Bounds).Millis(ttl)
	if err != nil {
		return x.failed("place", err)
	}
	if !x.native() {
		_, err := x.run(ctx, placeScript, lon, lat, member, ms)
		return x.failed("place", err)
	}
	var b conn.Batch
	b.Do("GEOADD", x.name, lon, lat, member)
	if ms > 0 {
		b.Do("ZPEXPIRE", x.name, ms, "MEMBERS", 1, member)
	} else {
		b.Do("ZPERSIST", x.name, "MEMBERS", 1, member)
	}
	replies, err := x.c.Tx(ctx, &b)
	for _, v := range replies {
		if err == nil {
			err = v.Err()
		}
	}
	return x.failed("place", err)
}

func checkPosition(lon, lat float64) error {
	if lon >= -180 && lon <= 180 && lat >= -maxLatitude && lat <= maxLatitude { // NaN is not
		return nil
	}
	return fmt.Errorf("%w: longitude %v, latitude %v: from -180 to 180 and from -%v to %v degrees",
		conn.ErrArgument, lon, lat, maxLatitude, maxLatitude)
}

// Remove removes members, and returns how many of them existed.
func (x *Index) Remove(ctx context.Context, members ...string) (int64, error) {
	if len(members) == 0 {
		return 0, nil
	}
	args := make([]any, len(members))
	for i, m := range members {
		args[i] = m
	}
	var v conn.Value
	var err error
	if x.native() {
		v, err = x.c.Do(ctx, append([]any{"ZREM", x.name}, args...)...)
	} else {
		v, err = x.run(ctx, removeScript, args...)
	}
	n, err := kit.Number(v, err)
	return n, x.failed("remove", err)
}

// Position returns the position of a member, and whether the index has the member.
func (x *Index) Position(ctx context.Context, member string) (Point, bool, error) {
	var v conn.Value
	var err error
	if x.native() {
		v, err = x.c.Do(ctx, "GEOPOS", x.name, member)
	} else {
		v, err = x.run(ctx, memberScript, "GEOPOS", member)
	}
	if err != nil || v.IsNull() || len(v.Elems) != 1 || v.Elems[0].IsNull() {
		return Point{}, false, x.failed("position", err)
	}
	p, err := point(v.Elems[0])
	return p, err == nil, x.failed("position", err)
}

// Hash returns a member's geohash of 11 letters, in the format of geohash.org, and whether the
// index has the member. Positions with a common prefix are near each other.
func (x *Index) Hash(ctx context.Context, member string) (string, bool, error) {
	var v conn.Value
	var err error
	if x.native() {
		v, err = x.c.Do(ctx, "GEOHASH", x.name, member)
	} else {
		v, err = x.run(ctx, memberScript, "GEOHASH", member)
	}
	if err != nil || v.IsNull() || len(v.Elems) != 1 || v.Elems[0].IsNull() {
		return "", false, x.failed("hash", err)
	}
	return v.Elems[0].String(), true, nil
}

// Distance returns the distance between two members on a sphere, which differs from the earth
// by up to 0.5 %, and whether the index has both.
func (x *Index) Distance(ctx context.Context, a, b string) (Distance, bool, error) {
	var v conn.Value
	var err error
	if x.native() {
		v, err = x.c.Do(ctx, "GEODIST", x.name, a, b, "m")
	} else {
		v, err = x.run(ctx, memberScript, "GEODIST", a, b)
	}
	if err != nil || v.IsNull() {
		return 0, false, x.failed("distance", err)
	}
	d, err := v.AsFloat()
	return Distance(d), err == nil, x.failed("distance", err)
}

// TTL returns the remaining time of a member, ebb.Forever without a deadline, and whether the
// index has the member.
func (x *Index) TTL(ctx context.Context, member string) (time.Duration, bool, error) {
	var v conn.Value
	var err error
	if !x.native() {
		v, err = x.run(ctx, ttlScript, member)
	} else if v, err = x.c.Do(ctx, "ZPTTL", x.name, "MEMBERS", 1, member); err == nil && len(v.Elems) == 1 {
		v = v.Elems[0]
	}
	n, err := kit.Number(v, err)
	switch {
	case err != nil:
		return 0, false, x.failed("ttl", err)
	case n == -2:
		return 0, false, nil
	case n == -1:
		return conn.Forever, true, nil
	}
	return time.Duration(n) * time.Millisecond, true, nil
}

// Len returns the number of living members.
func (x *Index) Len(ctx context.Context) (int64, error) {
	var v conn.Value
	var err error
	if x.native() {
		v, err = x.c.Do(ctx, "ZCARD", x.name)
	} else {
		v, err = x.run(ctx, lenScript)
	}
	n, err := kit.Number(v, err)
	return n, x.failed("len", err)
}

// Delete removes the index with all its members.
func (x *Index) Delete(ctx context.Context) error {
	_, err := x.c.Del(ctx, x.name, x.due)
	return x.failed("delete", err)
}

// Watch removes expired members in time, even while no program uses the index, until the
// context ends; the context's error is in the chain of its own. It continues after lost
// connections. On ebb the server does that.
func (x *Index) Watch(ctx context.Context) error {
	own := expiries.Feed{Conn: x.c, Native: x.native, Sweep: func(ctx context.Context, _ string) (int64, error) {
		return kit.Number(x.run(ctx, sweepScript, expiries.AtOnce))
	}}
	return x.failed("watch", own.Watch(ctx))
}

// point returns the longitude and the latitude of a reply.
func point(v conn.Value) (p Point, err error) {
	if len(v.Elems) != 2 {
		return p, fmt.Errorf("%w: %s is not a place", conn.ErrValue, v)
	}
	if p.Lon, err = v.Elems[0].AsFloat(); err != nil {
		return p, err
	}
	p.Lat, err = v.Elems[1].AsFloat()
	return p, err
}
