package console

import (
	"fmt"
	"testing"
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
