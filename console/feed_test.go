package console

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// listener reads a stream of events in the order in which they come.
type listener struct {
	t    *testing.T
	body *bufio.Scanner
	end  context.CancelFunc
}

// listen opens a stream over a real connection.
func (b *bench) listen(topics string) *listener {
	b.t.Helper()
	srv := httptest.NewServer(b.Console)
	ctx, cancel := context.WithCancel(b.t.Context())
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"/api/feed?topics="+topics, nil)
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.t.Fatal(resp, err)
	}
	b.t.Cleanup(func() {
		cancel()
		_ = resp.Body.Close()
		srv.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	s := bufio.NewScanner(resp.Body)
	s.Buffer(nil, 4<<20)
	return &listener{b.t, s, cancel}
}

// next returns the next event of a name.
func (l *listener) next(name string, x any) {
	l.t.Helper()
	for event := ""; l.body.Scan(); {
		line := l.body.Text()
		if e, ok := strings.CutPrefix(line, "event: "); ok {
			event = e
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok && event == name {
			if err := json.Unmarshal([]byte(data), x); err != nil {
				l.t.Fatal(err)
			}
			return
		}
	}
	l.t.Fatalf("the stream ended before an event %s: %v", name, l.body.Err())
}

func TestTheFeedTellsWhatHappens(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("SET", "k", "1", "PX", "3000")
	b.admin("EXPIRY", "RULE", "SET", "r", "MATCH", "*", "TO", "ended")
	l := b.listen("sample,expired:0,key:0:" + url("k"))
	var hello struct {
		Now   int64
		Epoch string
	}
	l.next("hello", &hello)
	if hello.Now != b.now() || hello.Epoch == "" {
		t.Errorf("%+v", hello)
	}
	var s sample
	b.tick()
	l.next("sample", &s) // the streams have looked at the key by the next one
	if s.Keys != 1 || s.KeysTTL != 1 || len(s.Due) != 60 || s.Due[2]+s.Due[3] != 1 || s.Role != "master" || len(s.Attention) != 0 {
		t.Errorf("%+v", s)
	}
	b.tick()
	l.next("sample", &s)
	b.admin("SET", "k", "2", "KEEPTTL")
	b.tick()
	var k keyNews
	l.next("key", &k)
	if k.K.s != "k" || k.Type != "string" || k.TTL != 3000 || k.Digest == "" {
		t.Errorf("%+v", k)
	}
	b.clock.Advance(3001 * time.Millisecond)
	var e expiredNews
	b.tick()
	for e.K.s != "k" {
		l.next("expired", &e)
	}
	if e.Level != "key" || e.Item != nil || e.DB != 0 {
		t.Errorf("%+v", e)
	}
	l.next("gone", &k)
	if k.K.s != "k" {
		t.Errorf("%+v", k)
	}
}

func TestAStreamNeedsTopicsThatExist(t *testing.T) {
	b := newBench(t, Options{})
	for _, bad := range []string{"", "nothing", "key", "key:0", "key:0:%25", "key:99:" + url("k"), "sample:x", strings.Repeat("sample,", 30)} {
		if status, body := b.ask("GET", "api/feed?topics="+bad, ""); status != 400 {
			t.Errorf("%q: %d %s", bad, status, body)
		}
	}
}

func TestAViewerThatDoesNotReadIsCutOff(t *testing.T) {
	b := newBench(t, Options{})
	cut := make(chan struct{})
	f := &feed{samples: make(chan *sample, feedLag), cut: func() { close(cut) }}
	if _, ok := b.join(f); !ok {
		t.Fatal("the console is closed")
	}
	for range feedLag + 1 {
		b.clock.Advance(time.Second)
		if !b.tick() {
			break
		}
	}
	<-cut
	if n := len(b.hub.ring); n > samplesKept {
		t.Errorf("%d samples", n)
	}
}

func TestQuantilesInterpolate(t *testing.T) {
	before := map[float64]uint64{1: 10, 4: 10, 16: 10}
	now := map[float64]uint64{1: 10, 4: 20, 16: 110}
	if x, ok := quantile(now, before, 0.1); !ok || x != 4 {
		t.Error(x, ok)
	}
	if x, _ := quantile(now, before, 0.55); x != 10 {
		t.Error(x)
	}
	if _, ok := quantile(now, now, 0.5); ok {
		t.Error("nothing has happened")
	}
}
