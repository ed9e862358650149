package session

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/resp"
)

// The lines of commands on one key arrive in the order in which the commands ran, in the same order for all
// clients.
func TestMonitorsSeeOneOrder(t *testing.T) {
	svc := trackingService(t)
	watchers := []*Session{svc.NewSession(quietConn{}), svc.NewSession(quietConn{})}
	for _, w := range watchers {
		if got := ask(t, w, "MONITOR"); got != "+OK\r\n" {
			t.Fatalf("MONITOR replies %q", got)
		}
	}
	var writing sync.WaitGroup
	for i := range 4 {
		s := svc.NewSession(nil)
		writing.Go(func() {
			for j := range 200 {
				do(s, "SET", "k", fmt.Sprintf("%d.%d", i, j))
			}
		})
	}
	writing.Wait()
	first := string(watchers[0].TakePushes(nil))
	if second := string(watchers[1].TakePushes(nil)); first != second {
		t.Error("the two saw different orders")
	}
	lines := strings.Split(strings.TrimSuffix(first, "\r\n"), "\r\n")
	if len(lines) != 800 {
		t.Fatalf("there are %d lines", len(lines))
	}
	last := svc.NewSession(nil)
	if want := do(last, "GET", "k").Str; !strings.HasSuffix(lines[799], `"SET" "k" "`+want+`"`) {
		t.Errorf("the last line is %s, and the value %s", lines[799], want)
	}
	for i := 1; i < len(lines); i++ {
		if strings.Fields(lines[i])[0] < strings.Fields(lines[i-1])[0] {
			t.Fatalf("time runs backwards: %s, %s", lines[i-1], lines[i])
		}
	}
}

// A client that has left MONITOR's list gets no line, and costs nothing.
func TestMonitorEndsWithItsConnection(t *testing.T) {
	svc, _ := serviceWith(t, "--slowlog-log-slower-than", "-1")
	w := svc.NewSession(quietConn{})
	ask(t, w, "MONITOR")
	if svc.observed.Load() != obsMonitors {
		t.Error("the service does not count the monitor")
	}
	w.Closed(nil)
	if svc.observed.Load() != 0 {
		t.Error("the service still counts a monitor that is gone")
	}
}

