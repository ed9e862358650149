package console

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	neturl "net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// get requests a path and reads the answer into x. It fails the test unless the status is 200.
func (b *bench) get(path string, x any) {
	b.t.Helper()
	status, body := b.ask("GET", path, "")
	if status != http.StatusOK {
		b.t.Fatalf("%s: %d %s", path, status, body)
	}
	if err := json.Unmarshal([]byte(body), x); err != nil {
		b.t.Fatalf("%s: %v: %s", path, err, body)
	}
}

// url returns a key in the form of the API.
func url(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

// fill writes a key of each type, with deadlines.
func (b *bench) fill() {
	b.admin("SET", "s", "hello", "PX", "9000", "SLIDE")
	b.admin("HSET", "h", "f", "1", "g", "2", "\xff\xfe", "<b>")
	b.admin("HPEXPIRE", "h", "5000", "FIELDS", "1", "f")
	b.admin("SADD", "set", "a", "b")
	b.admin("SPEXPIRE", "set", "4000", "MEMBERS", "1", "b")
	b.admin("ZADD", "z", "1.5", "one", "2", "two", "inf", "three")
	b.admin("ZPEXPIRE", "z", "3000", "MEMBERS", "1", "two")
	b.admin("RPUSH", "l", "x", "y", "z")
	b.admin("LPEXPIRE", "l", "2000", "INDEXES", "1", "1")
	for i := range 5 {
		b.admin("XADD", "stream", fmt.Sprintf("%d-0", i+1), "n", fmt.Sprint(i))
	}
	b.admin("XGROUP", "CREATE", "stream", "g", "0")
	b.admin("XREADGROUP", "GROUP", "g", "c", "COUNT", "2", "STREAMS", "stream", ">")
	b.admin("RL.TAKE", "rl", "5", "60000")
	b.admin("LOCK.ACQUIRE", "lock", "ann", "30000")
	b.admin("SEM.ACQUIRE", "sem", "ann", "3", "30000")
	b.admin("DQ.ADD", "q", "j", "payload")
	b.admin("BF.ADD", "bloom", "x")
}

// marks are the marks of values, which differ at each run.
var marks = regexp.MustCompile(`,"seen":"[^"]+"`)

func TestAKeyIsShownByItsType(t *testing.T) {
	b := newBench(t, Options{})
	b.fill()
	for key, want := range map[string]string{
		"s": `"body":{"v":{"t":"hello"},"len":5}`,
		"h": `{"rows":[{"f":{"t":"f"},"v":{"t":"1"},"pttl":5000},{"f":{"t":"g"},"v":{"t":"2"},"pttl":-1},` +
			`{"f":{"b":"//4=","t":"\\xff\\xfe"},"v":{"t":"\u003cb\u003e"},"pttl":-1}]}`,
		"set":    `{"m":{"t":"b"},"pttl":4000}`,
		"z":      `{"rows":[{"m":{"t":"one"},"score":"1.5","pttl":-1},{"m":{"t":"two"},"score":"2","pttl":3000},{"m":{"t":"three"},"score":"inf","pttl":-1}]}`,
		"l":      `{"rows":[{"i":0,"v":{"t":"x"},"pttl":-1},{"i":1,"v":{"t":"y"},"pttl":2000},{"i":2,"v":{"t":"z"},"pttl":-1}]}`,
		"stream": `"groups":[{"name":{"t":"g"},"consumers":1,"pending":2,"lag":3,"last":"2-0","consumersRows":[{"name":{"t":"c"},"pending":2`,
		"rl":     `"limit":"5"`,
		"lock":   `"holders":[[{"t":"ann"},`,
		"sem":    `"taken":"1"`,
		"q":      `"ready":"1"`,
		"bloom":  `"info":{"capacity":"100","error":0.01,"expansion":"2","generations":"0","items":"1","layers":"1","window":"0"}`,
	} {
		status, body := b.ask("GET", "api/key?k="+url(key), "")
		body = marks.ReplaceAllString(body, "")
		if status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d\n%s\nwant %s", key, status, body, want)
		}
	}
	b.clock.Advance(2001 * time.Millisecond)
	var list struct{ Body struct{ Rows []item } }
	b.get("api/key?k="+url("l"), &list)
	if len(list.Body.Rows) != 2 {
		t.Errorf("the list has %d rows, want 2: one element has expired", len(list.Body.Rows))
	}
	for _, key := range []string{"nothing", "\x00"} {
		if status, body := b.ask("GET", "api/key?k="+url(key), ""); status != 404 || !strings.Contains(body, `"gone":true`) {
			t.Errorf("%q: %d %s", key, status, body)
		}
	}
	for _, path := range []string{"api/key", "api/key?k=%25", "api/key?k=" + url("z") + "&from=x", "api/key?k=" + url("z") + "&count=0",
		"api/key?k=" + url("z") + "&order=x"} {
		if status, body := b.ask("GET", path, ""); status != 400 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

func TestPagesOfAKeyCoverAllItems(t *testing.T) {
	b := newBench(t, Options{})
	const n = 1234
	for i := range n {
		m := fmt.Sprintf("m%04d", i)
		b.admin("HSET", "hash", m, "v")
		b.admin("SADD", "set", m)
		b.admin("ZADD", "zset", fmt.Sprint(i), m)
		b.admin("RPUSH", "list", m)
		b.admin("XADD", "stream", fmt.Sprintf("%d-1", i+1), "f", m)
	}
	for _, kind := range []string{"hash", "set", "zset", "list", "stream"} {
		seen, from := map[string]bool{}, ""
		for range n {
			var page struct {
				Next *string
				Body struct {
					Rows []struct {
						F, M, V *blob
						ID      string
					}
				}
			}
			b.get("api/key?count=100&k="+url(kind)+"&from="+from, &page)
			for _, r := range page.Body.Rows {
				switch {
				case r.ID != "":
					seen[r.ID] = true
				case r.F != nil:
					seen[r.F.s] = true
				case r.M != nil:
					seen[r.M.s] = true
				default:
					seen[r.V.s] = true
				}
			}
			if page.Next == nil {
				break
			}
			from = *page.Next
		}
		if len(seen) != n {
			t.Errorf("%s: the pages have %d of %d items", kind, len(seen), n)
		}
	}
	for find, want := range map[string]string{"1200-0..1230-9": "1230-1 to 1200-1", "1230..": "1234-1 to 1230-1", "..2": "2-1 to 1-1",
		"2000..": " to "} {
		var page struct{ Body struct{ Rows []entry } }
		b.get("api/key?find="+find+"&k="+url("stream"), &page)
		rows := append(append([]entry{{}}, page.Body.Rows...), entry{})
		if got := rows[min(1, len(page.Body.Rows))].ID + " to " + rows[len(page.Body.Rows)].ID; got != want {
			t.Errorf("%s has %s, want %s", find, got, want)
		}
	}
	for from, want := range map[string]string{"": "m1233 to m1134", "1200": "m0033 to m0000"} {
		var page struct{ Body struct{ Rows []item } }
		b.get("api/key?order=highest&count=100&k="+url("zset")+"&from="+from, &page)
		if rows := page.Body.Rows; len(rows) == 0 || rows[0].M.s+" to "+rows[len(rows)-1].M.s != want {
			t.Errorf("from the highest, behind %q: %+v, want %s", from, rows, want)
		}
	}
	var found struct{ Body struct{ Rows []item } }
	b.get("api/key?find=m0*17&k="+url("zset"), &found)
	for _, r := range found.Body.Rows {
		if !strings.HasPrefix(r.M.s, "m0") || !strings.HasSuffix(r.M.s, "17") {
			t.Errorf("a pattern finds %q", r.M.s)
		}
	}
	if len(found.Body.Rows) == 0 {
		t.Error("a pattern finds nothing")
	}
	b.get("api/key?find=m0017&k="+url("zset"), &found)
	if len(found.Body.Rows) != 1 || *found.Body.Rows[0].Score != "17" {
		t.Errorf("%+v", found)
	}
}

func TestKeysAreListedInPages(t *testing.T) {
	b := newBench(t, Options{})
	for i := range 3000 {
		b.admin("SET", fmt.Sprintf("k:%d", i), "v")
	}
	b.admin("SET", "soon", "v", "PX", "5000")
	b.admin("SADD", "set", "a", "b")
	list := func(query string) (rows []keyRow, total int64) {
		cursor := "0"
		for range 100 {
			var p keyPage
			b.get("api/keys?limit=500&cursor="+cursor+query, &p)
			rows, total, cursor = append(rows, p.Rows...), p.Total, p.Cursor
			if p.Done {
				return rows, total
			}
		}
		t.Fatal("the list has no end")
		return nil, 0
	}
	if rows, total := list(""); len(rows) != 3002 || total != 3002 {
		t.Errorf("%d rows of %d", len(rows), total)
	}
	if rows, _ := list("&type=set"); len(rows) != 1 || *rows[0].N != 2 || rows[0].Type != "set" || *rows[0].Bytes < 1 || *rows[0].TTL != -1 {
		t.Errorf("%+v", rows)
	}
	if rows, _ := list("&ttl=soon"); len(rows) != 1 || rows[0].K.s != "soon" || *rows[0].TTL != 5000 {
		t.Errorf("%+v", rows)
	}
	b.admin("SET", "large", strings.Repeat("x", 5000))
	if rows, _ := list("&size=4096"); len(rows) != 1 || rows[0].K.s != "large" {
		t.Errorf("%+v", rows)
	}
	if rows, _ := list("&match=k:1*&ttl=none"); len(rows) != 1111 {
		t.Errorf("%d rows", len(rows))
	}
	for _, bad := range []string{"limit=0", "limit=x", "ttl=never", "db=16", "cursor=x"} {
		if status, body := b.ask("GET", "api/keys?"+bad, ""); status < 400 || status >= 500 {
			t.Errorf("%s: %d %s", bad, status, body)
		}
	}
}

func TestHiddenValuesAreNowhere(t *testing.T) {
	b := newBench(t, Options{HideValues: true})
	b.admin("SET", "s", "secret")
	b.admin("HSET", "h", "f", "secret")
	b.admin("RPUSH", "l", "secret")
	b.admin("XADD", "x", "1-0", "f", "secret")
	for _, key := range []string{"s", "h", "l", "x"} {
		if status, body := b.ask("GET", "api/key?k="+url(key), ""); status != 200 || strings.Contains(body, "secret") || !strings.Contains(body, `"n":6`) {
			t.Errorf("%s: %d %s", key, status, body)
		}
	}
}

// The elements of a list are values, although EXPIRY SOON and the rules call them items: fields, members and
// holders are names.
func TestHiddenElementsAreHiddenAmongDeadlines(t *testing.T) {
	b := newBench(t, Options{HideValues: true})
	b.admin("RPUSH", "l", "sesame", "other")
	b.admin("LPEXPIRE", "l", "1500", "INDEXES", "1", "0")
	b.admin("HSET", "h", "field", "sesame", "g", "v")
	b.admin("HPEXPIRE", "h", "1500", "FIELDS", "1", "field")
	_, body := b.ask("GET", "api/soon", "")
	if strings.Contains(body, "sesame") || !strings.Contains(body, `"k":{"t":"l"},"item":{"n":6}`) || !strings.Contains(body, `"item":{"t":"field"}`) {
		t.Error(body)
	}
	b.admin("EXPIRY", "RULE", "SET", "r", "MATCH", "[hl]", "TO", "gone")
	l := b.listen("expired,sample")
	var none struct{}
	l.next("hello", &none)
	b.admin("XADD", "gone", "*", "key", "sesame", "item", "sesame")
	b.clock.Advance(1600 * time.Millisecond)
	b.admin("LLEN", "l")
	b.admin("HGET", "h", "field")
	b.second()
	events := strings.Join(l.until("sample", "expired"), "\n")
	if strings.Contains(events, "sesame") || !strings.Contains(events, `"k":{"t":"l"},"item":{"n":6}`) ||
		!strings.Contains(events, `"item":{"t":"field"}`) || !strings.Contains(events, `"k":{"n":6},"item":{"n":6}`) {
		t.Error(events)
	}
}

// TestAPageOfLargeValuesIsShort: the console reads the values of a page in full, so it reads few of them at a
// time.
func TestAPageOfLargeValuesIsShort(t *testing.T) {
	b := newBench(t, Options{})
	const n = 20
	large := strings.Repeat("x", 1<<20)
	for i := range n {
		name := fmt.Sprint(i)
		b.admin("HSET", "h", name, large)
		b.admin("SADD", "s", name+large)
		b.admin("ZADD", "z", name, name+large)
		b.admin("RPUSH", "l", name+large)
		b.admin("XADD", "x", "*", name, large)
		b.admin("DQ.ADD", "q", name, large)
	}
	for _, key := range []string{"h", "s", "z", "l", "x"} {
		seen, from, pages := 0, "", 0
		for {
			var page struct {
				Next *string
				Body struct{ Rows []json.RawMessage }
			}
			b.get("api/key?count=100&k="+url(key)+"&from="+neturl.QueryEscape(from), &page)
			seen, pages = seen+len(page.Body.Rows), pages+1
			if len(page.Body.Rows) > map[string]int{"h": 2 * minScan, "s": 2 * minScan, "z": 6, "l": 6, "x": 6}[key] {
				t.Errorf("%s: a page has %d items of 1 MiB", key, len(page.Body.Rows))
			}
			if page.Next == nil {
				break
			}
			from = *page.Next
		}
		if seen != n || pages < 2 {
			t.Errorf("%s: %d items on %d pages", key, seen, pages)
		}
	}
	if _, body := b.ask("GET", "api/key?k="+url("h"), ""); strings.Contains(body, "xxx") || !strings.Contains(body, `"v":{"t":"","n":1048576},"pttl":-1}`) {
		t.Errorf("the large values of a hash are shown as %.200s", body)
	}
	b.admin("HSET", "h", "small", "<b>")
	_, body := b.ask("GET", "api/key?find=small&k="+url("h"), "")
	if !strings.Contains(marks.ReplaceAllString(body, ""), `"f":{"t":"small"},"v":{"t":"\u003cb\u003e"},"pttl":-1}]`) {
		t.Errorf("a small value among large ones is shown as %.300s", body)
	}
	seen, from := 0, ""
	for more := true; more; { // the first request has no from
		var page struct {
			More bool
			Jobs []struct{ ID blob }
		}
		b.get("api/queue?state=all&limit=100&k="+url("q")+from, &page)
		if seen += len(page.Jobs); len(page.Jobs) == 0 || len(page.Jobs) > 6 {
			t.Fatalf("a page has %d jobs of 1 MiB", len(page.Jobs))
		}
		from, more = "&from="+url(page.Jobs[len(page.Jobs)-1].ID.s), page.More
	}
	if seen != n {
		t.Errorf("the pages have %d jobs", seen)
	}
}

func TestAPageWithoutTheSizeOfItsKey(t *testing.T) {
	size := func(n int64) *int64 { return &n }
	for i, x := range []struct {
		count, n int64
		bytes    *int64
		want     int64
	}{{200, 1000, size(50_000), 200}, {200, 1000, nil, pageBlind}, {5, 1000, nil, 5},
		{200, 10, size(1 << 40), 1}, {200, 0, size(60), 200}, {200, 1, size(0), 200}} {
		if got := pageOf(x.count, x.n, x.bytes); got != x.want {
			t.Errorf("row %d: a page has %d items, want %d", i, got, x.want)
		}
	}
}

func TestAKeySaysThatItSlides(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("SET", "k", "v", "PX", "600000", "SLIDE")
	b.admin("SET", "still", "v", "PX", "600000")
	b.clock.Advance(time.Second)
	for key, want := range map[string]int64{"k": 600_000, "still": 0} {
		var view struct{ PTTL, Slide int64 }
		if b.get("api/key?k="+url(key), &view); view.PTTL != 599_000 || view.Slide != want {
			t.Errorf("%s: %+v", key, view)
		}
		var page struct{ Rows []struct{ Slide int64 } }
		if b.get("api/keys?match="+key, &page); len(page.Rows) != 1 || page.Rows[0].Slide != want {
			t.Errorf("%s among the keys: %+v", key, page)
		}
	}
}
