package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// concernsOf returns the concerns of GET api/concerns, as lines.
func (b *bench) concernsOf() []string {
	b.t.Helper()
	var a struct{ Rows []concern }
	b.get("api/concerns?db=0", &a)
	out := []string{}
	for _, r := range a.Rows {
		out = append(out, fmt.Sprintf("%s %s db%d %s %d", r.Level, r.Code, r.DB, r.K.s, r.N))
	}
	return out
}

// No viewer has a page open while it happens: Now still shows it.
func TestWhatIsWrongIsToldHoweverLongAgoItBegan(t *testing.T) {
	b := newBench(t, Options{})
	if got := b.concernsOf(); len(got) != 0 {
		t.Fatalf("an empty server has %q", got)
	}
	b.admin("DQ.CONFIG", "mail", "MAXDELIVERIES", "1", "DEADLETTER", "{mail}:dead")
	for i := range 31 {
		b.admin("DQ.ADD", "mail", fmt.Sprint("m", i), "hello")
		job := b.admin("DQ.POP", "mail", "LEASE", "1000").Elems[0].Elems
		b.admin("DQ.NACK", "mail", job[0].Str, text64(job[3].Int))
	}
	b.admin("DQ.ADD", "orphan", "1", "x")
	b.admin("DQ.ADD", "quiet", "1", "x")
	b.admin("DQ.CONFIG", "quiet", "PAUSED", "yes")
	for i := range 167 {
		b.admin("XADD", "orders", fmt.Sprint(i+1, "-1"), "f", "v")
	}
	b.admin("XGROUP", "CREATE", "orders", "slow", "0")
	b.admin("XGROUP", "CREATE", "orders", "done", "$")
	b.admin("SET", "ended", "not a stream")
	b.admin("EXPIRY", "RULE", "SET", "lost", "MATCH", "tmp:*", "TO", "ended")
	b.admin("SET", "tmp:1", "x", "PX", "10")
	b.admin("LOCK.ACQUIRE", "job", "ann", "6000000")
	ctx, cancel := context.WithCancel(t.Context())
	waits, done := b.svc.NewSession(nil), make(chan error)
	defer waits.Closed(nil)
	go func() {
		_, err := waits.DoContext(ctx, []byte("LOCK.ACQUIRE"), []byte("job"), []byte("bob"), []byte("1000"), []byte("WAIT"), []byte("0"))
		done <- err
	}()
	patience, tired := context.WithTimeout(t.Context(), tier.Patience)
	defer tired()
	for len(member(b.admin("LOCK.INFO", "job"), "line").Elems) == 0 {
		if patience.Err() != nil {
			t.Fatal("the second request does not wait for the lock")
		}
		runtime.Gosched()
	}
	b.admin("SELECT", "3")
	b.admin("DQ.ADD", "far", "1", "x")
	b.admin("SELECT", "0")
	for range 40 {
		b.clock.Advance(longStep)
		b.hub.tick()
	}
	for range 75 {
		b.admin("RL.TAKE", "api:ann", "1", "3600000")
	}
	b.admin("RL.TAKE", "api:bob", "1", "60000")
	b.admin("RL.TAKE", "api:bob", "1", "60000") // one denial is not a concern
	want := []string{"act rule db0 lost 1", "look dead db0 mail 31", "look unattended db0 orphan 1", "look unattended db3 far 1",
		"look throttled db0 api:ann 74", "look lockwait db0 job 1", "look behind db0 orders 167"}
	if got := b.concernsOf(); !slices.Equal(got, want) {
		t.Errorf("concerns are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	// A concern that is resolved disappears.
	cancel()
	<-done
	b.admin("DEL", "job", "{mail}:dead", "orphan", "ended", "orders", "api:ann", "api:bob")
	b.admin("CONFIG", "RESETSTAT")
	b.admin("SET", "tmp:2", "x", "PX", "10")
	b.clock.Advance(longStep)
	b.admin("GET", "tmp:2")
	if got := b.concernsOf(); !slices.Equal(got, []string{"look unattended db3 far 1"}) {
		t.Errorf("concerns are still %q", got)
	}
}

// A limiter that always denies has the same rate at any time, although the server halves its counts.
func TestALookThatLeavesSomethingOutSaysSo(t *testing.T) {
	b := newBench(t, Options{})
	part := func() bool {
		var a struct{ Part bool }
		b.get("api/concerns?db=0", &a)
		return a.Part
	}
	b.admin("LOCK.ACQUIRE", "job", "ann", "60000")
	if part() {
		t.Error("a lock is not looked at")
	}
	b.admin("LOCK.ACQUIRE", strings.Repeat("n", nameBytes+1), "ann", "60000")
	if !part() {
		t.Error("a lock whose name is not read whole is not looked at, and the answer does not say so")
	}
}

func TestTheRateOfDenialsIsOfNow(t *testing.T) {
	at := time.Hour.Milliseconds()
	for _, x := range []struct {
		denied, since int64
		want          float64
	}{{10, at - 5000, 10}, {90, at - 75_000, 72}, {90, 0, 60}} {
		if got := (&topRow{Denied: x.denied, Since: x.since}).rate(at); got != x.want {
			t.Errorf("%d denials since %d: %v a minute, want %v", x.denied, x.since, got, x.want)
		}
	}
}

func TestConcernsAreThoseOfTheKeysThatTheUserMayRead(t *testing.T) {
	b := newBench(t, Options{Access: func(*http.Request) (string, bool) { return "support", true }})
	b.admin("ACL", "SETUSER", "support", "on", "nopass", "-@all", "+@read", "~shop:*")
	for _, key := range []string{"shop:mail", "bank:mail"} {
		b.admin("DQ.ADD", key, "1", "x")
	}
	b.clock.Advance(longStep)
	b.hub.tick()
	if got := b.concernsOf(); !slices.Equal(got, []string{"look unattended db0 shop:mail 1"}) {
		t.Errorf("concerns are %q", got)
	}
}

// A stream is found at once, wherever it stands among the keys.
func TestStreamsAreFoundAmongManyKeys(t *testing.T) {
	b := newBench(t, Options{})
	for i := range 60_000 {
		key := fmt.Appendf(nil, "k%d", i)
		tx := b.svc.DB.Begin(0, key)
		_, _, err := tx.Set(key, []byte("v"), engine.SetOptions{}, nil)
		tx.Commit()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range maxLag {
		b.admin("XADD", "orders", fmt.Sprintf("%d-1", i+1), "f", "v")
	}
	b.admin("XGROUP", "CREATE", "orders", "g", "0")
	if got := b.concernsOf(); !slices.Equal(got, []string{"look behind db0 orders 100"}) {
		t.Errorf("concerns are %q", got)
	}
	var a struct{ Rows []struct{ Length int } }
	if b.get("api/streams", &a); len(a.Rows) != 1 || a.Rows[0].Length != maxLag {
		t.Errorf("the streams are %v", a.Rows)
	}
}

// Of many concerns of a kind a page gets the worst ones.
func TestTheWorstConcernsOfAKindAreTold(t *testing.T) {
	b := newBench(t, Options{})
	for i := range 300 {
		b.admin("DQ.ADD", fmt.Sprintf("q%03d", i), "1", "x", "DELAY", fmt.Sprint(1000*((i*7)%300)))
	}
	b.clock.Advance(300*time.Second + longStep)
	b.hub.tick()
	var a struct {
		Rows []struct {
			Code string
			K    struct{ T string }
			MS   int64
		}
		More map[string]int
	}
	b.get("api/concerns", &a)
	if len(a.Rows) != worstMost || a.More["unattended"] != 300-worstMost || a.Rows[0].K.T != "q000" || a.Rows[0].MS < a.Rows[1].MS {
		t.Errorf("%+v", a)
	}
}

func TestEachConcernHasAText(t *testing.T) {
	now := &reading{value: map[string]float64{"redis_rdb_last_bgsave_status": 0, "redis_aof_enabled": 1, "ebb_script_overdue": 1},
		barred: true, at: 60e6}
	before := tally{at: 1, backlog: true}
	after := tally{at: 60e6, backlog: true}
	for i := range events {
		after.count[i] = 3
	}
	codes := map[string]bool{}
	for _, a := range attend(&sample{Backlog: 1, Mem: 95, MemMax: 100, Role: "replica", Link: "down"}, now, []tally{before, after}) {
		codes[a.Code] = true
	}
	for _, code := range []string{"backlog", "save", "aof", "replica", "group", "memory", "script", "leases", "acl"} {
		if !codes[code] {
			t.Errorf("attend does not say %s", code)
		}
	}
	apart := &reading{value: map[string]float64{"redis_mem_not_counted_for_eviction_bytes": 20}, at: 60e6}
	for _, a := range attend(&sample{Mem: 95, MemMax: 100}, apart, []tally{before, after}) {
		if a.Code == "memory" {
			t.Error("what clients and users take counts against the limit of the data")
		}
	}
	for _, code := range []string{"dead", "unattended", "undelivered", "throttled", "lockwait", "behind", "rule"} {
		codes[code] = true
	}
	text, err := pages.ReadFile("ui/i18n/en.json")
	words := map[string]string{}
	if err == nil {
		err = json.Unmarshal(text, &words)
	}
	if err != nil {
		t.Fatal(err)
	}
	for code := range codes {
		if words["attention."+code] == "" {
			t.Errorf("en.json has no attention.%s", code)
		}
	}
}
