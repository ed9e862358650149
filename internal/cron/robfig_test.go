package cron

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/testing/draw"
)

// field draws a field of an expression whose values are from low to high.
func field(t *rapid.T, name string, low, high int) string {
	number := func(from int) int { return rapid.IntRange(from, high).Draw(t, name) }
	first := number(low)
	switch rapid.IntRange(0, 5).Draw(t, "kind of "+name) {
	case 0, 1:
		return "*"
	case 2:
		return fmt.Sprint(first)
	case 3:
		return fmt.Sprintf("%d-%d", first, number(first))
	case 4:
		return fmt.Sprintf("%d-%d/%d", first, number(first), rapid.IntRange(1, 7).Draw(t, "step of "+name))
	}
	return fmt.Sprintf("%d,%d,*/%d", first, number(low), rapid.IntRange(2, 15).Draw(t, "step of "+name))
}

// quiet reports whether a zone's offset is the same for two days round an instant.
func quiet(zone *time.Location, at int64) bool {
	from := time.Unix(at, 0).In(zone).AddDate(0, 0, -2)
	_, end := from.ZoneBounds()
	return end.IsZero() || end.Unix() > at+2*day
}

// robfig/cron computes from field to field, with the standard library's calendar. Round transitions it has rules of its own: there
// the walks of the other tests decide.
func TestAwayFromTransitionsNextIsThatOfRobfigCron(t *testing.T) {
	compared := 0
	draw.Check(t, func(t *rapid.T) {
		text := strings.Join([]string{field(t, "second", 0, 59), field(t, "minute", 0, 59), field(t, "hour", 0, 23), field(t, "day", 1, 31),
			field(t, "month", 1, 12), field(t, "weekday", 0, 6)}, " ")
		e, err := Parse(text, rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		peer, err := parser.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		after := rapid.Int64Range(1.35e9, 2.1e9).Draw(t, "after")
		for range 5 {
			got, want := e.Next(after), int64(0)
			if next := peer.Next(time.Unix(after, 0).In(e.zone)); !next.IsZero() {
				want = next.Unix()
			}
			if want == 0 { // it looks for five years
				if got != 0 && got < after+4*365*day {
					t.Fatalf("%q in %s after %d: %d, which robfig/cron does not find", text, e.zone, after, got)
				}
				return
			}
			if !quiet(e.zone, after) || !quiet(e.zone, got) || !quiet(e.zone, want) {
				return
			}
			if got != want {
				t.Fatalf("%q in %s after %d: %d, and robfig/cron has %d", text, e.zone, after, got, want)
			}
			compared++
			after = got
		}
	})
	if compared == 0 {
		t.Error("nothing was compared")
	}
}
