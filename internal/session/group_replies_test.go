package session_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/services"
)

// grouped is the master of a group; the test plays its other members.
type grouped struct {
	*session.Service
	log   *oplog.Log
	unled atomic.Bool // it has no lease
}

func (g *grouped) Lease() bool { return !g.unled.Load() }

func (g *grouped) Info(put func(name string, value any)) { put("group_state", "leading") }

func joined(t *testing.T, options ...string) *grouped {
	t.Helper()
	g := &grouped{Service: services.Start(t, options...)}
	g.log = g.DB.Log()
	g.DB.NeedLog(1)
	g.JoinGroup(g)
	return g
}

// joinedOnLoop does the work of joined with a network loop; a client's command runs in the background if a
// shard is held.
func joinedOnLoop(t *testing.T) *grouped {
	t.Helper()
	cfg, err := config.Load(nil, nil)
	services.Must(t, err)
	var hooks session.Hooks
	db := engine.Open(engine.Options{Clock: clock.NewManual(time.Unix(1_700_000_000, 0)), Hooks: &hooks})
	s, err := session.NewService(session.Options{DB: db, Table: servercmd.Table, Config: cfg, Loops: 1}, &hooks)
	services.Must(t, err)
	t.Cleanup(func() { s.Close(); db.Close() })
	g := &grouped{Service: s, log: db.Log()}
	db.NeedLog(1)
	g.JoinGroup(g)
	return g
}

func (g *grouped) onLoop(t *testing.T) *services.Peer {
	p := services.ConnectOnLoop(g.Service)
	t.Cleanup(func() { p.Session.Closed(io.EOF) })
	return p
}

func (g *grouped) dial(t *testing.T) *services.Peer {
	return services.Dial(t, g.Service, "tcp", "127.0.0.1:1")
}

// commit acknowledges the stream up to an offset, for all members.
func (g *grouped) commit(offset int64) { g.log.SetCommitted(g.log.Holds().Term(), offset) }

// depose makes another member the master, as the director of a group does.
func (g *grouped) depose() {
	tx := g.DB.BeginAll(0)
	defer tx.Commit()
	tx.SetReplica(true)
	g.log.Depose()
	g.log.Rest()
}

// lead makes the server the master again.
func (g *grouped) lead() {
	tx := g.DB.BeginAll(0)
	defer tx.Commit()
	tx.SetReplica(false)
	g.log.Lead()
}

func (g *grouped) pass(d time.Duration) { g.DB.Clock().(*clock.Manual).Advance(d) }

func TestRepliesOfAGroupWaitForItsMembers(t *testing.T) {
	g := joined(t)
	writer, reader, other := g.dial(t), g.dial(t), g.dial(t)
	for n, x := range []struct{ name, before, in, want string }{
		{name: "a write", in: "SET k v\r\n", want: "+OK\r\n"},
		{name: "a denial", before: "SET k2 v\r\n", in: "SET k2 w NX\r\n", want: "$-1\r\n"},
		{name: "a read", before: "SET k3 v\r\n", in: "GET k3\r\n", want: "$1\r\nv\r\n"},
		{name: "a transaction", in: "MULTI\r\nINCR n\r\nPING\r\nEXEC\r\n", want: "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n+PONG\r\n"},
		{name: "a script", in: "EVAL \"return redis.call('INCR', KEYS[1])\" 1 n\r\n", want: ":2\r\n"},
		{name: "a pipeline, in order", in: "PING\r\nSET p v\r\nGET absent\r\nECHO e\r\n", want: "+PONG\r\n+OK\r\n$-1\r\n$1\r\ne\r\n"},
	} {
		t.Run(x.name, func(t *testing.T) {
			if out, v := other.Step(services.Request("PING")); out != "+PONG\r\n" || v != reactor.Continue {
				t.Fatalf("PING waits for nothing: %q, %v", out, v)
			}
			p := writer
			if x.before != "" {
				writer.Held(t, []byte(x.before))
				p = reader
			}
			p.Held(t, []byte(x.in))
			g.commit(g.log.End() - 1)
			if out, v := p.Step(nil); out != "" || v != reactor.Park {
				t.Fatalf("%q, %v before the last byte is acknowledged", out, v)
			}
			g.commit(g.log.End())
			if x.before != "" {
				writer.Gets(t, "+OK\r\n")
			}
			p.Gets(t, x.want)
			if out, _ := p.Step(services.Request("GET", "k"+strconv.Itoa(n))); out == "" {
				t.Fatal("a read of an acknowledged write waits")
			}
		})
	}
}

