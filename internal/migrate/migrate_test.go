package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/doctor"
	"github.com/ebbdb/ebb/internal/serverurl"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
	"github.com/ebbdb/ebb/server"
)

// startEbb runs a server of ebb until the test ends, and returns its URL.
func startEbb(t *testing.T, directives ...string) (url string) {
	t.Helper()
	s, err := server.Start(t.Context(), server.Config{Addr: "127.0.0.1:0",
		Directives: append([]string{"enable-debug-command yes", "repl-diskless-sync-delay 0"}, directives...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return "redis://" + s.Addr().String()
}

// open returns a connection of the test's own.
func open(t *testing.T, url string) *client {
	t.Helper()
	s, err := serverurl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	c, err := dial(t.Context(), s, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.nc.Close() })
	return c
}

// run sends a command, written in one string, and returns the reply.
func (c *client) run(t *testing.T, line string) resp.Value {
	t.Helper()
	words, ok := wire.SplitArgs(line)
	if !ok {
		t.Fatalf("not a command: %s", line)
	}
	v, err := c.do(t.Context(), words...)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return v
}

// fill writes keys of all plain types, in two databases if two is set.
func fill(t *testing.T, c *client, n int, two bool) {
	t.Helper()
	for i := range n {
		c.add("SET", fmt.Sprint("string", i), strings.Repeat("x", i%50))
		c.add("SET", fmt.Sprint("timed", i), "v", "PX", fmt.Sprint(1_000_000+i))
		c.add("RPUSH", fmt.Sprint("list", i), "a", fmt.Sprint(i))
		c.add("SADD", fmt.Sprint("set", i), "1", fmt.Sprint(i), "word")
		c.add("ZADD", fmt.Sprint("zset", i), "1.5", "a", fmt.Sprint(i), "b")
		c.add("HSET", fmt.Sprint("hash", i), "f", "v", "g", fmt.Sprint(i))
		c.add("XADD", fmt.Sprint("stream", i%7), "*", "f", fmt.Sprint(i))
		c.add("PFADD", "hll", fmt.Sprint(i))
	}
	if err := c.flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 8 * n {
		if v, err := c.reply(t.Context()); err != nil || v.Err() != nil {
			t.Fatal(err, v)
		}
	}
	c.run(t, "XGROUP CREATE stream1 g 0")
	c.run(t, "XREADGROUP GROUP g consumer COUNT 3 STREAMS stream1 >")
	c.run(t, `SET "binary \x00\xff\r\n key" "\x00\x01"`)
	if two {
		c.run(t, "SELECT 5")
		c.run(t, "SET other-database v EX 1000")
		c.run(t, "SELECT 0")
	}
}

// writer changes keys of all types until end, and counts its rounds.
type writer struct {
	c    *client
	gone chan struct{}
	mu   sync.Mutex // guards what follows
	n    int
	told chan struct{} // closed at the next round
	err  error
}

// write starts a writer. tag is in all its keys: in a cluster, a hash tag.
func write(t *testing.T, url, tag string) *writer {
	w := &writer{c: open(t, url), gone: make(chan struct{}), told: make(chan struct{})}
	go func() {
		defer close(w.gone)
		for i := 0; ; i++ {
			key := fmt.Sprint(tag, "w", i%50)
			for _, line := range []string{
				"INCR count" + tag, "SET string" + key + " v" + key, "SET short" + key + " v PX 30", "DEL string" + fmt.Sprint(tag, "w", (i+7)%50),
				"EXPIRE set" + key + " 1000",
				"HSET hash" + key + " f " + key + " g 2", "HDEL hash" + key + " g", "RPUSH list" + key + " a b", "LPOP list" + key,
				"SADD set" + key + " " + key,
				"ZINCRBY zset" + key + " 1 m", "XADD stream" + key + " MAXLEN 10 * f v",
				"XREADGROUP GROUP g consumer COUNT 1 STREAMS stream" + tag + "1 >", "RENAME list" + key + " moved" + key,
				"PERSIST set" + key, "APPEND append" + key + " x", "GETDEL append" + fmt.Sprint(tag, "w", (i+3)%50), "SETEX timed" + key + " 5000 v",
			} {
				if _, err := w.c.do(context.Background(), strings.Fields(line)...); err != nil {
					if refused, ok := errors.AsType[resp.ReplyError](err); ok && strings.HasPrefix(string(refused), "READONLY") {
						return
					}
					w.mu.Lock()
					w.err = fmt.Errorf("%s: %w", line, err)
					w.mu.Unlock()
					return
				}
			}
			w.mu.Lock()
			w.n++
			close(w.told)
			w.told = make(chan struct{})
			w.mu.Unlock()
		}
	}()
	t.Cleanup(func() { w.c.nc.Close(); <-w.gone })
	return w
}

// rounds waits until the writer has made n more rounds.
func (w *writer) rounds(t *testing.T, n int) {
	t.Helper()
	w.mu.Lock()
	n += w.n
	w.mu.Unlock()
	for {
		w.mu.Lock()
		told, now, err := w.told, w.n, w.err
		w.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if now >= n {
			return
		}
		select {
		case <-told:
		case <-w.gone:
		case <-time.After(tier.Patience):
			t.Fatal("the writer does not get on")
		}
	}
}

// log is where a migration prints; a test may wait for a text.
type log struct {
	t    *testing.T
	mu   sync.Mutex // guards what follows
	text bytes.Buffer
	more chan struct{} // closed at the next Write
}

func newLog(t *testing.T) *log { return &log{t: t, more: make(chan struct{})} }

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	close(l.more)
	l.more = make(chan struct{})
	return len(p), nil
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// until waits for a text.
func (l *log) until(text string) {
	l.t.Helper()
	l.untilTimes(text, 1)
}

// untilTimes waits until a text has come n times.
func (l *log) untilTimes(text string, n int) {
	l.t.Helper()
	for end := time.After(tier.Patience); ; {
		l.mu.Lock()
		has, more := strings.Count(l.text.String(), text) >= n, l.more
		l.mu.Unlock()
		if has {
			return
		}
		select {
		case <-more:
		case <-end:
			l.t.Fatalf("no %q in:\n%s", text, l)
		}
	}
}

// migrating opens a migration, which the end of the test closes.
func migrating(t *testing.T, o Options) (*Migration, *log) {
	t.Helper()
	l := newLog(t)
	o.Out = l
	m, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m, l
}

// step runs one step, and returns what it printed.
func step(t *testing.T, o Options, run func(*Migration, context.Context) error) (string, error) {
	t.Helper()
	l := newLog(t)
	o.Out = l
	m, err := Open(t.Context(), o)
	if err != nil {
		return "", err
	}
	defer m.Close()
	err = run(m, t.Context())
	return l.String(), err
}

// mustEqual verifies that two servers hold the same.
func mustEqual(t *testing.T, from []string, to string) {
	t.Helper()
	said, err := step(t, Options{From: from, To: to}, (*Migration).Verify)
	if err != nil || !strings.Contains(said, "equal: ") {
		t.Errorf("%v\n%s", err, said)
	}
}

// moves follows with a writer, compares, cuts over with a comparison and compares again.
func moves(t *testing.T, from []string, to string, o Options, fills ...string) (said string) {
	t.Helper()
	for i, url := range fills {
		fill(t, open(t, url), 300+i, len(fills) == 1)
	}
	w := write(t, fills[0], "")
	w.rounds(t, 20)
	o.From, o.To = from, to
	m, l := migrating(t, o)
	if !m.o.Scan && len(m.from) == 1 { // a copy is followed by the process that cuts over
		ended, stop := follows(t, m)
		l.until("TO has the data")
		w.rounds(t, 50)
		stop()
		if err := <-ended; err != nil {
			t.Fatalf("follow: %v\n%s", err, l)
		}
		mustEqualOrBusy(t, from, to)
	}
	o.Compare = true
	said, err := step(t, o, (*Migration).Cutover)
	if err != nil {
		t.Fatalf("cutover: %v\n%s", err, said)
	}
	if !strings.Contains(said, "equal: ") || !strings.Contains(said, "Writes were held for ") {
		t.Errorf("cutover said:\n%s", said)
	}
	if role := open(t, to).run(t, "ROLE").Elems[0].Str; role != "master" {
		t.Errorf("the target is a %s", role)
	}
	mustEqual(t, from, to) // the writer is held
	return said
}

// mustEqualOrBusy verifies while a writer writes: no key may differ that did not change.
func mustEqualOrBusy(t *testing.T, from []string, to string) {
	t.Helper()
	if said, err := step(t, Options{From: from, To: to}, (*Migration).Verify); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}

func TestDataMovesByReplicationWhileAClientWrites(t *testing.T) {
	from, to := startEbb(t, "requirepass secret"), startEbb(t)
	from = strings.Replace(from, "://", "://:secret@", 1)
	said := moves(t, []string{from}, to, Options{Reverse: true, Pause: time.Minute}, from)
	if !strings.Contains(said, "follows TO") || open(t, from).run(t, "ROLE").Elems[0].Str != "slave" {
		t.Errorf("the source does not follow the target:\n%s", said)
	}
	if got := open(t, to).run(t, "CONFIG GET masterauth").Elems[1].Str; got != "" {
		t.Errorf("the target still has the source's password %q", got)
	}
}

func TestDataMovesByCopyingWhileAClientWrites(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	moves(t, []string{from}, to, Options{Scan: true, Pause: time.Minute}, from)
	if got := open(t, from).run(t, "CONFIG GET notify-keyspace-events").Elems[1].Str; got != "" {
		t.Errorf("the source's notify-keyspace-events are %q", got)
	}
}

func TestSeveralSourcesMoveIntoOne(t *testing.T) {
	a, b, to := startEbb(t), startEbb(t), startEbb(t)
	fill(t, open(t, a), 100, true)
	open(t, b).run(t, "MSET only-b1 v only-b2 v")
	if said, err := step(t, Options{From: []string{a, b}, To: to, Compare: true}, (*Migration).Cutover); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	mustEqual(t, []string{a, b}, to)
	if v := open(t, to).run(t, "GET only-b2"); v.Str != "v" {
		t.Errorf("GET only-b2: %v", v)
	}
}

// The sources may have as many keys as the target, and the target one that none of them has: here two have the same key, and the
// numbers of redis-server count keys that are due.
func TestVerifyFindsAKeyThatOnlyTheTargetHasAmongAsMany(t *testing.T) {
	a, b, to := startEbb(t), startEbb(t), startEbb(t)
	open(t, a).run(t, "SET k v")
	open(t, b).run(t, "SET k v")
	open(t, to).run(t, "MSET k v only-here v")
	said, err := step(t, Options{From: []string{a, b}, To: to}, (*Migration).Verify)
	if !errors.Is(err, errDiffer) || !strings.Contains(said, `key "only-here": FROM does not have it`) {
		t.Errorf("%v\n%s", err, said)
	}
}

// DEBUG DIGEST leaves out consumer groups and functions.
func TestACutoverComparesWhatTheDigestLeavesOut(t *testing.T) {
	for _, plant := range []string{"XGROUP CREATE stream2 planted 0",
		`FUNCTION LOAD "#!lua name=planted\nredis.register_function('f', function() return 1 end)"`} {
		from, to := startEbb(t), startEbb(t)
		fill(t, open(t, from), 10, true)
		if said, err := step(t, Options{From: []string{from}, To: to, Scan: true, Once: true}, (*Migration).Follow); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		open(t, to).run(t, plant)
		said, err := step(t, Options{From: []string{from}, To: to}, (*Migration).compareHeld)
		if !errors.Is(err, errDiffer) {
			t.Errorf("after %s: %v\n%s", plant, err, said)
		}
	}
}

// follows lets m follow its source until stop, or the end of the test, which waits for it. ended gets what Follow returned.
func follows(t *testing.T, m *Migration) (ended <-chan error, stop context.CancelFunc) {
	ctx, stop := context.WithCancel(t.Context())
	result := make(chan error, 1)
	var follow sync.WaitGroup
	follow.Go(func() { result <- m.Follow(ctx) })
	t.Cleanup(func() { // before m is closed
		stop()
		follow.Wait()
	})
	return result, stop
}

// following makes a migration, and lets it follow its source until stop. It returns when the target has the data.
func following(t *testing.T, o Options) (m *Migration, l *log, ended <-chan error, stop context.CancelFunc) {
	m, l = migrating(t, o)
	ended, stop = follows(t, m)
	l.until("TO has the data")
	return m, l, ended, stop
}

// proxy forwards connections to a server until it cuts them.
type proxy struct {
	ln net.Listener
	wg sync.WaitGroup

	mu    sync.Mutex // guards what follows
	to    string
	open  []net.Conn
	gates []*sync.RWMutex // of the connections, each locked while it stalls
}

// stall holds what the server sends on the connections that are open, until release.
func (p *proxy) stall() (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	gates := slices.Clone(p.gates)
	for _, g := range gates {
		g.Lock()
	}
	return func() {
		for _, g := range gates {
			g.Unlock()
		}
	}
}

// gated writes when its gate is open.
type gated struct {
	io.Writer
	gate *sync.RWMutex
}

// Write implements io.Writer.
func (g gated) Write(b []byte) (int, error) {
	g.gate.RLock()
	defer g.gate.RUnlock()
	return g.Writer.Write(b)
}

func newProxy(t *testing.T, url string) *proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{ln: ln, to: strings.TrimPrefix(url, "redis://")}
	p.wg.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			to := p.to
			p.mu.Unlock()
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			p.mu.Lock()
			gate := new(sync.RWMutex)
			p.open, p.gates = append(p.open, in, out), append(p.gates, gate)
			p.mu.Unlock()
			p.wg.Go(func() { _, _ = io.Copy(gated{in, gate}, out); in.Close() })
			p.wg.Go(func() { _, _ = io.Copy(out, in); out.Close() })
		}
	})
	t.Cleanup(func() { ln.Close(); p.cut(); p.wg.Wait() })
	return p
}

