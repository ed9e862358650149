package cron

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// at returns an instant, in seconds since 1970, for the text of a wall time with an offset.
func at(t *testing.T, text string) int64 {
	t.Helper()
	when, err := time.Parse("2006-01-02 15:04:05 -0700", text)
	if err != nil {
		t.Fatal(err)
	}
	return when.Unix()
}

func TestNextByExample(t *testing.T) {
	for _, c := range []struct{ expr, zone, after, want string }{
		{"0 9 * * 1-5", "Europe/Berlin", "2026-11-27 09:00:00 +0100", "2026-11-30 09:00:00 +0100"},
		{"*/15 * * * *", "", "2026-11-27 09:01:00 +0000", "2026-11-27 09:15:00 +0000"},
		{"30 0 9 * * *", "", "2026-11-27 09:00:29 +0000", "2026-11-27 09:00:30 +0000"},
		{"@hourly", "", "2026-11-27 09:00:00 +0000", "2026-11-27 10:00:00 +0000"},
		{"@yearly", "Asia/Tokyo", "2026-11-27 09:00:00 +0000", "2027-01-01 00:00:00 +0900"},
		{"0 0 29 feb *", "", "2026-11-27 09:00:00 +0000", "2028-02-29 00:00:00 +0000"},
		{"0 0 29 feb *", "", "2096-03-01 09:00:00 +0000", "2104-02-29 00:00:00 +0000"},
		{"0 0 13 * fri", "", "2026-11-27 09:00:00 +0000", "2026-12-04 00:00:00 +0000"}, // the 13th, or a Friday
		{"0 0 */2 * mon", "", "2026-11-27 09:00:00 +0000", "2026-11-29 00:00:00 +0000"},
		// Berlin goes from 02:00 to 03:00 on 2027-03-28, and from 03:00 to 02:00 on 2026-10-25.
		{"30 2 * * *", "Europe/Berlin", "2027-03-27 12:00:00 +0100", "2027-03-28 03:00:00 +0200"},
		{"30 2 * * *", "Europe/Berlin", "2027-03-28 03:00:00 +0200", "2027-03-29 02:30:00 +0200"},
		{"*/10 2 * * *", "Europe/Berlin", "2027-03-28 01:59:59 +0100", "2027-03-28 03:00:00 +0200"},
		{"*/10 2 * * *", "Europe/Berlin", "2027-03-28 03:00:00 +0200", "2027-03-29 02:00:00 +0200"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25 00:00:00 +0200", "2026-10-25 02:30:00 +0200"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25 02:30:00 +0200", "2026-10-26 02:30:00 +0100"},
		{"0 * * * *", "Europe/Berlin", "2026-10-25 02:00:00 +0200", "2026-10-25 02:00:00 +0100"},
		{"30 * * * *", "Europe/Berlin", "2027-03-28 01:30:00 +0100", "2027-03-28 03:30:00 +0200"},
		{"0 0 30 2 *", "", "2026-11-27 09:00:00 +0000", ""},
		// Half an hour on Lord Howe Island, and a day that Samoa did not have.
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00:00 +1030", "2026-10-04 02:30:00 +1100"},
		{"0 12 30 12 *", "Pacific/Apia", "2011-12-01 00:00:00 -1000", "2011-12-31 00:00:00 +1400"},
	} {
		e, err := Parse(c.expr, c.zone)
		if err != nil {
			t.Fatalf("%s: %v", c.expr, err)
		}
		want := int64(0)
		if c.want != "" {
			want = at(t, c.want)
		}
		if got := e.Next(at(t, c.after)); got != want {
			t.Errorf("%q in %q after %s is due at %s, want %s", c.expr, c.zone, c.after, time.Unix(got, 0).In(e.zone), c.want)
		}
	}
}

func TestWrongExpressionsAreRefused(t *testing.T) {
	for _, c := range []struct{ expr, zone, want string }{
		{"", "", "empty"},
		{"* * * *", "", "expected"},
		{"60 * * * *", "", `the minute is "60": `},
		{"61 * * * * *", "", `the second is "61": `},
		{"0 9-25 * * *", "", `the hour is "9-25": `},
		{"* * 0 * *", "", `the day of month is "0": `},
		{"0 0 1 foo *", "", `the month is "foo": `},
		{"0 0 * * 8,1", "", `the day of week is "8,1": `},
		{"*/0 24 * * *", "", `the minute is "*/0": `}, // the first of two
		{"@every 5m", "", "EVERY"},
		{"TZ=Europe/Berlin 0 9 * * *", "", "TZ"},
		{"TZ=", "", "TZ"},
		{"@reboot", "", "@reboot"},
		{strings.Repeat("1,", 200) + "1 * * * *", "", "at most 255"},
		{"0 9 * * *", "Mars/Olympus", ErrZone.Error()},
		{"0 9 * * *", "../../etc/passwd", ErrZone.Error()},
		{"0 9 * * *", "Local", ErrZone.Error()},
	} {
		_, err := Parse(c.expr, c.zone)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q in %q: %v, want an error with %q", c.expr, c.zone, err, c.want)
		}
		if c.want == ErrZone.Error() && !errors.Is(err, ErrZone) {
			t.Errorf("%q: %v is not ErrZone", c.zone, err)
		}
	}
}