func TestAReadOfAGroupWaitsForTheLease(t *testing.T) {
	g := joined(t)
	p, q := g.dial(t), g.dial(t)
	g.unled.Store(true)
	p.Held(t, services.Request("GET", "k"))
	g.log.Alarm()
	p.Wait()
	p.Held(t, nil)
	q.Held(t, services.Request("SET", "k", "v"))
	g.commit(g.log.End())
	q.Gets(t, "+OK\r\n") // a write needs no lease
	g.unled.Store(false)
	g.log.Alarm()
	p.Gets(t, "$-1\r\n")
}

func TestAGroupThatIsBehindIsNotWrittenTo(t *testing.T) {
	g := joined(t)
	p := g.dial(t)
	answers := func(want string, words ...string) {
		t.Helper()
		if out, v := p.Step(services.Request(words...)); out != want || v != reactor.Continue {
			t.Fatalf("%s: %q, %v, want %q", words, out, v, want)
		}
	}
	p.Held(t, []byte("SET k v\r\nSET short v PX 100\r\n"))
	g.commit(g.log.End())
	p.Gets(t, "+OK\r\n+OK\r\n")
	g.SetGroupWritable(false)
	end := g.log.End()
	const refused = "-NOREPLICAS Not enough good replicas to write.\r\n"
	answers(refused, "SET", "k", "w")
	answers(refused, "EVAL", "#!lua\nreturn 1", "0")
	answers("$1\r\nv\r\n", "GET", "k")
	g.pass(time.Second)
	answers("$-1\r\n", "GET", "short")
	answers("+OK\r\n", "CLIENT", "PAUSE", "100", "WRITE")
	answers("+OK\r\n", "CLIENT", "UNPAUSE") // without the group, the engine does not stand still here
	g.pass(time.Millisecond)
	if got := g.log.End(); got != end {
		t.Fatalf("the stream has grown by %d bytes that the members lack", got-end)
	}
	g.SetGroupWritable(true)
	g.pass(time.Millisecond)
	if g.log.End() == end {
		t.Error("nothing expires when the members are back")
	}
	p.Held(t, services.Request("SET", "k", "w"))
}

func TestInfoTellsOfTheGroup(t *testing.T) {
	g := joined(t)
	g.unled.Store(true)
	without := services.Dial(t, services.Start(t), "tcp", "127.0.0.1:1")
	for name, p := range map[string]*services.Peer{"in a group": g.dial(t), "without one": without} {
		for _, request := range [][]byte{services.Request("INFO", "replication"), services.Request("INFO")} { // neither waits for the lease
			out, v := p.Step(request)
			if strings.Contains(out, "group_state:leading\r\n") != (p != without) || v != reactor.Continue {
				t.Errorf("%s: %q, %v", name, out, v)
			}
		}
	}
}

func TestInfoHasTheWaitsForTheGroup(t *testing.T) {
	g := joined(t)
	p := g.dial(t)
	p.Held(t, services.Request("SET", "k", "v"))
	g.pass(3 * time.Millisecond)
	g.commit(g.log.End())
	p.Gets(t, "+OK\r\n")
	p.Send("GET", "k") // it waits for nothing
	const want = "group_waits:1\r\ngroup_wait_mean_us:3000\r\ngroup_wait_histogram_us:<=4096=1\r\n"
	if out := p.Send("INFO", "replication"); !strings.Contains(out, want) {
		t.Errorf("INFO has no %q: %s", want, out)
	}
	if p.Send("CONFIG", "RESETSTAT"); !strings.Contains(p.Send("INFO", "replication"), "group_waits:0\r\n") {
		t.Error("CONFIG RESETSTAT leaves the waits")
	}
}

