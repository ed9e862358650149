package instance

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/modeltest"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

var (
	dueTime = flag.Duration("due.time", 0, "how long the stress test of what falls due runs; 0: a fixed number of rounds")
	dueSeed = flag.Uint64("due.seed", 0, "of its random numbers; 0: see package draw")
)

// duePipelines is the default number of pipelines of each client.
const duePipelines = 150

// Clients send all kinds of requests, with items, leases, jobs and keys that live for a few ms by the system's clock.
// Expiry rules record the expirations, and connections end at any moment, even while they wait. Afterwards the engine
// is consistent, all lines are empty once the clients have left, each expiration was recorded once, a replica of the
// effects has the same keyspace, and no goroutine is left.
func TestWhatFallsDueUnderManyClients(t *testing.T) {
	before := runtime.NumGoroutine()
	seed := draw.Seed(t, *dueSeed)
	s := newDueStress(t)
	s.noLimiters = seed%2 == 0
	s.setRules()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clients, others sync.WaitGroup
	for i := range uint64(16) {
		clients.Go(func() { s.client(rand.New(rand.NewPCG(seed, i)), seed+i) })
	}
	others.Go(func() { s.follow(ctx) })
	others.Go(func() { s.inspect(ctx) })
	clients.Wait()
	cancel()
	others.Wait()

	s.stop()
	s.verify()
	s.replica.Close()
	s.db.Close()
	for until := time.Now().Add(patience); runtime.NumGoroutine() > before && time.Now().Before(until); {
		runtime.Gosched() // goroutines that were told to end do so by themselves
	}
	if n := runtime.NumGoroutine(); n > before {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before\n%s", n, before, buf[:runtime.Stack(buf, true)])
	}
	t.Logf("%d replies on %d connections", s.replies.Load(), s.conns.Load())
}

// dueStress is the server and the counts of its clients.
type dueStress struct {
	*stressed
	noLimiters     bool
	replies, conns atomic.Int64
}

func newDueStress(t *testing.T) *dueStress {
	return &dueStress{stressed: newStressed(t, "--notify-keyspace-events", "KEA", "--hash-max-listpack-entries", "8",
		"--set-max-listpack-entries", "8", "--zset-max-listpack-entries", "8", "--list-max-listpack-size", "8")}
}

// toldDatabases is the number of databases, each with a rule, that the clients use.
const toldDatabases = 3

func (s *dueStress) setRules() {
	c := s.svc.NewSession(nil)
	defer c.Closed(nil)
	for i := range toldDatabases {
		c.Do([]byte("SELECT"), []byte(strconv.Itoa(i)))
		if v := c.Do([]byte("EXPIRY"), []byte("RULE"), []byte("SET"), []byte("told"), []byte("MATCH"), []byte("*"), []byte("TO"), []byte("told"),
			[]byte("MAXLEN"), []byte("1000")); v.Str != "OK" {
			s.t.Fatal(v)
		}
	}
}

// dueClient is a connection. Its waiting requests end with it.
type dueClient struct {
	conn   net.Conn
	r      *bufio.Reader
	memory modeltest.Memory
}

func (s *dueStress) dial() *dueClient {
	conn, err := net.Dial("unix", s.path)
	if err != nil {
		s.t.Error(err)
		return nil
	}
	s.conns.Add(1)
	return &dueClient{conn, bufio.NewReader(conn), modeltest.Memory{}}
}

// client sends pipelines of requests. Now and then it disconnects, in the middle of a pipeline or while it waits.
func (s *dueStress) client(rng *rand.Rand, seed uint64) {
	g := modeltest.NewOwnGenerator(seed, s.svc.Table())
	g.Told, g.NoLimiters = true, s.noLimiters
	var c *dueClient
	for range draw.Rounds(*dueTime, duePipelines) {
		if c == nil {
			if c = s.dial(); c == nil {
				return
			}
			if rng.IntN(3) == 0 {
				_, _ = c.conn.Write(wire.AppendCommand(nil, "HELLO", "3"))
				_, _ = c.read()
			}
		}
		if !s.pipeline(c, rng, g) {
			_ = c.conn.Close()
			c = nil
		}
	}
	if c != nil {
		_ = c.conn.Close()
	}
}

