package instance

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/replication"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// membership acts as a group: it records the events of the links.
type membership struct {
	session.GroupOperator // nil: no operator's requests
	svc                   *session.Service
	clock                 *settable    // the engine's
	acks                  atomic.Int64 // number of acknowledgements

	mu      sync.Mutex // guards the fields below
	notes   []string
	refuses string // the name of the call to refuse
}

func (g *membership) note(what string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.notes = append(g.notes, what)
	if g.refuses != "" && strings.HasPrefix(what, g.refuses) {
		return errors.New("the test refuses it")
	}
	return nil
}

// noted reports whether a record begins with prefix.
func (g *membership) noted(prefix string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.notes {
		if strings.HasPrefix(n, prefix) {
			return true
		}
	}
	return false
}

// count returns the number of records that begin with prefix.
func (g *membership) count(prefix string) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, note := range g.notes {
		if strings.HasPrefix(note, prefix) {
			n++
		}
	}
	return n
}

func (g *membership) refuse(call string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.notes, g.refuses = nil, call
}

func (g *membership) Clock(machine clock.Clock) clock.Clock {
	g.clock = &settable{System: machine.(*clock.System)}
	return g.clock
}

func (g *membership) Attach(svc *session.Service)  { g.svc = svc }
func (g *membership) Begin() error                 { return g.note("begin") }
func (g *membership) Close() error                 { return nil }
func (g *membership) Leave(context.Context) func() { return func() {} }
func (g *membership) Lease() bool                  { return true }
func (g *membership) Info(func(string, any))       {}

func (g *membership) Greeted(_ *replication.Replica, greeting string) error {
	return g.note("greeted " + greeting)
}
func (g *membership) Fits(string) error                { return g.note("fits") }
func (g *membership) Connected(uint64) (string, error) { return "a-member", g.note("connected") }
func (g *membership) Answered(_ uint64, stream string, full bool) error {
	return g.note("answered " + stream + " " + strconv.FormatBool(full))
}
func (g *membership) StreamName() string             { return "" }
func (g *membership) Loaded(uint64)                  { _ = g.note("loaded") }
func (g *membership) Stamped(_ uint64, stamp string) { _ = g.note("stamped " + stamp) }
func (g *membership) Acknowledge(uint64) (string, bool) {
	g.acks.Add(1)
	return "all-of-it", true
}
func (g *membership) Closed(uint64)             { _ = g.note("closed") }
func (g *membership) Acked(a replication.Ack)   { _ = g.note("acked " + a.Group) }
func (g *membership) Left(*replication.Replica) { _ = g.note("left") }

// startMember starts a member of a group that follows no master.
func startMember(t *testing.T, options ...string) (*Instance, *membership) {
	t.Helper()
	options = append([]string{"--port", strconv.Itoa(realserver.FreePort(t)), "--bind", "127.0.0.1"}, options...)
	cfg, err := config.Load(options, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := &membership{}
	in, err := Start(context.Background(), Options{Config: cfg, Log: slog.New(slog.DiscardHandler), Group: g})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shutDown(t, in) })
	return in, g
}

const aStream = "00000000000000070123456789abcdef01234567"

func lead(in *Instance, stream string) {
	tx := in.db.BeginAll(0)
	defer tx.Commit()
	in.svc.Replication().Lead(tx, stream)
}

func followMember(t *testing.T, in, master *Instance) {
	t.Helper()
	host, port, err := net.SplitHostPort(master.address())
	if err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.Atoi(port)
	tx := in.db.BeginAll(0)
	defer tx.Commit()
	in.svc.Replication().Follow(tx, host, n)
}

func TestTheLinksOfAGroupCarryStampsAndAcknowledgements(t *testing.T) {
	t.Parallel()
	master, mg := startMember(t)
	replica, rg := startMember(t)
	c := connect(t, master.address())
	c.send("SET", "k", "v")
	if v := <-c.soon(); v.err != nil || !strings.HasPrefix(v.Str, "READONLY") {
		t.Fatalf("a member that rests answers a write with %v", v)
	}
	lead(master, aStream)
	c.must("SET", "k", "v")
	followMember(t, replica, master)
	for what, seen := range map[string]func() bool{
		"the greeting":        func() bool { return mg.noted("greeted a-member") },
		"the answer":          func() bool { return rg.noted("answered " + aStream + " true") },
		"the end of the load": func() bool { return rg.noted("loaded") },
		"an acknowledgement":  func() bool { return mg.noted("acked all-of-it") },
		"the data": func() bool {
			r := connect(t, replica.address())
			r.send("GET", "k") // -MASTERDOWN until the link is up
			return (<-r.soon()).Str == "v"
		},
		"a stamp behind the stream": func() bool { master.svc.Replication().Stamp("stamp-1"); return rg.noted("stamped stamp-1") },
	} {
		tier.Eventually(t, what, seen)
	}
	rest := master.db.BeginAll(0)
	master.svc.Replication().Rest(rest)
	rest.Commit()
	tier.Eventually(t, "both hear that the link has ended", func() bool { return mg.noted("left") && rg.noted("closed") })
	c.send("SET", "k", "w")
	if v := <-c.soon(); v.err != nil || !strings.HasPrefix(v.Str, "READONLY") {
		t.Errorf("a master that was replaced answers a write with %v", v)
	}
	c.send("REPLICAOF", "NO", "ONE")
	if v := <-c.soon(); v.err != nil || !strings.Contains(v.Str, "the group of this server chooses the master") {
		t.Errorf("REPLICAOF: %v", v)
	}
}

