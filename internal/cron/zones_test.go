package cron

import (
	"archive/zip"
	_ "embed"
	"flag"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// zoneNames are the names of the zones of Go's embedded table, a line each.
//
//go:embed testdata/zones.txt
var zoneNames string

var walked = flag.Int("cron.zones", 0, "how many zones are walked round each of their transitions from 1970 to 2037; -1: "+
	"all of them, in two minutes; 0: 30, or 3 with -short")

// everyZone returns the names of all zones, those that differ only by their name once.
func everyZone(t *testing.T) (names []string) {
	t.Helper()
	known := map[string]bool{}
	for name := range strings.FieldsSeq(zoneNames) {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		var key strings.Builder
		for _, at := range transitions(zone) {
			_, offset := time.Unix(at, 0).In(zone).Zone()
			key.WriteString(time.Unix(at, int64(offset)).UTC().String())
		}
		if !known[key.String()] {
			known[key.String()] = true
			names = append(names, name)
		}
	}
	return names
}

// transitions returns the instants from 1970 to 2037 at which a zone's offset changes.
func transitions(zone *time.Location) (all []int64) {
	for at := time.Unix(0, 0).In(zone); ; {
		_, end := at.ZoneBounds()
		if end.IsZero() || end.UTC().Year() > 2037 {
			return all
		}
		_, before := at.Zone()
		if _, after := end.Zone(); after != before {
			all = append(all, end.Unix())
		}
		at = end
	}
}

// TestTheListOfZonesIsThatOfGo compares testdata/zones.txt with the table that Go embeds.
func TestTheListOfZonesIsThatOfGo(t *testing.T) {
	root, err := exec.Command(realserver.Program(t, "go"), "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	listed := strings.Fields(zoneNames)
	for _, f := range z.File {
		if !strings.HasSuffix(f.Name, "/") && !slices.Contains(listed, f.Name) {
			t.Errorf("testdata/zones.txt has no line with %s", f.Name)
		}
	}
}

// clockwork is the second computation: it goes through the seconds round a transition and looks at the clock on the
// wall at each of them.
type clockwork struct {
	from    int64           // the first instant
	walls   []int64         // what the clock shows at from, from + 1 and so on
	shown   []bool          // the clock has shown this earlier
	missing map[int][]int64 // by index: wall times that the clock jumps over there
}

// margin is the time walked before and after a transition, in seconds. seenBefore is the time before it from which on
// the walk knows what the clock has shown: a clock can be put back by a day.
const (
	margin     = 3 * hour
	seenBefore = 26 * hour
)

func newClockwork(zone *time.Location, at int64) *clockwork {
	c := &clockwork{from: at - margin, missing: map[int][]int64{}}
	const ahead = 30 * hour // a wall time is at most so far from the instant at - seenBefore
	seen := make([]bool, seenBefore+margin+2*ahead)
	for t := at - seenBefore; t <= at+margin; t++ {
		_, offset := time.Unix(t, 0).In(zone).Zone()
		wall := t + int64(offset)
		if t >= c.from {
			if n := len(c.walls); n > 0 {
				for w := c.walls[n-1] + 1; w < wall; w++ {
					c.missing[n] = append(c.missing[n], w)
				}
			}
			c.walls = append(c.walls, wall)
			c.shown = append(c.shown, seen[wall-(at-seenBefore)+ahead])
		}
		seen[wall-(at-seenBefore)+ahead] = true
	}
	return c
}

// due returns the instants at which an expression is due, without the first second.
func (c *clockwork) due(e *Expr, match func(wall int64) bool) (all []int64) {
	for i := 1; i < len(c.walls); i++ {
		due := match(c.walls[i]) && (e.everyHour || !c.shown[i])
		if !due && !e.everyHour {
			due = slices.ContainsFunc(c.missing[i], match)
		}
		if due {
			all = append(all, c.from+int64(i))
		}
	}
	return all
}

// matcher returns matches with its results for each second of a day, and for each day, computed once.
func matcher(e *Expr) func(wall int64) bool {
	bit := func(set uint64, n int64) bool { return set>>uint(n)&1 == 1 }
	clocks := make([]bool, day)
	for s := range int64(day) {
		clocks[s] = bit(e.hour, s/hour) && bit(e.minute, s%hour/minute) && bit(e.second, s%minute)
	}
	days := map[int64]bool{}
	return func(wall int64) bool {
		d, s := wall/day, wall%day
		if s < 0 {
			d, s = d-1, s+day
		}
		if !clocks[s] {
			return false
		}
		on, known := days[d]
		if !known {
			on = matches(e, wall)
			days[d] = on
		}
		return on
	}
}

// TestEveryZoneRoundEachTransition walks second by second round the transitions of zones, and compares what the
// clock on the wall shows with Next, Count and Last.
func TestEveryZoneRoundEachTransition(t *testing.T) {
	names := everyZone(t)
	rnd := rand.New(rand.NewPCG(draw.Seed(t, 0), 0))
	rnd.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	n := *walked
	switch {
	case n < 0:
		n = len(names)
	case n == 0 && tier.Short():
		n = 3
	case n == 0:
		n = 30
	}
	all := []string{"30 2 * * *", "*/20 1-3 * * *", "0 0 * * *", "*/7 * * * *", "15,45 0,1,2,23 * * *", "59 59 1 * * *",
		"@hourly", "7/10 * 0-12 * * sun",
		"20 30 */2 * * *"}
	count := 0
	for _, name := range names[:min(n, len(names))] {
		exprs, match := make([]*Expr, len(all)), make([]func(int64) bool, len(all))
		for i, text := range all {
			var err error
			if exprs[i], err = Parse(text, name); err != nil {
				t.Fatal(err)
			}
			match[i] = matcher(exprs[i])
		}
		for _, at := range transitions(exprs[0].zone) {
			c := newClockwork(exprs[0].zone, at)
			for i, e := range exprs {
				c.check(t, e, match[i], all[i]+" in "+name)
			}
			count++
		}
	}
	t.Logf("%d zones of %d, %d transitions, %d expressions", min(n, len(names)), len(names), count, len(all))
}

// check compares the walk with the expression's own computation.
func (c *clockwork) check(t *testing.T, e *Expr, match func(wall int64) bool, what string) {
	t.Helper()
	want := c.due(e, match)
	through := c.from + int64(len(c.walls)) - 1
	var got []int64
	for at := e.Next(c.from); at != 0 && at <= through; at = e.Next(at) {
		got = append(got, at)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s from %d to %d is due at %d, want %d", what, c.from, through, got, want)
	}
	if n := e.Count(c.from, through); n != int64(len(want)) {
		t.Fatalf("%s from %d to %d: %d instants, want %d", what, c.from, through, n, len(want))
	}
	last := int64(0)
	if len(want) > 0 {
		last = want[len(want)-1]
	}
	if n := e.Last(c.from, through); n != last {
		t.Fatalf("%s from %d to %d: the last one is %d, want %d", what, c.from, through, n, last)
	}
}
