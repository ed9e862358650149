package near

import (
	"context"
	"fmt"

	"github.com/ebbdb/ebb/conn"
)

// Query describes a search. Its centre is Member, or At if Member is "". Its extent is Radius,
// or Width and Height.
type Query struct {
	Member string
	At     Point
	Radius Distance
	// Width is the extent from west to east, and Height from south to north, around the centre.
	Width, Height Distance
	// Count is the limit of results; 0: all.
	Count int
}

// Within returns the members within a radius of a position, the nearest first.
func (x *Index) Within(ctx context.Context, lon, lat float64, radius Distance) ([]Found, error) {
	return x.Search(ctx, Query{At: Point{lon, lat}, Radius: radius})
}

// WithinBox returns the members within a box around a position, the nearest first.
func (x *Index) WithinBox(ctx context.Context, lon, lat float64, width, height Distance) ([]Found, error) {
	return x.Search(ctx, Query{At: Point{lon, lat}, Width: width, Height: height})
}

// WithinOf returns the members within a radius of a member, the nearest first, which is the
// member itself. It returns ErrNoMember if the index does not have the member.
func (x *Index) WithinOf(ctx context.Context, member string, radius Distance) ([]Found, error) {
	return x.search(ctx, Query{Member: member, Radius: radius}, true)
}

// Nearest returns up to n members within radius of a position, the nearest first. The search
// covers the whole radius, so a smaller radius costs less.
func (x *Index) Nearest(ctx context.Context, lon, lat float64, n int, radius Distance) ([]Found, error) {
	if n < 1 {
		return nil, x.failed("search", fmt.Errorf("%w: the %d nearest: 1 or more", conn.ErrArgument, n))
	}
	return x.Search(ctx, Query{At: Point{lon, lat}, Radius: radius, Count: n})
}

// Search returns the members that match a query, the nearest first.
func (x *Index) Search(ctx context.Context, q Query) ([]Found, error) {
	return x.search(ctx, q, q.Member != "")
}

// search runs a query. of: around the query's member, whatever its name.
func (x *Index) search(ctx context.Context, q Query, of bool) ([]Found, error) {
	args, err := q.args(of)
	if err != nil {
		return nil, x.failed("search", err)
	}
	var v conn.Value
	if x.native() {
		cmd := append([]any{"GEOSEARCH", x.name}, args...)
		cmd = append(cmd, "ASC")
		if q.Count > 0 {
			cmd = append(cmd, "COUNT", q.Count)
		}
		v, err = x.c.Do(ctx, append(cmd, "WITHDIST", "WITHCOORD")...)
	} else {
		v, err = x.run(ctx, searchScript, append([]any{q.Count}, args...)...)
	}
	if err == nil && of && len(v.Elems) == 0 {
		err = ErrNoMember // it would have found itself; an index that is empty says no more
	}
	if err != nil {
		return nil, x.failed("search", err)
	}
	all := make([]Found, len(v.Elems))
	for i, e := range v.Elems {
		if len(e.Elems) != 3 {
			return nil, x.failed("search", fmt.Errorf("%w: %s does not describe a member that was found", conn.ErrValue, e))
		}
		d, err := e.Elems[1].AsFloat()
		if err != nil {
			return nil, x.failed("search", err)
		}
		all[i] = Found{Member: e.Elems[0].String(), Distance: Distance(d)}
		if all[i].Point, err = point(e.Elems[2]); err != nil {
			return nil, x.failed("search", err)
		}
	}
	return all, nil
}

// args are GEOSEARCH's, in meters.
func (q Query) args(of bool) ([]any, error) {
	args := []any{"FROMMEMBER", q.Member}
	if !of {
		if err := checkPosition(q.At.Lon, q.At.Lat); err != nil {
			return nil, err
		}
		args = []any{"FROMLONLAT", q.At.Lon, q.At.Lat}
	}
	switch box := q.Width > 0 && q.Height > 0; {
	case q.Count < 0:
		return nil, fmt.Errorf("%w: Count is %d; it must be positive, or 0 for all", conn.ErrArgument, q.Count)
	case q.Radius > 0 && q.Width == 0 && q.Height == 0:
		return append(args, "BYRADIUS", float64(q.Radius), "m"), nil
	case box && q.Radius == 0:
		return append(args, "BYBOX", float64(q.Width), float64(q.Height), "m"), nil
	}
	return nil, fmt.Errorf("%w: set either Radius > 0 or both Width > 0 and Height > 0 (got %v, %v, %v)",
		conn.ErrArgument, q.Radius, q.Width, q.Height)
}
