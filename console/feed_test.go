package console

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/session"
)

// listener reads a stream of events in order.
type listener struct {
	t    *testing.T
	body *bufio.Scanner
	end  context.CancelFunc
	id   string // of the latest event
}

// listen opens a stream over a real connection, and waits for its hello.
func (b *bench) listen(topics string) *listener {
	b.t.Helper()
	return b.listenFrom(topics, "")
}

// listenFrom opens a stream for a page that has received events of an earlier one.
func (b *bench) listenFrom(topics, last string) *listener {
	b.t.Helper()
	if b.pages == nil {
		b.pages = httptest.NewServer(b.Console)
		b.t.Cleanup(func() { // before the console is closed
			b.pages.CloseClientConnections()
			b.pages.Close()
			http.DefaultClient.CloseIdleConnections()
		})
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, b.pages.URL+"/api/feed?topics="+topics+"&last="+last, nil)
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.t.Fatal(resp, err)
	}
	b.t.Cleanup(func() {
		cancel()
		_ = resp.Body.Close()
	})
	s := bufio.NewScanner(resp.Body)
	s.Buffer(nil, 4<<20)
	return &listener{t: b.t, body: s, end: cancel}
}

// read returns the next event; ok is false at the end of the stream.
func (l *listener) read() (name, data string, ok bool) {
	for l.body.Scan() {
		line := l.body.Text()
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			l.id = id
		}
		if e, ok := strings.CutPrefix(line, "event: "); ok {
			name = e
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return name, data, true
		}
	}
	return "", "", false
}

// next decodes the next event with a name into x.
func (l *listener) next(name string, x any) {
	l.t.Helper()
	for {
		event, data, ok := l.read()
		switch {
		case !ok:
			l.t.Fatalf("the stream ended before an event %s: %v", name, l.body.Err())
		case event == name:
			if err := json.Unmarshal([]byte(data), x); err != nil {
				l.t.Fatal(err)
			}
			return
		}
	}
}

// until returns the events named name that precede the next event named end.
func (l *listener) until(end, name string) (data []string) {
	l.t.Helper()
	for {
		event, text, ok := l.read()
		switch {
		case !ok:
			l.t.Fatalf("the stream ended before an event %s: %v", end, l.body.Err())
		case event == end:
			return data
		case event == name:
			data = append(data, text)
		}
	}
}

// second advances the time by a second, and takes a sample.
func (b *bench) second() {
	b.clock.Advance(time.Second)
	b.hub.tick()
}