// A network loop locks all shards for INFO and CONFIG. Their replies still wait for no member, and hide no
// earlier write.
func TestAnOperatorGetsAnswersWithoutTheGroup(t *testing.T) {
	g := joinedOnLoop(t)
	p := g.onLoop(t)
	p.Held(t, services.Request("SET", "k", "v"))
	g.unled.Store(true)
	for _, words := range [][]string{
		{"INFO", "replication"}, {"INFO"}, {"CONFIG", "GET", "sync-timeout"}, {"CONFIG", "SET", "sync-timeout", "5000"},
	} {
		if out, v := g.onLoop(t).Step(services.Request(words...)); out == "" || v != reactor.Continue {
			t.Errorf("%s: %q, %v", words, out, v)
		}
	}
	q := g.onLoop(t)
	q.Held(t, append(services.Request("SET", "k", "w"), services.Request("INFO", "replication")...))
	g.commit(g.log.End())
	q.Wait()
	if out, _ := q.Step(nil); !strings.HasPrefix(out, "+OK\r\n") {
		t.Errorf("a write and INFO: %q", out)
	}
}

func TestATermThatIsOverTellsOfNothing(t *testing.T) {
	g := joined(t)
	writer, reader, listener, popper := g.dial(t), g.dial(t), g.dial(t), g.dial(t)
	listener.Send("CONFIG", "SET", "notify-keyspace-events", "KA")
	listener.Send("SUBSCRIBE", "__keyspace@0__:k")
	popper.Held(t, services.Request("BLPOP", "q", "0"))
	writer.Held(t, []byte("SET k v\r\nRPUSH q x\r\n"))
	reader.Held(t, services.Request("GET", "k"))
	popper.Wait()
	popper.Held(t, nil)
	listener.Wait()
	if out := listener.Session.TakePushes(nil); len(out) > 0 {
		t.Fatalf("%q before its members have it", out)
	}
	old := g.log.Holds().Term()
	g.depose()
	g.log.SetCommitted(old, g.log.End()) // too late
	g.commit(g.log.End())                // the next term, in which the offset may stand for other data
	writer.Loses(t)
	reader.Loses(t)
	popper.Loses(t)
	listener.Wait()
	if out := listener.Session.TakePushes(nil); string(out) != services.Unsynced || !listener.Killed.Load() {
		t.Errorf("a subscriber gets %q, killed %v", out, listener.Killed.Load())
	}
	next := g.dial(t)
	if out, _ := next.Step(services.Request("GET", "k")); out != "$1\r\nv\r\n" {
		t.Errorf("in the next term: %q", out)
	}
}

// The work of another transaction for a client, or of the background for a client whose shard was held, ended
// in the previous term: the session continues only when the server is already a replica.
func TestWhatEndedInATermThatIsOverIsNotToldAfterIt(t *testing.T) {
	g := joinedOnLoop(t)
	popper, writer := g.dial(t), g.onLoop(t)
	popper.Held(t, services.Request("BLPOP", "q", "0"))
	tx := g.DB.BeginAll(0)
	if out, v := writer.Step(services.Request("SET", "k", "v")); out != "" || v != reactor.Park {
		t.Fatalf("a write while the shards are held: %q, %v", out, v)
	}
	tx.Commit()
	writer.Wait()
	g.dial(t).Held(t, services.Request("RPUSH", "q", "x"))
	popper.Wait()
	g.depose()
	for name, p := range map[string]*services.Peer{"the client that was served": popper, "the write in the background": writer} {
		if out, _ := p.Step(nil); strings.Contains(out, "OK") || strings.Contains(out, "x") {
			t.Fatalf("%s gets %q", name, out)
		}
		p.Loses(t)
	}
}

