package console

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

// walked is the answer of GET api/walk.
type walked struct {
	Done          float64
	Looked, Total int64
	Error         string
	Rows          []walkRow
	Big           []bigRow
}

func TestAWalkCountsKeysByPrefix(t *testing.T) {
	b := newBench(t, Options{})
	for i := range 2000 {
		b.admin("SET", fmt.Sprintf("session:%d", i), "v", "PX", "30000")
	}
	for i := range 500 {
		b.admin("HSET", fmt.Sprintf("cart:%d:x", i), "f", "v")
	}
	b.admin("SET", "plain", "v", "EX", "7200")
	b.admin("SET", "big:1", string(make([]byte, 100_000)))
	status, body := b.ask("POST", "api/walk", `{"db":0}`)
	var id struct{ ID string }
	if err := json.Unmarshal([]byte(body), &id); err != nil || status != 200 {
		t.Fatal(status, body)
	}
	var w walked
	for w.Done < 1 {
		b.get("api/walk?id="+id.ID, &w)
	}
	row := func(p string) walkRow {
		i := slices.IndexFunc(w.Rows, func(r walkRow) bool { return r.P.s == p })
		if i < 0 {
			t.Fatalf("no row %q in %+v", p, w.Rows)
		}
		return w.Rows[i]
	}
	if s := row("session:"); s.Keys != 2000 || s.TTL != [6]int64{1: 2000} || s.Types["string"] != 2000 {
		t.Errorf("%+v", s)
	}
	if c := row("cart:"); c.Keys != 500 || c.TTL != [6]int64{500} || c.Types["hash"] != 500 {
		t.Errorf("%+v", c)
	}
	if p := row(""); p.Keys != 1 || p.TTL != [6]int64{3: 1} {
		t.Errorf("%+v", p)
	}
	if w.Error != "" || w.Total != 2502 || len(w.Rows) != 4 || w.Rows[0].P.s == "" || w.Big[0].K.s != "big:1" || len(w.Big) != walkBig {
		t.Errorf("%+v", w)
	}
	if !slices.IsSortedFunc(w.Big, func(x, y bigRow) int { return int(y.Bytes - x.Bytes) }) {
		t.Errorf("%+v", w.Big)
	}
}

func TestAWalkEndsWhenItsViewerSaysSo(t *testing.T) {
	b := newBench(t, Options{})
	for i := range 200_000 {
		b.admin("SET", fmt.Sprintf("k:%d", i), "v")
	}
	status, body := b.ask("POST", "api/walk", `{}`)
	if status != 200 {
		t.Fatal(status, body)
	}
	if status, body := b.ask("POST", "api/walk", `{}`); status != 409 {
		t.Errorf("a second walk: %d %s", status, body)
	}
	if status, body := b.ask("DELETE", "api/walk?id=1", ""); status != 204 {
		t.Errorf("%d %s", status, body)
	}
	var w walked
	for w.Done < 1 {
		b.get("api/walk?id=1", &w)
	}
	if w.Error == "" || w.Looked >= w.Total {
		t.Errorf("the walk went on: %d of %d, %q", w.Looked, w.Total, w.Error)
	}
	for _, bad := range []string{`{"kind":"x"}`, `{"sep":""}`, `{"depth":9}`, `{"db":-1}`, `{"x":1}`, `[`} {
		if status, body := b.ask("POST", "api/walk", bad); status != 400 {
			t.Errorf("%s: %d %s", bad, status, body)
		}
	}
	if status, _ := b.ask("GET", "api/walk?id=7", ""); status != 404 {
		t.Errorf("%d", status)
	}
}