func (p *proxy) url() string { return "redis://" + p.ln.Addr().String() }

// lead forwards later connections to another server.
func (p *proxy) lead(url string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = strings.TrimPrefix(url, "redis://")
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		c.Close()
	}
	p.open = nil
}

// Nothing is lost when the connections to both sides are cut while keys are written and deleted.
func TestACopySurvivesCutConnections(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	gate, gate2 := newProxy(t, from), newProxy(t, to)
	c := open(t, from)
	fill(t, c, 300, true)
	w := write(t, from, "")
	m, l := migrating(t, Options{From: []string{gate.url()}, To: gate2.url(), Scan: true, Compare: true, Pause: time.Minute})
	ended, stop := follows(t, m)
	defer stop()
	for i, g := range []*proxy{gate, gate2} {
		l.untilTimes("TO has the data", i+1)
		g.cut()
		c.run(t, fmt.Sprintf("DEL string%d list%d set%d", i, i, i))
		c.run(t, fmt.Sprintf("SET after-cut%d v", i))
		w.rounds(t, 20)
		l.untilTimes("all keys are copied again", i+1)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, l)
	}
	o := Options{From: []string{from}, To: to, Scan: true, Replace: true, Compare: true, Pause: time.Minute}
	if said, err := step(t, o, (*Migration).Cutover); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	mustEqual(t, []string{from}, to)
}