func TestAMemberThatRefusesAMasterKeepsItsData(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"answered", "connected"} {
		t.Run(call, func(t *testing.T) {
			master, _ := startMember(t)
			replica, rg := startMember(t, "--sync-reads", "local") // otherwise it answers no read without a master
			lead(replica, strings.Repeat("1", 40))
			c := connect(t, replica.address())
			c.must("SET", "k", "old")
			lead(master, aStream)
			rg.refuse(call)
			followMember(t, replica, master)
			tier.Eventually(t, "the link was refused", func() bool { return rg.noted(call) && rg.noted("closed") })
			if got := c.must("GET", "k"); got.Str != "old" {
				t.Errorf("the member has %q", got.Str)
			}
			if id, _, _ := replica.svc.Replication().Names(); id == aStream {
				t.Error("the member's stream has the name of the refused stream")
			}
		})
	}
}

func TestAServerWithoutAGroupIsNoMasterOfAMember(t *testing.T) {
	t.Parallel()
	replica, rg := startMember(t)
	lead(replica, strings.Repeat("1", 40))
	connect(t, replica.address()).must("SET", "k", "old")
	stranger := startMaster(t)
	other := connect(t, stranger.address())
	other.must("SET", "k", "new")
	followMember(t, replica, stranger)
	tier.Eventually(t, "the link was refused", func() bool { return rg.noted("connected") && rg.noted("closed") })
	if rg.noted("answered") {
		t.Error("the stranger has sent a stream")
	}
	other.send("REPLCONF", "group", "ebb/1/1/1/0")
	if v := <-other.soon(); !strings.Contains(v.Str, "Unrecognized REPLCONF option: group") {
		t.Errorf("a server without a group takes a greeting: %v", v)
	}
}

func TestAReplicaOfAGroupExecutesNoWrite(t *testing.T) {
	t.Parallel()
	member, _ := startMember(t)
	c := connect(t, member.address())
	c.must("CONFIG", "SET", "replica-read-only", "no")
	c.send("SET", "k", "v")
	if v := <-c.soon(); v.err != nil || !strings.HasPrefix(v.Str, "READONLY") {
		t.Errorf("a write: %v", v)
	}
	c.send("GET", "k")
	if v := <-c.soon(); v.err != nil || !strings.HasPrefix(v.Str, "MASTERDOWN") {
		t.Errorf("a read without a master: %v", v)
	}
}

func TestAMasterOfAGroupRefusesAGreeting(t *testing.T) {
	t.Parallel()
	master, mg := startMember(t)
	replica, rg := startMember(t)
	lead(master, aStream)
	mg.refuse("greeted")
	followMember(t, replica, master)
	tier.Eventually(t, "the greeting was refused", func() bool { return mg.noted("greeted") && rg.noted("closed") })
	if rg.noted("answered") {
		t.Error("the master has answered")
	}
	mg.refuse("")
	tier.Eventually(t, "the link is tried again", func() bool { return rg.noted("loaded") })
}

// The master refuses a member that does not fit before it locks its shards, and the member tries less and less often.
func TestAMemberThatDoesNotFitTriesLessOften(t *testing.T) {
	t.Parallel()
	master, mg := startMember(t)
	replica, rg := startMember(t)
	lead(master, aStream)
	mg.refuse("fits")
	held := master.db.BeginAll(0)
	defer held.Commit()
	followMember(t, replica, master)
	tries := func(n int) { tier.Eventually(t, "the link is tried", func() bool { return rg.count("closed") >= n }) }
	tries(1)
	began := time.Now()
	tries(6) // 50 + 100 + 200 + 400 + 800 ms
	if took := time.Since(began); took < time.Second {
		t.Errorf("five attempts took %v", took)
	}
	if mg.noted("greeted") {
		t.Error("the greeting was taken with PSYNC")
	}
	c := connect(t, replica.address())
	if got := c.must("INFO", "replication").Str; !strings.Contains(got, "the master refuses this member: the test refuses it") {
		t.Errorf("the replica does not say why: %s", got)
	}
}