func TestABatchThatBeganOnAReplicaIsNotToldByAMaster(t *testing.T) {
	g := joinedOnLoop(t)
	g.depose()
	p := g.onLoop(t)
	if out, _ := p.Step(services.Request("GET", "k")); out != "$-1\r\n" {
		t.Fatalf("a read of a replica: %q", out)
	}
	tx := g.DB.BeginAll(0)
	if out, v := p.Step(services.Request("GET", "k")); out != "" || v != reactor.Park {
		t.Fatalf("a batch while the shards are held: %q, %v", out, v)
	}
	tx.SetReplica(false)
	g.log.Lead()
	tx.Commit()
	p.Wait()
	if out, _ := p.Step(services.Request("SET", "k", "v")); strings.Contains(out, "OK") { // the rest of the batch
		t.Fatalf("no member has the write, and the client gets %q", out)
	}
	p.Loses(t)
	other := g.dial(t)
	other.Held(t, services.Request("SET", "k", "w"))
	g.commit(g.log.End())
	other.Gets(t, "+OK\r\n")
}

func TestACommandThatRanInTwoTermsTellsOfNothing(t *testing.T) {
	for _, committed := range []bool{true, false} {
		g := joined(t)
		p := g.dial(t)
		p.Held(t, services.Request("BLPOP", "q", "0"))
		g.depose()
		g.lead()
		q := g.dial(t)
		q.Held(t, services.Request("RPUSH", "q", "x"))
		g.DB.Barrier()
		if committed {
			g.commit(g.log.End())
			q.Gets(t, ":1\r\n")
		}
		p.Wait() // it is served
		p.Held(t, nil)
		if len(p.Woken) == 0 {
			t.Fatalf("committed %v: the client waits for what the next term commits", committed)
		}
		p.Loses(t)
	}
}

// A message waits in its session until the session runs, and a term may end meanwhile.
func TestAMessageBelongsToTheTermInWhichItCame(t *testing.T) {
	g := joined(t)
	writer, listener := g.dial(t), g.dial(t)
	listener.Send("CONFIG", "SET", "notify-keyspace-events", "KA")
	listener.Send("SUBSCRIBE", "__keyspace@0__:k")
	writer.Held(t, services.Request("SET", "k", "v"))
	listener.Wait()
	g.depose()
	g.DB.Barrier()
	g.commit(g.log.End())
	for {
		out := string(listener.Session.TakePushes(nil))
		if out == services.Unsynced {
			return
		}
		if out != "" {
			t.Fatalf("the event of a write of the term before: %q", out)
		}
		listener.Wait()
	}
}

func TestWhatIsNotAcknowledgedInTimeIsNotCertain(t *testing.T) {
	g := joined(t)
	p, q := g.dial(t), g.dial(t)
	p.Held(t, services.Request("SET", "k", "v"))
	g.pass(4999 * time.Millisecond)
	q.Held(t, services.Request("GET", "k"))
	g.log.Alarm()
	p.Wait()
	p.Held(t, nil)
	g.pass(time.Millisecond)
	g.log.Alarm()
	p.Loses(t)
	q.Wait()
	q.Held(t, nil)
	g.commit(g.log.End())
	q.Gets(t, "$1\r\nv\r\n")
}

func TestMessagesOfAGroupWaitForWhatTheyTellOf(t *testing.T) {
	g := joined(t)
	listener, speaker, writer := g.dial(t), g.dial(t), g.dial(t)
	listener.Send("SUBSCRIBE", "news")
	writer.Held(t, services.Request("SET", "k", "v"))
	if out, _ := speaker.Step(services.Request("PUBLISH", "news", "bare")); out != ":1\r\n" {
		t.Fatalf("PUBLISH: %q", out)
	}
	listener.Wait()
	if out := string(listener.Session.TakePushes(nil)); !strings.Contains(out, "bare") {
		t.Fatalf("a message that tells of no data waits: %q", out)
	}
	speaker.Held(t, []byte("MULTI\r\nSET k w\r\nPUBLISH news told\r\nEXEC\r\n"))
	listener.Wait()
	if out := string(listener.Session.TakePushes(nil)); out != "" {
		t.Fatalf("%q before the members have the transaction", out)
	}
	if out, _ := writer.Step(nil); out != "" {
		t.Fatal(out)
	}
	g.DB.Barrier()
	g.commit(g.log.End())
	for out := ""; out == ""; {
		listener.Wait()
		out = string(listener.Session.TakePushes(nil))
		if out != "" && !strings.Contains(out, "told") {
			t.Fatal(out)
		}
	}
}