// FLUSHALL sends no events. The copier sees it by the source's counters, and deletes what the target still has.
func TestAFlushOfTheSourceIsFollowed(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	c := open(t, from)
	fill(t, c, 50, true)
	_, l, ended, stop := following(t, Options{From: []string{from}, To: to, Scan: true})
	defer stop()
	c.run(t, "FLUSHALL")
	c.run(t, "SET after v")
	l.until("TO has the data: 1 keys")
	stop()
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, l)
	}
	if n := open(t, to).run(t, "DBSIZE").Int; n != 1 {
		t.Errorf("the target has %d keys, want 1\n%s", n, l)
	}
	mustEqual(t, []string{from}, to)
}

func TestATargetThatHoldsDataIsNotOverwritten(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	open(t, from).run(t, "SET k new")
	c := open(t, to)
	c.run(t, "SET k old")
	for _, scan := range []bool{false, true} {
		o := Options{From: []string{from}, To: to, Scan: scan, Once: true}
		_, err := step(t, o, (*Migration).Follow)
		if err == nil || !strings.Contains(err.Error(), "holds 1 keys, and must be empty; --replace") || c.run(t, "GET k").Str != "old" {
			t.Errorf("scan %t: %v, and the target has %q", scan, err, c.run(t, "GET k").Str)
		}
	}
	said, err := step(t, Options{From: []string{from}, To: to, Scan: true, Once: true, Replace: true}, (*Migration).Follow)
	if err != nil || c.run(t, "GET k").Str != "new" {
		t.Errorf("%v: %q\n%s", err, c.run(t, "GET k").Str, said)
	}
}