// A function of the program receives MONITOR's lines, without passwords, and costs nothing once it is
// stopped.
func TestAProgramSeesTheLinesOfMonitor(t *testing.T) {
	svc, _ := serviceWith(t, "--slowlog-log-slower-than", "-1")
	var seen []string
	note := func(x MonitorLine) {
		words := []string{fmt.Sprint(x.DB), x.Addr, x.Lib}
		for _, a := range x.Args {
			words = append(words, string(a))
		}
		seen = append(seen, strings.Join(words, " "))
	}
	stop, other := svc.Monitor(note), svc.Monitor(func(MonitorLine) {})
	id, err := svc.WithoutLogin()
	if err != nil {
		t.Fatal(err)
	}
	c := svc.NewSessionFor(id, GuestOptions{From: Origin{Addr: "192.0.2.7:1", Lib: "page"}})
	defer c.Closed(nil)
	do(c, "SELECT", "2")
	do(c, "SET", "k", "v")
	do(c, "HELLO", "3", "AUTH", "default", "secret")
	do(c, "CONFIG", "GET", "port") // an administrative command
	stop()
	do(c, "SET", "k", "w")
	if svc.observed.Load() != obsMonitors {
		t.Error("the service does not count the other function")
	}
	other()
	if svc.observed.Load() != 0 {
		t.Error("the service still counts a function that is stopped")
	}
	want := "2 192.0.2.7:1 page SELECT 2|2 192.0.2.7:1 page SET k v|2 192.0.2.7:1 page HELLO 3 AUTH (redacted) (redacted)"
	if got := strings.Join(seen, "|"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The time of a command is measured only if it may matter.
func TestFastCommandsAreTimedOnlyWhereItIsAskedFor(t *testing.T) {
	svc, _ := serviceWith(t)
	c := svc.NewSession(nil)
	get, set := svc.table.LookupFull("get"), svc.table.LookupFull("set")
	timed := func(s *command.Spec) bool { return c.began(svc.observed.Load(), s, make([][]byte, 3)) != 0 }
	if timed(get) || !timed(set) {
		t.Error("by default fast commands are timed, or others are not")
	}
	do(c, "CONFIG", "SET", "latency-monitor-threshold", "100")
	if !timed(get) {
		t.Error("with latency-monitor-threshold GET is not timed")
	}
	do(c, "CONFIG", "SET", "latency-monitor-threshold", "0", "slowlog-max-len", "0")
	if timed(set) {
		t.Error("SET is timed although latency-monitor-threshold and slowlog-max-len are 0")
	}
}

// LATENCY reports a service's latency events, in the format of redis-server 7.0.15.
func TestLatencyEvents(t *testing.T) {
	svc, clock := serviceWith(t, "--latency-monitor-threshold", "5")
	c := svc.NewSession(nil)
	for _, ms := range []int64{20, 200, 100} {
		svc.Latency("command", 4999)
		svc.Latency("command", ms*1000)
		svc.Latency("command", 5000)
		clock.Advance(time.Second)
	}
	svc.Latency("expire-cycle", 7000)
	if got, want := fmt.Sprint(reply(do(c, "LATENCY", "LATEST"))), "[[command 1700000002 100 200] [expire-cycle "+
		"1700000003 7 7]]"; got != want {
		t.Errorf("the latest are %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(reply(do(c, "LATENCY", "HISTORY", "command"))), "[[1700000000 20] [1700000001 200] "+
		"[1700000002 100]]"; got != want {
		t.Errorf("the history is %s, want %s", got, want)
	}
	clock.Advance(2 * time.Second)
	want := "command - high 200 ms, low 20 ms (all time high 200 ms)\n" + strings.Repeat("-", 80) + "\n" +
		" # \n | \n |#\n_||\n   \n543\nsss\n"
	if got := do(c, "LATENCY", "GRAPH", "command").Str; got != want {
		t.Errorf("the graph is\n%q, want\n%q", got, want)
	}
	if got := do(c, "LATENCY", "DOCTOR").Str; !strings.Contains(got,
		"* command: 3 times (average 106 ms, mean deviation 62 ms, every 1.67 s). The worst of all took 200 ms.") {
		t.Errorf("the doctor says %s", got)
	}
	if n := do(c, "LATENCY", "RESET", "command", "nosuch").Int; n != 1 {
		t.Errorf("%d events were reset", n)
	}
	if n := do(c, "LATENCY", "RESET").Int; n != 1 {
		t.Errorf("then %d events were reset", n)
	}
}

// reply converts a reply to nested slices.
func reply(v resp.Value) any {
	switch v.Kind {
	case resp.KindArray:
		all := []any{}
		for _, e := range v.Elems {
			all = append(all, reply(e))
		}
		return all
	case resp.KindInt:
		return v.Int
	}
	return v.Str
}

// A command that has waited is in the SLOWLOG with its running time, behind the one that served it; one whose
// time was up is not.
func TestSlowlogHasWhatWasServed(t *testing.T) {
	svc, clock := serviceWith(t, "--slowlog-log-slower-than", "0", "--latency-monitor-threshold", "1")
	waits, c := svc.NewSession(quietConn{}), svc.NewSession(quietConn{})
	waits.SetName([]byte("waits"))
	ask(t, waits, "BLPOP", "queue", "0")
	clock.Advance(time.Minute)
	ask(t, c, "RPUSH", "queue", "a")
	if got := ask(t, waits); got != "*2\r\n$5\r\nqueue\r\n$1\r\na\r\n" {
		t.Fatalf("it got %q", got)
	}
	ask(t, waits, "BLPOP", "queue", "0.5")
	clock.Advance(time.Second)
	if got, want := fmt.Sprint(reply(do(svc.NewSession(nil), "SLOWLOG", "GET", "-1"))),
		"[[1 1700000060 0 [BLPOP queue 0] 127.0.0.1:1 waits] [0 1700000060 0 [RPUSH queue a] 127.0.0.1:1 ]]"; got != want {
		t.Errorf("the log is\n%s, want\n%s", got, want)
	}
}

// CLIENT LIST counts the output that waits for a client, and the client's own waiting input.
func TestClientMemory(t *testing.T) {
	svc, _ := serviceWith(t)
	c, waits := svc.NewSession(quietConn{}), svc.NewSession(quietConn{})
	ask(t, waits, "BLPOP", "0123456789", "0")
	ask(t, c, "MULTI")
	ask(t, c, "SET", "k", strings.Repeat("x", 1000))
	if m := waits.memory(); m.argv != 16 || m.multi != 0 || m.lists != 340 || m.total() != sessionBytes+16+340 {
		t.Errorf("the waiting client uses %+v", m)
	}
	list := do(svc.NewSession(nil), "CLIENT", "LIST").Str
	for _, want := range []string{"multi=1 watch=0 qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=1108 ", "tot-mem=3156 events=r ",
		"argv-mem=16 multi-mem=0 "} {
		if !strings.Contains(list, want) {
			t.Errorf("there is no %q in\n%s", want, list)
		}
	}
	ask(t, c, "DISCARD")
	if m := c.memory(); m.multi != 0 {
		t.Errorf("after DISCARD %+v", m)
	}
}

// steppingClock advances by a millisecond with every read.
type steppingClock struct{ now atomic.Int64 }

func (c *steppingClock) Micros() int64 { return c.now.Add(1000) }

// Evictions are timed.
func TestEvictionIsALatencyEvent(t *testing.T) {
	cfg, err := config.Load([]string{"--latency-monitor-threshold", "1", "--maxmemory-policy", "allkeys-random",
		"--maxmemory-eviction-tenacity", "100"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	clock := &steppingClock{}
	clock.now.Store(1700000000e6)
	db := engine.Open(engine.Options{Clock: clock})
	svc, err := NewService(Options{DB: db, Table: testTable, Config: cfg}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { svc.Close(); db.Close() }()
	c := svc.NewSession(nil)
	do(c, "CONFIG", "SET", "maxmemory", "50000")
	// Reclaimers evict too: a command has to evict only if it is over the limit before they have run.
	for i := range 10000 {
		do(c, "SET", fmt.Sprint(i), strings.Repeat("x", 1000))
		if got := svc.admin.Latencies.Get("eviction-cycle"); len(got.Samples) > 0 {
			return
		}
	}
	t.Error("no sample of eviction-cycle")
}
