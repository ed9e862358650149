package console

import (
	"net/http"
	"strings"
	"testing"
)

func TestAStreamIsShownWithItsPendingEntries(t *testing.T) {
	b := newBench(t, Options{HideValues: true}) // names are shown all the same
	for range 3 {
		b.admin("XADD", "<s>", "*", "f", "secret")
	}
	b.admin("XGROUP", "CREATE", "<s>", "<g>", "0")
	b.admin("XREADGROUP", "GROUP", "<g>", "c\u202e", "COUNT", "2", "STREAMS", "<s>", ">")
	b.admin("SET", "text", "x")
	status, body := b.ask("GET", "api/stream?k="+url("<s>")+"&g="+url("<g>"), "")
	for _, want := range []string{`"row":{"k":{"t":"\u003cs\u003e"},"length":3,"last":"1700000000000-2",` +
		`"groups":[{"name":{"t":"\u003cg\u003e"},"consumers":1,"pending":2,"lag":1,"last":"1700000000000-1","oldest":0,`,
		`"pending":[{"id":"1700000000000-0","consumer":{"b":"`, `"idle":0,"deliveries":1},{"id":"1700000000000-1"`, `"more":false`} {
		if status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%d %s\nwant %s", status, body, want)
		}
	}
	if strings.Contains(body, "secret") {
		t.Error("the answer has a value: ", body)
	}
	_, body = b.ask("GET", "api/stream?k="+url("<s>")+"&g="+url("<g>")+"&from=1700000000000-1", "")
	if !strings.Contains(body, `"pending":[{"id":"1700000000000-1"`) {
		t.Error(body)
	}
	for path, want := range map[string]int{"stream": 400, "stream?k=" + url("text"): 404, "stream?k=" + url("no"): 404, "stream?k=" + url("<s>") + "&g=%21": 400,
		"stream?k=" + url("<s>") + "&g=" + url("absent"): 409} {
		if status, body := b.ask("GET", "api/"+path, ""); status != want {
			t.Errorf("%s: %d %s, want %d", path, status, body, want)
		}
	}
}