func TestVerifyNamesWhatDiffers(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	f, c := open(t, from), open(t, to)
	fill(t, f, 10, true)
	if said, err := step(t, Options{From: []string{from}, To: to, Scan: true, Once: true}, (*Migration).Follow); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, x := range []struct{ line, want string }{
		{"HSET hash3 f other", `key "hash3": the hash differs`},
		{"DEL list4", `key "list4": TO does not have it`},
		{"PEXPIRE timed5 1000", `key "timed5": the deadline is `},
		{"XGROUP SETID stream1 g 0", `key "stream1": the stream differs`},
		{"SET only-here v", `key "only-here": FROM does not have it`},
		{"XSETID stream2 99999999999999-0 ENTRIESADDED 77", `key "stream2": the stream differs`},
		{`FUNCTION LOAD "#!lua name=here\nredis.register_function('f', function() return 1 end)"`, `functions "here": FROM does not have it`},
		{"LSET list6 0 b", `key "list6": the list differs`},
	} {
		c.run(t, x.line)
		said, err := step(t, Options{From: []string{from}, To: to}, (*Migration).Verify)
		if !errors.Is(err, errDiffer) || !strings.Contains(said, x.want) {
			t.Errorf("after %s: %v\n%s", x.line, err, said)
		}
	}
	said, err := step(t, Options{From: []string{from}, To: to, Sample: 10}, (*Migration).Verify)
	if err != nil && !errors.Is(err, errDiffer) {
		t.Errorf("a sample: %v\n%s", err, said)
	}
}

