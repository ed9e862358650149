package console

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestTheForecastCountsWhatExpires(t *testing.T) {
	b := newBench(t, Options{})
	for i := range 300 {
		b.admin("SET", fmt.Sprintf("a:%d", i), "v", "PX", "5500")
	}
	for i := range 40 {
		b.admin("SET", fmt.Sprintf("b:%d", i), "v", "EX", "1800")
	}
	b.admin("HSET", "h", "f", "v")
	b.admin("HPEXPIRE", "h", "2500", "FIELDS", "1", "f")
	b.admin("SET", "far", "v", "EX", "8640000")
	for span, n := range map[string]int{"minute": 60, "hour": 60, "day": 48, "month": 31} {
		var f forecast
		b.get("api/forecast?span="+span, &f)
		var keys, containers int64
		for i, x := range f.Buckets {
			keys, containers = keys+x.Keys, containers+x.Containers
			if i > 0 && x.From != f.Buckets[i-1].To {
				t.Errorf("%s: bucket %d begins at %d", span, i, x.From)
			}
		}
		if len(f.Buckets) != n || keys+containers+f.Later != 342 {
			t.Errorf("%s: %d buckets with %d keys and %d containers, and %d later", span, len(f.Buckets), keys, containers, f.Later)
		}
		if span == "minute" && (keys != 300 || containers != 1 || f.Storm == nil || f.Storm.N != 300) {
			t.Errorf("a minute: %d keys, %d containers, storm %+v", keys, containers, f.Storm)
		}
	}
	var f forecast
	b.get("api/forecast?match=b:*&span=hour", &f)
	sum := int64(0)
	for _, x := range f.Buckets {
		sum += x.Keys
	}
	if !f.Exact || sum != 40 || len(f.Buckets) != 60 {
		t.Errorf("%+v", f)
	}
	b.admin("DEL", "b:0")
	var again forecast
	b.get("api/forecast?match=b:*&span=hour", &again)
	if again.At != f.At {
		t.Error("a forecast with a pattern was made twice within ten seconds")
	}
}

// A forecast with a pattern walks over all keys: however many viewers request one, they take at most a
// twentieth of the time.
func TestForecastsWithPatternsRest(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("SET", "a:1", "v", "EX", "30")
	var first, again forecast
	b.get("api/forecast?match=a:*&span=minute", &first)
	b.forecasts.rest = b.now() + 15_000 // like after a forecast that took 750 ms
	b.clock.Advance(forecastKept * time.Millisecond)
	if b.get("api/forecast?match=a:*&span=minute", &again); again.At != first.At {
		t.Error("a forecast is made before the rest is over")
	}
	if status, body := b.ask("GET", "api/forecast?match=b:*&span=minute", ""); status != 503 || !strings.Contains(body, "RESTING") {
		t.Errorf("another pattern: %d %s", status, body)
	}
	b.clock.Advance(6 * time.Second)
	if b.get("api/forecast?match=b:*&span=minute", &again); again.At == first.At {
		t.Error("no forecast is made after the rest")
	}
}

// A storm at a full minute is named by that time, whenever the forecast is made.
func TestAForecastNamesAStormByItsTime(t *testing.T) {
	b := newBench(t, Options{})
	storm := (b.now()/60_000 + 1) * 60_000
	for i := range 500 {
		b.admin("SET", fmt.Sprintf("coupon:%d", i), "v", "PXAT", fmt.Sprint(storm))
	}
	for range 20 {
		for _, span := range []string{"minute", "hour"} {
			var f forecast
			b.get("api/forecast?span="+span, &f)
			if f.Storm == nil || f.Storm.From != storm || f.Storm.N != 500 {
				t.Fatalf("%d ms before it, the forecast of the %s names the storm %+v, want %d", storm-b.now(), span, f.Storm, storm)
			}
		}
		b.hub.tick()
		s := b.hub.latest
		if i := (storm - s.DueFrom) / 1000; s.Due[i] != 500 || s.DueFrom%1000 != 0 {
			t.Fatalf("%d ms before it, Now has %v from %d on", storm-b.now(), s.Due, s.DueFrom)
		}
		b.clock.Advance(337 * time.Millisecond)
	}
}

func TestSoonShowsTheNextDeadlines(t *testing.T) {
	b := newBench(t, Options{})
	b.fill()
	var a struct {
		Whole bool
		Rows  []soonRow
	}
	b.get("api/soon?count=3", &a)
	if !a.Whole || len(a.Rows) != 3 || a.Rows[0].K.s != "l" || a.Rows[0].Level != "element" || a.Rows[1].K.s != "z" || a.Rows[1].Item.s != "two" {
		t.Errorf("%+v", a)
	}
	b.get("api/soon?level=key&within=10000", &a)
	if len(a.Rows) != 1 || a.Rows[0].K.s != "s" || a.Rows[0].Item != nil {
		t.Errorf("%+v", a)
	}
	for _, bad := range []string{"count=0", "within=x", "level=nothing"} {
		if status, body := b.ask("GET", "api/soon?"+bad, ""); status < 400 || status >= 500 {
			t.Errorf("%s: %d %s", bad, status, body)
		}
	}
}
