package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// seen returns the mark of the row whose JSON contains a text.
func (b *bench) seen(key, row string) string {
	b.t.Helper()
	status, body := b.ask("GET", "api/key?k="+url(key), "")
	var a struct {
		Body struct{ Rows []map[string]any }
	}
	decode(b.t, body, &a)
	for _, r := range a.Body.Rows {
		if strings.Contains(fmt.Sprint(r), row) {
			mark, _ := r["seen"].(string)
			return mark
		}
	}
	b.t.Fatalf("%s has no row with %s: %d %s", key, row, status, body)
	return ""
}

// ifSeen runs a command if a read still has the mark.
func (b *bench) ifSeen(read, mark, command string) (int, string) {
	b.t.Helper()
	return b.ask("POST", "api/batch", fmt.Sprintf(`{"db":0,"cmds":[%s],"atomic":true,"expect":[{"argv":%s,"seen":%q}]}`,
		argvJSON(command), argvJSON(read), mark))
}

func TestAChangeNeedsWhatThePageHasShown(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("HSET", "h", "f", "one", "g", "other")
	b.admin("RPUSH", "l", "A", "B", "C")
	b.admin("ZADD", "z", "1.5", "m")
	b.admin("SET", "s", "x")
	for _, x := range []struct{ key, row, read, command, meanwhile, still, value string }{
		{"h", "t:one", "HGET h f", "HSETEX h KEEPTTL FIELDS 1 f mine", "HSET h f two", "HGET h f", "two"},
		{"h", "t:other", "HGET h g", "HSETEX h KEEPTTL FIELDS 1 g mine", "HDEL h g", "HGET h g", ""},
		{"l", "t:B", "LINDEX l 1", "LSET l 1 mine", "LPUSH l NEW", "LINDEX l 1", "A"},
		{"z", "t:m", "ZSCORE z m", "ZADD z XX 9 m", "ZINCRBY z 1 m", "ZSCORE z m", "2.5"},
	} {
		mark := b.seen(x.key, x.row)
		b.admin(strings.Fields(x.meanwhile)...)
		if status, body := b.ifSeen(x.read, mark, x.command); status != http.StatusConflict || !strings.Contains(body, `"code":"CHANGED"`) {
			t.Errorf("%s after %s: %d %s", x.command, x.meanwhile, status, body)
		}
		if v := b.admin(strings.Fields(x.still)...); v.String() != x.value && v.Str != x.value {
			t.Errorf("%s after %s and %s: %v", x.still, x.meanwhile, x.command, v)
		}
	}
	if status, body := b.ifSeen("LINDEX l 2", b.seen("l", "t:B"), "LSET l 2 mine"); status != 200 {
		t.Errorf("a list that is as it was: %d %s", status, body)
	}
	if v := b.admin("LINDEX", "l", "2"); v.Str != "mine" {
		t.Errorf("the element is %q", v.Str)
	}
	// A key of another type, and a command that is not allowed in an expectation.
	b.admin("DEL", "h")
	b.admin("SET", "h", "x")
	if status, _ := b.ifSeen("HGET h f", "abc", "SET h mine"); status != http.StatusConflict {
		t.Errorf("another type: %d", status)
	}
	for _, read := range []string{"SET s y", "KEYS *", "DEBUG SLEEP 0", "NOSUCH", "GET"} {
		if status, _ := b.ifSeen(read, "", "SET s mine"); status != http.StatusBadRequest {
			t.Errorf("%s is an expectation: %d", read, status)
		}
	}
	if v := b.admin("GET", "s"); v.Str != "x" {
		t.Errorf("s is %q", v.Str)
	}
	// The session no longer watches a key.
	b.admin("SET", "h", "y")
	if status, body := b.ask("POST", "api/batch", `{"db":0,"cmds":[`+argvJSON("SET s z")+`],"atomic":true}`); status != 200 {
		t.Errorf("a batch after an expectation that failed: %d %s", status, body)
	}
}

func TestANewKeyTouchesNoneThatExists(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("RPUSH", "there", "a", "b")
	make := func(key string) (int, string) {
		return b.ask("POST", "api/batch", fmt.Sprintf(`{"db":0,"cmds":[%s,%s],"atomic":true,"expect":[{"argv":%s,"seen":""}]}`,
			argvJSON("RPUSH "+key+" x"), argvJSON("PEXPIRE "+key+" 2000"), argvJSON("EXISTS "+key)))
	}
	if status, body := make("there"); status != http.StatusConflict {
		t.Errorf("a key that exists: %d %s", status, body)
	}
	if n, ttl := b.admin("LLEN", "there").Int, b.admin("PTTL", "there").Int; n != 2 || ttl != -1 {
		t.Errorf("it has %d elements, and %d ms to live", n, ttl)
	}
	if status, body := make("fresh"); status != 200 || b.admin("PTTL", "fresh").Int != 2000 {
		t.Errorf("a new key: %d %s", status, body)
	}
}

func TestALongValueIsComparedByItsBeginningAndItsLength(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("RPUSH", "l", strings.Repeat("x", 300_000))
	mark := b.seen("l", "i:0")
	if status, body := b.ifSeen("LINDEX l 0", mark, "LPEXPIRE l 5000 INDEXES 1 0"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	b.admin("LSET", "l", "0", strings.Repeat("x", 300_001))
	if status, _ := b.ifSeen("LINDEX l 0", mark, "LPERSIST l INDEXES 1 0"); status != http.StatusConflict {
		t.Errorf("a longer value: %d", status)
	}
}
