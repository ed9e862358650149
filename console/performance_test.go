package console

import (
	"net/http"
	"strings"
	"testing"
)

const shopLibrary = "#!lua name=shop\nredis.register_function{function_name='total', callback=function() return 1 end, flags={'no-writes'}, " +
	"description='<b>the sum</b>'}"

func TestThePerformanceScreenShowsCommandsAndScripts(t *testing.T) {
	b := newBench(t, Options{})
	for range 3 {
		b.admin("GET", "k")
	}
	b.admin("LPUSH", "list", "x")
	b.admin("GET", "list")
	b.admin("EVAL", "return '<i>\x00'", "0")
	sha := b.admin("SCRIPT", "LOAD", "return 2").Str
	if v := b.admin("FUNCTION", "LOAD", shopLibrary); v.Err() != nil {
		t.Fatal(v)
	}
	for path, want := range map[string][]string{
		"performance": {`"timing":true`, `{"name":"GET","calls":4,"usec":`, `"failed":1,"p50":`, `{"name":"SCRIPT LOAD","calls":1`,
			`"errors":[{"code":{"t":"WRONGTYPE"},"n":1}]`},
		"scripts": {`"cached":2,`, `"functions":1,`, `"running":null`, `"loaded":false,"head":{"b":"`,
			`"sha":"` + sha + `","bytes":8,"loaded":true,"head":{"t":"return 2"}`,
			`"libraries":[{"name":{"t":"shop"},"functions":[{"name":{"t":"total"},"flags":["no-writes"],"description":{"t":"\u003cb\u003ethe sum\u003c/b\u003e"}}]}]`},
		"latency": {`{"now":1700000000000,"threshold":0,"events":[]}`},
	} {
		status, body := b.ask("GET", "api/"+path, "")
		for _, w := range want {
			if status != http.StatusOK || !strings.Contains(body, w) {
				t.Errorf("%s: %d %s\nwant %s", path, status, body, w)
			}
		}
	}
}

func TestLatencyEventsHaveTheirSamples(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("CONFIG", "SET", "latency-monitor-threshold", "5")
	s := b.svc.Admin()
	s.Latencies.Add("command", 1_700_000_000, 12)
	s.Latencies.Add("command", 1_700_000_002, 40)
	want := `{"now":1700000000000,"threshold":5,"events":[{"event":"command","at":1700000002000,"ms":40,"max":40,` +
		`"samples":[[1700000000000,12],[1700000002000,40]]}]}`
	if _, body := b.ask("GET", "api/latency", ""); body != want {
		t.Errorf("%s\nwant %s", body, want)
	}
}

func TestHiddenValuesHideScripts(t *testing.T) {
	b := newBench(t, Options{HideValues: true})
	b.admin("EVAL", "return 'secret'", "0")
	if v := b.admin("FUNCTION", "LOAD", shopLibrary); v.Err() != nil {
		t.Fatal(v)
	}
	_, body := b.ask("GET", "api/scripts", "")
	if strings.Contains(body, "secret") || strings.Contains(body, "the sum") || !strings.Contains(body, `"head":{"n":15}`) {
		t.Error(body)
	}
}