func TestCutoverFailsWithoutAChangeWhenThePauseIsTooShort(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	fill(t, open(t, from), 300, true)
	said, err := step(t, Options{From: []string{from}, To: to, Compare: true, Pause: time.Microsecond}, (*Migration).Cutover)
	if err == nil || !strings.Contains(err.Error(), "no cutover") || !strings.Contains(err.Error(), "TO still follows") {
		t.Errorf("%v\n%s", err, said)
	}
	open(t, from).run(t, "SET writes go-on")
	if role := open(t, to).run(t, "ROLE").Elems[0].Str; role != "slave" {
		t.Errorf("the target is a %s", role)
	}
}

func TestCheckNamesWhatDoesNotFit(t *testing.T) {
	from, to := startEbb(t), startEbb(t, "maxmemory 10kb", "databases 4", "rename-command HSET nothing")
	fill(t, open(t, from), 100, true)
	open(t, from).run(t, "ACL SETUSER ann on")
	m, _ := migrating(t, Options{From: []string{from}, To: to})
	found, err := m.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := doctor.Print(&text, found); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"TO lacks HSET (100 calls)", "act   memory",
		"keys in database 5, and TO has 4 databases", "look  users", "ok    path       replication"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in:\n%s", want, &text)
		}
	}
}

// A target without the databases failed after half a minute, when its link had not come up.
func TestATargetWithTooFewDatabasesIsRefusedAtOnce(t *testing.T) {
	for _, scan := range []bool{false, true} {
		from, to := startEbb(t), startEbb(t, "databases 4")
		fill(t, open(t, from), 10, true)
		said, err := step(t, Options{From: []string{from}, To: to, Scan: scan}, (*Migration).Follow)
		if err == nil || !strings.Contains(err.Error(), "has 4 databases: start TO with --databases 6") {
			t.Errorf("scan %t: %v\n%s", scan, err, said)
		}
		if role := open(t, to).run(t, "ROLE").Elems[0].Str; role != "master" {
			t.Errorf("scan %t: the target is a %s", scan, role)
		}
	}
}