// zones have the kinds of transitions that there are: both halves of the year, half an hour, at
// midnight, two hours, a day, negative summer time, and none.
var zones = []string{"UTC", "Europe/Berlin", "Europe/Dublin", "America/New_York", "America/St_Johns", "America/Sao_Paulo", "America/Havana",
	"Australia/Lord_Howe", "Antarctica/Troll", "Asia/Tehran", "Asia/Kathmandu", "Pacific/Apia", "Pacific/Chatham",
	"Africa/Casablanca", "America/Nuuk"}

// matches reports whether the wall time of an instant, or of a moment that does not exist, matches.
func matches(e *Expr, wall int64) bool {
	at := time.Unix(wall, 0).UTC()
	set := func(bits uint64, n int) bool { return bits>>uint(n)&1 == 1 }
	dom, dow := set(e.dom, at.Day()), set(e.dow, int(at.Weekday()))
	onDay := dom || dow
	if e.anyDay {
		onDay = dom && dow
	}
	return onDay && set(e.month, int(at.Month())) && set(e.hour, at.Hour()) && set(e.minute, at.Minute()) && set(e.second, at.Second())
}

// due reports, by looking at one instant and the wall times of the day before it, whether an
// expression is due then.
func due(e *Expr, t int64, offset func(int64) int64) bool {
	now, before := offset(t), offset(t-1)
	if e.everyHour {
		return matches(e, t+now)
	}
	for wall := t + before; now > before && wall < t+now; wall++ {
		if matches(e, wall) {
			return true // a missing wall time
		}
	}
	if !matches(e, t+now) {
		return false
	}
	for _, earlier := range []int64{offset(t - 3*hour), offset(t - 40*minute)} { // was it this late before?
		if first := t + now - earlier; first < t && offset(first) == earlier {
			return false
		}
	}
	return true
}

func TestEverySecondRoundEachTransition(t *testing.T) {
	last := 2037
	if tier.Short() {
		last = 2028
	}
	exprs := []string{"30 2 * * *", "*/20 1-3 * * *", "0 0 * * *", "*/7 * * * *", "15,45 0,1,2 * * *", "59 59 1 * * *", "0 12 * * *"}
	for _, zone := range zones {
		for _, text := range exprs {
			e, err := Parse(text, zone)
			if err != nil {
				t.Fatal(err)
			}
			offset := func(at int64) int64 { _, o := time.Unix(at, 0).In(e.zone).Zone(); return int64(o) }
			at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
			for range (last - 2026) * 2 {
				s := e.segmentAt(at)
				if !s.hasEnd {
					break
				}
				at = s.end
				from, through := at-4*hour, at+4*hour
				next, count := e.Next(from), int64(0)
				for now := from + 1; now <= through; now++ {
					// Most seconds cannot match: only those of the fields' minutes are worth the walk.
					if now%minute != 0 && now != at && (now+1)%minute != 0 {
						continue
					}
					if !due(e, now, offset) {
						continue
					}
					count++
					if next != now {
						t.Fatalf("%q in %s: after %d the next instant is %d, want %d", text, zone, from, next, now)
					}
					next = e.Next(now)
				}
				if got := e.Count(from, through); got != count || next <= through && next != 0 {
					t.Fatalf("%q in %s round %d: %d instants, want %d; next %d", text, zone, at, got, count, next)
				}
			}
		}
	}
}

func TestCountAndLastAgreeWithNext(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"0 0 1 * *", "30 2 * * *", "*/13 * * * *", "0 */3 * * mon", "15 10 4 * * sun",
			"0 0 29 2 *"}).Draw(t, "expression")
		e, err := Parse(text, rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		after := rapid.Int64Range(1e9, 2e9).Draw(t, "after")
		through := after + rapid.Int64Range(0, 100*day).Draw(t, "span")
		n, last := int64(0), int64(0)
		for at := e.Next(after); at != 0 && at <= through; at = e.Next(at) {
			n, last = n+1, at
		}
		if got := e.Count(after, through); got != n {
			t.Fatalf("%d instants, want %d", got, n)
		}
		if got := e.Last(after, through); got != last {
			t.Fatalf("the last one is %d, want %d", got, last)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("0 9 * * 1-5", "Europe/Berlin")
	f.Add("@daily", "")
	f.Add("1-5/2,7 0 ? jan-mar *", "Asia/Tokyo")
	f.Fuzz(func(t *testing.T, text, zone string) {
		e, err := Parse(text, zone)
		if err != nil {
			return
		}
		const now = 1_800_000_000
		next := e.Next(now)
		if next != 0 && (next <= now || e.Count(now, next) != 1 || e.Last(now, next) != next) {
			t.Fatalf("%q in %q: after %d the next instant is %d, counted %d times", text, zone, now, next, e.Count(now, next))
		}
	})
}

func BenchmarkNext(b *testing.B) {
	for _, text := range []string{"*/5 * * * *", "0 9 * * 1-5", "0 0 29 2 *"} {
		e, err := Parse(text, "Europe/Berlin")
		if err != nil {
			b.Fatal(err)
		}
		b.Run(strings.ReplaceAll(text, " ", "_"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e.Next(1_800_000_000)
			}
		})
	}
}