// linkedMembers starts a master and a member that has all its data.
func linkedMembers(t *testing.T) (master, replica *Instance, rg *membership) {
	t.Helper()
	master, _ = startMember(t)
	replica, rg = startMember(t)
	lead(master, aStream)
	followMember(t, replica, master)
	tier.Eventually(t, "the link is up", func() bool { return rg.noted("loaded") })
	return master, replica, rg
}

// Otherwise a master that was cut off would have stamps in its stream that no other node has.
func TestStampsAndPingsAreNoPartOfTheStream(t *testing.T) {
	t.Parallel()
	master, replica, rg := linkedMembers(t)
	c, log := connect(t, master.address()), master.db.Log()
	var stamping sync.WaitGroup
	over := make(chan struct{})
	stamping.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-over:
				return
			default:
				master.svc.Replication().Stamp("stamp-" + strconv.Itoa(n))
			}
		}
	})
	for n := range 300 { // reads of the stream end within commands and transactions
		value := strings.Repeat("v", n*n)
		c.must("SET", "k", value)
		c.must("MULTI")
		c.must("SET", "a", value)
		c.must("SET", "b", value)
		c.must("EXEC")
	}
	close(over)
	stamping.Wait()
	before := log.End()
	tier.Eventually(t, "a stamp behind all writes", func() bool {
		master.svc.Replication().Stamp("last")
		return rg.noted("stamped last")
	})
	if log.End() != before {
		t.Errorf("a stamp has moved the end of the stream from %d to %d", before, log.End())
	}
	if got := replica.db.Log().End(); got != before {
		t.Errorf("the stream of the replica ends at %d, that of its master at %d", got, before)
	}
	if rg.noted("closed") {
		t.Error("the link has ended")
	}
	if !rg.noted("stamped stamp-") {
		t.Error("no stamp has arrived among the writes")
	}
}

// A replica of a member that is not a member itself receives only the stream. Without PING it would reconnect after
// repl-timeout.
func TestAReplicaBehindAMemberGetsPings(t *testing.T) {
	t.Parallel()
	master, replica, _ := linkedMembers(t)
	connect(t, master.address()).must("CONFIG", "SET", "repl-ping-replica-period", "1")
	observer := startMaster(t)
	host, port, err := net.SplitHostPort(replica.address())
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, observer.address())
	c.must("REPLICAOF", host, port)
	tier.Eventually(t, "the observer is online", func() bool {
		return strings.Contains(c.must("INFO", "replication").Str, "master_link_status:up")
	})
	before := observer.db.Log().End()
	tier.Eventually(t, "two PINGs come through the member", func() bool {
		return observer.db.Log().End() >= before+2*int64(len("*1\r\n$4\r\nPING\r\n"))
	})
}

func TestAQuietMasterAddsNoMessages(t *testing.T) {
	t.Parallel()
	master, _, _ := linkedMembers(t)
	c, log := connect(t, master.address()), master.db.Log()
	for _, quiet := range []bool{false, true, false} {
		tx := master.db.BeginAll(0)
		master.svc.Replication().SetQuiet(tx, quiet)
		tx.Commit()
		before := log.End()
		c.must("PUBLISH", "c", "m")
		if grew := log.End() > before; grew == quiet {
			t.Errorf("quiet is %v, and a message has made the stream longer: %v", quiet, grew)
		}
	}
}

// A client that sends SYNC is not a member, whatever it has sent with REPLCONF, and gets no stamps.
func TestSyncMakesNoMember(t *testing.T) {
	t.Parallel()
	master, _ := startMember(t)
	lead(master, aStream)
	c, err := net.Dial("tcp", master.address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("REPLCONF group a-member\r\nSYNC\r\n")); err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	var reading sync.WaitGroup
	reading.Go(func() {
		var all []byte
		for b := make([]byte, 4096); !bytes.Contains(all, []byte("SET\r\n$1\r\nk\r\n")); {
			n, err := c.Read(b)
			if all = append(all, b[:n]...); err != nil {
				break
			}
		}
		got <- string(all)
	})
	client, stream := connect(t, master.address()), ""
	tier.Eventually(t, "the client gets the stream", func() bool {
		master.svc.Replication().Stamp("a-stamp")
		client.must("SET", "k", "v")
		select {
		case stream = <-got:
			return true
		default:
			return false
		}
	})
	reading.Wait()
	if strings.Contains(stream, "STAMP") {
		t.Errorf("the member gets a stamp: %q", stream)
	}
}