// pipeline sends some requests and reads the replies that arrive within a few ms. It reports whether all have
// arrived; if not, the client disconnects.
func (s *dueStress) pipeline(c *dueClient, rng *rand.Rand, g *modeltest.OwnGenerator) bool {
	var b []byte
	var sent [][]string
	for range 1 + rng.IntN(8) {
		args := shortened(c.memory.Resolve(g.Request(), s.db.Clock().Micros()/1000), rng)
		if len(args) == 0 || unfitForDue(args) {
			continue
		}
		switch rng.IntN(20) {
		case 0:
			sent, b = append(sent, []string{"MULTI"}), wire.AppendCommand(b, "MULTI")
		case 1, 2:
			sent, b = append(sent, []string{"EXEC"}), wire.AppendCommand(b, "EXEC")
		}
		sent, b = append(sent, args), wire.AppendCommand(b, args...)
	}
	if _, err := c.conn.Write(b); err != nil || rng.IntN(50) == 0 {
		return false
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(time.Duration(2+rng.IntN(40)) * time.Millisecond))
	for _, args := range sent {
		v, err := c.read()
		if err != nil {
			return false
		}
		s.replies.Add(1)
		c.memory.Learn(args, v)
	}
	return true
}

// read reads a reply, and skips pushes.
func (c *dueClient) read() (resp.Value, error) {
	for {
		v, err := wire.ReadValue(c.r)
		if err != nil || v.Kind != resp.KindPush {
			return v, err
		}
	}
}

// shortened replaces most long TTLs by short ones, so that many deadlines pass.
func shortened(args []string, rng *rand.Rand) []string {
	for i, a := range args {
		switch a {
		case "5000", "60000", "100000", "3600000", "3600", "1000", "1001", "999":
			if i > 1 && rng.IntN(4) > 0 {
				args[i] = strconv.Itoa(1 + rng.IntN(40))
			}
		}
	}
	return args
}

// unfitForDue reports whether a request would stop the expirations under test.
func unfitForDue(args []string) bool {
	for _, a := range args {
		if strings.EqualFold(a, "SET-ACTIVE-EXPIRE") {
			return true
		}
	}
	return false
}

// follow applies the effects to the replica as they arrive, so that they do not pile up.
func (s *dueStress) follow(ctx context.Context) {
	for ctx.Err() == nil {
		if err := s.replica.Run(s.db); err != nil {
			s.t.Error(err)
			return
		}
		runtime.Gosched()
	}
}

// inspect checks the engine, and runs commands that read the whole keyspace.
func (s *dueStress) inspect(ctx context.Context) {
	c := s.svc.NewSession(nil)
	defer c.Closed(nil)
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for ctx.Err() == nil {
		if err := s.db.Check(); err != nil {
			s.t.Error(err)
			return
		}
		for _, words := range []string{"INFO everything", "EXPIRY LAG", "EXPIRY NEXT", "EXPIRY FORECAST", "EXPIRY RULE LIST", "DBSIZE",
			"CLIENT LIST", "MEMORY STATS"} {
			var args [][]byte
			for w := range strings.FieldsSeq(words) {
				args = append(args, []byte(w))
			}
			if v := c.Do(args...); v.Kind == resp.KindError {
				s.t.Errorf("%s: %s", words, v.Str)
			}
		}
		<-pace.C
	}
}

// stop ends the server and the service, while clients are still connected.
func (s *dueStress) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.srv.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		s.t.Error(err)
	}
	s.svc.Close()
}

// verify checks the final state.
func (s *dueStress) verify() {
	if n := s.db.Waiters(); n != 0 {
		s.t.Errorf("%d places in lines are taken, and no client waits", n)
	}
	if err := s.db.Check(); err != nil {
		s.t.Error(err)
	}
	err := s.quiet()
	if err != nil {
		s.t.Error(err)
	}
	tx := s.db.BeginAll(0)
	fired := int64(0)
	for i := range toldDatabases {
		tx.Select(i)
		for _, r := range tx.Rules() {
			if fired += r.Fired; r.Suspended != 0 {
				s.t.Errorf("of rule %s in database %d %d entries were not written: %s", r.Name, i, r.Suspended, r.Why)
			}
		}
	}
	tx.Commit()
	stats := s.db.Stats()
	if lags := stats.LagOf(); fired > lags.Count || fired < lags.Count && s.noLimiters {
		s.t.Errorf("rules were told of %d expiries, there were %d", fired, lags.Count)
	}
	s.t.Logf("%d keys and %d items have expired, %d leases", stats.Expired, stats.ExpiredItems, stats.LeasesExpired)
}

// quiet reclaims all that is due, and compares the keyspace with the replica's.
func (s *dueStress) quiet() error {
	for i := range stressLoops {
		for r := s.db.Reclaimer(i, func() {}); r.Run() == 0; {
		}
	}
	return s.replica.Follow(s.db)
}