func TestASourceBeforeRedis62CannotHoldWrites(t *testing.T) {
	for version, want := range map[string]doctor.Grade{"6.0.16": doctor.Act, "5.0.14": doctor.Act, "6.2.0": doctor.OK, "7.0.15": doctor.OK,
		"10.1": doctor.OK, "": doctor.OK} {
		m := &Migration{from: []*peer{{product: "redis", info: map[string]string{"redis_version": version}}}}
		found, err := m.checkHold(t.Context())
		if err != nil || doctor.Worst(found) != want || want == doctor.Act && !strings.Contains(found[0].What, "WRITE needs Redis 6.2") {
			t.Errorf("%q: %v, %+v", version, err, found)
		}
		if want == doctor.OK { // a cutover would go on to connect
			continue
		}
		if err := m.Cutover(t.Context()); err == nil || !strings.Contains(err.Error(), "needs Redis 6.2") {
			t.Errorf("%q: a cutover: %v", version, err)
		}
	}
}

// A master that sends its replica nothing before the first acknowledgement would let writes wait for that.
func TestACutoverWaitsForTheFirstAcknowledgement(t *testing.T) {
	for _, x := range []struct {
		lines []string
		want  bool
	}{
		{nil, true},
		{[]string{"ip=10.0.0.1,port=6379,state=online,offset=0,lag=0"}, false},
		{[]string{"ip=10.0.0.1,port=6379,state=online,offset=14,lag=0"}, true},
		{[]string{"ip=10.0.0.1,port=7000,state=online,offset=0,lag=0"}, true},
		{[]string{"ip=10.0.0.2,port=6379,state=wait_bgsave,offset=0,lag=0", "ip=10.0.0.1,port=6379,state=online,offset=14,lag=0"}, true},
	} {
		info := map[string]string{"connected_slaves": strconv.Itoa(len(x.lines)), "master_repl_offset": "14"}
		for i, line := range x.lines {
			info["slave"+strconv.Itoa(i)] = line
		}
		if got := hasAck(info, "6379"); got != x.want {
			t.Errorf("%q: %v", x.lines, got)
		}
		if info["master_repl_offset"] = "0"; !hasAck(info, "6379") {
			t.Errorf("%q: silent at the beginning of the stream", x.lines)
		}
	}
}