func TestTheFeedTellsWhatHappens(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("SET", "k", "1", "PX", "3000")
	b.admin("EXPIRY", "RULE", "SET", "r", "MATCH", "*", "TO", "ended")
	l := b.listen("expired:0,sample,key:0:" + url("k"))
	var hello struct {
		Now   int64
		Epoch string
	}
	l.next("hello", &hello)
	if hello.Now != b.now() || hello.Epoch == "" || !strings.HasPrefix(l.id, hello.Epoch+"-") {
		t.Errorf("%+v %s", hello, l.id)
	}
	var k keyEvent
	l.next("key", &k) // the current state
	first := k.Version
	var s sample
	b.hub.tick()
	l.next("sample", &s)
	if s.Keys != 1 || s.KeysTTL != 1 || len(s.Due) != 60 || s.Due[2]+s.Due[3] != 1 || s.Role != "master" || len(s.Attention) != 0 {
		t.Errorf("%+v", s)
	}
	b.admin("SET", "k", "2", "KEEPTTL")
	b.hub.tick()
	for k.Version == first {
		l.next("key", &k)
	}
	if k.K.s != "k" || k.Type != "string" || k.TTL != 3000 || k.Version == "" {
		t.Errorf("%+v", k)
	}
	b.clock.Advance(3001 * time.Millisecond)
	var e expiredEvent
	b.hub.tick()
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

// A change of a value, of the number of items or of one deadline is reported for a key of any type, without
// the permission for DEBUG.
func TestTheFeedTellsOfEachChangeOfAKey(t *testing.T) {
	b := newBench(t, Options{})
	for _, x := range []struct{ make, change string }{
		{"SET k 1", "SET k 2"}, {"SET k 1", "PEXPIRE k 100000"}, {"HSET k f 1", "HSET k f 2"}, {"HSET k f 1", "HSET k g 1"},
		{"HSET k f 1", "HPEXPIRE k 100000 FIELDS 1 f"}, {"SADD k a", "SPEXPIRE k 100000 MEMBERS 1 a"}, {"ZADD k 1 a", "ZADD k 2 a"},
		{"RPUSH k a", "LSET k 0 b"}, {"XADD k 1-1 a b", "XADD k 2-1 a b"}, {"XADD k 1-1 a b", "XGROUP CREATE k g 0"},
		{"XADD k 1-1 a b; XGROUP CREATE k g 0", "XREADGROUP GROUP g c STREAMS k >"},
		{"XADD k 1-1 a b; XGROUP CREATE k g 0; XREADGROUP GROUP g c STREAMS k >", "XACK k g 1-1"},
		{"XADD k 1-1 a b; XGROUP CREATE k g 0; XREADGROUP GROUP g c STREAMS k >", "XCLAIM k g d 0 1-1"},
		{"XADD k 1-1 a b; XGROUP CREATE k g 0", "XGROUP SETID k g $"}, {"XADD k 1-1 a b; XGROUP CREATE k g 0", "XGROUP CREATECONSUMER k g z"},
		{"XADD k 1-1 a b", "XSETID k 9-1"}, {"DQ.ADD k x p", "DQ.CONFIG k PAUSED yes"},
		{"RL.TAKE k 5 60000", "RL.TAKE k 5 60000"}, {"LOCK.ACQUIRE k ann 60000", "LOCK.ACQUIRE k ann 90000"},
		{"SEM.ACQUIRE k ann 2 60000", "SEM.ACQUIRE k bob 2 60000"}, {"DQ.ADD k x p", "DQ.POP k LEASE 60000"}, {"BF.ADD k a", "BF.ADD k b"},
		{"SET k 1; SET j 2", "COPY j k REPLACE"}, {"SET k 1; SET j 2", "RENAME j k"}, {"SET k 1; SELECT 1; SET k 2; SELECT 0", "SWAPDB 0 1"},
	} {
		b.admin("FLUSHALL")
		for make := range strings.SplitSeq(x.make, "; ") {
			if v := b.admin(strings.Fields(make)...); v.Err() != nil {
				t.Fatal(make, v)
			}
		}
		l := b.listen("key:0:" + url("k"))
		var first, next keyEvent
		l.next("key", &first)
		if v := b.admin(strings.Fields(x.change)...); v.Err() != nil {
			t.Fatal(x.change, v)
		}
		b.hub.tick()
		if l.next("key", &next); next.same(&first) {
			t.Errorf("%s, %s: the feed says %+v, and then %+v", x.make, x.change, first, next)
		}
		l.end()
	}
}

// A page sees the expirations between the beginning of its stream and the first beat, and those that the
// first beat after a new rule finds.
func TestTheFeedMissesNoExpirationOfItsFirstSecond(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("EXPIRY", "RULE", "SET", "r", "MATCH", "a*", "TO", "ended")
	b.admin("SET", "a1", "1", "PX", "1")
	b.clock.Advance(2 * time.Millisecond)
	b.hub.tick() // the rule's earlier records are not news
	l := b.listen("expired:0")
	var hello struct{}
	l.next("hello", &hello)
	expire := func(key string) {
		t.Helper()
		b.admin("SET", key, "1", "PX", "1")
		b.clock.Advance(2 * time.Millisecond)
		b.admin("EXISTS", key)
	}
	expire("a2")
	var e expiredEvent
	b.hub.tick()
	if l.next("expired", &e); e.K.s != "a2" {
		t.Errorf("the first expiration is that of %q, want a2", e.K.s)
	}
	b.clock.Advance(time.Second)
	b.admin("EXPIRY", "RULE", "SET", "s", "MATCH", "b*", "TO", "others")
	expire("b1")
	b.hub.tick()
	if l.next("expired", &e); e.K.s != "b1" {
		t.Errorf("the expiration after a new rule is that of %q, want b1", e.K.s)
	}
}

func TestAStreamNeedsTopicsThatExist(t *testing.T) {
	b := newBench(t, Options{})
	for _, bad := range []string{"", "nothing", "key", "key:0", "key:0:%25", "key:99:" + url("k"), "sample:x", strings.Repeat("sample,", 30), "limits", "limits:x",
		"locks:0:%25", "queues:0:a:b", "monitor", "walk"} {
		if status, body := b.ask("GET", "api/feed?topics="+bad, ""); status != 400 {
			t.Errorf("%q: %d %s", bad, status, body)
		}
	}
}

// A stream with the same key many times would otherwise do the work for it as often.
func TestAStreamHasEachTopicOnce(t *testing.T) {
	b := newBench(t, Options{})
	key := "key:0:" + url("k") // aw: the last four bits belong to no byte, and ax has the same bytes
	for _, bad := range []string{key + ",sample," + key, key + ",key:0:ax", "sample,sample", "locks:0,locks:0:", "expired:0,expired:0"} {
		status, body := b.ask("GET", "api/feed?topics="+bad, "")
		if status != 400 || !strings.Contains(body, "twice") {
			t.Errorf("%q: %d %s", bad, status, body)
		}
	}
	var none struct{}
	b.listen(key+",key:1:"+url("k")+",key:0:"+url("K")).next("hello", &none)
}

// The work of a stream for a key does not depend on the size of the value, even while the value changes.
func TestAStreamReadsNoValue(t *testing.T) {
	b := newBench(t, Options{})
	large := strings.Repeat("x", 1<<20)
	b.admin("SET", "s", large)
	b.admin("HSET", "h", "f", large)
	b.admin("XADD", "x", "*", "f", large)
	l := b.listen("sample,key:0:" + url("s") + ",key:0:" + url("h") + ",key:0:" + url("x"))
	var s sample
	b.second()
	l.next("sample", &s)
	var mu sync.Mutex
	ran := map[string]int{}
	stop := b.svc.Monitor(func(m session.MonitorLine) {
		mu.Lock()
		defer mu.Unlock()
		if m.Lib == library {
			ran[strings.ToUpper(string(m.Args[0]))]++
		}
	})
	defer stop()
	for i := range 3 {
		b.admin("APPEND", "s", "x")
		b.admin("HSET", "h", "f", large+fmt.Sprint(i))
		b.admin("XADD", "x", "*", "f", "v")
		b.second()
		for range 3 {
			var k keyEvent
			l.next("key", &k)
		}
	}
	b.second()
	l.next("sample", &s)
	mu.Lock()
	defer mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(ran)) {
		if !slices.Contains([]string{"TYPE", "PTTL", "HLEN", "XLEN", "XINFO"}, name) {
			t.Errorf("the stream has run %s %d times", name, ran[name])
		}
	}
	if ran["TYPE"] < 9 {
		t.Errorf("the stream has run %v", ran)
	}
}