// Each of these reveals a write of another client, or of the clock.
func TestWhatTellsOfAWriteWaits(t *testing.T) {
	for _, x := range []struct{ name, before, write, want string }{
		{"a keyspace event", "SUBSCRIBE __keyspace@0__:k\r\n", "SET k w\r\n", "set"},
		{"an event of an expiration", "SUBSCRIBE __keyevent@0__:expired\r\n", "GET k\r\n", "expired"},
		{"a line of MONITOR", "MONITOR\r\n", "SET k w\r\n", `"SET" "k" "w"`},
		{"an invalidation", "HELLO 3\r\nCLIENT TRACKING ON BCAST\r\n", "SET k w\r\n", "invalidate"},
		{"what a served command gets", "BLPOP q 0\r\n", "RPUSH q x\r\n", "$1\r\nx\r\n"},
	} {
		t.Run(x.name, func(t *testing.T) {
			g := joined(t)
			writer, listener := g.dial(t), g.dial(t)
			listener.Send("CONFIG", "SET", "notify-keyspace-events", "KEA")
			writer.Held(t, []byte("SET k v PX 1000\r\n"))
			g.commit(g.log.End())
			writer.Gets(t, "+OK\r\n")
			listener.Step([]byte(x.before))
			if strings.HasPrefix(x.write, "GET") {
				g.pass(2 * time.Second)
			}
			writer.Held(t, []byte(x.write))
			listener.Wait()
			if out, _ := listener.Step(nil); out != "" {
				t.Fatalf("%q before the members have the write", out)
			}
			g.DB.Barrier()
			g.commit(g.log.End())
			for out := ""; out == ""; {
				listener.Wait()
				if out, _ = listener.Step(nil); out != "" && !strings.Contains(out, x.want) {
					t.Errorf("%q, want %q in it", out, x.want)
				}
			}
		})
	}
}

func TestAnEventThatIsDeliveredBetweenTwoRepliesWaitsToo(t *testing.T) {
	g := joined(t)
	listener, writer := g.dial(t), g.dial(t)
	listener.Send("CONFIG", "SET", "notify-keyspace-events", "KA")
	listener.Send("HELLO", "3")
	listener.Send("SUBSCRIBE", "__keyspace@0__:k")
	writer.Held(t, services.Request("SET", "k", "v"))
	if _, out, v := listener.Session.Serve(services.Request("PING"), nil); len(out) > 0 || v != reactor.Park {
		t.Fatalf("%q, %v: the event is told before the members have it", out, v)
	}
	g.DB.Barrier()
	g.commit(g.log.End())
	for out := ""; out == ""; {
		listener.Wait()
		out, _ = listener.Step(nil)
		if out != "" && !strings.Contains(out, "PONG") {
			t.Fatal(out)
		}
	}
}

// While a reply of a connection is held, later replies and messages come after it.
func TestRepliesKeepTheirOrderWhileOneIsHeld(t *testing.T) {
	g := joined(t)
	p, speaker := g.dial(t), g.dial(t)
	p.Send("HELLO", "3")
	p.Send("SUBSCRIBE", "news")
	p.Held(t, services.Request("SET", "k", "v"))
	if out, _ := speaker.Step(services.Request("PUBLISH", "news", "bare")); out != ":1\r\n" {
		t.Fatalf("PUBLISH: %q", out)
	}
	p.Wait()
	p.Held(t, services.Request("PING")) // the message and the PING wait for nothing, but must not overtake the SET
	g.commit(g.log.End())
	var all string
	for in := services.Request("PING"); !strings.Contains(all, "PONG"); in = nil {
		p.Wait()
		out, v := p.Step(in)
		if all += out; v == reactor.Park && out == "" && in != nil {
			t.Fatal("it is woken, and waits")
		}
	}
	ok, bare, pong := strings.Index(all, "+OK"), strings.Index(all, "bare"), strings.Index(all, "+PONG")
	if ok != 0 || bare < ok || pong < ok {
		t.Errorf("%q: the reply to SET is not the first", all)
	}
}