func TestFilesAreLoaded(t *testing.T) {
	dir := t.TempDir()
	s, err := server.Start(t.Context(), server.Config{Addr: "127.0.0.1:0", Dir: dir, Fsync: "always"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	from := "redis://" + s.Addr().String()
	c := open(t, from)
	fill(t, c, 100, true)
	c.run(t, "SAVE")
	file := filepath.Join(dir, "dump.rdb")
	to := startEbb(t)
	said, err := step(t, Options{From: []string{file}, To: to}, (*Migration).Follow)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	mustEqual(t, []string{from}, to)
	mustEqual(t, []string{file}, to)
	open(t, to).run(t, "SET string1 other")
	if said, err := step(t, Options{From: []string{file}, To: to}, (*Migration).Verify); !errors.Is(err, errDiffer) {
		t.Errorf("%v\n%s", err, said)
	}

	c.run(t, "BGREWRITEAOF")
	c.run(t, "SET since-the-rewrite v")
	c.run(t, "MULTI")
	c.run(t, "INCR since-the-rewrite2")
	c.run(t, "EXEC")
	for !strings.Contains(c.run(t, "INFO persistence").Str, "aof_rewrite_in_progress:0") {
		// The rewrite removes the files that it replaces.
	}
	to = startEbb(t)
	if said, err = step(t, Options{From: []string{dir}, To: to}, (*Migration).Follow); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	mustEqual(t, []string{from}, to)

	short := filepath.Join(t.TempDir(), "short.rdb")
	b, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(short, b[:len(b)/2], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = step(t, Options{From: []string{short}, To: startEbb(t)}, (*Migration).Follow)
	if err == nil || !strings.Contains(err.Error(), "TO holds what came before: ") {
		t.Errorf("half a file: %v", err)
	}
	_, err = step(t, Options{From: []string{filepath.Join(dir, "none")}, To: to}, (*Migration).Follow)
	if err == nil || !strings.Contains(err.Error(), "neither a URL") {
		t.Errorf("no file: %v", err)
	}
}

func TestWrongServersAreNamed(t *testing.T) {
	one := startEbb(t)
	locked := startEbb(t, "requirepass secret")
	for _, x := range []struct {
		o    Options
		want string
	}{
		{Options{From: []string{one}, To: one}, "are the same server"},
		{Options{From: []string{one + "/3"}, To: locked}, "NOAUTH"},
		{Options{From: []string{one + "/3"}, To: locked, Password: "secret"}, "the URL names database 3"},
		{Options{From: []string{"redis://127.0.0.1:1"}, To: one}, "FROM 127.0.0.1:1: "},
		{Options{From: []string{one}, To: "host:1"}, "TO: "},
	} {
		if _, err := step(t, x.o, (*Migration).Follow); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v to %s: %v, want %q", x.o.From, x.o.To, err, x.want)
		}
	}
	if said, err := step(t, Options{From: []string{one}, To: locked, Password: "secret", Once: true}, (*Migration).Follow); err != nil {
		t.Errorf("with a password for the one server that has one: %v\n%s", err, said)
	}
}

// redis-server without TLS takes the handshake for the beginning of a line, and says nothing.
func TestAServerWithoutTLSIsNamed(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	defer func(d time.Duration) { connectTimeout = d }(connectTimeout)
	connectTimeout = 50 * time.Millisecond
	_, err = Open(t.Context(), Options{From: []string{"redis://127.0.0.1:1"}, To: "rediss://" + silent.Addr().String(), Out: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "TO") || !strings.Contains(err.Error(), "TLS handshake") {
		t.Error("got", err)
	}
}

func TestWhatIsNoURLAndNoFileIsNamed(t *testing.T) {
	_, err := Open(t.Context(), Options{From: []string{"old:6379"}, To: startEbb(t), Out: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "neither a URL") {
		t.Error("got", err)
	}
}

// The rules' list, which migrate itself asks for, and ebb's own module are not findings.
func TestACheckFromEbbDoesNotFindItself(t *testing.T) {
	from, to := startEbb(t), startEbb(t, "rename-command EXPIRY nothing")
	c := open(t, from)
	c.run(t, "SET k v")
	c.run(t, "EXPIRY RULE LIST")
	m, err := Open(t.Context(), Options{From: []string{from}, To: to, Out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	found, err := m.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if err := doctor.Print(&said, found); err != nil {
		t.Fatal(err)
	}
	if text := said.String(); strings.Contains(text, "EXPIRY") || !strings.Contains(text, "ok    modules") {
		t.Error(text)
	}
}

// What TO needs to log in at the other servers of its own group is not the migration's.
func TestTheTargetGetsItsOwnLinkSettingsBack(t *testing.T) {
	for _, password := range []string{"", "secret"} {
		from, to := startEbb(t), startEbb(t, "masterauth grouppw", "masteruser repl")
		if password != "" {
			from = strings.Replace(startEbb(t, "requirepass "+password), "://", "://:"+password+"@", 1)
		}
		fill(t, open(t, from), 10, false)
		c := open(t, to)
		stopped, err := step(t, Options{From: []string{from}, To: to, Once: true}, (*Migration).Follow)
		if err != nil {
			t.Fatalf("%v\n%s", err, stopped)
		}
		c.run(t, "REPLICAOF NO ONE") // the move is given up; the next one is from a server with another password
		c.run(t, "CONFIG SET masterauth grouppw masteruser repl")
		if said, err := step(t, Options{From: []string{from}, To: to, Replace: true}, (*Migration).Cutover); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		for name, want := range map[string]string{"masterauth": "grouppw", "masteruser": "repl"} {
			if got := c.run(t, "CONFIG GET "+name).Elems[1].Str; got != want {
				t.Errorf("from a server with the password %q: %s is %q, want %q", password, name, got, want)
			}
		}
	}
}

// The password of a move that was given up may not keep TO from the next one.
func TestAnAbandonedMoveDoesNotStopTheNext(t *testing.T) {
	locked, plain, to := startEbb(t, "requirepass secret"), startEbb(t), startEbb(t)
	fill(t, open(t, plain), 10, false)
	locked = strings.Replace(locked, "://", "://:secret@", 1)
	if said, err := step(t, Options{From: []string{locked}, To: to, Once: true}, (*Migration).Follow); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	open(t, to).run(t, "REPLICAOF NO ONE")
	open(t, to).run(t, "CONFIG SET tls-replication yes")
	if said, err := step(t, Options{From: []string{plain}, To: to}, (*Migration).Cutover); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	mustEqual(t, []string{plain}, to)
}

// Writes are held only when the stream flows: a new replica may get its first byte a second after it has loaded.
func TestACutoverWaitsForAStreamThatFlows(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	gate := newProxy(t, from)
	if said, err := step(t, Options{From: []string{gate.url()}, To: to, Once: true}, (*Migration).Follow); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	release := sync.OnceFunc(gate.stall()) // of the link; those of the next Migration are open
	defer release()
	c := open(t, from)
	c.run(t, "SET written meanwhile")
	m, l := migrating(t, Options{From: []string{gate.url()}, To: to, Live: true, Pause: tier.Patience})
	ended := make(chan error, 1)
	go func() { ended <- m.Cutover(t.Context()) }()
	l.until("wait  lag")
	c.run(t, "SET goes on") // it would wait for the end of a pause
	release()
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, l)
	}
	if got := open(t, to).run(t, "GET written").Str; got != "meanwhile" {
		t.Errorf("%q", got)
	}
}

func TestCheckRefusesASourceThatIsAReplica(t *testing.T) {
	master, from := startEbb(t), startEbb(t)
	host, port, _ := strings.Cut(strings.TrimPrefix(master, "redis://"), ":")
	open(t, from).run(t, "REPLICAOF "+host+" "+port)
	for _, scan := range []bool{false, true} {
		f := findingOf(t, Options{From: []string{from}, To: startEbb(t), Scan: scan}, "path")
		if f.Grade != doctor.Act || !strings.Contains(f.What, "is a replica of "+host+":"+port) {
			t.Errorf("scan %t: %+v", scan, f)
		}
	}
}

func TestAFileOfAnotherKindIsNoData(t *testing.T) {
	file, to := filepath.Join(t.TempDir(), "notes.txt"), startEbb(t)
	if err := os.WriteFile(file, []byte("hello world\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{From: []string{file}, To: to}
	if f := findingOf(t, o, "from"); f.Grade != doctor.Act || !strings.Contains(f.Why, `begins with "hello world\n"`) {
		t.Errorf("%+v", f)
	}
	for _, run := range []func(*Migration, context.Context) error{(*Migration).Follow, (*Migration).Verify} {
		if said, err := step(t, o, run); err == nil || !strings.Contains(err.Error(), "neither an RDB file nor an append-only file") {
			t.Errorf("%v\n%s", err, said)
		}
	}
}

func TestVerifyOfAFileLooksForWhatOnlyTheTargetHas(t *testing.T) {
	dir := t.TempDir()
	from, to := startEbb(t, "dir "+dir, "save 3600 1", "appendonly no"), startEbb(t)
	c := open(t, from)
	fill(t, c, 10, true)
	c.run(t, `FUNCTION LOAD "#!lua name=lib\nredis.register_function('f', function() return 1 end)"`)
	c.run(t, "SAVE")
	o := Options{From: []string{filepath.Join(dir, "dump.rdb")}, To: to}
	if said, err := step(t, o, (*Migration).Follow); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if said, err := step(t, o, (*Migration).Verify); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	on := open(t, to)
	for _, x := range [][2]string{{"FUNCTION DELETE lib", `"lib": TO does not have it`},
		{"SET only-here v", `"only-here": FROM does not have it`}} {
		on.run(t, x[0])
		if said, err := step(t, o, (*Migration).Verify); !errors.Is(err, errDiffer) || !strings.Contains(said, x[1]) {
			t.Errorf("after %s: %v\n%s", x[0], err, said)
		}
	}
}