// slowClock is a clock on which each reading takes 250 ms.
type slowClock struct {
	clock.Clock
	looks atomic.Int64
}

func (c *slowClock) Micros() int64 { return c.Clock.Micros() + 250_000*c.looks.Add(1) }

// A stream reads data for at most a tenth of the time.
func TestAStreamWhoseReadsTakeLongRests(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("SET", "k", "v")
	b.Console.clock = &slowClock{Clock: b.clock}
	l := b.listen("key:0:" + url("k") + ",sample")
	var s sample
	calls := func() int64 {
		for id, name := range b.svc.Admin().Commands {
			if name == "type" {
				return b.svc.Admin().Tally(id, nil).Calls
			}
		}
		return 0
	}
	b.second()
	l.next("sample", &s)
	before := calls()
	for range 12 {
		b.second()
		l.next("sample", &s) // samples arrive each second
	}
	if n := calls() - before; n < 2 || n > 4 {
		t.Errorf("the stream has read its key %d times in 12 s, and each time took more than 250 ms", n)
	}
}

func TestAViewerThatLagsIsToldToReadAnewAndThenCutOff(t *testing.T) {
	b := newBench(t, Options{})
	cut := false
	f := newFeed(func() { cut = true })
	b.hub.join(f)
	for range feedLag {
		b.second()
	}
	if f.lagged.Load() || len(f.beats) != feedLag {
		t.Fatalf("%d beats wait", len(f.beats))
	}
	b.second()
	if !f.lagged.Load() || len(f.beats) != 1 || cut {
		t.Fatalf("lagged %v, %d beats wait, cut off %v", f.lagged.Load(), len(f.beats), cut)
	}
	for range feedLag {
		b.second()
	}
	if !cut {
		t.Error("the viewer takes nothing, and is not cut off")
	}
	if b.hub.tick() {
		t.Error("a stream is open")
	}
}