func TestTheMessagesBehindAHeldReplyFollow(t *testing.T) {
	g := joined(t)
	p, speaker := g.dial(t), g.dial(t)
	p.Send("HELLO", "3")
	p.Send("SUBSCRIBE", "news")
	p.Held(t, services.Request("SET", "k", "v"))
	speaker.Step(services.Request("PUBLISH", "news", "bare"))
	p.Wait()
	g.commit(g.log.End())
	p.Wait()
	if _, out, v := p.Session.Serve(nil, nil); string(out) != "+OK\r\n" || v != reactor.Continue {
		t.Fatalf("%q, %v", out, v)
	}
	if len(p.Woken) == 0 {
		t.Fatal("nothing wakes the client for the message")
	}
	if out := string(p.Session.TakePushes(nil)); !strings.Contains(out, "bare") {
		t.Errorf("%q", out)
	}
}

// A command with many keys runs in the background. Its long reply is a batch of its own, before the next
// request.
func TestALongReplyOfACommandInTheBackgroundWaits(t *testing.T) {
	g := joinedOnLoop(t)
	g.dial(t).Held(t, services.Request("SET", "k", strings.Repeat("v", 128)))
	p := g.onLoop(t)

	words := []string{"MGET"}
	for range session.ManyArgs {
		words = append(words, "k")
	}
	in := append(services.Request(words...), services.Request("PING")...)
	n, out, v := p.Session.Serve(in, nil)
	if in = in[n:]; len(out) > 0 || v != reactor.Park {
		t.Fatalf("%d bytes, %v: it does not run in the background", len(out), v)
	}
	p.Wait()
	if n, out, v = p.Session.Serve(in, nil); n != 0 || len(out) > 0 || v != reactor.Park {
		t.Fatalf("%d bytes leave before the members have the value; %d, %v", len(out), n, v)
	}
	g.commit(g.log.End())
	p.Wait()
	if got := p.Raw(in); len(got) < 128*session.ManyArgs || !strings.HasSuffix(got, "+PONG\r\n") {
		t.Errorf("%d bytes", len(got))
	}
}

// Reads continue while the files fail, but only with data that the members have.
func TestAReadWaitsForTheMembersWhileTheFilesFail(t *testing.T) {
	g := joined(t)
	g.log.SetAlways(true)
	writer, reader, later := g.dial(t), g.dial(t), g.dial(t)
	writer.Held(t, services.Request("SET", "k", "v"))
	reader.Held(t, services.Request("GET", "k"))
	g.log.Fail(errors.New("no space left on device"))
	writer.Wait()
	if out, v := writer.Step(nil); !strings.HasPrefix(out, "-MISCONF") || v != reactor.Close {
		t.Errorf("%q, %v", out, v)
	}
	reader.Wait()
	reader.Held(t, nil)
	later.Held(t, services.Request("GET", "k"))
	g.commit(g.log.End())
	reader.Gets(t, "$1\r\nv\r\n")
	later.Gets(t, "$1\r\nv\r\n")
}

