// Command nearby finds drivers on a map, first with Redis's geo commands, then with
// package near, which forgets drivers that have not reported for a while.
package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/example"
	"github.com/ebbdb/ebb/near"
)

func main() { example.Main(run) }

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	if err := commands(ctx, c, w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return drivers(ctx, c, w)
}

// commands shows the eight commands on a map of sights.
func commands(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	fmt.Fprintln(w, "Sights in Berlin")
	defer func() { _, _ = c.Del(ctx, "{sights}", "{sights}:close") }()
	for _, cmd := range [][]any{
		{"GEOADD", "{sights}", 13.3777, 52.5163, "gate", 13.4094, 52.5208, "tower", 13.2955, 52.5208, "palace", 13.4397, 52.5050, "gallery"},
		{"GEODIST", "{sights}", "gate", "tower", "km"},
		{"GEOHASH", "{sights}", "gate", "tower"},
		{"GEOPOS", "{sights}", "gate"},
		{"GEORADIUS", "{sights}", 13.3777, 52.5163, 3, "km", "WITHDIST", "ASC"},
		{"GEORADIUSBYMEMBER", "{sights}", "tower", 3, "km", "ASC"},
		{"GEOSEARCH", "{sights}", "FROMMEMBER", "gate", "BYBOX", 12, 2, "km", "ASC", "COUNT", 3},
		{"GEOSEARCHSTORE", "{sights}:close", "{sights}", "FROMLONLAT", 13.40, 52.52, "BYRADIUS", 3, "km"},
		{"ZRANGE", "{sights}:close", 0, -1},
	} {
		v, err := c.Do(ctx, cmd...)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "  %-76s %s\n", strings.TrimSpace(fmt.Sprintln(cmd...)), show(v))
	}
	return nil
}

// show returns a reply as one line, with rounded numbers.
func show(v ebb.Value) string {
	if len(v.Elems) == 0 {
		if f, err := v.AsFloat(); err == nil && strings.Contains(v.String(), ".") {
			return fmt.Sprintf("%.2f", f)
		}
		return v.String()
	}
	var all []string
	for _, e := range v.Elems {
		all = append(all, show(e))
	}
	return "[" + strings.Join(all, " ") + "]"
}

// The map forgets a driver that has not reported for this time. In production it would be
// a minute; this example keeps it short.
const seen = 1500 * time.Millisecond

// drivers shows three drivers that report their positions, until one of them stops.
func drivers(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	index, err := near.New(c, "drivers")
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "Drivers: %s\n", index)
	report := func(round int, names ...string) error {
		for i, name := range names {
			lon := 13.38 + 0.01*float64(i) + 0.001*float64(round) // they drive east
			if err := index.Place(ctx, name, lon, 52.5170, seen); err != nil {
				return err
			}
		}
		return nil
	}
	ask := func(when string) error {
		found, err := index.Nearest(ctx, 13.3777, 52.5163, 3, 5*near.Kilometer)
		if err != nil {
			return err
		}
		var all []string
		for _, f := range found {
			all = append(all, fmt.Sprintf("%s (%s)", f.Member, f.Distance))
		}
		fmt.Fprintf(w, "  %-32s %s\n", when, strings.Join(all, ", "))
		return nil
	}
	if err := report(0, "ann", "bob", "eve"); err != nil {
		return err
	}
	if err := ask("all have reported:"); err != nil {
		return err
	}
	for round := 1; round <= 6; round++ {
		if err := example.Sleep(ctx, seen*4/15); err != nil {
			return err
		}
		if err := report(round, "ann", "bob"); err != nil {
			return err
		}
	}
	if err := ask("nothing was heard of eve since:"); err != nil {
		return err
	}
	if d, ok, err := index.Distance(ctx, "ann", "bob"); err != nil || !ok {
		return fmt.Errorf("ann and bob are %v apart: %w", d, err)
	} else {
		fmt.Fprintf(w, "  ann and bob are %s, or %.2f miles, apart\n", d, d.In(near.Mile))
	}
	n, err := index.Remove(ctx, "ann", "bob", "eve")
	fmt.Fprintf(w, "  going home: %d\n", n)
	return err
}