// A stream whose goroutine is slow gets one resync, and then the new events.
func TestAStreamThatHasLaggedSendsResync(t *testing.T) {
	b := newBench(t, Options{})
	l := b.listen("sample,key:0:" + url("k"))
	var none struct{}
	l.next("hello", &none)
	b.hub.mu.Lock()
	for f := range b.hub.streams {
		f.lagged.Store(true)
	}
	b.hub.mu.Unlock()
	b.second()
	var x reason
	l.next("resync", &x)
	if x.Why == "" || x.Gap {
		t.Errorf("%+v", x)
	}
	var s sample
	l.next("sample", &s)
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

func TestTheFeedEndsWithBye(t *testing.T) {
	b := newBench(t, Options{})
	l := b.listen("sample")
	var none struct{}
	l.next("hello", &none)
	done := make(chan error)
	go func() { done <- b.Close() }()
	var x reason
	l.next("bye", &x)
	if x.Why == "" {
		t.Error("bye says no reason")
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAStreamEndsWithItsUser(t *testing.T) {
	name := "ann"
	b := newBench(t, Options{Access: func(*http.Request) (string, bool) { return name, true }})
	b.admin("ACL", "SETUSER", name, "on", "nopass", "~*", "+@all")
	l := b.listen("sample")
	var none struct{}
	l.next("hello", &none)
	b.admin("ACL", "DELUSER", name)
	b.second()
	var x reason
	l.next("bye", &x)
	if _, _, ok := l.read(); ok {
		t.Error("the stream goes on after bye")
	}
}

// expire makes n keys of a database expire, each in a millisecond of its own.
func (b *bench) expire(db string, n int) {
	b.t.Helper()
	b.admin("SELECT", db)
	for range n {
		b.expired++
		b.admin("SET", fmt.Sprint("x", b.expired), "v", "PX", "1")
		b.clock.Advance(2 * time.Millisecond)
		if v := b.admin("EXISTS", fmt.Sprint("x", b.expired)); v.Int != 0 {
			b.t.Fatal("the key has not expired")
		}
	}
	b.admin("SELECT", "0")
}

// names returns the keys of expired events, and the number of skipped ones.
func names(t *testing.T, data []string) (keys []string, skipped int64) {
	t.Helper()
	for _, d := range data {
		var x struct {
			expiredEvent
			Skipped int64
		}
		if err := json.Unmarshal([]byte(d), &x); err != nil {
			t.Fatal(err)
		}
		if skipped += x.Skipped; x.Skipped == 0 {
			keys = append(keys, x.K.s)
		}
	}
	return keys, skipped
}

func (b *bench) wantKeys(data []string, from, to int) {
	b.t.Helper()
	keys, skipped := names(b.t, data)
	for i, k := range keys {
		if want := fmt.Sprint("x", from+i); k != want {
			b.t.Fatalf("event %d is about %s, and not %s", i, k, want)
		}
	}
	if len(keys) != to-from+1 || skipped != 0 {
		b.t.Fatalf("%d events and %d skipped, and not %d", len(keys), skipped, to-from+1)
	}
}

func TestAStreamMissesNoExpirationBetweenItAndTheOneBefore(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("SELECT", "3")
	b.admin("EXPIRY", "RULE", "SET", "r", "MATCH", "x*", "TO", "ended")
	b.admin("SELECT", "0")
	b.expire("3", 5) // before the first stream begins
	l := b.listen("expired:3,sample")
	var none struct{}
	l.next("hello", &none)
	b.expire("3", 10)
	b.hub.tick()
	l.until("sample", "expired")
	var first expiredEvent
	b.expire("3", 3)
	b.hub.tick()
	l.next("expired", &first) // the page has received x16, but not the events that the server sent after it
	last := l.id
	if first.K.s != "x16" || first.DB != 3 {
		t.Fatalf("%+v", first)
	}
	l.end()
	b.expire("3", 300)
	l = b.listenFrom("expired:3,sample", last)
	var x reason
	l.next("resync", &x)
	if x.Gap {
		t.Error("the server has forgotten the stream")
	}
	b.hub.tick()
	b.wantKeys(l.until("sample", "expired"), 17, 318)
	b.expire("3", 2)
	b.hub.tick()
	b.wantKeys(l.until("sample", "expired"), 319, 320)
	// The second stream has a trail of its own.
	last = l.id
	l.end()
	b.expire("3", 1)
	l = b.listenFrom("expired:3,sample", last)
	l.next("resync", &x)
	b.hub.tick()
	b.wantKeys(l.until("sample", "expired"), 321, 321)
}

func TestAStreamSaysThatExpirationsMayBeMissing(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("EXPIRY", "RULE", "SET", "r", "MATCH", "x*", "TO", "ended")
	var none struct{}
	l := b.listen("expired:0,sample")
	l.next("hello", &none)
	first := l.id
	for range 3 {
		b.expire("0", 150)
		b.hub.tick()
		l.until("sample", "expired")
	}
	epoch, number, _ := strings.Cut(first, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for name, last := range map[string]string{"too old": first, "another run": "1" + epoch + "-" + number, "no stream": fmt.Sprint(epoch, "-", n+1<<40),
		"no id": "x", "no number": epoch + "-x"} {
		l := b.listenFrom("expired:0", last)
		var x reason
		l.next("resync", &x)
		if !x.Gap || x.Why == "" {
			t.Errorf("%s: %+v", name, x)
		}
		l.end()
	}
}

func TestAnotherUserDoesNotGoOnWithAStream(t *testing.T) {
	var x trails
	a, _ := x.newTrail("ann", "7", "")
	id := fmt.Sprint("7-", a.number(1))
	if _, from := x.newTrail("bob", "7", id); from != nil {
		t.Error("bob goes on where ann's stream has ended")
	}
	if _, from := x.newTrail("ann", "7", id); from != a {
		t.Error("ann does not")
	}
	for range 3 * maxEndedTrails {
		b, _ := x.newTrail("bob", "7", "")
		x.close(b)
	}
	if n := len(x.all); n > maxEndedTrails+3 {
		t.Errorf("%d trails", n)
	}
	if _, from := x.newTrail("ann", "7", id); from != a {
		t.Error("the trail of a stream that is open is forgotten")
	}
}

// More keys expire than a stream may report: it reports the first ones and the number of those that it skips,
// and continues with the latest.
func TestAStreamFallsNotFarBehind(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("EXPIRY", "RULE", "SET", "r", "MATCH", "x*", "TO", "ended")
	l := b.listen("expired:0,sample")
	var none struct{}
	l.next("hello", &none)
	b.hub.tick()
	l.until("sample", "expired") // the stream has begun
	b.expire("0", 1000)
	b.clock.Advance(6 * time.Second)
	b.hub.tick()
	keys, skipped := names(t, l.until("sample", "expired"))
	b.hub.tick()
	more, none2 := names(t, l.until("sample", "expired"))
	if len(keys) != maxTail+tailLatest || skipped != 1000-maxTail-tailLatest || keys[0] != "x1" || keys[maxTail] != "x901" || keys[len(keys)-1] != "x1000" {
		t.Errorf("%d keys, from %s to %s, and %d skipped", len(keys), keys[0], keys[len(keys)-1], skipped)
	}
	if len(more) != 0 || none2 != 0 {
		t.Errorf("%v %d", more, none2)
	}
	b.expire("0", 1)
	b.hub.tick()
	b.wantKeys(l.until("sample", "expired"), 1001, 1001)
	// Entries that MAXLEN has removed are missing too.
	b.expire("0", 10)
	b.admin("XTRIM", "ended", "MAXLEN", "4")
	b.hub.tick()
	if keys, skipped := names(t, l.until("sample", "expired")); len(keys) != 4 || skipped != 6 {
		t.Errorf("%v %d", keys, skipped)
	}
}

func TestAStreamTellsOfARuleThatIsNew(t *testing.T) {
	b := newBench(t, Options{})
	l := b.listen("expired:0,sample")
	var none struct{}
	l.next("hello", &none)
	b.admin("EXPIRY", "RULE", "SET", "r", "MATCH", "x*", "TO", "ended")
	b.expire("0", 3)
	b.hub.tick()
	b.wantKeys(l.until("sample", "expired"), 1, 3)
}

// Keyspace events report all keys that expire, if they are on and the user may subscribe to them.
func TestAStreamTellsOfKeysByKeyspaceEvents(t *testing.T) {
	b := newBench(t, Options{Access: func(*http.Request) (string, bool) { return "ann", true }})
	b.admin("ACL", "SETUSER", "ann", "on", "nopass", "~x*", "+@all", "resetchannels", "&__keyevent@0__:expired")
	shows := func(want string) {
		t.Helper()
		var lag struct {
			Rules        int
			Enable, Need string
		}
		if b.get("api/lag", &lag); fmt.Sprintf("%+v", lag) != want {
			t.Errorf("%+v, want %s", lag, want)
		}
	}
	shows("{Rules:0 Enable:xE Need:}")
	b.admin("CONFIG", "SET", "notify-keyspace-events", "Kx")
	b.admin("EXPIRY", "RULE", "SET", "r", "MATCH", "none*", "TO", "ended")
	b.admin("EXPIRY", "RULE", "SET", "q", "MATCH", "none*", "TO", "QUEUE", "jobs")
	shows("{Rules:1 Enable:xKE Need:}")
	l := b.listen("expired:0,sample")
	var none struct{}
	l.next("hello", &none)
	b.admin("CONFIG", "SET", "notify-keyspace-events", "Ex")
	shows("{Rules:1 Enable: Need:}")
	b.admin("SET", "hidden", "v", "PX", "1") // ann may not read it
	b.expire("0", 3)
	b.hub.tick()
	b.wantKeys(l.until("sample", "expired"), 1, 3)
	b.admin("ACL", "SETUSER", "ann", "resetchannels")
	shows("{Rules:1 Enable: Need:&__keyevent@0__:expired}")
	b.expire("0", 3)
	b.hub.tick()
	if keys := l.until("sample", "expired"); len(keys) != 0 {
		t.Errorf("without the permission ann hears of %q", keys)
	}
}

func TestAStreamLeavesOutWhatItsUserMayNotRead(t *testing.T) {
	b := newBench(t, Options{Access: func(*http.Request) (string, bool) { return "ann", true }})
	b.admin("ACL", "SETUSER", "ann", "on", "nopass", "~x1*", "~ended", "+@all")
	b.admin("EXPIRY", "RULE", "SET", "r", "MATCH", "x*", "TO", "ended")
	l := b.listen("expired:0,sample")
	var none struct{}
	l.next("hello", &none)
	b.expire("0", 12)
	b.hub.tick()
	if keys, _ := names(t, l.until("sample", "expired")); strings.Join(keys, " ") != "x1 x10 x11 x12" {
		t.Errorf("%v", keys)
	}
}

// listRows has the fields of a list that the tests check.
type listRows struct {
	DB    int
	Match string
	Now   int64
	More  bool
	Error string
	Code  string
	Rows  []struct {
		K         blob
		Remaining int64
		Waiting   int
		Ready     int64
	}
}

func TestListsComeWhenTheyChange(t *testing.T) {
	b := newBench(t, Options{})
	b.admin("RL.TAKE", "api:ann", "5", "60000")
	b.admin("LOCK.ACQUIRE", "report", "worker", "30000")
	b.admin("DQ.ADD", "mail", "1", "hello")
	l := b.listen("limits:0,locks:0:" + url("rep*") + ",queues:0,locks:0:" + url("other*") + ",sample")
	var rows listRows
	l.next("limits", &rows)
	if rows.Now != b.now() || len(rows.Rows) != 1 || rows.Rows[0].K.s != "api:ann" || rows.Rows[0].Remaining != 4 {
		t.Errorf("%+v", rows)
	}
	l.next("locks", &rows)
	if rows.Match != "rep*" || len(rows.Rows) != 1 || rows.Rows[0].K.s != "report" {
		t.Errorf("%+v", rows)
	}
	l.next("queues", &rows)
	if len(rows.Rows) != 1 || rows.Rows[0].Ready != 1 {
		t.Errorf("%+v", rows)
	}
	l.next("locks", &rows)
	if rows.Match != "other*" || len(rows.Rows) != 0 {
		t.Errorf("%+v", rows)
	}
	b.hub.tick()
	if same := l.until("sample", "locks"); len(same) != 0 {
		t.Errorf("%q", same)
	}
	b.admin("LOCK.RELEASE", "report", "worker", "0") // without a token the release does nothing
	b.admin("DEL", "report")
	b.hub.tick()
	l.next("locks", &rows)
	if rows.Match != "rep*" || len(rows.Rows) != 0 {
		t.Errorf("%+v", rows)
	}
}

func TestTheServerMakesAListOnceForAllViewersOfAUser(t *testing.T) {
	b := newBench(t, Options{})
	for i := range 250 {
		b.admin("LOCK.ACQUIRE", fmt.Sprint("l", i), "o", "30000")
	}
	var all []*listener
	var rows listRows
	for range 3 {
		l := b.listen("sample,locks:0")
		l.next("locks", &rows)
		all = append(all, l)
	}
	if len(rows.Rows) != maxRows || !rows.More {
		t.Errorf("%d rows, more %v", len(rows.Rows), rows.More)
	}
	calls := func() int {
		_, rest, _ := strings.Cut(b.admin("INFO", "commandstats").Str, "cmdstat_lock.info:calls=")
		n, _, _ := strings.Cut(rest, ",")
		i, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	before := calls()
	b.admin("LOCK.ACQUIRE", "a", "o", "30000")
	b.second()
	for _, l := range all {
		l.next("locks", &rows)
		if rows.Rows[0].K.s != "a" {
			t.Errorf("%+v", rows.Rows[0])
		}
	}
	if n := calls() - before; n != 251 { // a list of the first 200 reads all rows
		t.Errorf("the server has read %d locks for three viewers, and not 251", n)
	}
	for _, l := range all {
		l.end()
	}
	b.pages.Close()
	b.lists.mu.Lock()
	defer b.lists.mu.Unlock()
	if len(b.lists.all) != 0 {
		t.Errorf("%d lists are kept for no stream", len(b.lists.all))
	}
}

func TestAListIsMadeForOneUserAlone(t *testing.T) {
	b := newBench(t, Options{Access: func(r *http.Request) (string, bool) { return r.URL.Query().Get("last"), true }})
	b.admin("ACL", "SETUSER", "ann", "on", "nopass", "~a*", "+@all")
	b.admin("ACL", "SETUSER", "bob", "on", "nopass", "~*", "-@all", "+lock.info")
	b.admin("LOCK.ACQUIRE", "a", "o", "30000")
	b.admin("LOCK.ACQUIRE", "b", "o", "30000")
	var rows listRows
	b.listenFrom("locks:0", "ann").next("locks", &rows)
	if len(rows.Rows) != 1 || rows.Rows[0].K.s != "a" {
		t.Errorf("%+v", rows)
	}
	b.listenFrom("locks:0", "bob").next("locks", &rows)
	if rows.Code != "NOPERM" || rows.Error == "" {
		t.Errorf("%+v", rows)
	}
}

// TestAUserSeesExpirationsOfTheStreamsThatItMayRead: a rule's stream that the user may not read does not hide
// the others.
func TestAUserSeesExpirationsOfTheStreamsThatItMayRead(t *testing.T) {
	b := newBench(t, Options{Access: func(*http.Request) (string, bool) { return "ann", true }})
	b.admin("ACL", "SETUSER", "ann", "on", "nopass", "~shop:*", "+@all")
	b.admin("EXPIRY", "RULE", "SET", "theirs", "MATCH", "*", "TO", "all:ended")
	b.admin("EXPIRY", "RULE", "SET", "own", "MATCH", "*", "TO", "shop:ended")
	l := b.listen("expired:0,sample")
	var none struct{}
	l.next("hello", &none)
	b.admin("SET", "shop:k", "1", "PX", "500")
	b.admin("SET", "theirs", "1", "PX", "500")
	b.second()
	news := l.until("sample", "expired")
	b.second()
	if news = append(news, l.until("sample", "expired")...); len(news) != 1 || !strings.Contains(news[0], `"k":{"t":"shop:k"}`) {
		t.Errorf("the user is told of %v", news)
	}
}

func TestAStreamThatEndsWhileItMakesAListLeavesItToTheNext(t *testing.T) {
	l := &shared{beat: -1}
	version, body := l.at(1, func() (any, error) { return nil, fmt.Errorf("reading: %w", context.Canceled) }, topic{}, func() int64 { return 5 })
	if version != 0 || body != nil {
		t.Error(version, string(body))
	}
	version, body = l.at(1, func() (any, error) { return nil, errors.New("refused") }, topic{name: "locks"}, func() int64 { return 5 })
	if version != 1 || string(body) != `{"db":0,"match":"","now":5,"error":"refused"}` {
		t.Error(version, string(body))
	}
}