// A server takes back a lock whose client left before the reply. If its group has replaced the server, the
// next master has the lock, and the lock ends with the lease.
func TestADeposedMasterTakesBackNoGrant(t *testing.T) {
	for _, deposed := range []bool{false, true} {
		g := joined(t)
		holder, waiter := g.dial(t), g.dial(t)
		holder.Held(t, services.Request("LOCK.ACQUIRE", "l", "a", "100000"))
		g.commit(g.log.End())
		holder.Wait()
		token, _ := holder.Step(nil)
		waiter.Held(t, services.Request("LOCK.ACQUIRE", "l", "b", "100000", "WAIT", "100000"))
		holder.Held(t, services.Request("LOCK.RELEASE", "l", "a", strings.Trim(token, ":\r\n")))
		waiter.Wait()
		waiter.Held(t, nil)
		if deposed {
			tx := g.DB.BeginAll(0)
			tx.SetReplica(true)
			g.log.Depose()
			tx.Commit()
		}
		waiter.Session.Closed(io.EOF)
		g.DB.Barrier()
		g.log.SetGroup(false)
		info, _ := g.dial(t).Step(services.Request("LOCK.INFO", "l"))
		if kept := strings.Contains(info, "\r\nb\r\n"); kept != deposed {
			t.Errorf("deposed %v: the lock of the client that has gone: %q", deposed, info)
		}
	}
}

func TestAnEmbeddedCallThatWaitsForMembersEndsWithItsOwner(t *testing.T) {
	for name, end := range map[string]func(g *grouped, quit chan struct{}){
		"the server closes": func(g *grouped, _ chan struct{}) { g.Close() },
		"its owner leaves":  func(_ *grouped, quit chan struct{}) { close(quit) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, quit, done := joined(t), make(chan struct{}), make(chan error, 1)
				c := g.NewSession(nil)
				defer c.Closed(nil)
				c.LeaveOn(quit)
				go func() {
					_, err := c.DoContext(t.Context(), []byte("SET"), []byte("k"), []byte("v"))
					done <- err
				}()
				synctest.Wait()
				end(g, quit)
				if err := <-done; !errors.Is(err, engine.ErrClosed) {
					t.Errorf("%v, want %v", err, engine.ErrClosed)
				}
			})
		})
	}
}

func TestAnEmbeddedCallReturnsWhenTheMembersHaveIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := joined(t)
		c := g.NewSession(nil)
		defer c.Closed(nil)
		call := func(ctx context.Context, words ...string) <-chan error {
			done := make(chan error, 1)
			args := make([][]byte, len(words))
			for i, w := range words {
				args[i] = []byte(w)
			}
			go func() {
				_, err := c.DoContext(ctx, args...)
				done <- err
			}()
			synctest.Wait()
			return done
		}
		returns := func(what string, done <-chan error, want error) {
			t.Helper()
			synctest.Wait()
			select {
			case err := <-done:
				if !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", what, err, want)
				}
			default:
				t.Fatalf("%s: the call has not returned", what)
			}
		}
		waits := func(what string, done <-chan error) {
			t.Helper()
			select {
			case err := <-done:
				t.Fatalf("%s: the call has returned: %v", what, err)
			default:
			}
		}
		done := call(t.Context(), "SET", "k", "v")
		waits("a write", done)
		g.commit(g.log.End())
		returns("a write", done, nil)
		returns("a read of what the members have", call(t.Context(), "GET", "k"), nil)

		g.unled.Store(true)
		done = call(t.Context(), "GET", "k")
		waits("a read without the lease", done)
		g.unled.Store(false)
		g.log.Alarm()
		returns("a read", done, nil)

		ctx, cancel := context.WithCancel(t.Context())
		done = call(ctx, "SET", "k", "w")
		cancel()
		returns("a call that is given up", done, context.Canceled)

		done = call(t.Context(), "SET", "k", "x")
		g.pass(5 * time.Second)
		g.log.Alarm()
		returns("a late write", done, session.ErrUnsynced)

		services.Must(t, g.Config.Change(true, "sync-timeout", "7000"))
		done = call(t.Context(), "SET", "k", "x")
		g.pass(5 * time.Second)
		g.log.Alarm()
		waits("a write with a longer sync-timeout", done)
		g.pass(2 * time.Second)
		g.log.Alarm()
		returns("a write that is late even so", done, session.ErrUnsynced)

		done = call(t.Context(), "SET", "k", "y")
		g.depose()
		returns("a write of a term that is over", done, session.ErrUnsynced)
	})
}
