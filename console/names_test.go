package console

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// oddNames are keys that an address, a path or a text cannot hold unescaped.
var oddNames = []string{"", "a\x00b", "\xff\xfe", "a/b", "..", "../../x", "%", "a%2fb", "a?b#c&k=d", "a b+c", "!17",
	strings.Repeat("n", 13<<10), strings.Repeat("\xff", 64<<10), strings.Repeat("n", nameBytes), strings.Repeat("n", 500<<10)}

// post requests a path with a body, and reads the answer into x.
func (b *bench) post(path string, params map[string]string, x any) {
	b.t.Helper()
	status, body := b.ask("POST", path, string(mustJSON(b.t, params)))
	if status != http.StatusOK {
		b.t.Fatalf("%s: %d %.200s", path, status, body)
	}
	decode(b.t, body, x)
}

// Each endpoint that takes a name also accepts it in a body, which can hold a name of any bytes and of some
// 500 KiB.
func TestANameOfAnyBytesAndLengthReachesItsKey(t *testing.T) {
	b := newBench(t, Options{})
	var key struct {
		K    blob
		Body struct{ V blob }
	}
	for i, name := range oddNames {
		what, value := fmt.Sprintf("%.20q of %d bytes", name, len(name)), fmt.Sprint("v", i)
		b.admin("FLUSHALL")
		b.admin("SET", name, value)
		b.post("api/key", map[string]string{"k": url(name), "db": "0"}, &key)
		if key.K.s != name || key.Body.V.s != value {
			t.Errorf("the key %s is shown as %.20q with %q", what, key.K.s, key.Body.V.s)
		}
		var page struct {
			Rows []struct {
				K struct {
					T, B string
					N    int
				}
				TTL *int64 `json:"pttl"`
			}
		}
		b.get("api/keys", &page)
		if len(page.Rows) != 1 {
			t.Fatalf("%s: %d rows", what, len(page.Rows))
		}
		row := page.Rows[0]
		switch whole, err := base64.StdEncoding.DecodeString(row.K.B); {
		case len(name) > nameBytes:
			if row.K.N != len(name) || len(row.K.T) != nameBegin {
				t.Errorf("the row of %s has %d bytes of the name, and says %d", what, len(row.K.T), row.K.N)
			}
		case err != nil || row.K.N != 0 || row.TTL == nil || string(whole) != name && row.K.T != name:
			t.Errorf("the row of %s is %.100v", what, row)
		}
		do := mustJSON(t, map[string]any{"db": 0, "argv": []any{map[string]string{"t": "GET"},
			map[string]string{"b": base64.StdEncoding.EncodeToString([]byte(name))}}})
		if status, body := b.ask("POST", "api/do", string(do)); status != 200 || !strings.Contains(body, value) {
			t.Errorf("do with %s: %d %.100s", what, status, body)
		}
		b.admin("DEL", name)
		b.admin("XADD", name, "1-1", "f", "v")
		b.admin("XGROUP", "CREATE", name, "", "0")
		var stream struct{ Row streamRow }
		b.post("api/stream", map[string]string{"k": url(name), "g": ""}, &stream)
		if len(stream.Row.Groups) != 1 || stream.Row.Groups[0].Name.s != "" {
			t.Errorf("the stream %s: %+v", what, stream.Row.Groups)
		}
		b.admin("DEL", name)
		b.admin("LOCK.ACQUIRE", name, "ann", "60000")
		var lock struct{ Kind string }
		if b.post("api/lock", map[string]string{"k": url(name)}, &lock); lock.Kind != "lock" {
			t.Errorf("the lock %s is %+v", what, lock)
		}
		b.admin("DEL", name)
		b.admin("DQ.ADD", name, "j", "p")
		var queue struct{ Jobs []struct{ ID blob } }
		if b.post("api/queue", map[string]string{"k": url(name)}, &queue); len(queue.Jobs) != 1 {
			t.Errorf("the queue %s has %d jobs", what, len(queue.Jobs))
		}
	}
	if status, body := b.ask("POST", "api/key", string(mustJSON(t, map[string]string{"k": url(strings.Repeat("n", 1<<20))}))); status != 413 {
		t.Errorf("a name of 1 MiB: %d %.100s", status, body)
	}
}

// A POST that only reads is guarded as one that writes: by its form, and it is refused by a route without
// names.
func TestAQuestionInABodyIsGuardedAsAWrite(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("SET", "k", "v")
	for _, x := range []struct {
		path, body string
		want       int
	}{
		{"api/key", `{"k":"` + url("k") + `"}`, 200},
		{"api/key?k=" + url("k"), `{}`, 400}, // a POST does not read parameters from the address
		{"api/key", `{"k":1}`, 400},
		{"api/key", `["k"]`, 400},
		{"api/key", ``, 400},
		{"api/clients", `{}`, 405},
		{"api/me", `{}`, 405},
	} {
		if status, body := b.ask("POST", x.path, x.body); status != x.want {
			t.Errorf("%s %s: %d %s, want %d", x.path, x.body, status, body, x.want)
		}
	}
	r := b.request("POST", "api/key", `{"k":"`+url("k")+`"}`)
	r.Header.Set("Content-Type", "text/plain")
	if status := b.serveTo(r); status != http.StatusUnsupportedMediaType {
		t.Errorf("a form: %d", status)
	}
	r = b.request("POST", "api/key", `{"k":"`+url("k")+`"}`)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if status := b.serveTo(r); status != http.StatusForbidden {
		t.Errorf("a page of another site: %d", status)
	}
}

// A list has the names that a page can open, says that there are others, and does not treat the beginning of
// a name as a name.
func TestAListLeavesLongNamesOutAndSaysSo(t *testing.T) {
	b := newBench(t, Options{})
	short, long := "lock:short", strings.Repeat("l", 200<<10)
	b.admin("LOCK.ACQUIRE", short, "ann", "60000")
	var list struct {
		Rows []struct{ K blob }
		More bool
	}
	if b.get("api/locks", &list); list.More {
		t.Error("the list says that there are more")
	}
	b.admin("LOCK.ACQUIRE", long, "ann", "60000")
	b.admin("LOCK.ACQUIRE", long[:nameBytes+1], "bob", "60000") // the part of the long name that the console reads
	b.get("api/locks", &list)
	if len(list.Rows) != 1 || list.Rows[0].K.s != short || !list.More {
		t.Errorf("%d rows, more: %v", len(list.Rows), list.More)
	}
	for i := range 20 { // together more than one reply of SCAN may contain
		b.admin("LOCK.ACQUIRE", fmt.Sprint(i)+strings.Repeat("m", 120<<10), "ann", "60000")
	}
	b.get("api/locks", &list)
	if n := len(list.Rows); n < 8 || n > 12 || !list.More {
		t.Errorf("a list has %d names of 120 KiB, want those of about 1 MiB; more: %v", n, list.More)
	}
}
